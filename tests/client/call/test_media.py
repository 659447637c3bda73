"""The option `media` of a call: what the answer may be made of."""

from __future__ import annotations

import pytest

import xenoglot
from xenoglot.backends.callable import Callable
from xenoglot.model.request import Request


@pytest.mark.parametrize(
    "media",
    [xenoglot.MediaOutput(modalities=("image",)), {"modalities": ["image"]}],
    ids=["struct", "dict"],
)
def test_the_wish_is_in_the_request(media: xenoglot.MediaOutput | dict[str, list[str]]) -> None:
    asked: list[Request] = []

    def answer(request: Request) -> str:
        asked.append(request)
        return "Hi"

    xenoglot.Client(Callable(answer)).complete("Draw a cat.", media=media)
    assert [request.media for request in asked] == [xenoglot.MediaOutput(modalities=("image",))]


def test_a_mistake_names_its_place() -> None:
    with pytest.raises(xenoglot.InvalidRequestError) as caught:
        xenoglot.Client(Callable(lambda _: "Hi")).complete("Hi", media={"modalities": "image"})
    assert caught.value.failure.param == "$.media.modalities"
