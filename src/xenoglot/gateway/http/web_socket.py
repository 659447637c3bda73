"""One client's connection after a WebSocket handshake (RFC 6455): bytes in, text messages out, and the way back.

Theory of operation. The connection of a request that was upgraded hands its transport over to this one, which the
server counts and closes as any other. The grammar of frames is that of `websockets`, which does no I/O; messages are
collected here, up to a limit, and given out one by one. While they are not taken, no more is read; while the client
takes less than it is sent, `writable` waits. No extension is negotiated, so no compressed message can grow beyond the
limit. What one read brought is parsed in pieces, so that thousands of tiny frames do not block the loop, and no further
than messages are taken. Deadlines are numbers that the server's sweep compares with its clock.

A client that closes, by a frame or without one, has disconnected: `read_message` returns `None`.
"""

from __future__ import annotations

import logging
from collections import deque
from math import inf
from typing import TYPE_CHECKING, Final, Protocol

from websockets.frames import CloseCode, Frame, Opcode
from websockets.protocol import OPEN, SERVER
from websockets.protocol import Protocol as FrameProtocol

from xenoglot.gateway.http.write_side import HIGH_WATER, LINGER_SECONDS, WriteSide, WriteSideHost

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable

    from xenoglot.gateway.http.application import Application, Exchange, MessageSocket

PING_SECONDS: Final = 30.0
"""How long a client may be silent before it is sent a ping."""

SILENT_SECONDS: Final = 600.0
"""How long it may be silent although it is: some programs answer pings only while they wait for an answer."""

MESSAGE_BYTES: Final = 64
"""Bytes that a waiting message counts in addition to its own."""

SLICE_BYTES: Final = 16 * 1024
"""How much is parsed at once: up to 2,700 frames."""

TURN_FRAMES: Final = 256
"""After how many frames the rest waits for the next turn of the loop."""

SHORT_PAYLOAD: Final = 126
MEDIUM_PAYLOAD: Final = 65_536
"""Payloads of so many bytes have a longer length in front."""

_SILENT = logging.getLogger("xenoglot.gateway.frames")
"""For the library, whose log has the text of messages."""
_SILENT.setLevel(logging.CRITICAL + 1)


class WebSocketHost(WriteSideHost, Protocol):
    """What a connection needs of the server."""

    draining: bool
    tasks: set[asyncio.Task[None] | None]

    @property
    def application(self) -> Application:
        """What answers the requests."""
        ...

    def waits(self, connection: WebSocketConnection) -> None:
        """Nothing is done for it."""
        ...

    def busy(self, connection: WebSocketConnection) -> None:
        """Something is."""
        ...

    def forget(self, connection: WebSocketConnection) -> None:
        """It is closed."""
        ...

    def evicted(self) -> None:
        """The socket of an evicted connection is closed."""
        ...


class WebSocketConnection(WriteSide):
    """A `MessageSocket` on a connection of our own server."""

    server: WebSocketHost

    def __init__(self, server: WebSocketHost, limit: int, session: Callable[[MessageSocket], Awaitable[None]]) -> None:
        super().__init__(server)
        self.gone = False
        self._session = session
        self._frames = FrameProtocol(SERVER, state=OPEN, max_size=limit, logger=_SILENT)
        self._message: bytearray | None = None
        """What has come of a message in several frames."""
        self._message_end = inf
        """By when it must be whole, be it one frame or several."""
        self._messages: deque[bytes] = deque()
        self._waiting = 0
        """Bytes of them, and of what keeps each."""
        self._partial = 0
        """Bytes of a frame that is not whole."""
        self._unparsed = bytearray()
        self._parses = False
        """Whether the next turn of the loop parses more of that."""
        self._unheard = 0
        """Bytes that came while the client takes less than it is sent: each ping among them wants an answer."""
        self._waiter: asyncio.Future[None] | None = None
        self._heard = self._clock()
        self._reads = True
        self._evicted = False
        self._task: asyncio.Task[None] | None = None

    def begin(self, transport: asyncio.Transport, data: bytes, *, reads: bool) -> None:
        """Take a connection over, with the `data` that was read after the handshake; `reads` is whether it reads."""
        self.transport = transport
        self._connected = True
        self._reads = reads
        self.due = self._clock() + PING_SECONDS
        transport.set_protocol(self)
        self._task = self.loop.create_task(self._serve())
        self.server.tasks.add(self._task)
        if data:
            self.data_received(data)
        self.regulate()

    async def _serve(self) -> None:
        try:
            await self._session(self)
        finally:
            self.server.tasks.discard(self._task)
            if not self.gone:
                self.end(CloseCode.GOING_AWAY)

    # What the loop calls.

    def data_received(self, data: bytes) -> None:
        """asyncio: one read."""
        self._heard = self._clock()
        self._unheard += len(data) if self.paused else 0
        if self._leaving:
            self._pass_over(len(data))
            return
        if len(data) > SLICE_BYTES or self._unparsed:
            self._unparsed += data
            if not self._parses:
                self._parse_on()
            return
        self._parse(data)
        self._write_frames()
        self.regulate()

    def _parse_on(self) -> None:
        """Parse what was read, as far as that does not take long and messages are taken."""
        self._parses = False
        frames = 0
        while self._unparsed and frames < TURN_FRAMES and self._waiting <= HIGH_WATER and not self._leaving:
            piece = bytes(self._unparsed[:SLICE_BYTES])
            del self._unparsed[:SLICE_BYTES]
            frames += self._parse(piece)
            self._write_frames()
        if self._leaving:
            self._unparsed.clear()
        self.regulate()

    def _parse(self, data: bytes) -> int:
        """Handle the frames that end in a piece; return how many those are."""
        self._frames.receive_data(data)
        self._partial += len(data)
        events = self._frames.events_received()
        for frame in events:
            if isinstance(frame, Frame):
                self._partial -= wire_bytes(len(frame.data))
                if not self.gone:
                    self._take(frame)
        if self._message is None and not self._partial:
            self._message_end = inf
        elif self._message_end == inf:
            self._message_end = self._clock() + self.server.bounds.body_seconds
        return len(events)

    def eof_received(self) -> bool:
        """asyncio: the client sends no more."""
        self._depart()
        self.close()
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  for any reason
        """asyncio: the socket is closed."""
        self._lost = True
        self.due = inf
        self._out.clear()
        self.forget()
        if self._evicted:
            self.server.evicted()
        self._depart()
        self._let_write()

    def pause_writing(self) -> None:
        """asyncio: the client is slower than we are."""
        self.paused = True
        self._wait_for_writing(self.server.bounds.stall_seconds)

    def resume_writing(self) -> None:
        """asyncio: the client reads again."""
        self.paused = False
        self._unheard = 0
        if not self._leaving:
            self.due = self._clock() + PING_SECONDS
        self.regulate()
        self._let_write()

    # What a session calls.

    @property
    def draining(self) -> bool:
        """Whether the server takes no more work."""
        return self.server.draining

    def handle(self, exchange: Exchange) -> Awaitable[None]:
        """Have the application of this moment answer a request."""
        return self.server.application.handle(exchange)

    async def read_message(self) -> bytes | None:
        """Return the next message, in UTF-8; `None` if the client has disconnected."""
        while not self._messages and not self.gone:
            self._waiter = self.loop.create_future()
            await self._waiter
        if self.gone:
            return None
        message = self._messages.popleft()
        self._waiting -= len(message) + MESSAGE_BYTES
        self.regulate()
        return message

    def put(self, message: bytes) -> None:
        """Send a text message, however slow the client is."""
        if not self.gone and self._frames.state is OPEN:
            self._frames.send_text(message)
            self._write_frames()

    def ping(self) -> None:
        """Send a ping: a sign of life."""
        if not self.gone and self._frames.state is OPEN:
            self._frames.send_ping(b"")
            self._write_frames()

    def rest(self, *, idle: bool) -> None:
        """Note whether the connection is idle: idle ones are closed where there are too many."""
        if self._lost:
            return
        if idle:
            self.server.waits(self)
        else:
            self.server.busy(self)

    def end(self, code: int, reason: str = "") -> None:
        """Close, in a while if the client does not; what comes of it is not read any more."""
        if self._frames.state is OPEN and not self._lost:
            self._frames.send_close(code, reason)
            self._write_frames()
            self._wait_for_writing(LINGER_SECONDS)
        self._depart()

    # What the server calls.

    def regulate(self) -> None:
        """Read on, or do not, by what has come and was not taken."""
        if self._unparsed and not self._parses and self._waiting <= HIGH_WATER:
            self._parses = True
            self.loop.call_soon(self._parse_on)
        reads = self._leaving or (max(self._waiting, self._unheard) <= HIGH_WATER and not self._unparsed)
        if reads != self._reads and not self._lost:
            self._reads = reads
            if reads:
                self.transport.resume_reading()
            else:
                self.transport.pause_reading()

    def forget(self) -> None:
        """Have the server count with it no more."""
        self.server.forget(self)

    @property
    def muffled(self) -> bool:
        """Whether something is done for the client while nothing is read from it."""
        return not self._reads and not self._lost

    def look(self, now: float) -> None:
        """Act on what is due, and on a disconnect while nothing is read."""
        if self.muffled and self._hung_up():
            self.drop()
        elif now < self.due:
            return
        elif self.paused or self._leaving:
            self._look_at_writing(now)
        elif self.gone or now - self._heard >= SILENT_SECONDS:
            self.drop()
        elif now >= self._message_end:
            self._fail(CloseCode.POLICY_VIOLATION, "the message comes too slowly")
        else:
            self.ping()
            self.due = now + PING_SECONDS

    def evict(self) -> bool:
        """Close at once to free the descriptor; return whether that is still to happen."""
        self._evicted = self._connected and not self._lost
        self.drop()
        return self._evicted

    def hurry(self) -> None:
        """Nothing is waited for here before a task begins."""

    def is_slow(self, now: float) -> bool:  # noqa: ARG002  what the server asks of any connection
        """Whether a body comes slowly: there is none."""
        return False

    def stop_waiting(self) -> None:
        """Give up what has not become a whole message."""
        self.retire()

    def retire(self) -> None:
        """Close: nothing is done for it, and nothing will be."""
        self.end(CloseCode.GOING_AWAY, "the gateway is stopping")

    # Frames.

    def _take(self, frame: Frame) -> None:
        match frame.opcode:
            case Opcode.TEXT | Opcode.CONT:
                self._collect(frame)
            case Opcode.BINARY:
                self._fail(CloseCode.UNSUPPORTED_DATA, "messages are text")
            case Opcode.CLOSE:
                self._depart()
            case _:
                return

    def _collect(self, frame: Frame) -> None:
        """Take a frame of a message; the library has seen that it may stand here, and is not too large."""
        if frame.opcode is Opcode.TEXT and frame.fin:
            self._deliver(bytes(frame.data))
            return
        if self._message is None:
            self._message = bytearray()
        self._message += frame.data
        if frame.fin:
            message, self._message = bytes(self._message), None
            self._deliver(message)

    def _deliver(self, message: bytes) -> None:
        try:
            str(message, "utf-8")
        except UnicodeDecodeError as error:
            self._fail(CloseCode.INVALID_DATA, f"{error.reason} at position {error.start}")
            return
        self._messages.append(message)
        self._message_end = inf
        self._waiting += len(message) + MESSAGE_BYTES
        self._wake()

    def _fail(self, code: CloseCode, reason: str) -> None:
        if self._frames.state is OPEN:
            self._frames.fail(code, reason)
            self._write_frames()
        self._depart()

    def _write_frames(self) -> None:
        for data in self._frames.data_to_send():
            if data:
                self.send(data)
            else:  # the end
                self._depart()
                self._leave(linger=True)

    def _depart(self) -> None:
        """Let the session know that the client has disconnected, or is about to be disconnected."""
        self.gone = True
        self._unparsed.clear()
        self._messages.clear()
        self._waiting = 0
        self._wake()
        self._let_write()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def wire_bytes(payload: int) -> int:
    """Return how many bytes a client's frame has with so many of payload (RFC 6455 section 5.2)."""
    return payload + (6 if payload < SHORT_PAYLOAD else 8 if payload < MEDIUM_PAYLOAD else 14)
