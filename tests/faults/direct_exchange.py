"""Requests handed to a gateway without a socket: what is asked is data, what is answered is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import json

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from xenoglot.gateway.app import Gateway
    from xenoglot.model.json import JSON


class DirectExchange:
    """An exchange that is all there before it begins; `status`, `response_headers` and `body` are what came of it."""

    def __init__(
        self,
        method: str,
        path: str,
        body: JSON | bytes = None,
        headers: Sequence[tuple[str, str]] = (),
        *,
        peer: str = "127.0.0.1",
    ) -> None:
        self.method = method
        self.path, _, self.query = path.partition("?")
        self.headers: Sequence[tuple[str, str]] = (("host", "localhost"), *headers)
        self.variables: Mapping[str, str] = {}
        self.peer = peer
        self.reads_behind_upgrade = True
        self.status = 0
        self.response_headers: dict[str, str] = {}
        self.body = b""
        self.complete = False
        self._body = body if isinstance(body, bytes) else b"" if body is None else json.encode(body)

    def header(self, name: str) -> str | None:
        """Return the first value of a header of the request."""
        return next((value for field, value in self.headers if field == name), None)

    async def read_body(self, _limit: int) -> bytes:
        """Return the body of the request."""
        return self._body

    async def pieces(self, _limit: int) -> AsyncGenerator[bytes]:
        """Yield the body of the request."""
        yield self._body

    async def start(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """Keep the head of the response."""
        self.status = status
        self.response_headers = dict(headers)

    async def write(self, data: bytes) -> None:
        """Keep a piece of its body."""
        self.body += data

    async def end(self, data: bytes = b"") -> None:
        """Keep its last piece."""
        self.body += data
        self.complete = True

    def abort(self) -> None:
        """Keep that it is not whole, as it was."""

    @property
    def json(self) -> JSON:
        """The body, decoded."""
        return json.decode(self.body)


async def handle(  # noqa: PLR0913  the parts of a request
    gateway: Gateway,
    method: str,
    path: str,
    body: JSON | bytes = None,
    headers: Sequence[tuple[str, str]] = (),
    *,
    peer: str = "127.0.0.1",
) -> DirectExchange:
    """Return what the gateway makes of one request."""
    exchange = DirectExchange(method, path, body, headers, peer=peer)
    await gateway.handle(exchange)
    return exchange
