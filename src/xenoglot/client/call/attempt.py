"""One attempt at a request: sent to a backend and read until the answer starts, then to its end."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from xenoglot.backends.backend import ByteAnswer
from xenoglot.codec.responses.answer_start import AnswerStart, failure_of
from xenoglot.errors import FailureError, IncompleteError, failure_error
from xenoglot.model.events import PIECES, Failed, Finished, Ping, Started
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from xenoglot.backends.backend import Backend, Call, EventAnswer, Piece
    from xenoglot.model.events import Event

_EARLY = Failure(kind="upstream", message="connection lost: the answer ended without being complete")
_ENDLESS = Failure(kind="upstream", message="the upstream's answer is larger than allowed", cause="too_large")
LONGEST = 64 * 1024 * 1024
"""Maximum characters of an answer, which is kept in memory while it grows; no model writes as many."""

_SILENT = (Ping, Started)
"""Events without content: an answer that has only these has not started."""


class StartedAnswer:
    """An answer that has started: the events read so far, and the rest of the stream."""

    def __init__(self, answer: EventAnswer, call: Call) -> None:
        self.answer = answer
        self.call = call
        self._read: deque[Sequence[Event]] = deque()
        self._finished: dict[int, bool] = {}
        self._size = 0

    async def begin(self) -> None:
        """Read until the first event for the caller.

        Raises:
            FailureError: the answer fails before that.
        """
        start = AnswerStart(_SILENT)
        async for batch in self.answer.batches:
            self._read.append(batch)
            if start.feed(batch) != "waiting":
                _check(batch, self.answer.cause)
                return
        raise IncompleteError(_EARLY)

    async def batches(self) -> AsyncGenerator[Sequence[Event], None]:
        """Yield the events in batches, as they arrived together.

        Raises:
            FailureError: the answer fails, or has no end.
        """
        async for batch in self._batches():
            for place, event in enumerate(batch):
                if isinstance(event, Failed):
                    if place:
                        yield batch[:place]
                    raise midstream_error(event.failure) from self.answer.cause()
                self._count(event)
            if batch:
                yield batch
        if not self._finished or not all(self._finished.values()):
            raise IncompleteError(_EARLY)

    async def aclose(self) -> None:
        """Close the answer; the upstream is stopped at once."""
        await self.answer.aclose()

    async def _batches(self) -> AsyncGenerator[Sequence[Event], None]:
        while self._read:
            yield self._read.popleft()
        async for batch in self.answer.batches:
            yield batch

    def _count(self, event: Event) -> None:
        if isinstance(event, PIECES):
            self._size += len(event.text)
            if self._size > LONGEST:
                raise midstream_error(_ENDLESS)
        if isinstance(event, Finished):
            self._finished[event.candidate] = True
        elif (candidate := getattr(event, "candidate", None)) is not None:
            self._finished.setdefault(candidate, False)


class StartedBytes:
    """An answer in the caller's own dialect that has started; its bytes are passed on unchanged."""

    def __init__(self, answer: ByteAnswer, call: Call) -> None:
        self.answer = answer
        self.call = call
        self._read: deque[Piece] = deque()

    async def begin(self) -> None:
        """Read until the first bytes for the caller, who decodes them.

        Raises:
            FailureError: the answer fails before that.
        """
        start = AnswerStart()
        async for piece in self.answer.pieces:
            self._read.append(piece)
            if start.feed(piece.events) != "waiting":
                _check(piece.events, type(None))
                return
        if not self._read:
            raise IncompleteError(_EARLY)

    async def items(self) -> AsyncGenerator[bytes, None]:
        """Yield the bytes.

        Raises:
            FailureError: the answer fails, or has no end.
        """
        async for piece in self._pieces():
            if piece.data:
                yield piece.data
            if piece.failure is not None:
                raise midstream_error(piece.failure)

    async def aclose(self) -> None:
        """Close the answer; the upstream is stopped at once."""
        await self.answer.aclose()

    async def _pieces(self) -> AsyncGenerator[Piece, None]:
        while self._read:
            yield self._read.popleft()
        async for piece in self.answer.pieces:
            yield piece


async def begin(backend: Backend, call: Call) -> StartedAnswer | StartedBytes:
    """Return the started answer of `backend` to `call`; as bytes only if the call has a body of its own.

    Raises:
        FailureError: there is none. `LossError` and `WireError` alike.
    """
    answer = await backend.answer(call)
    found = StartedBytes(answer, call) if isinstance(answer, ByteAnswer) else StartedAnswer(answer, call)
    try:
        await found.begin()
    except BaseException:
        await answer.aclose()
        raise
    return found


async def begin_events(backend: Backend, call: Call) -> StartedAnswer:
    """Return the same of a call without a body, which is answered in events."""
    found = await begin(backend, call)
    if isinstance(found, StartedAnswer):
        return found
    await found.aclose()
    raise TypeError("a call without a body of its own is answered in events")


def _check(events: Sequence[Event], cause: Callable[[], BaseException | None]) -> None:
    """Raise `FailureError` if the events end in a failure."""
    failure = failure_of(events)
    if failure is not None:
        raise midstream_error(failure) from cause()


def midstream_error(failure: Failure) -> FailureError:
    """Return the error of an answer that fails after its start."""
    cut = failure.kind == "upstream" and failure.dialect is None and failure.cause in (None, "closed")
    return failure_error(failure, kind=IncompleteError if cut else None)
