"""Takes connections from a listening socket, while connection slots and file descriptors are free."""

from __future__ import annotations

import errno
import logging
import os
import socket
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Final, Protocol

from xenoglot.gateway.http.connection import ClientConnection, ConnectionHost

if TYPE_CHECKING:
    import asyncio

    from xenoglot.gateway.http.web_socket import WebSocketConnection

BATCH: Final = 64
"""Connections taken in one turn of the loop."""

PAUSE_SECONDS: Final = 0.25
"""How long no connection is accepted where there is no descriptor or memory for one more, and no idle one to evict."""

SILENCE_SECONDS: Final = 60.0
"""How long the same is not logged again."""

SCARCE: Final = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
"""Errors of `accept` when descriptors or memory are exhausted."""

_NOBODY: Final = {errno.EAGAIN, errno.EWOULDBLOCK, errno.EINTR, errno.ECONNABORTED, errno.EPROTO}
"""Errors of `accept` when the peer has disconnected already."""

_logger = logging.getLogger("xenoglot.gateway")


class AcceptorHost(ConnectionHost, Protocol):
    """What an acceptor needs of the server."""

    connections: set[ClientConnection | WebSocketConnection]
    crowded: bool
    """Whether accepting has stopped until a connection closes or becomes idle."""

    @property
    def full(self) -> bool:
        """Whether there are as many connections as are wanted."""
        ...

    @property
    def roomy(self) -> bool:
        """Whether one more may be accepted, if only to be refused."""
        ...

    def make_room(self) -> None:
        """Close the connection that is idle longest, if one more would be too many."""
        ...

    def evict(self) -> bool:
        """Close some of the connections that are idle longest; return whether descriptors become free."""
        ...


class Acceptor:
    """Lets clients of one listening socket in.

    By default a loop closes connections that it has no descriptor for (uvloop), or logs a trace
    (asyncio). Here a batch of the connections that have been idle longest is evicted, and accepting continues at once;
    it pauses only where none is idle.
    """

    def __init__(self, server: AcceptorHost, listener: socket.socket) -> None:
        self._server = server
        self._listener = listener
        self._loop = server.loop
        self._timer: asyncio.TimerHandle | None = None
        self._open = False
        self._complained_at = -inf
        self._coming: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Begin."""
        self._listener.settimeout(0)
        self._open = True
        self._loop.add_reader(self._listener.fileno(), self._ready)

    def stop(self) -> None:
        """Accept no more connections; accepted ones stay."""
        self._hold()
        if self._open:
            self._open = False
            self._listener.close()

    def room(self) -> None:
        """Resume accepting if it was paused because no slot was free."""
        if self._open and self._timer is None:
            self._loop.add_reader(self._listener.fileno(), self._ready)

    def _hold(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._open:
            self._loop.remove_reader(self._listener.fileno())

    def _ready(self) -> None:
        for _ in range(BATCH):
            if not self._server.roomy:
                self._too_many()
                return
            try:
                connection, address = self._listener.accept()
            except OSError as error:
                if error.errno not in _NOBODY:
                    self._out_of_room(error)
                return
            self._let_in(connection, address)

    def _too_many(self) -> None:
        """Evict idle connections, or stop until there is one; those that are coming up are idle in a moment."""
        if not self._coming and not self._server.evict():
            self._server.crowded = True
            self._hold()

    def _out_of_room(self, error: OSError) -> None:
        """Free descriptors, if that is what is missing, or pause. The listener stays readable until then."""
        now = self._loop.time()
        if now - self._complained_at >= SILENCE_SECONDS:
            self._complained_at = now
            reason = os.strerror(error.errno or 0)
            _logger.warning("no connection can be taken for now: %s", reason)
        if error.errno in SCARCE and self._server.evict():
            return
        self._hold()
        self._timer = self._loop.call_later(PAUSE_SECONDS, self._go_on)

    def _go_on(self) -> None:
        self._timer = None
        self.room()

    def _let_in(self, connection: socket.socket, address: object) -> None:
        connection.settimeout(0)
        if connection.family in (socket.AF_INET, socket.AF_INET6):
            with suppress(OSError):  # some systems say so here if it is gone already
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._server.make_room()
        peer = str(address[0]) if isinstance(address, tuple) else ""
        protocol = ClientConnection(self._server, peer, overflow=self._server.full)
        self._server.connections.add(protocol)
        task = self._loop.create_task(self._connect(protocol, connection))
        self._coming.add(task)
        task.add_done_callback(self._coming.discard)

    async def _connect(self, protocol: ClientConnection, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(lambda: protocol, connection)
        except OSError:
            self._server.forget(protocol)
            connection.close()
