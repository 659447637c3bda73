"""Finish reasons that no server sent."""

import pytest

from xenoglot.codec.loss import Loss, Losses
from xenoglot.codec.responses.answer_repair import FinishLosses, with_finish
from xenoglot.model.content import Text, ToolCall
from xenoglot.model.events import Finished, Ping
from xenoglot.model.response import Candidate, Finish, FinishReason, Response

STOP = Finish(reason="stop")
CALL = ToolCall(id="a", name="f")


def loss(reason: str, index: int = 0) -> Loss:
    why = f"the server sent no finish reason; `{reason}` is assumed"
    return Loss(f"$.candidates[{index}]", "finish", "approximated", why)


@pytest.mark.parametrize(("part", "reason"), [(Text(text="a"), "unknown"), (CALL, "tool_calls")])
def test_a_whole_answer_has_a_finish(part: Text | ToolCall, reason: FinishReason) -> None:
    """findings-C10-finish."""
    losses = Losses()
    ended = Candidate(content=(part,), finish=STOP)
    response = with_finish(Response(candidates=(ended, Candidate(content=(part,)))), losses)
    assert response.candidates[0] is ended
    assert response.candidates[1] == Candidate(content=(part,), finish=Finish(reason=reason, assumed=True))
    assert list(losses) == [loss(reason, 1)]


def test_an_answer_with_a_finish_is_left_alone() -> None:
    losses = Losses()
    response = Response(candidates=(Candidate(finish=STOP),))
    assert with_finish(response, losses) is response
    assert list(losses) == []


def test_assumed_finishes_of_a_stream_are_losses() -> None:
    losses = Losses()
    notes = FinishLosses(losses)
    assumed = Finished(finish=Finish(reason="stop", assumed=True), candidate=2)
    assert [*notes.feed(Ping()), *notes.feed(assumed), *notes.feed(Finished(finish=STOP)), *notes.close()] == [
        Ping(),
        assumed,
        Finished(finish=STOP),
    ]
    assert list(losses) == [loss("stop", 2)]
