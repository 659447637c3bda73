"""Ends an answer at the request's stop strings, whether or not the source supports them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.requests.stop_strings import sendable_stops
from xenoglot.text.stop import StopStage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from xenoglot.backends.backend import Call, EventAnswer
    from xenoglot.codec.dialect import Dialect
    from xenoglot.codec.target import Target
    from xenoglot.model.events import Event
    from xenoglot.model.request import Request


def supported_stops(call: Call, dialect: Dialect, target: Target) -> Call:
    """Return the call with only the stop strings that the server supports; the same call if it supports all.

    The others are a loss with `emulated`: the answer is to be `ended`.
    """
    stops = sendable_stops(call.request, dialect, target)
    if stops is None:
        return call
    call.losses.emulated("$.sampling", "stop", "the answer is ended where the model writes one of the strings")
    return with_stops(call, stops)


def with_stops(call: Call, stops: tuple[str, ...] = ()) -> Call:
    """Return the call with `stops` alone, of an answer that is to be `ended` at others too.

    It always requests a stream, because a complete answer would be generated to its end before it is cut. Only
    the best of several answers comes in one piece (`best_of` of the Completions reference).
    """
    request = call.request
    streamed = request.stream or request.prompt is None or (request.prompt.best_of or 1) == 1
    asked = replace(request, stream=streamed, sampling=replace(request.sampling, stop=stops or None))
    return replace(call, request=asked, body=None)


def stop_stage(request: Request) -> StopStage | None:
    """Return the stage that ends the answers to `request`; `None` where nothing is to end them.

    Raises:
        WireError: the strings are too long.
    """
    if not any(request.sampling.stop or ()):
        return None
    texts = 1 if request.prompt is None else len(request.prompt.texts)
    return StopStage(request.sampling.stop or (), candidates=texts * (request.sampling.n or 1))


def stop_answer(answer: EventAnswer, stage: StopStage | None) -> EventAnswer:
    """Return `answer` as `stage` ends it; its source is closed as soon as all of it is over (A-W5)."""
    if stage is None:
        return answer
    batches = _until_stopped(answer, stage)

    async def aclose() -> None:
        await batches.aclose()
        await answer.aclose()

    return replace(answer, batches=batches, aclose=aclose)


async def _until_stopped(answer: EventAnswer, stage: StopStage) -> AsyncGenerator[Sequence[Event], None]:
    async for batch in answer.batches:
        events = [made for event in batch for made in stage.feed(event)]
        if stage.stopped:
            await answer.aclose()  # before anybody can wait for the client: what is generated from here is for nothing
        if events:
            yield events
        if stage.stopped:
            return
    if rest := stage.close():
        yield rest
