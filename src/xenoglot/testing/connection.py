"""One connection to a scripted server: what was received and sent, and how it ended."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from typing import TYPE_CHECKING, Literal, Protocol, cast

from xenoglot.testing.playback import Player
from xenoglot.testing.raw_http import MessageReader

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.testing.raw_http import Received
    from xenoglot.testing.script import ScriptRule, Steps

SENT_KEPT = 1 << 20
"""Most sent bytes that are recorded; beyond that they are only counted."""
LINGER_NOT = struct.pack("ii", 1, 0)

Ending = Literal["fin", "reset", "ours"]
"""How a connection ended: by the client's FIN or RST, or by the script."""


class Stage(Protocol):
    """What a connection needs of its server."""

    greeting: Steps
    half_close: bool

    def choose(self, request: Received, *, whole: bool) -> ScriptRule | None:
        """Return the rule for a request; with `whole` false, only a rule that does not need the body."""
        ...

    async def released(self, event: str) -> None:
        """Wait until `event` is released."""
        ...

    def changed(self, what: str) -> None:
        """Something has happened."""
        ...


class ScriptedConnection(asyncio.Protocol):
    """A connection that was accepted. Times are seconds of `time.monotonic`."""

    def __init__(self, stage: Stage, number: int) -> None:
        self.number = number
        self.opened = time.monotonic()
        self.closed: float | None = None
        """When the client closed, or the script did."""
        self.ending: Ending | None = None
        self.requests: list[Received] = []
        self.sent = bytearray()
        """The first mebibyte of what was sent."""
        self.sent_bytes = 0
        self.lost = asyncio.Event()
        """Set when the socket is closed."""
        self.task: asyncio.Task[None] | None = None
        self._stage = stage
        self._transport: asyncio.Transport | None = None
        self._reader = MessageReader("request")
        self._changed = asyncio.Event()
        self._closed = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the script."""
        self._transport = cast("asyncio.Transport", transport)
        opened = self._transport.get_extra_info("socket")
        if opened is not None and opened.family in (socket.AF_INET, socket.AF_INET6):
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.task = asyncio.get_running_loop().create_task(self._converse())
        self._stage.changed(f"connection {self.number}: opened")

    def data_received(self, data: bytes) -> None:
        """Read on."""
        self._reader.feed(data)
        self._changed.set()

    def eof_received(self) -> bool:
        """Record the client's FIN; the connection ends, unless half-closed connections are served."""
        self._end("fin")
        kept = self._stage.half_close and self._transport is not None
        if not kept:
            self._stop()
        return kept

    def connection_lost(self, error: Exception | None) -> None:
        """Note that the socket is closed."""
        self._end("reset" if error is not None else "ours")
        self._stop()
        self._room.set()
        self.lost.set()
        self._stage.changed(f"connection {self.number}: socket closed")

    def pause_writing(self) -> None:
        """Wait with the next step: the client does not read."""
        self._room.clear()

    def resume_writing(self) -> None:
        """Continue writing."""
        self._room.set()

    async def write(self, data: bytes) -> None:
        """Send, and wait for back-pressure to end; nothing is sent to a disconnected client."""
        if self._transport is None or self._transport.is_closing():
            return
        self.sent += data[: max(SENT_KEPT - len(self.sent), 0)]
        self.sent_bytes += len(data)
        self._transport.write(data)
        await self._room.wait()

    async def received(self, count: int) -> None:
        """Wait for so many bytes that belong to no request."""
        while len(self._reader.raw) < count:
            await self._more()

    async def gone(self) -> None:
        """Wait until the client has closed."""
        await self._closed.wait()

    async def released(self, event: str) -> None:
        """Wait until `event` is released."""
        await self._stage.released(event)

    def deafen(self) -> None:
        """Stop reading."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def close(self) -> None:
        """Send FIN after all data."""
        self._end("ours")
        if self._transport is not None:
            self._transport.close()

    def reset(self) -> None:
        """Send RST at once."""
        self._end("ours")
        if self._transport is not None and not self._transport.is_closing():
            self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
            self._transport.abort()

    def abort(self) -> None:
        """Close the socket, whatever is still to be sent."""
        if self._transport is not None:
            self._transport.abort()

    def _end(self, ending: Ending) -> None:
        if self.ending is None:
            self.ending, self.closed = ending, time.monotonic()
            self._stage.changed(f"connection {self.number}: {_ENDINGS[ending]}")

    def _stop(self) -> None:
        """Stop the script."""
        self._closed.set()
        self._changed.set()
        if self.task is not None:
            self.task.cancel()

    async def _more(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    async def _converse(self) -> None:
        try:
            await self._play_all()
        except asyncio.CancelledError:
            if not self._closed.is_set():
                raise
        finally:
            if self._transport is not None and not self._transport.is_closing():
                self._transport.close()

    async def _play_all(self) -> None:
        greeting = Player(self)
        await greeting.play(self._stage.greeting)
        over = greeting.ended
        while not over:
            request, rule = await self._next()
            over = await self._answer(request, rule)

    async def _next(self) -> tuple[Received, ScriptRule | None]:
        """Wait for a request, and choose its rule."""
        while not self._reader.headed:
            await self._more()
        request = self._next_request()
        rule = self._stage.choose(request, whole=False)
        while rule is None and not self._reader.complete:
            await self._more()
        if rule is None:
            request = self._next_request()
            rule = self._stage.choose(request, whole=True)
        else:
            self.deafen()
        self.requests.append(request)
        rest, self._reader = self._reader.surplus, MessageReader("request")
        self._reader.feed(rest)
        self._stage.changed(f"connection {self.number}: {request.method} {request.target} ({len(request.body)} bytes)")
        return request, rule

    def _next_request(self) -> Received:
        return self._reader.received(time.monotonic())

    async def _answer(self, request: Received, rule: ScriptRule | None) -> bool:
        """Play the answer; return whether the connection is over."""
        player = Player(self)
        if rule is not None:
            await player.play(rule.steps(request) if callable(rule.steps) else rule.steps)
            self._stage.changed(f"connection {self.number}: answered by rule {request.rule}")
        asked_to_close = (request.header("connection") or "").lower() == "close"
        return player.ended or rule is None or rule.reads == "head" or asked_to_close


_ENDINGS = {"fin": "the client closed", "reset": "the client reset", "ours": "the script closed"}


def numbered(stage: Stage, connections: list[ScriptedConnection]) -> Callable[[], ScriptedConnection]:
    """Return the factory of a server's connections."""

    def make() -> ScriptedConnection:
        connections.append(ScriptedConnection(stage, len(connections) + 1))
        return connections[-1]

    return make
