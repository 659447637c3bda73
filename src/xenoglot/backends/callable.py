"""Any Python function or generator as a backend: ten lines serve one's own model in every dialect.

async def parrot(request):
    for word in request.messages[-1].content[0].text.split():
        yield word + " "

backend = Callable(parrot, name="parrot")
"""

from __future__ import annotations

import asyncio
import collections.abc
import inspect
import logging
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, TypeAlias

from xenoglot.backends.backend import EventAnswer
from xenoglot.backends.stopping import ended, stop_stage
from xenoglot.codec.blocks import Blocks
from xenoglot.errors import whereabouts
from xenoglot.model.catalog import ModelInfo
from xenoglot.model.content import Part, Text
from xenoglot.model.events import Event, Failed, Finished, Started, TextDelta, UsageReported
from xenoglot.model.failure import Failure
from xenoglot.model.fold import unfold, unfold_part
from xenoglot.model.response import Finish, Response, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence

    from xenoglot.backends.backend import Answer, Call
    from xenoglot.model.request import Request

Said: TypeAlias = str | Part | Usage | Finish | Response
"""What a function may say: words, a whole part (a tool call, say), the usage so far, why it ended, or all at once."""

Speaker: TypeAlias = "collections.abc.Callable[[Request], Any]"
"""A function of a request that says `Said`, in any of the four ways in which Python functions do."""

_logger = logging.getLogger("xenoglot.backends")


class Callable:
    """Wraps a function of one `Request`.

    It may be a plain function, a coroutine function, a generator or an async generator, and returns or yields `Said`;
    a plain function may also return a generator of either kind, an iterator, or something to wait for.
    What blocks runs in a thread, never in the event loop. An exception fails its request, not the process. When the
    client leaves, a generator is closed where it stands.
    """

    def __init__(self, function: Speaker, name: str | None = None) -> None:
        self.name: str = name or str(getattr(function, "__name__", "callable"))
        self._function = function

    async def answer(self, call: Call) -> Answer:
        """Call the function. At the stop strings of the request its answer ends, whether it knows of them or not.

        Raises:
            WireError: these are too long.
        """
        stage = stop_stage(call.request)
        batches = self._batches(call.request)
        return ended(EventAnswer(batches=batches, aclose=batches.aclose), stage)

    async def count(self, _call: Call) -> int | None:
        """Nobody knows its tokens."""
        return None

    async def models(self) -> Sequence[ModelInfo]:
        """Return the one model it is."""
        return (ModelInfo(id=self.name, owned_by="xenoglot"),)

    async def aclose(self) -> None:
        """Nothing is held."""

    async def _batches(self, request: Request) -> AsyncGenerator[Sequence[Event], None]:
        speech = _Speech()
        try:
            async with aclosing(_said(self._function, request)) as source:
                async for said in source:
                    if events := speech.feed(said):
                        yield events
            if events := speech.close():
                yield events
        except Exception as error:  # noqa: BLE001  the function is not ours: what it raises is its own request's failure
            _logger.error("the function behind `%s` failed: %s", self.name, whereabouts(error))  # noqa: TRY400  no texts
            yield (Failed(failure=Failure(kind="internal", message="the model function failed")),)


class _Speech:
    """What a function says, made into lawful events."""

    def __init__(self) -> None:
        self._blocks = Blocks()
        self._started = False
        self._finish: Finish | None = None
        self._complete = False

    def feed(self, said: Said) -> list[Event]:
        if isinstance(said, Response):
            self._complete = True
            return list(unfold(said))
        events: list[Event] = [] if self._started else [Started()]
        self._started = True
        match said:
            case str():
                events += self._blocks.grow("text", TextDelta(text=said), Text(text="")) if said else []
            case Usage():
                events.append(UsageReported(usage=said))
            case Finish():
                self._finish = said
            case part:
                events += [*self._blocks.close(), *unfold_part(part)]
        return events

    def close(self) -> list[Event]:
        if self._complete:
            return []
        started: list[Event] = [] if self._started else [Started()]
        finish = self._finish or Finish(reason="stop")
        return [*started, *self._blocks.close(), Finished(finish=finish)]


async def _said(function: Speaker, request: Request) -> AsyncGenerator[Said, None]:
    """Yield what `function` says, whichever kind of function it is.

    A plain function is called in a thread; what it returns may be a generator, or something to wait for, in its turn.
    """
    if _is_asynchronous(function) or inspect.isgeneratorfunction(function):
        made = function(request)
    else:
        made = await asyncio.to_thread(function, request)
    match made:
        case collections.abc.AsyncGenerator():
            async with aclosing(made) as source:
                async for said in source:
                    yield said
        case collections.abc.Iterator():
            async with aclosing(_in_thread(made)) as steps:
                async for said in steps:
                    yield said
        case collections.abc.Awaitable():
            yield await made
        case said:
            yield said


def _is_asynchronous(function: Speaker) -> bool:
    return inspect.isasyncgenfunction(function) or inspect.iscoroutinefunction(function)


async def _in_thread(source: Iterator[Said]) -> AsyncGenerator[Said, None]:
    """Yield what `source` yields, each step of it in a thread.

    A step cannot be interrupted: where we are cancelled in the middle of one, the source is closed after it.
    """
    loop = asyncio.get_running_loop()
    step: asyncio.Future[Said | None] | None = None
    try:
        while True:
            step = loop.run_in_executor(None, _next, source)
            said = await asyncio.shield(step)
            if said is None:
                return
            yield said
    finally:
        if step is None or step.done():
            _close(source)
        else:
            step.add_done_callback(lambda _: _close(source))


def _next(source: Iterator[Said]) -> Said | None:
    return next(source, None)


def _close(source: Iterator[Said]) -> None:
    if isinstance(source, collections.abc.Generator):
        source.close()
