"""A prompt that its losses leave empty is refused: no model answers a turn of which it got nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import xenoglot
from xenoglot.codec.loss import Losses
from xenoglot.codec.requests.adapt_request import encode_fitted
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get, names
from xenoglot.errors import WireError
from xenoglot.model.content import Audio, File, Image, Opaque, Reasoning, Stored, Text
from xenoglot.model.request import Message, Request, Sampling

if TYPE_CHECKING:
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject

STORED = Stored(id="file_011CNha8iCJcU1wXNR6q4V8w")
UNKNOWN: dict[str, Part] = {
    "image": Image(source=STORED),
    "file": File(source=STORED),
    "audio": Audio(source=STORED),
    "opaque": Opaque(dialect="another", data={"type": "thing"}),
}
"""What no server of another provider knows."""

QUESTION = Message(role="user", content=(Text(text="Q"),))
BEFORE: dict[str, tuple[Message, ...]] = {
    "alone": (),
    "system": (Message(role="system", content=(Text(text="S"),)),),
    "history": (QUESTION, Message(role="assistant", content=(Text(text="A"),))),
}


def _body(*parts: JSON, **more: JSON) -> JSONObject:
    return {"model": "m", "messages": [{"role": "user", "content": list(parts)}], **more}


ASKED: dict[str, tuple[str, JSONObject]] = {
    "chat-file": ("chat", _body({"type": "file", "file": {"file_id": STORED.id}})),
    "responses-file": (
        "responses",
        {"model": "m", "input": [{"role": "user", "content": [{"type": "input_file", "file_id": STORED.id}]}]},
    ),
    "responses-image": (
        "responses",
        {
            "model": "m",
            "input": [
                {"role": "user", "content": [{"type": "input_image", "file_id": STORED.id, "detail": "auto"}]},
            ],
        },
    ),
    "messages-document": (
        "messages",
        _body({"type": "document", "source": {"type": "file", "file_id": STORED.id}}, max_tokens=9),
    ),
    "messages-container": ("messages", _body({"type": "container_upload", "file_id": STORED.id}, max_tokens=9)),
    "gemini-file": (
        "gemini",
        {
            "model": "m",
            "contents": [{"role": "user", "parts": [{"fileData": {"fileUri": "files/abc", "mimeType": "image/png"}}]}],
        },
    ),
}
"""Requests whose prompt is one file that only their own provider has."""


@pytest.mark.parametrize("target", names())
@pytest.mark.parametrize("case", ASKED)
def test_of_another_provider(case: str, target: str) -> None:
    client, body = ASKED[case]
    losses = Losses()
    if target == client:
        assert xenoglot.translate_request(body, client, target, losses) == body
        return
    with pytest.raises(WireError) as caught:
        xenoglot.translate_request(body, client, target, losses)
    assert "$.messages[0]" in caught.value.path


@pytest.mark.parametrize("target", names())
@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("kind", UNKNOWN)
def test_a_turn_of_which_nothing_is_left(kind: str, before: str, target: str) -> None:
    turn = Message(role="user", content=(UNKNOWN[kind], Text(text="")))
    losses = Losses()
    with pytest.raises(WireError) as caught:
        _encode(target, *BEFORE[before], turn, losses=losses)
    assert caught.value.path.startswith("$.messages")
    if "get nothing of this turn" in caught.value.problem:
        (why,) = {loss.why for loss in losses if loss.where == caught.value.path}
        assert caught.value.problem.endswith(why)


@pytest.mark.parametrize("target", [name for name in names() if get(name).turns])
@pytest.mark.parametrize("kind", UNKNOWN)
def test_what_stands_beside_words_is_a_loss(kind: str, target: str) -> None:
    losses = Losses()
    _encode(target, Message(role="user", content=(UNKNOWN[kind], Text(text="Q"))), losses=losses)
    assert [loss.how for loss in losses if loss.where == "$.messages[0].content[0]"] == ["dropped"]


@pytest.mark.parametrize("target", [name for name in names() if get(name).turns])
@pytest.mark.parametrize(
    "turns",
    [
        pytest.param((QUESTION, Message(role="assistant", content=(Reasoning(text="hm"),))), id="thought"),
        pytest.param((Message(role="user", content=(UNKNOWN["file"],)), QUESTION), id="earlier-file"),
        pytest.param((Message(role="user", content=()),), id="said-nothing"),
        pytest.param((Message(role="user", content=(Text(text=""),)),), id="said-blank"),
    ],
)
def test_other_turns_are_not_refused(turns: tuple[Message, ...], target: str) -> None:
    _encode(target, *turns, losses=Losses())


def _encode(target: str, *messages: Message, losses: Losses) -> JSONObject:
    request = Request(model="m", messages=messages, sampling=Sampling(max_tokens=9))
    return encode_fitted(get(target), request, Target(), losses)
