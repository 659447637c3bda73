"""An upstream's response: the body is read in pieces, read at once, or pushed into a sink.

Pulling costs a future, a wake-up and a step of the reader's task for every read of the network; for a stream of small
events that is more than all the rest. So the body can be pushed: from then on a read calls the sink from where the
event loop calls the connection, and nothing stands between. What a sink has to know is in `BodySink`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self

from xenoglot.backends.http.content_encoding import inflater
from xenoglot.backends.http.timeouts import TransportError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
    from types import TracebackType

    from xenoglot.backends.http.exchange import UpstreamExchange
    from xenoglot.backends.http.http1 import ResponseHead
    from xenoglot.backends.http.timeouts import TransportLimits


class BodySink(Protocol):
    """What a body is pushed into. It is called from the event loop, one call after another, never one within another.

    It may pause, resume and close the reply from within a call, and have it `wait_for` work.
    """

    def data_received(self, data: bytes, /) -> None:
        """The decoded body bytes of one read, never empty; a read of a compressed body may call this several times.

        What it raises ends the body: the connection closes, and `closed` gets an error whose `__cause__` it is.
        """
        ...

    def closed(self, error: TransportError | None, /) -> None:
        """The body is whole, or will never be. Called once, last; never after the reply was closed by its reader."""
        ...


class UpstreamResponse:
    """A response: its head is here, its body comes as it is read.

    Iterate it for the decoded body, one item per network read; or `read` it whole; or have it pushed. Close it in any
    case, best by `async with`: a response that is not read to its end holds its connection.
    """

    __slots__ = (
        "_busy",
        "_exchange",
        "_head",
        "_inflater",
        "_limits",
        "_paused",
        "_resumed",
        "_sink",
        "_work",
        "status",
    )

    def __init__(self, head: ResponseHead, exchange: UpstreamExchange, limits: TransportLimits) -> None:
        self.status = head.status
        self._head = head
        self._exchange = exchange
        self._limits = limits
        codings = head.values(b"content-encoding")
        self._inflater = inflater(codings, limits) if codings else None
        self._sink: BodySink | None = None
        self._paused = False
        self._busy = False
        self._work: asyncio.Task[None] | None = None
        """What the sink does with a piece, for which the rest waits."""
        self._resumed: asyncio.Future[None] | None = None

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """In the upstream's order, names in lower case, values as latin-1."""
        return self._head.headers

    def header(self, name: str) -> str | None:
        """The first value of the header field of this lower-case name."""
        return self._head.first(name.encode("latin-1"))

    def with_prefix(self, prefix: str) -> dict[str, str]:
        """The header fields whose lower-case names begin so, the last of each name."""
        return self._head.with_prefix(prefix.encode("latin-1"))

    def noted(self, note: Callable[[bytes], None]) -> CapturedResponse:
        """Return this response, of which nothing was read yet; `note` gets each piece of its body."""
        return CapturedResponse(self._head, self._exchange, self._limits, note)

    @property
    def unread(self) -> Sequence[bytes]:
        """The pieces of body that are here, as they came: still coded, and still to be read."""
        return self._exchange.pieces

    @property
    def is_idle(self) -> bool:
        """Whether nothing more comes by itself: all is here, or broken; or too much, and the upstream waits."""
        exchange = self._exchange
        return exchange.connection is None or exchange.paused

    @property
    def complete_body(self) -> bytes | None:
        """The body, if all of it is here, uncoded and within `TransportLimits.body_bytes`. It can still be read."""
        exchange = self._exchange
        if not exchange.complete or self._inflater is not None or exchange.unread > self._limits.body_bytes:
            return None
        return exchange.peek_all()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        """Raises `TransportError` for a body that is cut, broken, late or closed: only a whole one just ends."""
        while not (piece := self._next()):
            if piece is None:
                raise StopAsyncIteration
            await self._exchange.wait()
        return piece

    async def read(self, limit: int | None = None) -> bytes:
        """Return the decoded body, of at most `limit` bytes (or `TransportLimits.body_bytes`); more is an error."""
        most = self._limits.body_bytes if limit is None else limit
        pieces = []
        size = 0
        while (piece := self._next()) is not None:
            if not piece:
                await self._exchange.wait()
                continue
            pieces.append(piece)
            size += len(piece)
            if size > most:
                raise self._fail(TransportError("too_large", "body", f"the body is larger than {most} bytes"))
        return b"".join(pieces)

    def push(self, sink: BodySink) -> None:
        """Give the body to `sink`: what is here already before this returns, the rest as it arrives.

        Deadlines hold as for one who pulls. It is for good: nothing can be pulled any more.
        """
        if self._sink is not None:
            raise RuntimeError("the response is being pushed already")
        self._exchange.set_listener(self)
        self._sink = sink
        self.data_available()

    def pause(self) -> None:
        """Push nothing, not even the end, and let the upstream wait. Meanwhile only the deadline `total` counts."""
        if not self._paused and self._sink is not None:
            self._paused = True
            self._exchange.pause()

    def resume(self) -> None:
        """Push on: what has arrived meanwhile before this returns."""
        if self._paused:
            self._paused = False
            if self._resumed is not None and not self._resumed.done():
                self._resumed.set_result(None)
            self.data_available()

    def wait_for(self, work: Coroutine[Any, Any, None]) -> None:
        """Push nothing more, the end neither, before `work` is over: the sink cannot take a piece at once.

        Call it from within `data_received`. An exception of `work` ends the body like one of `data_received`. `work` is
        cancelled if the response is closed.
        """
        self._exchange.pause()
        self._work = self._exchange.loop.create_task(work)
        self._work.add_done_callback(self._worked)

    async def unpaused(self) -> None:
        """Wait until the response is resumed, if it is paused: for the work that it waits for."""
        while self._paused:
            self._resumed = self._exchange.loop.create_future()
            await self._resumed

    def close(self) -> None:
        """Be done with it: the connection closes at once, or has gone back to the pool with the body's last byte."""
        self._drop_sink()
        if self._unread or not self._exchange.complete:
            self._inflater = None
            self._exchange.fail(TransportError("closed", "body", "the response was closed by its reader"))

    async def aclose(self) -> None:
        """The same, for those who close what is asynchronous."""
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def data_available(self) -> None:
        """Push what is here; then what arrives goes straight to the sink, unless it has to be decoded."""
        if self._busy:  # the sink resumes from within a call: the loop below goes on when it has returned
            return
        self._busy = True
        try:
            while self._flows and self._sink is not None and self._step(self._sink):
                pass
        finally:
            self._busy = False
        if self._flows and self._sink is not None:
            self._exchange.resume_into(None if self._inflater else self._sink.data_received, self._sink_failed)

    @property
    def _flows(self) -> bool:
        return not self._paused and self._work is None

    def _worked(self, work: asyncio.Task[None]) -> None:
        """Continue after the sink's work."""
        error = None if work.cancelled() else work.exception()
        if self._work is not work:  # the response is closed
            if isinstance(error, Exception):
                self._report(error)
            return
        self._work = None
        if isinstance(error, Exception):
            self._sink_failed(error)
        else:
            self.data_available()

    def _sink_failed(self, reason: Exception) -> None:
        """The sink raised `reason`: the exchange ends, and the sink is called as for any other end."""
        if self._sink is None:  # it had closed the reply before
            self._report(reason)
            return
        error = TransportError("closed", "body", "the response's reader failed")
        error.__cause__ = reason
        self._end(self._fail(error))

    def _step(self, sink: BodySink) -> bool:
        """Push one piece, or the end; returns whether there may be more."""
        try:
            piece = self._next()
        except TransportError as error:
            self._end(error)
            return False
        if piece:
            self._feed(sink, piece)
        elif piece is None:
            self._end(None)
        return bool(piece)

    def _feed(self, sink: BodySink, piece: bytes) -> None:
        try:
            sink.data_received(piece)
        except Exception as reason:  # noqa: BLE001  whatever it is, it goes to the sink's own `ended`
            self._sink_failed(reason)

    def _end(self, error: TransportError | None) -> None:
        sink = self._drop_sink()
        if sink is None:
            return
        try:
            sink.closed(error)
        except Exception as reason:  # noqa: BLE001  there is nobody left to tell but the loop
            self._report(reason)

    def _report(self, reason: Exception) -> None:
        said = {"message": "what a response is pushed into failed when it was done with", "exception": reason}
        self._exchange.loop.call_exception_handler(said)

    def _drop_sink(self) -> BodySink | None:
        sink, self._sink = self._sink, None
        if sink is not None:
            self._exchange.set_listener(None)
        work, self._work = self._work, None
        if work is not None:
            work.cancel()
        return sink

    def _next(self) -> bytes | None:
        """The next decoded piece; none of it where none is here yet, `None` at the end. Raises `TransportError`."""
        exchange = self._exchange
        while self._unread:
            if piece := self._decode():
                return piece
        if exchange.error is not None:
            raise exchange.error.copy()
        if not exchange.complete:
            return b""
        self._check_end()
        return None

    @property
    def _unread(self) -> bool:
        """Whether there is more, and here already."""
        return bool(self._exchange.pieces) or (self._inflater is not None and self._inflater.pending)

    def _decode(self) -> bytes:
        if self._inflater is None:
            return self._exchange.next_piece()
        try:
            return self._inflater.feed(b"" if self._inflater.pending else self._exchange.next_piece())
        except TransportError as error:
            raise self._fail(error) from None

    def _check_end(self) -> None:
        if self._inflater is not None:
            try:
                self._inflater.close()
            except TransportError as error:
                raise self._fail(error) from None

    def _fail(self, error: TransportError) -> TransportError:
        self._inflater = None
        self._exchange.fail(error.copy())
        return error


class CapturedResponse(UpstreamResponse):
    """A response whose body is captured: `note` gets each piece as it is read, decoded."""

    __slots__ = ("_note",)

    def __init__(
        self, head: ResponseHead, exchange: UpstreamExchange, limits: TransportLimits, note: Callable[[bytes], None]
    ) -> None:
        super().__init__(head, exchange, limits)
        self._note = note

    def _decode(self) -> bytes:
        piece = super()._decode()
        if piece:
            self._note(piece)
        return piece
