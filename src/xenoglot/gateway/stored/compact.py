"""The endpoint that compacts a conversation: an ordinary request for a summary, whose answer it rewrites.

The request goes the way of every other, so keys, limits, budgets, the ledger, retries and fallbacks hold for it. The
conversation may be one that the gateway stores; nothing is stored by this endpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.backends.offload import LARGE, offload
from xenoglot.codec.json.json_io import decode_answer, encode_json, encode_large
from xenoglot.gateway.relay.task_driver import RelayEndpoint
from xenoglot.gateway.stored.exchange import BufferedExchange
from xenoglot.gateway.stored.intake import Intake

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xenoglot.codec.features.compaction import CompactionForm
    from xenoglot.gateway.endpoint.request_context import RequestContext
    from xenoglot.gateway.http.application import Exchange
    from xenoglot.model.json import JSONObject

OK = 200


class CompactEndpoint(Struct, frozen=True):
    """Compacts conversations."""

    relay: RelayEndpoint
    intake: Intake

    async def serve(self, form: CompactionForm, ctx: RequestContext) -> None:
        """Answer one request for a compaction.

        Raises:
            BodyTooLargeError: the conversation is too large.
            FailureError: there is no answer, or the stored conversation does not exist.
            WireError: the request is not one of the form.
        """
        bodies = self.relay.bodies
        data = await bodies.read(ctx.exchange)
        size = len(data)
        body = bodies.small_request(data) if size < LARGE else await bodies.request(data)
        asked, size = await self.intake.recall(form.ask(body), size, ctx)
        encode = encode_json if size < LARGE else encode_large
        written = await offload(size, lambda: encode(asked))
        exchange = _CompactExchange(ctx.exchange, written, lambda answer: form.show(answer, asked))
        await self.relay.serve(replace(ctx, exchange=exchange))


class _CompactExchange(BufferedExchange):
    """Rewrites a whole answer; an error passes as it is."""

    def __init__(self, exchange: Exchange, body: bytes, show: Callable[[JSONObject], JSONObject]) -> None:
        super().__init__(exchange, body)
        self._show = show
        self._held: Sequence[tuple[str, str]] | None = None

    async def start(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """Hold the head of an answer, whose length is not known yet."""
        if status != OK:
            await self._exchange.start(status, headers)
            return
        self._held = [header for header in headers if header[0] != "content-length"]

    async def end(self, data: bytes = b"") -> None:
        """Send the answer."""
        if self._held is None:
            await self._exchange.end(data)
            return
        body = encode_json(self._show(decode_answer(data)))
        await self._exchange.start(OK, [*self._held, ("content-length", str(len(body)))])
        await self._exchange.end(body)
