"""One request of ASGI 3 (https://asgi.readthedocs.io/en/latest/specs/www.html#http) as an `Exchange`.

After the body has been read, a task waits for the server's message that the client has disconnected, and cancels the
task that serves the request. A client that only closes its sending side is treated as disconnected, because the servers
do not distinguish the two.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeAlias

from xenoglot.backends.redaction import for_header
from xenoglot.gateway.http.application import BodyTooLargeError, ClientDisconnectedError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping, Sequence

    Message: TypeAlias = MutableMapping[str, Any]
    Receive: TypeAlias = Callable[[], Awaitable[Message]]
    Send: TypeAlias = Callable[[Message], Awaitable[None]]

LINGER_BYTES = 64 * 1024 * 1024
LINGER_SECONDS = 2.0
"""How much of an unwanted body is still read, so that its sender receives the response."""


class ASGIExchange:
    """An `Exchange` over ASGI's messages."""

    reads_behind_upgrade = False  # uvicorn, for one, gives out no body behind `upgrade`

    def __init__(self, scope: Message, receive: Receive, send: Send) -> None:
        self.method: str = scope["method"]
        self.path: str = scope.get("raw_path", scope["path"].encode()).decode("latin-1")
        self.query: str = scope["query_string"].decode("latin-1")
        self.headers: Sequence[tuple[str, str]] = [
            (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]
        ]
        self.peer: str = (scope.get("client") or ("",))[0]
        self.variables: Mapping[str, str] = {}
        self.gone = False
        self._receive = receive
        self._send = send
        self._over = False
        self._body: bytes | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._unread = any(name in ("content-length", "transfer-encoding") for name, _ in self.headers)

    def header(self, name: str) -> str | None:
        """Return the first value of the header `name` (lower case)."""
        return next((value for field, value in self.headers if field == name), None)

    async def read_body(self, limit: int) -> bytes:
        """Return the whole body, and watch the client from then on."""
        if self._body is not None:
            return self._body
        declared = self.header("content-length") or "0"
        if declared.isdecimal() and int(declared) > limit:
            raise _too_large(limit)
        pieces: list[bytes] = []
        size = 0
        more = True
        while more:
            message = await self._next()
            pieces.append(message["body"])
            size += len(message["body"])
            if size > limit:
                raise _too_large(limit)
            more = message["more_body"]
        self._unread = False
        self._watch()
        self._body = b"".join(pieces)
        return self._body

    async def pieces(self, limit: int) -> AsyncGenerator[bytes]:
        """Yield the body as it comes, and watch the client from its end on."""
        declared = self.header("content-length") or "0"
        if declared.isdecimal() and int(declared) > limit:
            raise _too_large(limit)
        size = 0
        more = True
        while more:
            message = await self._next()
            size += len(message["body"])
            if size > limit:
                raise _too_large(limit)
            more = message["more_body"]
            self._unread = more
            yield message["body"]
        self._watch()

    async def start(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """Send the head of the response; what cannot stand in a header is replaced."""
        encoded = [(name.encode("ascii"), for_header(value).encode("ascii")) for name, value in headers]
        if self._unread:
            encoded.append((b"connection", b"close"))
        await self._send({"type": "http.response.start", "status": status, "headers": encoded})

    async def write(self, data: bytes) -> None:
        """Send a piece of the body."""
        if not self._over:
            await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self, data: bytes = b"") -> None:
        """Send the last piece."""
        if self._over:
            return
        if self._unread:
            await self.write(data)
            data = b""
            await self._linger()
        self._over = True
        await self._send({"type": "http.response.body", "body": data, "more_body": False})

    def abort(self) -> None:
        """Send nothing more: a server whose application returns without the last piece breaks the connection off."""
        self._over = True

    def close(self) -> None:
        """Stop watching."""
        self._over = True
        if self._watcher is not None:
            self._watcher.cancel()

    async def _next(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnectedError("the client disconnected before its request was complete")
        return {"body": message.get("body", b""), "more_body": message.get("more_body", False)}

    async def _linger(self) -> None:
        """Read on for a while: closing upon a client that still sends would destroy the answer on its way."""
        left = LINGER_BYTES if self.header("expect") is None else 0  # who waits for leave sends nothing
        try:
            async with asyncio.timeout(LINGER_SECONDS):
                while left > 0:
                    message = await self._next()
                    left = left - len(message["body"]) if message["more_body"] else 0
        except (TimeoutError, ClientDisconnectedError):
            return

    def _watch(self) -> None:
        task = asyncio.current_task()
        if task is not None and self._watcher is None:
            self._watcher = asyncio.get_running_loop().create_task(self._wait_until_gone(task))

    async def _wait_until_gone(self, serving: asyncio.Task[Any]) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if not self._over:
            self.gone = True
            serving.cancel()


def _too_large(limit: int) -> BodyTooLargeError:
    return BodyTooLargeError(f"the request's body is larger than {limit} bytes")
