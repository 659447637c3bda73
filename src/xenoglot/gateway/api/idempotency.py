"""Requests with an `Idempotency-Key`: each is answered once, and a repeated request gets the same answer.

Theory of operation. Before a target is called, a mark is put where the answer will be: in the vault of the store, under
a digest of the key, for its owner alone. Of several requests with one key, one puts its mark there; the others learn
that it is at work (409). A whole answer takes the place of the mark before its end leaves, and is given again, byte for
byte, to each repetition of the request; another request under the key is refused (422). If an answer fails,
or its client disconnects, nothing can be repeated: the mark is deleted, and the key is free. A gateway that dies
leaves its mark: the answer may have been billed, so the key stays locked for `UNSURE` seconds.

Sources: draft-ietf-httpapi-idempotency-key-header-07, https://docs.stripe.com/api/idempotent_requests.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from xenoglot.errors import FailureError
from xenoglot.gateway.endpoint.request_context import BodyReader
from xenoglot.gateway.endpoint.responses import fail
from xenoglot.gateway.store_service import StoreService
from xenoglot.gateway.stored.exchange import BufferedExchange
from xenoglot.model.failure import Failure
from xenoglot.store.records import IDEMPOTENCY, IDEMPOTENCY_SECONDS, StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.gateway.endpoint.request_context import Handler, RequestContext
    from xenoglot.gateway.http.application import Exchange
    from xenoglot.gateway.observability.request_log import RequestLog
    from xenoglot.store.records import ReasoningKey

HEADER = "idempotency-key"
LONGEST_KEY = 255

REPLAYED: Final = ("idempotent-replayed", "true")
"""Response header of an answer that was given before (Stripe's name)."""

UNGUARDED: Final = ("x-xenoglot-idempotency", "not kept")
"""Response header: nothing can be kept now, so the same request would be answered again."""

UNSURE = 3600.0
"""Seconds for which a request that has begun is taken to be in progress; by the usual deadlines none takes longer."""

MOST_BYTES = 4 * 1024 * 1024
"""Bytes of an answer that is kept; for a longer one only the fact that it was given is kept."""

COMES_SOON = 5.0
"""Seconds after which to ask again for an answer that is in progress."""

UNPROCESSABLE = 422
OK = 200

UNDER_WAY = Failure(
    kind="conflict",
    message="a request with this idempotency key has begun, and is not over",
    code="idempotency_key_in_use",
    retry_after=COMES_SOON,
)
SPENT = Failure(
    kind="conflict",
    message="the request with this idempotency key was answered; its answer was too large to be kept",
    code="idempotency_key_spent",
)
OTHER = Failure(
    kind="invalid_request",
    message="the idempotency key was used for another request: send each request with a key of its own",
    code="idempotency_key_reused",
)
MALFORMED = Failure(
    kind="invalid_request",
    message=f"`{HEADER}` must be one value of at most {LONGEST_KEY} visible ASCII characters",
    code="idempotency_key_malformed",
)

_MANY_TIMES = 3
_logger = logging.getLogger("xenoglot.gateway")


class IdempotencyEntry(Struct, frozen=True, kw_only=True, array_like=True):
    """What is known of a key: a digest of what was `asked`, since when, and the answer, with a status if it is over.

    `mark` distinguishes requests that begin at the same time. A `spent` answer is over and not kept.
    """

    mark: str
    asked: bytes
    at: float
    status: int = 0
    headers: list[tuple[str, str]] = []
    body: bytes = b""
    spent: bool = False

    @property
    def over(self) -> bool:
        """Whether it was answered."""
        return self.status > 0

    def counts(self, now: float) -> bool:
        """Return whether it is to be heeded still."""
        return now - self.at < (IDEMPOTENCY_SECONDS if self.over else UNSURE)


_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(IdempotencyEntry).decode


class Idempotency(Struct):
    """Has each request with a key answered once. Without a `keeper`, a header reports that keys have no effect."""

    keeper: StoreService | None
    bodies: BodyReader

    def once(self, handler: Handler, headers: Sequence[tuple[str, str]]) -> Handler:
        """Return what answers a request with these `headers`: `handler`, but once for each key, where there is one."""
        return partial(self._serve, handler) if any(name == HEADER for name, _ in headers) else handler

    async def _serve(self, handler: Handler, ctx: RequestContext) -> None:
        """Answer one request that has a key, or give the answer that it had.

        Raises:
            FailureError: there is no answer, and nothing has been sent.
        """
        exchange, record, keeper = ctx.exchange, ctx.record, self.keeper
        key = _key(exchange.headers)
        data = await self.bodies.read(exchange)
        if keeper is None:
            await handler(replace(ctx, exchange=_Unguarded(exchange, data)))
            return
        place = (ctx.client.owner, sha256(key.encode()).hexdigest(), IDEMPOTENCY)
        mark = IdempotencyEntry(mark=secrets.token_hex(8), asked=_digest(exchange, data), at=keeper.now())
        try:
            found = await _begin(keeper, place, mark)
        except StoreError as error:
            _logger.warning("request %s: its idempotency key is not heeded: %s", record.request_id, error)
            await handler(replace(ctx, exchange=_Unguarded(exchange, data)))
            return
        if found is None:
            await _answer(handler, ctx, _Recording(exchange, data, keeper, place, mark))
        elif found.asked != mark.asked:
            await fail(ctx, OTHER, status=UNPROCESSABLE)
        else:
            await _again(exchange, found, record)


async def _begin(keeper: StoreService, place: ReasoningKey, mark: IdempotencyEntry) -> IdempotencyEntry | None:
    """Store the mark unless a valid entry exists; return that entry.

    Raises:
        StoreError: the store cannot be used.
        FailureError: others are faster, again and again.
    """
    packed = None
    for _ in range(_MANY_TIMES):
        if await keeper.within(keeper.store.swap(place, packed, _pack(mark), mark.at)):
            return None
        packed = await keeper.within(keeper.store.get_cached(*place))
        found = None if packed is None else _read(packed)
        if found is not None and found.counts(mark.at):
            return found
    raise FailureError(UNDER_WAY)


def _read(packed: bytes) -> IdempotencyEntry | None:
    """Return what was kept; `None` where another version of the gateway wrote it otherwise."""
    try:
        return _unpack(packed)
    except ValueError:
        return None


async def _answer(handler: Handler, ctx: RequestContext, recording: _Recording) -> None:
    """Have the request answered; an incomplete answer is as if the request had not been sent."""
    try:
        await handler(replace(ctx, exchange=recording))
    finally:
        if not recording.kept:
            await asyncio.shield(asyncio.ensure_future(recording.forget()))


async def _again(exchange: Exchange, found: IdempotencyEntry, record: RequestLog) -> None:
    """Give an answer again.

    Raises:
        FailureError: there is none yet, or none any more.
    """
    if not found.over:
        raise FailureError(UNDER_WAY)
    if found.spent:
        raise FailureError(SPENT)
    record.begin(found.status)
    await exchange.start(found.status, [*found.headers, *record.headers(), REPLAYED])
    await exchange.end(found.body)


def _key(headers: Sequence[tuple[str, str]]) -> str:
    """Return the key of a request that has one.

    Raises:
        FailureError: it has several, or what it has is none.
    """
    said = [value.strip(" \t") for name, value in headers if name == HEADER]
    key = said[0]
    if len(said) > 1 or not 0 < len(key) <= LONGEST_KEY or not (key.isascii() and key.isprintable()):
        raise FailureError(MALFORMED)
    return key


def _digest(exchange: Exchange, data: bytes) -> bytes:
    """Return by what a request is known again: where it was posted, and every byte of it."""
    place = f"{exchange.path}?{exchange.query}\0".encode("utf-8", "surrogateescape")
    return sha256(place + data).digest()


class _Unguarded(BufferedExchange):
    """An exchange with a header that reports that its key has no effect."""

    async def start(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """Send the head of the response."""
        await super().start(status, [*headers, UNGUARDED])


class _Recording(BufferedExchange):
    """An exchange whose answer is kept before its end leaves, in the place of the mark."""

    def __init__(
        self, exchange: Exchange, body: bytes, keeper: StoreService, place: ReasoningKey, mark: IdempotencyEntry
    ) -> None:
        super().__init__(exchange, body)
        self.kept = False
        """Whether the answer is stored, or may be: then its mark must stay."""
        self._keeper = keeper
        self._place = place
        self._mark = mark
        self._status = 0
        self._headers: list[tuple[str, str]] = []
        self._pieces: list[bytes] = []
        self._size = 0

    async def start(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """Send the head of the response, and note what of it is the answer's."""
        self._status = status
        self._headers = [header for header in headers if header[0] not in _OF_ONE_RESPONSE]
        await super().start(status, headers)

    async def write(self, data: bytes) -> None:
        """Send a piece of the body, and note it."""
        self._note(data)
        await super().write(data)

    async def end(self, data: bytes = b"") -> None:
        """Keep the answer, and send the last piece."""
        self._note(data)
        if self._status == OK:
            await self._keep()
        await super().end(data)

    async def forget(self) -> None:
        """Take the mark away: the key is as if it had never been used."""
        with suppress(StoreError):  # it lapses
            await self._swap(None)

    def _note(self, data: bytes) -> None:
        self._size += len(data)
        if self._size <= MOST_BYTES:
            self._pieces.append(data)
        else:
            self._pieces.clear()

    async def _keep(self) -> None:
        """Keep the answer; where that fails the mark stays, for who asks again must not pay again."""
        self.kept = True
        told: dict[str, object] = {"spent": True}
        if self._size <= MOST_BYTES:
            told = {"headers": self._headers, "body": b"".join(self._pieces)}
        over = {"at": self._keeper.now(), "status": self._status}
        try:
            await self._swap(replace(self._mark, **over, **told))
        except StoreError as error:
            _logger.error("an answer with an idempotency key is not kept: %s", error)  # noqa: TRY400  no texts
        self._keeper.sweep()

    async def _swap(self, after: IdempotencyEntry | None) -> None:
        keeper = self._keeper
        packed = None if after is None else _pack(after)
        await keeper.within(keeper.store.swap(self._place, _pack(self._mark), packed, keeper.now()))


_OF_ONE_RESPONSE = frozenset(
    {"x-request-id", "request-id", "x-content-type-options", "access-control-allow-origin", "vary"}
)
"""Headers that `RequestLog.headers` gives each response again."""
