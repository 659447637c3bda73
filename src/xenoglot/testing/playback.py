"""Player of scripts: turns each step into bytes on a connection, or into a pause."""

from __future__ import annotations

import asyncio
import zlib
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol

from xenoglot.http1.syntax import LAST_CHUNK, chunk
from xenoglot.testing.script import (
    Body,
    Close,
    Drip,
    End,
    Hang,
    Pause,
    Receive,
    Repeat,
    Respond,
    ResponseHead,
    Send,
    StopRead,
    WaitEvent,
    pieces,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.testing.script import Split, Step

WINDOW_BITS = {"gzip": 31, "deflate": 15}
"""`wbits`, https://docs.python.org/3/library/zlib.html#zlib.compressobj"""


class Wire(Protocol):
    """The connection that a player writes to."""

    async def write(self, data: bytes) -> None:
        """Send, and wait for back-pressure to end."""
        ...

    async def received(self, count: int) -> None:
        """Wait for so many bytes that belong to no request."""
        ...

    async def gone(self) -> None:
        """Wait until the other side has closed."""
        ...

    async def released(self, event: str) -> None:
        """Wait until `event` is released."""
        ...

    def deafen(self) -> None:
        """Stop reading."""
        ...

    def close(self) -> None:
        """FIN."""
        ...

    def reset(self) -> None:
        """RST."""
        ...


class Player:
    """Plays steps, and keeps the framing of the current body between them."""

    def __init__(self, wire: Wire) -> None:
        self.ended = False
        """Whether the script has ended the connection."""
        self._wire = wire
        self._chunked = False
        self._until_close = False
        self._compressor: zlib._Compress | None = None

    async def play(self, steps: Sequence[Step]) -> None:
        """Play steps until the connection is over."""
        for step in steps:
            if self.ended:
                return
            await self._write(step)

    async def _write(self, step: Step) -> None:
        match step:
            case Send(data=data, split=split):
                await self._segments(pieces(data, split))
            case Body(data=data, split=split):
                await self._body(data, split)
            case ResponseHead():
                self._chunked = step.chunked and step.length is None
                self._until_close = not step.chunked and step.length is None
                self._compressor = None if step.coding is None else zlib.compressobj(wbits=WINDOW_BITS[step.coding])
                await self._wire.write(encode_head(step))
            case Respond():
                await self._segments(pieces(encode_response(step), step.split))
            case End():
                await self._end()
            case Drip(interval=interval):
                for piece in pieces(step.data, step.step):
                    await (self._body(piece, 0) if step.framed else self._wire.write(piece))
                    await asyncio.sleep(interval)
            case _:
                await self._act(step)

    async def _act(self, step: Step) -> None:
        """Perform a step that sends nothing."""
        match step:
            case Pause(seconds=seconds):
                await asyncio.sleep(seconds)
            case WaitEvent(event=event):
                await self._wire.released(event)
            case Receive(count=count):
                await self._wire.received(count)
            case Repeat(steps=steps, times=times):
                await self._repeat(steps, times)
            case StopRead():
                self._wire.deafen()
            case _:
                await self._finish(step)

    async def _finish(self, step: Step) -> None:
        """Be over."""
        match step:
            case Hang():
                await self._wire.gone()
            case Close():
                self._wire.close()
            case _:
                self._wire.reset()
        self.ended = True

    async def _repeat(self, steps: Sequence[Step], times: int | None) -> None:
        done = 0
        while (times is None or done < times) and not self.ended:
            await self.play(steps)
            done += 1
            await asyncio.sleep(0)  # others have their turn, even where every write goes through at once

    async def _segments(self, cut: list[bytes]) -> None:
        """Write each piece in a segment of its own; a reader in the same loop sees each separately."""
        for number, piece in enumerate(cut):
            if number:
                await asyncio.sleep(0)  # the loop looks at its sockets ...
                await asyncio.sleep(0)  # ... and the reader reads
            await self._wire.write(piece)

    async def _body(self, data: bytes, split: Split) -> None:
        await self._segments([self._framed(piece) for piece in pieces(data, split)])

    def _framed(self, data: bytes) -> bytes:
        if self._compressor is not None:
            data = self._compressor.compress(data) + self._compressor.flush(zlib.Z_SYNC_FLUSH)
        return chunk(data) if self._chunked else data

    async def _end(self) -> None:
        if self._compressor is not None:
            tail, self._compressor = self._compressor.flush(), None
            await self._wire.write(self._framed(tail))
        if self._chunked:
            await self._wire.write(LAST_CHUNK)
        if self._until_close:
            self._wire.close()
            self.ended = True


def encode_head(head: ResponseHead) -> bytes:
    """Return the bytes of a head."""
    framing: list[tuple[str, str]] = []
    if head.length is not None:
        framing.append(("content-length", str(head.length)))
    elif head.chunked:
        framing.append(("transfer-encoding", "chunked"))
    if head.coding is not None:
        framing.append(("content-encoding", head.coding))
    return _head(head.status, head.reason, (*head.headers, *framing))


def encode_response(response: Respond) -> bytes:
    """Return the bytes of a complete response."""
    body, headers = response.body, response.headers
    if response.coding is not None:
        compressor = zlib.compressobj(wbits=WINDOW_BITS[response.coding])
        body = compressor.compress(body) + compressor.flush()
        headers = (*headers, ("content-encoding", response.coding))
    length = len(body) if response.length is None else response.length
    return _head(response.status, None, (*headers, ("content-length", str(length)))) + body


def _head(status: int, reason: str | None, headers: Sequence[tuple[str, str]]) -> bytes:
    known = status in HTTPStatus._value2member_map_
    phrase = reason if reason is not None else HTTPStatus(status).phrase if known else ""
    lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
