"""One client's connection to our own HTTP/1.1 server: bytes in, one request at a time, bytes out.

Theory of operation. The loop calls, nothing here waits: a read is parsed where it arrives, and only the request that
comes of it gets a task. Requests after it stay bytes until it is answered; bytes of those, and of a body that is not
consumed, are read up to a limit. The head of a response leaves with the first piece of its body, each further
piece in a write of its own. While the client takes less than it is sent, `write` waits. Deadlines are numbers that the
server's sweep compares with its clock, so that a request starts no timers.

A client that closes its sending side counts as disconnected: from here both look the same. What can
be answered without waiting still is.
"""

from __future__ import annotations

import re
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Final, Protocol, cast

from xenoglot.gateway.http.application import HeadState, InvalidBodyError
from xenoglot.gateway.http.connection_exchange import REQUEST_TIMEOUT, ConnectionExchange, too_slow
from xenoglot.gateway.http.head_cache import HeadCache, is_cacheable
from xenoglot.gateway.http.write_side import HIGH_WATER, SLOW_BYTES, SLOW_SECONDS, WriteSide, WriteSideHost
from xenoglot.http1.request_head import (
    BAD_REQUEST,
    HANDSHAKE,
    UNAVAILABLE,
    InvalidHeadError,
    RequestHead,
    decode_head,
    find_end,
)
from xenoglot.http1.syntax import FramingError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable

    from xenoglot.gateway.http.application import Application, MessageSocket
    from xenoglot.gateway.http.web_socket import WebSocketConnection

BODY_SECONDS: Final = 10.0
"""How often it is looked whether enough of a body has come."""

HEALTH: Final = ("/health", "/livez")
"""The paths that are served on connections beyond the most, too."""

MOST_STRANGE: Final = 4
"""Heads that are kept for nothing: whose client sends another each time has none kept any more."""

_EMPTY_LINES = re.compile(rb"\A(?:\r\n)+")  # RFC 9112 section 2.2: some clients send one behind a body


class ConnectionHost(WriteSideHost, Protocol):
    """What a connection needs of the server."""

    draining: bool
    date: str
    tasks: set[asyncio.Task[None] | None]
    """The tasks that serve a request."""

    @property
    def application(self) -> Application:
        """What answers the requests."""
        ...

    def waits(self, connection: ClientConnection | WebSocketConnection) -> None:
        """It has no request."""
        ...

    def busy(self, connection: ClientConnection | WebSocketConnection) -> None:
        """It has one."""
        ...

    def receives(self, connection: ClientConnection) -> None:
        """The body of its request is on its way, and comes fast enough."""
        ...

    def received(self, connection: ClientConnection) -> None:
        """No body is expected from it any more."""
        ...

    def admit(self, connection: ClientConnection) -> bool:
        """Return whether a connection beyond the most may be served by now."""
        ...

    def forget(self, connection: ClientConnection | WebSocketConnection) -> None:
        """It is closed."""
        ...

    def evicted(self) -> None:
        """The socket of an evicted connection is closed."""
        ...

    def handle(self, exchange: ConnectionExchange) -> Awaitable[None]:
        """Answer one request."""
        ...

    def succeed(self, connection: ClientConnection, successor: WebSocketConnection) -> None:
        """Another is at its place."""
        ...


class ClientConnection(WriteSide):
    """A connection that a client made to the server."""

    server: ConnectionHost

    def __init__(self, server: ConnectionHost, peer: str = "", *, overflow: bool = False) -> None:
        super().__init__(server)
        self._peer = peer
        self._overflow = overflow
        self._last: HeadCache | None = None
        """The last head, if the next may be like it."""
        self._strange = 0
        """How many heads, one after another, were not like the one before."""
        self._buffer = bytearray()
        """What has come and belongs to no request yet."""
        self._seen = 0
        self._goes_on = False
        """Whether it is about to be looked what request is in the buffer."""
        self._exchange: ConnectionExchange | None = None
        self._task: asyncio.Task[None] | None = None
        self._awaits = False
        """Whether the request is looked at when all of its body is here."""
        self._reads = True
        self._deaf = False
        """Whether what comes is thrown away: it cannot be understood any more."""
        self._head_end = inf
        self._body_end = inf
        self._mark = 0
        """How much of a body had come when it was last found to be fast enough ..."""
        self._marked_at = -inf
        """... and when that was."""
        self._evicted = False
        """Whether it was closed to free its descriptor."""
        self._successor: WebSocketConnection | None = None
        """The WebSocket that it becomes once its request is answered."""

    # What the loop tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: it is up."""
        self.transport = cast("asyncio.Transport", transport)
        self._connected = True
        self._rest()
        if self.server.draining:
            self.close()

    def data_received(self, data: bytes) -> None:
        """asyncio: one read."""
        exchange = self._exchange
        if self._deaf or self._leaving:
            self._pass_over(len(data))
        elif exchange is not None and not exchange.body.done:
            self._read_body(exchange, data)
        elif exchange is not None or self.paused or self._goes_on:
            self._buffer += data
            self.regulate()
        else:
            self._read_head(data)

    def eof_received(self) -> bool:
        """asyncio: the client sends no more. What needs no waiting is answered in the turn that begins now."""
        self.flush()
        if self._exchange is None or self._leaving:
            self.close()
            return False
        self.loop.call_soon(self._depart)
        return True

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  whyever
        """asyncio: the socket is closed, by either side."""
        self._lost = True
        self.due = inf
        self._out.clear()
        self.forget()
        if self._evicted:
            self.server.evicted()
        self._abandon()
        self._let_write()

    def pause_writing(self) -> None:
        """asyncio: the client is slower than we are."""
        self.paused = True
        self._progress = inf
        if self._exchange is not None and self._exchange.passage is not None:
            self._exchange.passage.held_up()
        self.due = self._clock() + self.server.bounds.stall_seconds

    def resume_writing(self) -> None:
        """asyncio: the write buffer has space again."""
        self.paused = False
        if not self._leaving:
            self.due = inf
            if self._exchange is None:
                self._go_on()
            elif not self._exchange.body.done:
                self._expect_body(self._exchange)
            elif self._exchange.passage is not None:
                self._exchange.passage.let_on()
        self._let_write()

    # What an exchange asks.

    def regulate(self) -> None:
        """Read on, or do not, by what has come and is not wanted yet."""
        exchange = self._exchange
        full = len(self._buffer) > HIGH_WATER or (exchange is not None and exchange.brimming)
        reads = self._leaving or self._deaf or not full
        if reads != self._reads and not self._lost:
            self._reads = reads
            if reads:
                self.transport.resume_reading()
            else:
                self.transport.pause_reading()

    # What the server asks.

    def forget(self) -> None:
        """Have the server count with it no more."""
        self.server.forget(self)

    def look(self, now: float) -> None:
        """Check deadlines that are due, and whether a client that is not being read has disconnected."""
        if self.muffled and self._hung_up():
            self.drop()
        elif now < self.due:
            return
        elif self.paused or self._leaving:
            self._look_at_writing(now)
        elif self._exchange is not None:
            self._look_at_body(self._exchange, now)
        elif self._buffer:
            self._refuse(InvalidHeadError("the request's head does not come in time", REQUEST_TIMEOUT))
        else:
            self.close()

    def evict(self) -> bool:
        """Close at once to free the descriptor; return whether that is still to happen."""
        self._evicted = self._connected and not self._lost
        self.drop()
        return self._evicted

    def hurry(self) -> None:
        """Have a task wait for the rest of a request, so that the task can be cancelled."""
        if self._exchange is not None and self._awaits:
            self._start(self._exchange)

    @property
    def muffled(self) -> bool:
        """Whether something is done for the client while nothing is read from it."""
        return not self._reads and self._exchange is not None and not self._lost

    def is_slow(self, now: float) -> bool:
        """Whether the body of its request comes slowly, or not at all, while it is read."""
        return self._reads and now - self._marked_at >= SLOW_SECONDS

    def stop_waiting(self) -> None:
        """Give up what has not become a whole request: half a head, or half a body."""
        if self._lost or self._leaving:
            return
        if self._exchange is None:
            self.close()
        elif not self._exchange.body.done and not self._deaf:
            self._give_up_body(self._exchange, InvalidBodyError("the gateway is stopping", UNAVAILABLE))

    def retire(self) -> None:
        """Close if there is no request, nor the beginning of one."""
        if self._exchange is None and not self._buffer:
            self.close()

    # Requests.

    def _read_head(self, data: bytes) -> None:
        """Look for the end of a head in what came before and `data`."""
        last = self._last
        if last is not None and not self._buffer and (end := last.end_in(data)):
            self._strange = 0
            self._begin(last.head, data[end:], last.seen)
            return
        if self._buffer:
            self._buffer += data
        whole: bytes | bytearray = self._buffer or data
        if whole.startswith(b"\r\n"):
            whole = _EMPTY_LINES.sub(b"", whole)
            self._buffer.clear()
            self._seen = 0
        if whole.startswith(HANDSHAKE):
            self.close()  # TLS: nothing that we could say would be understood
        if not whole or self._leaving:
            return
        try:
            end = find_end(whole, self._seen)
            if not end:
                self._wait_for_head(whole)
                return
            begun = bytes(whole[:end])
            head = decode_head(begun)
        except InvalidHeadError as refused:
            self._refuse(refused)
            return
        rest = bytes(whole[end:])
        self._buffer.clear()
        self._seen = 0
        self._begin(head, rest, self._keep(begun, head))

    def _keep(self, data: bytes, head: RequestHead) -> HeadState | None:
        """Keep a head for the next to be compared with; not any more where each is another."""
        self._last = None
        if self._strange == MOST_STRANGE or not is_cacheable(data, head):
            return None
        self._strange += 1
        seen = HeadState()
        self._last = HeadCache(data, head, seen)
        return seen

    def _wait_for_head(self, begun: bytes | bytearray) -> None:
        if not self._buffer:
            self._buffer += begun
            self._head_end = self.due = min(self._head_end, self._clock() + self.server.bounds.head_seconds)
        self._seen = len(self._buffer)

    def _begin(self, head: RequestHead, rest: bytes, seen: HeadState | None) -> None:
        """Have a request served; `rest` came after its head."""
        if self._overflow and self.server.admit(self):
            self._overflow = False
        if self._overflow and head.path not in HEALTH:
            problem = "the gateway has as many connections as it takes; try again"
            self._refuse(InvalidHeadError(problem, UNAVAILABLE, method=head.method, path=head.path))
            return
        exchange = self._exchange = ConnectionExchange(self, head, self._peer, seen)
        exchange.close = head.close or self._overflow
        self.server.busy(self)
        self.due = inf
        if exchange.body.done:
            if rest:
                self._buffer += rest
                self.regulate()
        elif len(rest) == head.length:
            exchange.take(rest)
        else:
            self._expect_body(exchange)
            self._mark_body(0)
            self._body_end = self._clock() + self.server.bounds.body_seconds
            if rest:
                self._read_body(exchange, rest)
        self._awaits = not exchange.body.done and self.server.application.awaits_body(exchange, head)
        if not self._awaits:
            self._start(exchange)

    def _start(self, exchange: ConnectionExchange) -> None:
        """Have a request served: without a task, if it can be sent on its way at once."""
        self._awaits = False
        if not exchange.body.done or not self.server.application.start(exchange):
            self.have_served(exchange, partial(self.server.handle, exchange))

    def have_served(self, exchange: ConnectionExchange, work: Callable[[], Awaitable[None]]) -> None:
        """Have a task do what is to be done for `exchange`."""
        self._task = task = self.loop.create_task(self._serve(exchange, work))
        self.server.tasks.add(task)

    async def _serve(self, exchange: ConnectionExchange, work: Callable[[], Awaitable[None]]) -> None:
        exchange.begun = True
        task = self._task
        try:
            await work()
        finally:
            self.server.tasks.discard(task)
            self._task = None
            self.served(exchange)

    def served(self, exchange: ConnectionExchange) -> None:
        """Continue after the request was answered or given up."""
        self._exchange = None
        if not exchange.body.done:
            self.server.received(self)
        if self._lost or self._leaving:
            return
        if not exchange.over or exchange.close or not exchange.body.done or self.server.draining:
            if self._successor is not None:
                self._hand_over(self._successor)
                return
            self._leave(linger=self._deaf or bool(self._buffer) or not exchange.body.done)
        elif not self.paused:  # else when the client has taken more: who reads no answers gets no more of them (C06)
            self._go_on()

    def become(self, limit: int, session: Callable[[MessageSocket], Awaitable[None]]) -> None:
        """Become a WebSocket once the handshake is answered."""
        from xenoglot.gateway.http.web_socket import WebSocketConnection  # noqa: PLC0415  most gateways have none

        self._successor = WebSocketConnection(self.server, limit, session)

    def _hand_over(self, successor: WebSocketConnection) -> None:
        """Have the transport belong to `successor`, which the server counts in this one's place."""
        self.flush()
        self._lost = True
        self.server.succeed(self, successor)
        successor.begin(self.transport, bytes(self._buffer), reads=self._reads)

    def _go_on(self) -> None:
        """Continue with the next request, or wait for one."""
        if not self._buffer:
            self._rest()
            if not self._reads:
                self.regulate()
        elif not self._goes_on:
            self._goes_on = True
            self.loop.call_soon(self._next)

    def _next(self) -> None:
        self._goes_on = False
        if self._exchange is None and not (self._lost or self._leaving or self.paused):
            data = bytes(self._buffer)
            self._buffer.clear()
            self._rest()
            self._read_head(data)
            if not self._lost:
                self.regulate()

    def _rest(self) -> None:
        """Wait for a request."""
        self._head_end = inf
        self.due = self._clock() + self.server.bounds.idle_seconds
        self.server.waits(self)

    def _read_body(self, exchange: ConnectionExchange, data: bytes) -> None:
        try:
            exchange.feed(data)
        except FramingError as refused:
            self._give_up_body(exchange, InvalidBodyError(str(refused), BAD_REQUEST))
            return
        if exchange.body.done:
            self._need_nothing()
            self._buffer += exchange.body.rest
            if self._awaits:
                self._start(exchange)
        elif exchange.size - self._mark >= SLOW_BYTES:
            self._mark_body(exchange.size)
        if not self._reads or exchange.size > HIGH_WATER or self._buffer:
            self.regulate()

    def _refuse(self, refused: InvalidHeadError) -> None:
        """Answer what is no request, and close: what follows it could be anything."""
        head = RequestHead(refused.method or "GET", refused.path, "", [], close=True)
        exchange = self._exchange = ConnectionExchange(self, head, self._peer)
        self.server.busy(self)
        self._deafen(exchange)
        self.have_served(exchange, partial(self.server.application.refuse, exchange, refused))

    def _deafen(self, exchange: ConnectionExchange) -> None:
        exchange.close = True
        self._deaf = True
        self._buffer.clear()
        self._need_nothing()
        self.regulate()

    def _mark_body(self, size: int) -> None:
        """Note that the body comes fast enough, up to here."""
        self._mark, self._marked_at = size, self._clock()
        self.server.receives(self)

    def _need_nothing(self) -> None:
        """Wait for nothing more of the request; but still for the client to read."""
        self.server.received(self)
        if not self.paused:
            self.due = inf

    def _expect_body(self, exchange: ConnectionExchange) -> None:
        self._progress = exchange.size
        self.due = self._clock() + BODY_SECONDS

    def _look_at_body(self, exchange: ConnectionExchange, now: float) -> None:
        enough = exchange.size - self._progress >= self.server.bounds.body_rate * BODY_SECONDS
        if (enough and now < self._body_end) or not self._reads:
            self._expect_body(exchange)
            return
        self._give_up_body(exchange, too_slow())

    def _give_up_body(self, exchange: ConnectionExchange, problem: InvalidBodyError) -> None:
        exchange.fail(problem)
        self._deafen(exchange)
        if self._awaits:
            self._start(exchange)

    # The end.

    def _depart(self) -> None:
        """Let a client go that sends no more."""
        if not self._lost:
            self._abandon()
            self.close()

    def _abandon(self) -> None:
        """Stop what is being done for a client that is gone. A task that has not begun finds out by itself."""
        exchange, task = self._exchange, self._task
        if exchange is None or exchange.gone:
            return
        exchange.leave()
        if exchange.passage is not None:
            self._exchange = None
            exchange.passage.left()
        elif self._awaits:
            self._start(exchange)  # so that somebody writes down who came
        elif task is not None and exchange.begun:
            task.cancel()
