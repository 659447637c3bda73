"""The gateway as an ASGI application in uvicorn, with the life of our own server: for tests that run over both."""

from __future__ import annotations

import asyncio
import contextlib
import math
from typing import TYPE_CHECKING

import uvicorn

from xenoglot.gateway.http.asgi import Application
from xenoglot.gateway.process.serve import GRACE_SECONDS

if TYPE_CHECKING:
    import socket
    from collections.abc import Generator

    from xenoglot.gateway.app import Gateway


class ASGIServer(uvicorn.Server):
    """uvicorn, with our end: streams are told before they are broken off."""

    def __init__(self, gateway: Gateway, *, sockets: bool = False) -> None:
        drain = gateway.config.server.drain_seconds
        super().__init__(
            uvicorn.Config(
                Application(gateway, owned=False),
                http="httptools",
                ws="websockets-sansio" if sockets else "none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=math.ceil(drain + GRACE_SECONDS),
            )
        )
        self._gateway = gateway
        self._drain = drain
        self._loop: asyncio.AbstractEventLoop | None = None

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until told to stop."""
        self._loop = asyncio.get_running_loop()
        await super().serve(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting; let what is being answered end, in time."""
        timer = asyncio.get_running_loop().call_later(self._drain, self._gateway.stop_now)
        try:
            await super().shutdown(sockets)
        finally:
            timer.cancel()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave the signals alone."""
        yield

    def handle_exit(self, sig: int = 0, frame: object = None) -> None:  # noqa: ARG002  a signal handler's
        """Begin to stop; at the second signal, stop at once."""
        if self.should_exit and self._loop is not None:
            self._loop.call_soon_threadsafe(self._gateway.stop_now)
        self.should_exit = True
