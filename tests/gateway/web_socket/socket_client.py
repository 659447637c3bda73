"""The client's side of a WebSocket, frame by frame, on a connection of the test's own loop."""

from __future__ import annotations

import json
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from websockets.frames import Frame, Opcode
from websockets.protocol import CLIENT
from websockets.protocol import Protocol as FrameProtocol

if TYPE_CHECKING:
    from tests.gateway.server_on_loop import RawConnection, ServerOnLoop
    from xenoglot.model.json import JSON, JSONObject

PATH = "/v1/responses"
KEY = "dGhlIHNhbXBsZSBub25jZQ=="
ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
"""The key and what answers it, from RFC 6455 section 1.3."""

ENDS = ("response.completed", "response.incomplete", "response.failed", "error")


class SocketClosed(NamedTuple):
    """How the server closed: the code of its frame, and the reason; 1006 where there was none."""

    code: int
    reason: str


def handshake(*headers: str, path: str = PATH, host: str = "localhost") -> bytes:
    """Return the bytes of a handshake with these headers besides those that it must have."""
    lines = [f"GET {path} HTTP/1.1", f"Host: {host}", "Connection: keep-alive, Upgrade", "Upgrade: websocket"]
    lines += [f"Sec-WebSocket-Key: {KEY}", "Sec-WebSocket-Version: 13", *headers, "", ""]
    return "\r\n".join(lines).encode()


def created(text: str = "Hi", **more: JSON) -> JSONObject:
    """Return a request as a client's event."""
    return {"type": "response.create", "model": "m", "input": text, "store": False, **more}


class SocketClient:
    """A connection that was accepted."""

    def __init__(self, raw: RawConnection) -> None:
        self.raw = raw
        self.head = b""
        self.frames = FrameProtocol(CLIENT, max_size=None)
        self._received: deque[Frame] = deque()

    def send(self, event: JSON) -> None:
        """Send an event in one frame."""
        self.raw.send(self.encoded(event))

    def encoded(self, event: JSON, *sizes: int) -> bytes:
        """Return the bytes of an event, in frames of these sizes and a last one."""
        data = json.dumps(event).encode()
        pieces = []
        for size in sizes:
            pieces.append(data[:size])
            data = data[size:]
        for at, piece in enumerate([*pieces, data]):
            send = self.frames.send_continuation if at else self.frames.send_text
            send(piece, fin=at == len(pieces))
        return b"".join(self.frames.data_to_send())

    async def frame(self) -> Frame | None:
        """Return the next frame; `None` if the server closed without one."""
        while not self._received:
            data = await self.raw.reader.read(65_536)
            if not data:
                return None
            self.frames.receive_data(data)
            self.raw.send(b"".join(self.frames.data_to_send()))
            self._received += [event for event in self.frames.events_received() if isinstance(event, Frame)]
        return self._received.popleft()

    async def event(self) -> JSONObject:
        """Return the next event; pings in front of it are passed over."""
        while (frame := await self.frame()) is not None:
            if frame.opcode is Opcode.TEXT:
                value: JSONObject = json.loads(bytes(frame.data))
                return value
            assert frame.opcode is Opcode.PING, frame
        raise AssertionError("the server closed")

    async def answer(self) -> list[JSONObject]:
        """Return the events of an answer, to its last."""
        events = [await self.event()]
        while events[-1]["type"] not in ENDS:
            events.append(await self.event())
        return events

    async def ask(self, event: JSON) -> list[JSONObject]:
        """Send an event, and return those of its answer."""
        self.send(event)
        return await self.answer()

    async def closed(self) -> SocketClosed:
        """Return how the server closes, which is the next that it does."""
        frame = await self.frame()
        while frame is not None and frame.opcode is Opcode.PING:
            frame = await self.frame()
        if frame is None:
            return SocketClosed(1006, "")
        assert frame.opcode is Opcode.CLOSE, frame
        data = bytes(frame.data)
        return SocketClosed(int.from_bytes(data[:2]), data[2:].decode())


async def connect(stage: ServerOnLoop, *headers: str) -> SocketClient:
    """Return a connection that has been accepted."""
    client = SocketClient(await stage.connect())
    client.raw.send(handshake(*headers))
    client.head = await client.raw.read_until(b"\r\n\r\n")
    assert client.head.startswith(b"HTTP/1.1 101 "), client.head
    return client
