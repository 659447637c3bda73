"""Stop strings for models that continue a transcript: the answer ends before the next user turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.backends.backend import EventAnswer
from xenoglot.model.events import Event, Finished
from xenoglot.model.response import Finish

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from xenoglot.backends.backend import Answer
    from xenoglot.model.request import Request


def turn_ending(request: Request, stop: str | None) -> Request:
    """Return `request` with `stop` among the strings that end an answer."""
    given = request.sampling.stop or ()
    if stop is None or stop in given:
        return request
    return replace(request, sampling=replace(request.sampling, stop=(*given, stop)))


def turn_ends(answer: Answer, request: Request, stop: str | None) -> EventAnswer:
    """Return `answer` with an end at `stop` reported as the end of the turn: the client did not set that string."""
    if not isinstance(answer, EventAnswer):
        raise TypeError("a function answers in events")
    if stop is None or stop in (request.sampling.stop or ()):
        return answer
    batches = _ends(answer, stop)
    return replace(answer, batches=batches, aclose=batches.aclose)


async def _ends(answer: EventAnswer, stop: str) -> AsyncGenerator[Sequence[Event], None]:
    try:
        async for batch in answer.batches:
            yield [_ended(event, stop) for event in batch]
    finally:
        await answer.aclose()


def _ended(event: Event, stop: str) -> Event:
    if isinstance(event, Finished) and event.finish.stop_sequence == stop:
        return replace(event, finish=Finish(reason="stop"))
    return event
