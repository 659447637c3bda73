"""A WebSocket of ASGI (https://asgi.readthedocs.io/en/latest/specs/www.html#websocket): handshake, and text messages.

Theory of operation. The handshake is a request to the application, which accepts it with `upgrade`, or answers: with
its status where the server has the extension `websocket.http.response`, else the server makes it a 403. What is sent
waits in a queue that a task writes out of, because ASGI's `send` may wait; `writable` waits while the queue is long.
Frames, pings and compression are the server's.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from xenoglot.backends.redaction import for_header
from xenoglot.gateway.http.asgi_exchange import ASGIExchange
from xenoglot.gateway.http.write_side import HIGH_WATER

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from xenoglot.gateway.http import application
    from xenoglot.gateway.http.application import Exchange, MessageSocket
    from xenoglot.gateway.http.asgi_exchange import Message, Receive, Send

POLICY_VIOLATION: Final = 1008
GOING_AWAY: Final = 1001
UNSUPPORTED_DATA: Final = 1003
MESSAGE_TOO_BIG: Final = 1009

_CHECKED: Final = frozenset({"connection", "upgrade", "sec-websocket-key", "sec-websocket-version"})
"""Headers that the server has checked, and that HTTP/2 does not have."""

_HANDSHAKE: Final = (
    ("connection", "Upgrade"),
    ("upgrade", "websocket"),
    ("sec-websocket-version", "13"),
    ("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA=="),
)
"""The same, as an endpoint looks for them."""

_OWN: Final = ("connection", "upgrade", "sec-websocket-accept")
"""Headers of the response to a handshake that the server writes."""


async def serve_web_socket(gateway: application.Application, scope: Message, receive: Receive, send: Send) -> None:
    """Serve one connection."""
    await receive()  # `websocket.connect`
    handshake = ASGIHandshake(scope, receive, send)
    try:
        await gateway.handle(handshake)
    finally:
        handshake.close()
    if handshake.accepted is not None:
        limit, session = handshake.accepted
        await ASGIMessageSocket(gateway, limit, receive, send).serve(session)


class ASGIHandshake(ASGIExchange):
    """The handshake as an exchange; its response is sent as ASGI has it for WebSockets."""

    def __init__(self, scope: Message, receive: Receive, send: Send) -> None:
        super().__init__({**scope, "method": "GET"}, receive, self._refuse)
        self.headers = [field for field in self.headers if field[0] not in _CHECKED] + [*_HANDSHAKE]
        self.accepted: tuple[int, Callable[[MessageSocket], Awaitable[None]]] | None = None
        """The limit of a message, and what serves the connection."""
        self._with_status = "websocket.http.response" in (scope.get("extensions") or ())
        self._write = send

    async def upgrade(
        self, headers: Sequence[tuple[str, str]], limit: int, session: Callable[[MessageSocket], Awaitable[None]]
    ) -> None:
        """Accept the handshake; `session` is to serve the connection."""
        told = [(name, for_header(value)) for name, value in headers if name not in _OWN]
        encoded = [(name.encode("ascii"), value.encode("ascii")) for name, value in told]
        await self._write({"type": "websocket.accept", "headers": encoded})
        self.accepted = (limit, session)

    async def _refuse(self, message: Message) -> None:
        """Send a message of a response to a request."""
        if self._with_status:
            await self._write({**message, "type": f"websocket.{message['type']}"})
        elif message["type"] == "http.response.start":
            await self._write({"type": "websocket.close", "code": POLICY_VIOLATION})


class ASGIMessageSocket:
    """A `MessageSocket` over ASGI's messages."""

    def __init__(self, gateway: application.Application, limit: int, receive: Receive, send: Send) -> None:
        self.gone = False
        self._gateway = gateway
        self._limit = limit
        self._receive = receive
        self._send = send
        self._out: deque[bytes] = deque()
        self._size = 0
        """Bytes in the queue."""
        self._ending: Message | None = None
        """How the connection is closed from here."""
        self._left = asyncio.Event()
        """Set when it is closed, or about to be."""
        self._more = asyncio.Event()
        """Set when there is something to write."""
        self._room = asyncio.Event()
        """Set while the queue is short."""
        self._room.set()
        self._reading: asyncio.Task[Message] | None = None

    @property
    def draining(self) -> bool:
        """Whether the gateway takes no more work."""
        return self._gateway.draining

    async def serve(self, session: Callable[[MessageSocket], Awaitable[None]]) -> None:
        """Have a session serve the connection; close it afterwards."""
        writer = asyncio.get_running_loop().create_task(self._write_all())
        try:
            await session(self)
            self.end(GOING_AWAY)
            await writer
        finally:
            tasks: list[asyncio.Task[Any]] = [writer, *([] if self._reading is None else [self._reading])]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def handle(self, exchange: Exchange) -> Awaitable[None]:
        """Have the application answer a request."""
        return self._gateway.handle(exchange)

    async def read_message(self) -> bytes | None:
        """Return the next message, in UTF-8; `None` if the client has disconnected."""
        if self.gone:
            return None
        loop = asyncio.get_running_loop()
        if self._reading is None:
            self._reading = loop.create_task(self._next())
        left = loop.create_task(self._left.wait())
        try:
            await asyncio.wait({self._reading, left}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            left.cancel()
        if self.gone:
            return None
        message, self._reading = self._reading.result(), None
        return self._data(message)

    def put(self, message: bytes) -> None:
        """Send a text message, however slow the client is."""
        if not self.gone:
            self._out.append(message)
            self._size += len(message)
            if self._size > HIGH_WATER:
                self._room.clear()
            self._more.set()

    async def writable(self) -> None:
        """Wait until the client has taken enough of what was sent."""
        await self._room.wait()
        if self.gone:
            await asyncio.sleep(0)  # so that the request can be cancelled, however fast its answer comes

    def ping(self) -> None:
        """Nothing: pings are the server's."""

    def rest(self, *, idle: bool) -> None:
        """Nothing: connections are the server's."""

    def end(self, code: int, reason: str = "") -> None:
        """Close."""
        if not self.gone:
            self._ending = {"type": "websocket.close", "code": code, "reason": reason}
            self._depart()

    async def _next(self) -> Message:
        return await self._receive()

    def _data(self, message: Message) -> bytes | None:
        """Return the text of a message of ASGI; what is no text closes the connection."""
        text: str | None = message.get("text")
        if message["type"] == "websocket.disconnect":
            self._depart()
            return None
        if text is None:
            self.end(UNSUPPORTED_DATA, "messages are text")
            return None
        data = text.encode("utf-8", "surrogatepass")
        if len(data) > self._limit:
            self.end(MESSAGE_TOO_BIG, f"over size limit ({len(data)} > {self._limit} bytes)")
            return None
        return data

    def _depart(self) -> None:
        self.gone = True
        self._left.set()
        self._more.set()
        self._room.set()

    async def _write_all(self) -> None:
        """Write what is put, in order, until the connection is closed; a client that takes nothing has disconnected."""
        stall = self._gateway.connections.stall_seconds
        try:
            while True:
                await self._more.wait()
                self._more.clear()
                while self._out and (self._ending is not None or not self.gone):
                    message = self._out.popleft()
                    async with asyncio.timeout(stall):
                        await self._send({"type": "websocket.send", "text": message.decode()})
                    self._size -= len(message)
                    if self._size <= HIGH_WATER:
                        self._room.set()
                if self._ending is not None:
                    await self._send(self._ending)
                if self.gone:
                    return
        except (OSError, TimeoutError):
            self._depart()
