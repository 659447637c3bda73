"""Compaction around a backend: what is reported of a call that the client did not see, and of its usage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from tests.gateway.scripted_backends import Backend
from xenoglot.backends.backend import Call, EventAnswer
from xenoglot.codec.loss import Losses
from xenoglot.errors import FailureError, LossError
from xenoglot.gateway.upstream.compaction import NO_SUMMARY, CompactionBackend
from xenoglot.model.content import Extra, Image, Opaque, Remote, Text
from xenoglot.model.context import ClearThinking, Compact, ContextEdit, ContextManagement
from xenoglot.model.events import Event, Finished, Started, UsageReported
from xenoglot.model.fold import fold, unfold
from xenoglot.model.request import Message, Request
from xenoglot.model.response import Candidate, Finish, Response, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from xenoglot.backends.backend import Answer

SUMMARY = Response(
    candidates=(Candidate(content=(Text(text="A parser."),), finish=Finish(reason="stop")),),
    usage=Usage(input_tokens=100, output_tokens=10, cache_read=7),
)
SNAPSHOTS: Sequence[Event] = (
    Started(),
    UsageReported(usage=Usage(input_tokens=40, output_tokens=1)),
    UsageReported(usage=Usage(output_tokens=4)),
    Finished(finish=Finish(reason="stop")),
)
WHY = "the model reads no images"
PICTURE = Image(source=Remote(url="https://example.com/a.png"))


def turn(role: str, *parts: Text | Image) -> Message:
    return Message(role=role, content=parts)  # type: ignore[arg-type]


HISTORY = (
    turn("system", Text(text="S")),
    turn("user", Text(text="Hi"), PICTURE),
    turn("assistant", Text(text="Done.")),
    turn("user", PICTURE, Text(text="Go on.")),
)


class BlindBackend(Backend):
    """A backend that drops images and every tool choice, and answers with these streams, one after the other."""

    def __init__(self, *streams: Sequence[Event]) -> None:
        super().__init__()
        self.requests: list[Request] = []
        self._streams = list(streams)

    async def answer(self, call: Call) -> Answer:
        """Answer with the next stream."""
        self.requests.append(call.request)
        for index, message in enumerate(call.request.messages):
            for at, part in enumerate(message.content):
                if isinstance(part, Image):
                    call.losses.dropped(f"$.messages[{index}].content[{at}]", "image", WHY)
        last = len(call.request.messages) - 1
        call.losses.approximated(f"$.messages[{last}]", "turn", "two turns of one role are joined")
        call.losses.dropped("$", f"call {len(self.requests)}", "of no interest")
        call.losses.settle()
        batches = _one(self._streams.pop(0))
        return EventAnswer(batches=batches, aclose=batches.aclose)


async def _one(events: Sequence[Event]) -> AsyncGenerator[Sequence[Event]]:
    yield events


async def asked(backend: Backend, losses: Losses, *edits: ContextEdit) -> Response:
    """Return the answer to `HISTORY` with these edits."""
    context = ContextManagement(edits=edits, extra=Extra(dialect="messages", fields={"later": 1}))
    request = Request(model="m", messages=HISTORY, context_management=context)
    call = Call(request=request, losses=losses, dialect="messages")
    answer = await CompactionBackend(backend).answer(call)
    assert isinstance(answer, EventAnswer)
    events = [event async for batch in answer.batches for event in batch]
    await answer.aclose()
    response = fold(events)
    assert isinstance(response, Response)
    return response


async def test_losses_of_both_calls_are_reported_where_they_stood_in_the_request() -> None:
    """An image of an old turn is lost in the summary, one of the last turn in the answer."""
    losses, backend = Losses(), BlindBackend(list(unfold(SUMMARY)), SNAPSHOTS)
    await asked(backend, losses, Compact(trigger_tokens=1))
    assert len(backend.requests[1].messages) == 3
    assert [(loss.where, loss.what) for loss in losses] == [
        ("$.context_management", "later"),
        ("$.messages[1].content[1]", "image"),
        ("$.messages[3].content[0]", "image"),
        ("$.messages[3]", "turn"),
        ("$", "call 2"),
    ]


async def test_no_loss_is_let_through_where_there_may_be_none() -> None:
    backend = BlindBackend(list(unfold(SUMMARY)), SNAPSHOTS)
    with pytest.raises(LossError):
        await asked(backend, Losses(strict=True), Compact(trigger_tokens=1))
    assert len(backend.requests) == 1


async def test_edits_that_the_gateway_does_not_know_are_losses() -> None:
    losses = Losses()
    unknown = Opaque(dialect="messages", data={"type": "clear_images_20270101"})
    thinking = ClearThinking(keep=1, extra=Extra(dialect="messages", fields={"trigger": {"type": "cost", "value": 1}}))
    await asked(BlindBackend(SNAPSHOTS), losses, unknown, thinking)
    assert [(loss.where, loss.what, loss.how) for loss in losses] == [
        ("$.context_management.edits[0]", "edit", "dropped"),
        ("$.context_management.edits[1]", "trigger", "dropped"),
        ("$.context_management", "later", "dropped"),
        ("$.messages[1].content[1]", "image", "dropped"),
        ("$.messages[3].content[0]", "image", "dropped"),
        ("$.messages[3]", "turn", "approximated"),
        ("$", "call 1", "dropped"),
    ]


async def test_the_usage_of_both_calls_is_added_to_the_last_snapshot() -> None:
    """A snapshot without a count keeps the one before: the prompt of the second call is not forgotten."""
    response = await asked(BlindBackend(list(unfold(SUMMARY)), SNAPSHOTS), Losses(), Compact(trigger_tokens=1))
    assert response.usage == Usage(input_tokens=140, output_tokens=14, cache_read=7)


async def test_the_extra_of_the_usage_stays() -> None:
    extra = Extra(dialect="messages", fields={"server_tool_use": {"web_search_requests": 1}})
    done = replace(SUMMARY, usage=Usage(input_tokens=1, output_tokens=1, extra=extra))
    backend = BlindBackend(list(unfold(SUMMARY)), list(unfold(done)))
    response = await asked(backend, Losses(), Compact(trigger_tokens=1))
    assert response.usage == Usage(input_tokens=101, output_tokens=11, cache_read=7, extra=extra)


def written(reason: str) -> Sequence[Event]:
    """Return the events of a summary that ended for this reason."""
    finish = Finish(reason=reason)  # type: ignore[arg-type]
    return list(unfold(replace(SUMMARY, candidates=(replace(SUMMARY.candidates[0], finish=finish),))))


@pytest.mark.parametrize("reason", ["length", "context"])
@pytest.mark.parametrize("wish", [Compact(trigger_tokens=1), Compact(now=True)], ids=["due", "now"])
async def test_a_summary_that_is_cut_off_is_a_loss(reason: str, wish: Compact) -> None:
    losses = Losses()
    await asked(BlindBackend(written(reason), SNAPSHOTS), losses, wish)
    found = [(loss.where, loss.how, loss.why) for loss in losses if loss.what == "context_management"]
    assert found == [
        ("$", "approximated", "the summary was cut off: it had more than 8192 tokens, or the context was full")
    ]


async def test_what_a_model_writes_when_it_declines_is_no_summary() -> None:
    """The whole context is sent, as when it writes nothing; a compaction that was requested fails."""
    losses, backend = Losses(), BlindBackend(written("refusal"), SNAPSHOTS)
    response = await asked(backend, losses, Compact(trigger_tokens=1))
    assert response.candidates[0].content == ()
    assert len(backend.requests[1].messages) == len(HISTORY)
    found = [(loss.where, loss.how, loss.why) for loss in losses if loss.what == "context_management"]
    assert found == [("$", "dropped", "the model wrote no summary; the whole context was sent")]
    with pytest.raises(FailureError) as caught:
        await asked(BlindBackend(written("refusal")), Losses(), Compact(now=True))
    assert caught.value.failure is NO_SUMMARY
