"""Backend around a Python function or generator that takes a canonical request.

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
import re
from contextlib import aclosing
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from xenoglot.backends.backend import EventAnswer
from xenoglot.backends.thread_iterator import ThreadLimitError, ThreadRunner
from xenoglot.backends.user_traceback import USER_CODE, user_traceback
from xenoglot.backends.wrappers.stop_strings import stop_answer, stop_stage
from xenoglot.codec.blocks import Blocks
from xenoglot.model.catalog import ModelInfo
from xenoglot.model.content import Part, Text
from xenoglot.model.events import Event, Failed, Finished, Started, TextDelta, UsageReported
from xenoglot.model.failure import Failure
from xenoglot.model.fold import unfold, unfold_part
from xenoglot.model.response import Finish, Response, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterable, Iterator, Sequence

    from xenoglot.backends.backend import Answer, Call
    from xenoglot.codec.loss import Losses
    from xenoglot.model.request import Request

Output: TypeAlias = str | Part | Usage | Finish | Response
"""Output of a function: text, a whole part (like a tool call), the usage so far, the finish, or everything at once."""

OutputFunction: TypeAlias = "collections.abc.Callable[[Request], Any]"
"""A function of a request that returns or yields `Output`, synchronous or asynchronous."""

_HALF: Final = re.compile("[\ud800-\udfff]")
_FAILED: Final = Failed(failure=Failure(kind="internal", message="internal error: the model function failed"))
_OVERLOADED: Final = Failed(
    failure=Failure(kind="overloaded", message="overloaded: the model is at work on too many answers")
)

_logger = logging.getLogger("xenoglot.backends")


class _UnsayableError(Exception):
    """The function returned an unsupported value; the text quotes nothing of it."""


class _End(Enum):
    """Marker after the last step, because a function may yield `None`."""

    END = auto()


class Callable:
    """Wraps a function of one `Request`.

    It may be a plain function, a coroutine function, a generator or an async generator, and returns or yields `Output`;
    what it returns may also be an iterator of either kind, or something to wait for.
    What blocks runs in a thread of the answer's own. An exception fails its request, not the process, and so does what
    is none of `Output`. When the client disconnects, a generator is closed.
    """

    def __init__(self, function: OutputFunction, name: str | None = None) -> None:
        self.name: str = name or str(getattr(function, "__name__", "callable"))
        self._function = function

    async def answer(self, call: Call) -> Answer:
        """Call the function. At the stop strings of the request its answer ends, whether it knows of them or not.

        Raises:
            WireError: these are too long.
        """
        stage = stop_stage(call.request)
        batches = self._batches(call)
        return stop_answer(EventAnswer(batches=batches, aclose=batches.aclose), stage)

    async def count(self, _call: Call) -> int | None:
        """Return `None`: its tokens are unknown."""
        return None

    async def models(self) -> Sequence[ModelInfo]:
        """Return the one model it is."""
        return (ModelInfo(id=self.name, owned_by="xenoglot"),)

    async def aclose(self) -> None:
        """Nothing is held."""

    async def _batches(self, call: Call) -> AsyncGenerator[Sequence[Event], None]:
        speech = _Speech(call.losses)
        try:
            async with aclosing(_call_function(self._function, call.request, self.name)) as source:
                async for said in source:
                    if events := speech.feed(said):
                        yield events
            if events := speech.close():
                yield events
        except ThreadLimitError:
            yield (_OVERLOADED,)
        except _UnsayableError as error:
            _logger.error("the function of `%s` returned %s", self.name, error)  # noqa: TRY400  no texts
            yield (_FAILED,)
        except BaseException as error:
            if not _raised_by_function(error):
                raise
            USER_CODE.error("the function of `%s` failed:\n%s", self.name, user_traceback(error))
            yield (_FAILED,)


def _raised_by_function(error: BaseException) -> bool:
    """Return whether the function raised `error`: an exit that it wants ends its answer, and not the process."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and not task.cancelling()
    return isinstance(error, Exception | SystemExit)


class _Speech:
    """Turns the output of a function into valid events."""

    def __init__(self, losses: Losses) -> None:
        self._losses = losses
        self._blocks = Blocks()
        self._started = False
        self._finish: Finish | None = None
        self._complete = False

    def feed(self, said: object) -> list[Event]:
        if self._complete or (self._started and isinstance(said, Response)):
            raise _UnsayableError("more than a `Response`, which must be the only output")
        if isinstance(said, Response):
            self._complete = True
            return list(unfold(said))
        events: list[Event] = [] if self._started else [Started()]
        self._started = True
        match said:
            case str():
                events += self._text(said) if said else []
            case Usage():
                events.append(UsageReported(usage=said))
            case Finish():
                self._finish = said
            case _ if isinstance(said, Part):
                events += [*self._blocks.close(), *unfold_part(said)]
            case _:
                kind = type(said).__name__
                raise _UnsayableError(f"a `{kind}`; expected a `str`, a part, `Usage`, `Finish` or `Response`")
        return events

    def _text(self, said: str) -> Sequence[Event]:
        if _HALF.search(said):
            self._losses.approximated("$.candidates[0]", "text", "half a character of UTF-16 is none: it is `\ufffd`")
            said = said.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return self._blocks.grow("text", TextDelta(text=said), Text(text=""))

    def close(self) -> list[Event]:
        if self._complete:
            return []
        started: list[Event] = [] if self._started else [Started()]
        finish = self._finish or Finish(reason="stop")
        return [*started, *self._blocks.close(), Finished(finish=finish)]


async def _call_function(function: OutputFunction, request: Request, name: str) -> AsyncGenerator[object, None]:
    """Yield the output of `function`, of any kind.

    A plain function is called in a thread; what it returns may be an iterator, or something to wait for, in its turn.
    """
    steps = ThreadRunner()
    last = None
    try:
        if _is_asynchronous(function) or inspect.isgeneratorfunction(function):
            made = function(request)
        else:
            made = await steps.run(partial(function, request))
        while isinstance(made, collections.abc.Awaitable):
            made = await made
        if not isinstance(made, collections.abc.Iterator):
            await steps.end()  # there is nothing more to do for it
        match made:
            case collections.abc.AsyncIterable():
                async with aclosing(_each(made)) as source:
                    async for said in source:
                        yield said
            case collections.abc.Iterator():
                last = partial(_close, made, name)
                while (said := await steps.run(partial(next, made, _End.END))) is not _End.END:
                    yield said
            case said:
                yield said
    finally:
        await steps.end(last)


def _is_asynchronous(function: OutputFunction) -> bool:
    return inspect.isasyncgenfunction(function) or inspect.iscoroutinefunction(function)


async def _each(made: AsyncIterable[object]) -> AsyncGenerator[object, None]:
    """Yield what an asynchronous iterator gives, and close it if it can be closed."""
    source = aiter(made)
    try:
        async for said in source:
            yield said
    finally:
        if callable(aclose := getattr(source, "aclose", None)):
            await aclose()


def _close(source: Iterator[object], name: str) -> None:
    """Close a generator, or what else can be closed; in its thread."""
    close = getattr(source, "close", None)
    try:
        if callable(close):
            close()
    except BaseException as error:  # noqa: BLE001  there is nobody left to whom it could be told
        USER_CODE.error("the function of `%s` failed when it was closed:\n%s", name, user_traceback(error))
