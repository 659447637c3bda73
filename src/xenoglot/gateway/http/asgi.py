"""The gateway as an ASGI 3 application (https://asgi.readthedocs.io/en/latest/specs/www.html), for any such server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from xenoglot.gateway.http.asgi_exchange import ASGIExchange
from xenoglot.gateway.http.asgi_web_socket import serve_web_socket

if TYPE_CHECKING:
    from xenoglot.gateway.http import application
    from xenoglot.gateway.http.asgi_exchange import Message, Receive, Send


class Application:
    """Serves an application, such as a `Gateway`; with `owned`, that is closed when the server shuts down."""

    def __init__(self, gateway: application.Application, *, owned: bool = True) -> None:
        self.gateway = gateway
        self._owned = owned

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one connection of the server's kind."""
        match scope["type"]:
            case "http":
                await self._http(ASGIExchange(scope, receive, send))
            case "lifespan":
                await self._lifespan(receive, send)
            case "websocket":
                await serve_web_socket(self.gateway, scope, receive, send)
            case other:
                raise NotImplementedError(other)  # the word of the specification for "leave me alone with that"

    async def _http(self, exchange: ASGIExchange) -> None:
        try:
            await self.gateway.handle(exchange)
        except asyncio.CancelledError:
            if not exchange.gone:
                raise
        finally:
            exchange.close()

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self.gateway.take_up()
            if message["type"] == "lifespan.shutdown" and self._owned:
                await self.gateway.aclose()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
