"""Requests that want something kept, or mean something that is: resolved here, and answered as all others are.

Theory of operation. A request is rewritten so that it means the same to a server that keeps nothing: the items of
the answer or conversation that it continues stand in it, and what asks to keep is gone. The relay answers that into an
exchange of ours, which makes the answer one of a kept request and stores it before its last words leave: a client that
has seen an answer end can continue from it. Upstreams that store answers of their own are not requested to, unless they
are configured so (`state = "native"`): then, and where nothing is to be kept or known, the request passes as it came.

A store that fails costs no answer: the client gets it, with a header that reports that it was not stored. Only requests
that mean something kept cannot be answered without it.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.backends.offload import LARGE, offload
from xenoglot.codec.features.stored_responses import StoredAnswer
from xenoglot.gateway.relay.task_driver import RelayEndpoint
from xenoglot.gateway.routing.model_router import with_model
from xenoglot.gateway.store_service import StoreService
from xenoglot.gateway.stored.background import BackgroundJobs
from xenoglot.gateway.stored.exchange import StoredResponseExchange
from xenoglot.gateway.stored.resolve_request import encoded, need_nothing, remember, storing, within
from xenoglot.gateway.stored.turn_intake import TurnRequest
from xenoglot.gateway.web_socket.turn import TurnExchange

if TYPE_CHECKING:
    from xenoglot.codec.dialect import Dialect
    from xenoglot.gateway.config.settings import UpstreamSettings
    from xenoglot.gateway.endpoint.request_context import RequestContext
    from xenoglot.model.json import JSON


class Intake(Struct, frozen=True):
    """Resolves references to state in requests, and has them answered."""

    relay: RelayEndpoint
    jobs: BackgroundJobs
    keeper: StoreService | None

    async def serve(self, ctx: RequestContext) -> None:
        """Answer one request for a model in a dialect that speaks of state.

        Raises:
            BodyTooLargeError: the request with its history is too large.
            FailureError: there is no answer, and nothing has been sent.
            WireError: its fields of state are not what the dialect allows.
        """
        keeper, dialect, state, bodies = self.keeper, ctx.dialect, ctx.dialect.state, self.relay.bodies
        if state is None:
            await self.relay.serve(ctx)
            return
        if isinstance(ctx.exchange, TurnExchange):
            body, size = ctx.exchange.created.body, ctx.exchange.size
        else:
            data = await bodies.read(ctx.exchange)
            size = len(data)
            body = bodies.small_request(data) if size < LARGE else await bodies.request(data)
        body = with_model(body, dialect.model_field, self.relay.services.models.router, ctx.client)
        wish = await offload(size, lambda: state.wish(body))
        if state.require is not None:
            state.require(body)
        if isinstance(ctx.exchange, TurnExchange):
            turn = TurnRequest(self.relay, keeper, ctx, ctx.exchange)
            await turn.serve(state, body, wish, self._upstream_alike(body, dialect))
            return
        if wish.stateless:
            await self.relay.serve(ctx, body)
            return
        upstream = self._upstream_alike(body, dialect)
        if keeper is None and upstream is None:
            need_nothing(wish, state)
        if keeper is None or (upstream is not None and upstream.state == "native"):
            await self.relay.serve(ctx, body)
            return
        created = int(keeper.now()) if wish.background else None
        kept = StoredAnswer(id=state.id_prefix + secrets.token_hex(24), wish=wish, request=body, created=created)
        async with keeper.holding(ctx.client.owner, wish, kept.id, state):
            remembered = await remember(ctx.client.owner, kept, state, keeper, alike=upstream is not None)
            asked = within(await encoded(remembered.prepared, size), bodies.limit)
            if not wish.background:
                ctx.record.answer_id = kept.id
                shown = StoredResponseExchange(ctx.exchange, asked, dialect.framing, state, kept)
                shown.store = storing(ctx, keeper, state, remembered) if wish.keep else None
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
            WireError: its fields of state are not what the dialect allows.
        """
        keeper, state = self.keeper, ctx.dialect.state
        if state is None:
            return body, size
        wish = replace(await offload(size, lambda: state.wish(body)), keep=False, background=False)
        if wish.stateless or not isinstance(body, dict):
            return body, size
        upstream = self._upstream_alike(body, ctx.dialect)
        if keeper is None and upstream is None:
            need_nothing(wish, state)
        if keeper is None or (upstream is not None and upstream.state == "native"):
            return body, size
        kept = StoredAnswer(id="", wish=wish, request=body)
        async with keeper.holding(ctx.client.owner, wish, kept.id, state):
            remembered = await remember(ctx.client.owner, kept, state, keeper, alike=False)
        whole = within(await encoded(remembered.prepared, size), self.relay.bodies.limit)
        return remembered.prepared, len(whole)

    def _upstream_alike(self, body: JSON, dialect: Dialect) -> UpstreamSettings | None:
        """Return the upstream that will answer, if it speaks the client's dialect."""
        model, models = body.get("model"), self.relay.services.models
        route = models.router.resolve(model) if isinstance(model, str) else None
        upstream = None if route is None else models.upstream(route)
        return upstream if upstream is not None and upstream.dialect == dialect.name else None
