"""What leaves on a client's connection, how that ends, and the fixed limits: a slow client is waited for."""

from __future__ import annotations

import asyncio
import select
import socket
import struct
from math import inf
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from xenoglot.gateway.config.settings import ConnectionSettings


HIGH_WATER: Final = 64 * 1024
"""Bytes of a body that is not consumed yet, or of requests after the one being served, before reading stops."""

LINGER_BYTES: Final = 64 * 1024 * 1024
LINGER_SECONDS: Final = 2.0
"""How much of an unwanted body is still read, so that its sender receives the error."""

SLOW_SECONDS: Final = 1.0
SLOW_BYTES: Final = 16 * 1024
"""A body is slow that has not brought so many bytes for so long. It goes where places run out, or the gateway stops."""

OVERFLOW: Final = 64
"""Connections beyond the most that are still accepted, to be answered 503 or a health check."""


PROGRESS_BYTES: Final = 1024
"""What a slow client must take in `stall_seconds`."""

LINGER_NOT: Final = struct.pack("ii", 1, 0)
"""The socket option that makes `close` send a reset."""


class WriteSideHost(Protocol):
    """What the write side of a connection needs of the server."""

    loop: asyncio.AbstractEventLoop
    bounds: ConnectionSettings
    """Limits and timeouts."""
    gathers: bool
    """Whether the writes of a turn of the loop are made together at its end."""

    def gather(self, connection: WriteSide) -> None:
        """Flush the connection at the end of this turn of the loop."""
        ...


class WriteSide(asyncio.Protocol):
    """The side of a connection on which we write."""

    transport: asyncio.Transport

    def __init__(self, server: WriteSideHost) -> None:
        self.server = server
        self.loop = server.loop
        self._clock = server.loop.time
        self.paused = False
        """Whether the client takes less than it is sent."""
        self.unframed = False
        """Whether a response is in progress that only the end of the connection ends (HTTP/1.0)."""
        self.due = inf
        """When to look at it next, by the loop's clock."""
        self._out: list[bytes] = []
        """What is to be written at the end of this turn of the loop, or earlier."""
        self._size = 0
        """Bytes of it."""
        self._writers: list[asyncio.Future[None]] = []
        self._connected = False
        self._leaving = False
        self._lost = False
        self._allowance = LINGER_BYTES
        self._progress: float = inf
        """What the last look saw: bytes still to be taken by the client, or bytes that have come of a body."""

    def hold(self, data: bytes) -> None:
        """Have `data` leave with what comes next, or by itself when this turn of the loop is over."""
        if not self._out:
            self.server.gather(self)
        self._out.append(data)
        self._size += len(data)

    def send(self, data: bytes) -> None:
        """Write; to a client that is gone, nothing."""
        if self._lost or self._leaving:
            return
        size = self._size + len(data)
        if size > HIGH_WATER:  # what is larger is not copied for the sake of one write
            self.flush()
            self.transport.write(data)
        elif self.server.gathers:
            if not self._out:  # as `hold` does, without the call: this runs for every piece of every answer
                self.server.gather(self)
            self._out.append(data)
            self._size = size
        elif self._out:
            self._out.append(data)
            self.flush()
        else:
            self.transport.write(data)

    async def writable(self) -> None:
        """Wait until the client has taken enough of what was sent."""
        if self.paused and not self._lost:
            waiter = self.loop.create_future()
            self._writers.append(waiter)
            await waiter

    def flush(self) -> None:
        """Write what there is."""
        out = self._out
        if out:
            self._out = []
            self._size = 0
            if not self._lost:
                self.transport.write(out[0] if len(out) == 1 else b"".join(out))

    def regulate(self) -> None:
        """Resume or pause reading; the class that reads decides."""
        raise NotImplementedError

    def forget(self) -> None:
        """Have the server count with it no more."""
        raise NotImplementedError

    def close(self) -> None:
        """Close when what was written has been taken."""
        if self.unframed:
            self.drop()
            return
        self.flush()
        self._leaving = True
        self._wait_for_writing(self.server.bounds.stall_seconds)
        self.transport.close()

    def drop(self) -> None:
        """Close now, whatever is unwritten, so that the client does not take what was sent for the whole."""
        self.forget()
        if not self._connected:
            return
        self.flush()
        if self.unframed and not self._lost:
            wire: socket.socket = self.transport.get_extra_info("socket")
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
        self.transport.abort()

    def _leave(self, *, linger: bool) -> None:
        """Close; where the client still sends, not before it had time to read why.

        A response that would be ended by that is broken off instead, when its client has had time to read so far.
        """
        if not self.unframed and not (linger and self.transport.can_write_eof()):
            self.close()
            return
        self.flush()
        self._leaving = True
        self.regulate()
        self._wait_for_writing(LINGER_SECONDS)
        if not self.unframed:
            try:
                self.transport.write_eof()
            except OSError:  # asyncio's own: the client has reset the connection, which we would hear next
                self.drop()

    def _pass_over(self, size: int) -> None:
        self._allowance -= size
        if self._allowance < 0:
            self.drop()

    def _wait_for_writing(self, seconds: float) -> None:
        self._progress = inf
        self.due = self._clock() + seconds

    def _look_at_writing(self, now: float) -> None:
        left = self.transport.get_write_buffer_size()
        if left and left <= self._progress - PROGRESS_BYTES:
            self._progress = left
            self.due = now + self.server.bounds.stall_seconds
        else:
            self.drop()

    def _hung_up(self) -> bool:
        """Whether the client has closed its side, or all, although there is something before that to be read."""
        if not hasattr(select, "poll"):
            return False
        poll = select.poll()
        poll.register(self.transport.get_extra_info("socket").fileno(), getattr(select, "POLLRDHUP", 0))
        return bool(poll.poll(0))

    def _let_write(self) -> None:
        writers, self._writers = self._writers, []
        for waiter in writers:
            if not waiter.done():
                waiter.set_result(None)
