"""One client's connection to our own HTTP/1.1 server: bytes in, one request at a time, bytes out.

Theory of operation. The loop calls, nothing here waits: a read is parsed where it arrives, and only the request that
comes of it gets a task. Requests behind it stay bytes until it is answered; of those, and of a body that nobody asks
for, so much is taken and no more is read. The head of a response leaves with the first piece of its body, each further
piece in a write of its own. While the client takes less than it is sent, `write` waits. Deadlines are numbers that the
server's sweep compares with its clock, so that a request starts no timers.

A client that closes its sending side is taken to have left: of all that can be seen from here it is the same. What can
be answered without waiting still is.
"""

from __future__ import annotations

import re
from math import inf
from typing import TYPE_CHECKING, Final, cast

from xenoglot.gateway.exchange import BodyBrokenError
from xenoglot.gateway.native_bounds import HIGH_WATER
from xenoglot.gateway.native_exchange import REQUEST_TIMEOUT, NativeExchange, too_slow
from xenoglot.gateway.native_head import BAD_REQUEST, HANDSHAKE, Head, Refused, decode_head, find_end
from xenoglot.gateway.native_outflow import Outflow
from xenoglot.gateway.native_refusal import UNAVAILABLE, refuse

if TYPE_CHECKING:
    import asyncio

    from xenoglot.gateway.native_server import NativeServer

BODY_SECONDS: Final = 10.0
"""How often it is looked whether enough of a body has come."""

HEALTH: Final = "/health"
"""The path that is served on connections beyond the most, too."""

_EMPTY_LINES = re.compile(rb"\A(?:\r\n)+")  # RFC 9112 section 2.2: some clients send one behind a body


class Connection(Outflow):
    """A connection that somebody made to us."""

    def __init__(self, server: NativeServer, peer: str = "", *, overflow: bool = False) -> None:
        super().__init__(server)
        self._peer = peer
        self._overflow = overflow
        self._buffer = bytearray()
        """What has come and belongs to no request yet."""
        self._seen = 0
        self._goes_on = False
        """Whether it is about to be looked what request is in the buffer."""
        self._exchange: NativeExchange | None = None
        self._task: asyncio.Task[None] | None = None
        self._reads = True
        self._deaf = False
        """Whether what comes is thrown away: it cannot be understood any more."""
        self._head_end = inf
        self._body_end = inf

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
        """asyncio: the socket is closed, by whomever."""
        self._lost = True
        self.due = inf
        self._out.clear()
        self.forget()
        self._abandon()
        self._let_write()

    def pause_writing(self) -> None:
        """asyncio: the client is slower than we are."""
        self.paused = True
        self._progress = inf
        self.due = self.loop.time() + self.server.bounds.stall_seconds

    def resume_writing(self) -> None:
        """asyncio: there is room again."""
        self.paused = False
        if not self._leaving:
            self.due = inf
            if self._exchange is None:
                self._go_on()
            elif not self._exchange.body.done:
                self._expect_body(self._exchange)
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
        """See what has become of what was due, and of a client that cannot be heard."""
        if self.muffled and self._hung_up():
            self.drop()
        elif now < self.due:
            return
        elif self.paused or self._leaving:
            self._look_at_writing(now)
        elif self._exchange is not None:
            self._look_at_body(self._exchange, now)
        elif self._buffer:
            self._refuse(Refused("the request's head does not come in time", REQUEST_TIMEOUT))
        else:
            self.close()

    @property
    def muffled(self) -> bool:
        """Whether something is done for the client while nothing is read from it."""
        return not self._reads and self._exchange is not None and not self._lost

    def retire(self) -> None:
        """Close if there is no request, nor the beginning of one."""
        if self._exchange is None and not self._buffer:
            self.close()

    # Requests.

    def _read_head(self, data: bytes) -> None:
        """Look for the end of a head in what came before and `data`."""
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
            head = decode_head(bytes(whole[:end]))
        except Refused as refused:
            self._refuse(refused)
            return
        rest = bytes(whole[end:])
        self._buffer.clear()
        self._seen = 0
        self._begin(head, rest)

    def _wait_for_head(self, begun: bytes | bytearray) -> None:
        if not self._buffer:
            self._buffer += begun
            self._head_end = self.due = min(self._head_end, self.loop.time() + self.server.bounds.head_seconds)
        self._seen = len(self._buffer)

    def _begin(self, head: Head, rest: bytes) -> None:
        """Have a request served; `rest` came behind its head."""
        if self._overflow and head.path != HEALTH:
            problem = "the gateway has as many connections as it takes; try again"
            self._refuse(Refused(problem, UNAVAILABLE, method=head.method, path=head.path))
            return
        head.close = head.close or self._overflow
        exchange = self._exchange = NativeExchange(self, head, self._peer)
        self.server.busy(self)
        self.due = inf
        if exchange.body.done:
            if rest:
                self._buffer += rest
                self.regulate()
        else:
            self._expect_body(exchange)
            self._body_end = self.loop.time() + self.server.bounds.body_seconds
            if rest:
                self._read_body(exchange, rest)
        self._start(exchange, None)

    def _start(self, exchange: NativeExchange, refused: Refused | None) -> None:
        self._task = self.loop.create_task(self._serve(exchange, refused))
        self.server.tasks.add(self._task)

    async def _serve(self, exchange: NativeExchange, refused: Refused | None) -> None:
        exchange.begun = True
        task = self._task
        try:
            if refused is None:
                await self.server.handle(exchange)
            else:
                await refuse(self.server.gateway, exchange, refused)
        finally:
            self.server.tasks.discard(task)
            self._served(exchange)

    def _served(self, exchange: NativeExchange) -> None:
        """Go on, the request being answered, or given up."""
        self._task = self._exchange = None
        if self._lost or self._leaving:
            return
        if not exchange.over or exchange.close or not exchange.body.done or self.server.draining:
            self._leave(linger=self._deaf or bool(self._buffer) or not exchange.body.done)
        elif not self.paused:  # else when the client has taken more: who reads no answers gets no more of them (C06)
            self._go_on()

    def _go_on(self) -> None:
        """Go on to the request that came behind the last, or wait for one."""
        if not self._buffer:
            self._rest()
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
        self.due = self.loop.time() + self.server.bounds.idle_seconds
        self.server.waits(self)

    def _read_body(self, exchange: NativeExchange, data: bytes) -> None:
        try:
            exchange.feed(data)
        except Refused as refused:
            exchange.fail(BodyBrokenError(str(refused), BAD_REQUEST))
            self._deafen(exchange)
            return
        if exchange.body.done:
            self._need_nothing()
            self._buffer += exchange.body.rest
        self.regulate()

    def _refuse(self, refused: Refused) -> None:
        """Answer what is no request, and close: what follows it could be anything."""
        head = Head(refused.method or "GET", refused.path, "", [], close=True)
        exchange = self._exchange = NativeExchange(self, head, self._peer)
        self.server.busy(self)
        self._deafen(exchange)
        self._start(exchange, refused)

    def _deafen(self, exchange: NativeExchange) -> None:
        exchange.close = True
        self._deaf = True
        self._buffer.clear()
        self._need_nothing()
        self.regulate()

    def _need_nothing(self) -> None:
        """Wait for nothing more of the request; but still for the client to read."""
        if not self.paused:
            self.due = inf

    def _expect_body(self, exchange: NativeExchange) -> None:
        self._progress = exchange.size
        self.due = self.loop.time() + BODY_SECONDS

    def _look_at_body(self, exchange: NativeExchange, now: float) -> None:
        enough = exchange.size - self._progress >= self.server.bounds.body_rate * BODY_SECONDS
        if (enough and now < self._body_end) or not self._reads:
            self._expect_body(exchange)
            return
        exchange.fail(too_slow())
        self._deafen(exchange)

    # The end.

    def _depart(self) -> None:
        """Let a client go that sends no more."""
        if not self._lost:
            self._abandon()
            self.close()

    def _abandon(self) -> None:
        """Stop what is being done for a client that is gone. A task that has not begun finds out by itself."""
        exchange, task = self._exchange, self._task
        if exchange is None or task is None:
            return
        exchange.leave()
        if exchange.begun:
            task.cancel()
