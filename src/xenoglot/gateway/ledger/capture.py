"""Captures of requests: the bodies on both sides of the gateway, as they pass, each up to a bound.

| part | body |
|---|---|
| `client_request` | what the client sent |
| `upstream_request` | what was sent to the upstream, by the last try |
| `upstream_response` | what the upstream answered to it, decompressed |
| `client_response` | what the client was sent |

A stream is kept only at its beginning, up to the bound: nothing waits for a body to be complete. Bodies are kept until
the ledger's writer has written them; if those of all requests become too many, further requests are not captured.
The times of each try are noted too: when it was sent, when its response began, and its first and last bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from xenoglot.codec.glob import matches
from xenoglot.gateway.http.application import ExchangeWrapper

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xenoglot.gateway.auth.keys import Principal
    from xenoglot.gateway.config.ledger import CaptureSettings
    from xenoglot.gateway.http.application import Exchange
    from xenoglot.gateway.observability.request_log import RequestLog

MOST_HELD: Final = 64 * 1024 * 1024
"""Bytes of all bodies that are not written yet."""
JSON: Final = "application/json"


class CapturedBody:
    """The beginning of one body, and its media type."""

    __slots__ = ("_limit", "media", "pieces", "size", "truncated")

    def __init__(self, media: str, limit: int) -> None:
        self.media = media
        self.pieces: list[bytes] = []
        self.size = 0
        self.truncated = False
        self._limit = limit

    def add(self, data: bytes) -> int:
        """Add what passes; return how many bytes of it are kept."""
        room = self._limit - self.size
        kept = data if len(data) <= room else data[:room]
        self.truncated = self.truncated or len(kept) < len(data)
        if kept:
            self.pieces.append(kept)
            self.size += len(kept)
        return len(kept)


class CapturedTry(Struct):
    """When a call of an upstream was sent, its response began, and the first and last bytes came; `None` if never."""

    sent: float
    head: float | None = None
    first: float | None = None
    last: float | None = None

    def received(self, now: float) -> None:
        """Note that bytes come now."""
        self.last = now
        if self.first is None:
            self.first = now


class Capture:
    """The bodies of one request by their parts, and its tries; `clock` is that of the request."""

    def __init__(self, captures: Captures, limit: int, clock: Callable[[], float]) -> None:
        self.bodies: dict[str, CapturedBody] = {}
        self.tries: list[CapturedTry] = []
        self._captures = captures
        self._limit = limit
        self._clock = clock
        self._held = 0

    def begin(self, part: str, media: str) -> Callable[[bytes], None]:
        """Begin a body, in place of one that was begun before; return what takes its pieces."""
        body = self.bodies[part] = CapturedBody(media, self._limit)

        def add(data: bytes) -> None:
            kept = body.add(data)
            self._held += kept
            self._captures.held += kept

        return add

    def upstream_request(self, data: bytes) -> None:
        """Note what is sent to an upstream."""
        self.tries.append(CapturedTry(self._clock()))
        self.begin("upstream_request", JSON)(data)
        self.bodies.pop("upstream_response", None)  # of the try before

    def upstream_response(self, media: str) -> Callable[[bytes], None]:
        """Begin what the upstream answers."""
        add, clock = self.begin("upstream_response", media), self._clock
        one = self.tries[-1]
        one.head = clock()

        def note(data: bytes) -> None:
            one.received(clock())
            add(data)

        return note

    def __del__(self) -> None:
        """Release the bytes, however the request ended."""
        self._captures.held -= self._held


class Captures:
    """Chooses requests that are captured; `draw` gives numbers from 0 to 1 by chance."""

    def __init__(self, settings: CaptureSettings, draw: Callable[[], float]) -> None:
        self.settings = settings
        self.held = 0
        """Bytes of all bodies that are not written yet."""
        self._draw = draw

    def concern(self, client: Principal, model: str) -> bool:
        """Return whether requests of a client for `model`, as it names it, may be captured."""
        settings = self.settings
        return (
            _among(client.tenant, settings.tenants)
            and (not settings.keys or client.key in settings.keys or client.name in settings.keys)
            and (not settings.models or any(matches(pattern, model) for pattern in settings.models))
        )

    def capture(self, record: RequestLog, body: bytes, exchange: Exchange) -> Exchange:
        """Return the exchange in which a request is answered: one that captures it, if it is chosen."""
        if self.held >= MOST_HELD or not self.concern(record.client, record.model or ""):
            return exchange
        share = self.settings.share
        if share is not None and self._draw() >= share:
            return exchange
        capture = record.capture = Capture(self, self.settings.max_bytes, record.clock)
        capture.begin("client_request", JSON)(body)
        return CapturedExchange(exchange, capture)


def _among(name: str | None, names: Sequence[str]) -> bool:
    return not names or name in names


class CapturedExchange(ExchangeWrapper):
    """An exchange whose response is captured."""

    def __init__(self, exchange: Exchange, capture: Capture) -> None:
        super().__init__(exchange)
        self._capture = capture
        self._add: Callable[[bytes], None] | None = None

    async def start(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """Send the head of the response."""
        media = next((value for name, value in headers if name == "content-type"), "")
        self._add = self._capture.begin("client_response", media)
        await super().start(status, headers)

    async def write(self, data: bytes) -> None:
        """Send a piece of the body."""
        self._note(data)
        await super().write(data)

    async def end(self, data: bytes = b"") -> None:
        """Send the last piece."""
        self._note(data)
        await super().end(data)

    def _note(self, data: bytes) -> None:
        if self._add is not None and data:
            self._add(data)
