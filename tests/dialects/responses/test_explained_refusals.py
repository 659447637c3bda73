"""What a provider wrote about its refusal, for a client of Responses: a `refusal` of an answer that was filtered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import Pipeline, through
from xenoglot.dialect_registry import get
from xenoglot.model.content import Refusal, Text
from xenoglot.model.fold import fold, unfold
from xenoglot.model.request import Request
from xenoglot.model.response import Candidate, Finish, Response

if TYPE_CHECKING:
    from xenoglot.model.content import Part

ASKED = Request(model="m")
FINISH = Finish(reason="refusal", raw="refusal", dialect="messages", explanation="Not this.")


def both(*parts: Part) -> list[tuple[tuple[Part, ...], Finish | None, list[str]]]:
    """Return parts, finish and losses of an answer, whole and streamed, as a client reads them."""
    dialect = get("responses")
    response = Response(id="r", model="m", candidates=(Candidate(content=parts, finish=FINISH),))
    whole, piecewise = Losses(), Losses()
    body = dialect.encode_response(response, ASKED, whole)
    stages = Pipeline(dialect.stream_encoder(ASKED, piecewise), dialect.stream_decoder())
    streamed = fold(through(unfold(response), stages))
    assert isinstance(streamed, Response)
    return [
        (read.candidates[0].content, read.candidates[0].finish, [str(loss) for loss in losses])
        for read, losses in ((dialect.decode_response(body), whole), (streamed, piecewise))
    ]


@pytest.mark.parametrize("before", [(), (Text(text="I "),)])
def test_the_explanation_is_a_refusal_and_the_answer_filtered(before: tuple[Part, ...]) -> None:
    for content, finish, losses in both(*before):
        assert [part.text for part in content if isinstance(part, Refusal)] == ["Not this."]
        assert [part.text for part in content if isinstance(part, Text)] == [
            part.text for part in before if isinstance(part, Text)
        ]
        assert finish is not None
        assert (finish.reason, finish.raw) == ("refusal", "content_filter")
        assert "$.candidates[0].finish explanation emulated (written as a `refusal` of the output)" in losses


def test_the_words_of_the_model_come_first() -> None:
    for content, _, losses in both(Refusal(text="No.")):
        assert [part.text for part in content if isinstance(part, Refusal)] == ["No."]
        assert "$.candidates[0].finish explanation dropped (the model's own words are the `refusal`)" in losses
