"""Requests over a WebSocket: their answers can be continued on their connection, whether they are stored or not.

Theory of operation. Each is resolved as a posted request is that wants something kept, but the answer that it continues
may be one that the connection remembers, and its own answer is remembered there too. An upstream that keeps answers of
its own gets the request unchanged where it can know the answer that is meant.
"""

from __future__ import annotations

import secrets
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.backends.offload import offload
from xenoglot.codec.features.stored_responses import StoredAnswer
from xenoglot.codec.json.json_io import encode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import Pipeline
from xenoglot.errors import FailureError
from xenoglot.gateway.http.application import ClientDisconnectedError
from xenoglot.gateway.relay.task_driver import decode_request
from xenoglot.gateway.stored.exchange import StoredResponseExchange
from xenoglot.gateway.stored.resolve_request import encoded, history, need_nothing, resolve, storing, within
from xenoglot.gateway.stored.save import ADDED, ResolvedRequest
from xenoglot.gateway.web_socket.turn import comments_of
from xenoglot.model.events import Finished, Started, UsageReported
from xenoglot.model.response import Finish, Usage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from xenoglot.codec.features.stored_responses import StoredResponseCodec, StoreOptions
    from xenoglot.codec.framing.formats import Framing
    from xenoglot.codec.framing.sse import ServerSentEvent
    from xenoglot.gateway.config.settings import UpstreamSettings
    from xenoglot.gateway.endpoint.request_context import RequestContext
    from xenoglot.gateway.relay.task_driver import RelayEndpoint
    from xenoglot.gateway.store_service import StoreService
    from xenoglot.gateway.web_socket.turn import TurnExchange
    from xenoglot.model.json import JSON, JSONObject

    Store = Callable[[JSONObject | None], Awaitable[list[tuple[str, str]]]]

OK: Final = 200


class SteeredResponseExchange(StoredResponseExchange):
    """Ends the answer where it can be ended if steering input waits for it; its upstream is disconnected."""

    def __init__(
        self, turn: TurnExchange, body: bytes, framing: Framing, state: StoredResponseCodec, kept: StoredAnswer
    ) -> None:
        super().__init__(turn, body, framing, state, kept)
        self._turn = turn
        form = turn.form.steer
        self._boundary = None if form is None or form.refusal(turn.created.body) else form.boundary()
        self._steered = False

    async def write(self, data: bytes) -> None:
        """Send what the client gets for a piece of the stream.

        Raises:
            ClientDisconnectedError: the answer has ended, and nothing more of it is to be made.
        """
        await self._pass(data)
        await self._turn.writable()
        if self._steered:
            raise ClientDisconnectedError("the answer was steered")

    async def end(self, data: bytes = b"") -> None:
        """Send what is left, or the event of a failure."""
        if self._head is not None:
            await super().end(data)
            return
        await self._pass(data)
        self._showing.close()
        self._turn.break_off()

    async def _pass(self, data: bytes) -> None:
        """Have the client get the events in a piece of the stream, without their frames."""
        shown = [made for event in self.decoded(data) for made in self._showing.feed(event)]
        await self._keep()
        self._turn.send_events(shown, comments_of(data))

    def decoded(self, data: bytes) -> Sequence[ServerSentEvent]:
        """Return the events in a piece of the stream, up to where the answer is steered."""
        events = super().decoded(data)
        if self._boundary is None:
            return events
        for at, event in enumerate(events):
            self._boundary.feed(event)
            if self._turn.steers and (end := self._boundary.steered()) is not None:
                self._steered = True
                return [*events[: at + 1], end]
        return events


class TurnRequest:
    """A request that came over a WebSocket, and where its answer goes."""

    def __init__(
        self, relay: RelayEndpoint, keeper: StoreService | None, ctx: RequestContext, turn: TurnExchange
    ) -> None:
        self._relay = relay
        self._keeper = keeper
        self._ctx = ctx
        self._turn = turn

    async def serve(
        self, state: StoredResponseCodec, body: JSONObject, wish: StoreOptions, upstream: UpstreamSettings | None
    ) -> None:
        """Answer it; `upstream` answers if it speaks the client's dialect.

        Raises:
            BodyTooLargeError: the request with its history is too large.
            FailureError: there is no answer, and nothing has been sent.
        """
        ctx, keeper, turn = self._ctx, self._keeper, self._turn
        before = None if wish.previous is None else turn.answers.get(wish.previous)
        elsewhere = upstream is not None and (keeper is None or upstream.state == "native")
        if elsewhere and before is None and turn.created.generate and (wish.keep or wish.previous is not None):
            await self._relay.serve(ctx, body)
            return
        if keeper is None:
            need_nothing(wish if before is None else replace(wish, previous=None), state)
        kept = StoredAnswer(id=state.id_prefix + secrets.token_hex(24), wish=wish, request=body)
        async with nullcontext() if keeper is None else keeper.holding(ctx.client.owner, wish, kept.id, state):
            resolved = await self._resolve(kept, state, before, alike=upstream is not None)
            size = turn.size
            asked = within(await encoded(resolved.prepared, size), self._relay.bodies.limit)
            ctx.record.answer_id = kept.id
            shown = SteeredResponseExchange(turn, asked, ctx.dialect.framing, state, kept)
            store = storing(ctx, keeper, state, resolved) if wish.keep and keeper is not None else None
            shown.store = self._remembering(state, resolved, len(asked), store)
            if turn.created.generate:
                await self._relay.serve(replace(ctx, exchange=shown), resolved.prepared)
            else:
                await self._prepare(replace(ctx, exchange=shown), resolved.prepared, len(asked))

    async def _resolve(
        self, kept: StoredAnswer, state: StoredResponseCodec, before: Sequence[JSON] | None, *, alike: bool
    ) -> ResolvedRequest:
        """Return the request with the items that it continues.

        Raises:
            FailureError: one of them does not exist, or its own do not fit them.
        """
        keeper, owner = self._keeper, self._ctx.client.owner
        own = state.items(kept.request) if keeper is None else await resolve(owner, kept, state, keeper)
        if before is None:
            before = [] if keeper is None else await history(owner, kept.wish, state, keeper)
        if kept.wish.previous is not None and (failure := self._turn.form.unmatched(before, own)) is not None:
            raise FailureError(failure)
        items = [*before, *own]
        prepared = state.prepare(kept.request, items)
        prepared = state.ask_seals(prepared) if alike else prepared
        return ResolvedRequest(owner=owner, kept=kept, own=own, items=items, prepared=prepared)

    def _remembering(
        self, state: StoredResponseCodec, resolved: ResolvedRequest, size: int, store: Store | None
    ) -> Store:
        """Return what has the connection remember an answer before it is stored, if it is to be."""

        async def keep(answer: JSONObject | None) -> list[tuple[str, str]]:
            if answer is not None and state.status(answer) in ADDED:
                output = state.output(answer)
                whole = size + len(encode_json(output))
                self._turn.answers.add(resolved.kept.id, [*resolved.items, *output], whole)
            return [] if store is None else await store(answer)

        return keep

    async def _prepare(self, ctx: RequestContext, prepared: JSONObject, size: int) -> None:
        """Answer, without a model, a request that only prepares the next.

        Raises:
            FailureError: it is none that could be answered.
        """
        dialect = ctx.dialect
        request = await offload(size, lambda: decode_request(dialect, prepared, ctx.route, {}))
        self._relay.services.models.plan(request.model, dialect.default_tag, client=ctx.client)
        ctx.record.asked(request.model, stream=True)
        ctx.record.used(usage := Usage(input_tokens=0, output_tokens=0))
        ctx.record.finish = "stop"
        stage = Pipeline(dialect.stream_encoder(request, Losses()), dialect.framing.encoder())
        started = Started(id=ctx.record.answer_id, model=request.model, created=int(time.time()))
        events = (started, UsageReported(usage=usage), Finished(finish=Finish(reason="stop")))
        frames = [*(piece for event in events for piece in stage.feed(event)), *stage.close()]
        ctx.record.begin(OK)
        await ctx.exchange.start(OK, [("content-type", dialect.framing.media_type), *ctx.record.headers()])
        await ctx.exchange.end(b"".join(frames))
