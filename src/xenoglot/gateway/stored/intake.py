"""Requests that want something kept, or mean something that is: resolved here, and answered as all others are.

Theory of operation. A request is written anew so that it means the same to a server that keeps nothing: the items of
the answer or conversation that it continues stand in it, and what asks to keep is gone. The relay answers that into an
exchange of ours, which makes the answer one of a kept request and stores it before its last words leave: whoever has
seen an answer end can go on from it. Upstreams that keep answers of their own are not asked to, unless they are
configured so (`state = "native"`): then, and where nothing is to be kept or known, the request passes as it came.

A store that fails costs nobody an answer: the client gets it, with a header that says it was not kept. Only requests
that mean something kept cannot be answered without it.
"""

from __future__ import annotations

import logging
import secrets
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.backends.offload import LARGE, offload
from xenoglot.codec.features.stored_responses import StoredAnswer
from xenoglot.codec.json.json_io import encode_json, encode_large
from xenoglot.codec.json.slices import size_seen
from xenoglot.errors import FailureError
from xenoglot.gateway.http.application import BodyTooLargeError
from xenoglot.gateway.relay.task_driver import RelayEndpoint
from xenoglot.gateway.routing.model_router import with_model
from xenoglot.gateway.store_service import NOT_KEPT, StoreService, is_id
from xenoglot.gateway.stored.background import BackgroundJobs
from xenoglot.gateway.stored.exchange import StoredResponseExchange
from xenoglot.gateway.stored.save import ResolvedRequest, keep, stored
from xenoglot.model.failure import Failure
from xenoglot.store.records import UNDONE, StoreError, Window

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from xenoglot.codec.dialect import Dialect
    from xenoglot.codec.features.stored_responses import StoredResponseCodec, StoreOptions
    from xenoglot.gateway.config.settings import UpstreamSettings
    from xenoglot.gateway.endpoint.request_context import RequestContext
    from xenoglot.model.json import JSON, JSONObject

WHOLE = Window(limit=2**31 - 1, order="asc")
"""A conversation is read at once: between two pages somebody could change it."""

NO_BACKGROUND = Failure(
    kind="invalid_request",
    message="an answer made in the background has to be kept, and the gateway keeps nothing: its store is off",
    param="$.background",
)

_logger = logging.getLogger("xenoglot.gateway")


class Intake(Struct, frozen=True):
    """Resolves what requests say of state, and has them answered."""

    relay: RelayEndpoint
    jobs: BackgroundJobs
    keeper: StoreService | None

    async def serve(self, ctx: RequestContext) -> None:
        """Answer one request for a model in a dialect that speaks of state.

        Raises:
            BodyTooLargeError: the request with its history is too large.
            FailureError: there is no answer, and nothing has been sent.
            WireError: what it says of state is not what the dialect allows.
        """
        keeper, dialect, state, bodies = self.keeper, ctx.dialect, ctx.dialect.state, self.relay.bodies
        if state is None:
            await self.relay.serve(ctx)
            return
        data = await bodies.read(ctx.exchange)
        size = len(data)
        body = bodies.small_request(data) if size < LARGE else await bodies.request(data)
        body = with_model(body, dialect.model_field, self.relay.services.models.router, ctx.client)
        wish = await offload(size, lambda: state.wish(body))
        if state.require is not None:
            state.require(body)
        if wish.stateless:
            await self.relay.serve(ctx, body)
            return
        upstream = self._upstream_alike(body, dialect)
        if keeper is None and upstream is None:
            _need_nothing(wish, state)
        if keeper is None or (upstream is not None and upstream.state == "native"):
            await self.relay.serve(ctx, body)
            return
        created = int(keeper.now()) if wish.background else None
        kept = StoredAnswer(id=state.id_prefix + secrets.token_hex(24), wish=wish, request=body, created=created)
        async with keeper.holding(ctx.client.owner, wish, kept.id, state):
            remembered = await _remember(ctx.client.owner, kept, state, keeper, alike=upstream is not None)
            asked = _within(await _encoded(remembered.prepared, size), bodies.limit)
            if not wish.background:
                ctx.record.answer_id = kept.id
                shown = StoredResponseExchange(ctx.exchange, asked, dialect.framing, state, kept)
                shown.store = _storing(ctx, keeper, state, remembered) if wish.keep else None
                await self.relay.serve(replace(ctx, exchange=shown))
                return
            job = await self.jobs.start(ctx, remembered)
        await self.jobs.tell(ctx, job)

    async def recall(self, body: JSON, size: int, ctx: RequestContext) -> tuple[JSON, int]:
        """Return the body of a request that is only counted, with the items that an answer to it would be given.

        `size` is what the client sent, in bytes; returned with the body is that of the whole. The lookups, and their
        errors, are those of a request that is answered; nothing is kept or held for it.

        Raises:
            BodyTooLargeError: the request with its history is too large.
            FailureError: it refers to something that is not kept.
            WireError: what it says of state is not what the dialect allows.
        """
        keeper, state = self.keeper, ctx.dialect.state
        if state is None:
            return body, size
        wish = replace(await offload(size, lambda: state.wish(body)), keep=False, background=False)
        if wish.stateless or not isinstance(body, dict):
            return body, size
        upstream = self._upstream_alike(body, ctx.dialect)
        if keeper is None and upstream is None:
            _need_nothing(wish, state)
        if keeper is None or (upstream is not None and upstream.state == "native"):
            return body, size
        kept = StoredAnswer(id="", wish=wish, request=body)
        async with keeper.holding(ctx.client.owner, wish, kept.id, state):
            remembered = await _remember(ctx.client.owner, kept, state, keeper, alike=False)
        whole = _within(await _encoded(remembered.prepared, size), self.relay.bodies.limit)
        return remembered.prepared, len(whole)

    def _upstream_alike(self, body: JSON, dialect: Dialect) -> UpstreamSettings | None:
        """Return the upstream that will answer, if it speaks the client's dialect."""
        model, models = body.get("model"), self.relay.services.models
        route = models.router.resolve(model) if isinstance(model, str) else None
        upstream = None if route is None else models.upstream(route)
        return upstream if upstream is not None and upstream.dialect == dialect.name else None


async def _encoded(body: JSONObject, size: int) -> bytes:
    """Return the body of a request with its history; of what the client sent, `size` bytes are in it.

    Raises:
        FailureError: too many large bodies are ahead of it.
    """
    size = max(size, size_seen(body))
    encode = encode_json if size < LARGE else encode_large
    return await offload(size, lambda: encode(body))


def _need_nothing(wish: StoreOptions, state: StoredResponseCodec) -> None:
    """Refuse what cannot be answered where nothing is kept, and nobody behind may know more.

    Raises:
        FailureError: the request means something kept, or its answer has to be.
    """
    if wish.previous is not None:
        raise FailureError(state.unknown_previous(wish.previous))
    if wish.conversation is not None and state.conversations is not None:
        raise FailureError(state.conversations.unknown(wish.conversation))
    if wish.references:
        raise FailureError(state.unknown_item(wish.references[0]))
    if wish.background:
        raise FailureError(NO_BACKGROUND)


def _within(body: bytes, limit: int) -> bytes:
    """Return the body of a request with its history, which may be no larger than one that says all itself.

    Raises:
        BodyTooLargeError: it is.
    """
    if len(body) > limit:
        raise BodyTooLargeError(f"the request, with the items that it continues, is larger than {limit} bytes")
    return body


def _storing(
    ctx: RequestContext, keeper: StoreService, state: StoredResponseCodec, remembered: ResolvedRequest
) -> Callable[[JSONObject | None], Awaitable[list[tuple[str, str]]]]:
    """Return what stores an answer; without one it sees whether that could be done. It gives headers if it cannot."""

    async def store(answer: JSONObject | None) -> list[tuple[str, str]]:
        try:
            if answer is None:
                await keeper.within(keeper.store.ready())
            else:
                await keep(keeper, stored(remembered, ctx.dialect, state, answer, keeper.now()), remembered, state)
        except StoreError as error:
            _logger.error("request %s: the answer is not kept: %s", ctx.record.request_id, error)  # noqa: TRY400  no texts
            return [NOT_KEPT]
        return []

    return store


async def _remember(
    owner: str, kept: StoredAnswer, state: StoredResponseCodec, keeper: StoreService, *, alike: bool
) -> ResolvedRequest:
    """Return the request with the items that it only names; who answers it speaks the same dialect if `alike`.

    Raises:
        FailureError: one of them is not there, or the store cannot be asked.
    """
    own = await _resolve(owner, kept, state, keeper)
    items = [*await _history(owner, kept.wish, state, keeper), *own]
    prepared = state.prepare(kept.request, items)
    return ResolvedRequest(
        owner=owner, kept=kept, own=own, items=items, prepared=state.ask_seals(prepared) if alike else prepared
    )


async def _history(owner: str, wish: StoreOptions, state: StoredResponseCodec, keeper: StoreService) -> list[JSON]:
    """Return the items that came before those of the request."""
    if wish.previous is not None:
        previous = await keeper.get(owner, wish.previous, state)
        if previous is None:
            raise FailureError(state.unknown_previous(wish.previous))
        if previous.status in UNDONE:
            raise FailureError(state.unfinished_previous(wish.previous))
        return [*previous.items, *previous.output]
    if wish.conversation is None or state.conversations is None:
        return []
    return [*await keeper.need(keeper.store.items(owner, wish.conversation, WHOLE))]


async def _resolve(owner: str, kept: StoredAnswer, state: StoredResponseCodec, keeper: StoreService) -> list[JSON]:
    """Return the request's own items, those that it refers to in the place of the references."""
    own = state.items(kept.request)
    if not kept.wish.references:
        return own
    found: dict[str, JSON] = {}
    for name in dict.fromkeys(kept.wish.references):
        found[name] = await keeper.need(keeper.store.item(owner, name)) if is_id(name) else None
        if found[name] is None:
            raise FailureError(state.unknown_item(name))
    return [found[item["id"]] if state.refers(item) else item for item in own]
