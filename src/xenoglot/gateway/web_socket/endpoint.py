"""The handshake of a WebSocket (RFC 6455 section 4.2), after which the connection is a session of requests."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from xenoglot.errors import FailureError
from xenoglot.gateway.endpoint.request_context import BodyReader
from xenoglot.gateway.endpoint.responses import fail
from xenoglot.gateway.http.application import UpgradableExchange
from xenoglot.gateway.web_socket.session import WebSocketSession
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from xenoglot.codec.features.web_socket import WebSocketForm
    from xenoglot.gateway.endpoint.request_context import RequestContext

SWITCHING_PROTOCOLS: Final = 101
UPGRADE_REQUIRED: Final = 426
VERSION: Final = "13"

_KEY: Final = re.compile(r"[A-Za-z0-9+/]{22}==")


class WebSocketEndpoint(Struct, frozen=True):
    """Accepts handshakes; a message may be as large as a body."""

    bodies: BodyReader

    async def serve(self, form: WebSocketForm, ctx: RequestContext) -> None:
        """Answer one handshake.

        Raises:
            FailureError: it is none.
        """
        exchange = ctx.exchange
        accept = accept_key(ctx)
        if accept is None or not isinstance(exchange, UpgradableExchange):
            message = "this path is for `POST`, or for a WebSocket of version 13"
            headers = [("upgrade", "websocket"), ("sec-websocket-version", VERSION)]
            failure = Failure(kind="invalid_request", message=message)
            await fail(ctx, failure, status=UPGRADE_REQUIRED, more=headers)
            return
        session = WebSocketSession(exchange, ctx.dialect, form, self.bodies)
        ctx.record.begin(SWITCHING_PROTOCOLS)
        handshake = [("upgrade", "websocket"), ("connection", "Upgrade"), ("sec-websocket-accept", accept)]
        await exchange.upgrade([*handshake, *ctx.record.headers()], self.bodies.limit, session.serve)


def accept_key(ctx: RequestContext) -> str | None:
    """Return what a handshake is accepted with; `None` if there is none, or nothing here that could serve it.

    Raises:
        FailureError: its key is none.
    """
    header = ctx.exchange.header
    asked = (header("upgrade") or "").strip().lower() == "websocket"
    tokens = {token.strip().lower() for token in (header("connection") or "").split(",")}
    if not asked or "upgrade" not in tokens or header("sec-websocket-version") != VERSION:
        return None
    key = header("sec-websocket-key") or ""
    if not _KEY.fullmatch(key):
        problem = "the header `sec-websocket-key` must be 16 bytes in base64"
        raise FailureError(Failure(kind="invalid_request", message=problem))
    try:
        from websockets.utils import accept_key as accepted  # noqa: PLC0415  most gateways have no WebSocket
    except ImportError:
        return None
    return accepted(key)
