"""Requests that want something kept, or mean something that is: written so that they mean the same to every server."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from xenoglot.backends.offload import LARGE, offload
from xenoglot.codec.json.json_io import encode_json, encode_large
from xenoglot.codec.json.slices import size_seen
from xenoglot.errors import FailureError
from xenoglot.gateway.http.application import BodyTooLargeError
from xenoglot.gateway.store_service import NOT_KEPT, StoreService, is_id
from xenoglot.gateway.stored.save import ResolvedRequest, keep, stored
from xenoglot.model.failure import Failure
from xenoglot.store.records import UNDONE, StoreError, Window

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from xenoglot.codec.features.stored_responses import StoredAnswer, StoredResponseCodec, StoreOptions
    from xenoglot.gateway.endpoint.request_context import RequestContext
    from xenoglot.model.json import JSON, JSONObject

WHOLE = Window(limit=2**31 - 1, order="asc")
"""A conversation is read at once: between two pages it could change."""

NO_BACKGROUND = Failure(
    kind="invalid_request",
    message="an answer made in the background has to be kept, and the gateway keeps nothing: its store is off",
    param="$.background",
)

_logger = logging.getLogger("xenoglot.gateway")


async def encoded(body: JSONObject, size: int) -> bytes:
    """Return the body of a request with its history; `size` bytes of it are from the client.

    Raises:
        FailureError: too many large bodies are ahead of it.
    """
    size = max(size, size_seen(body))
    encode = encode_json if size < LARGE else encode_large
    return await offload(size, lambda: encode(body))


def need_nothing(wish: StoreOptions, state: StoredResponseCodec) -> None:
    """Refuse a request that needs the store where nothing is kept, and the upstream cannot know more.

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


def within(body: bytes, limit: int) -> bytes:
    """Return the body of a request with its history, which may be no larger than a complete one.

    Raises:
        BodyTooLargeError: it is.
    """
    if len(body) > limit:
        raise BodyTooLargeError(f"the request, with the items that it continues, is larger than {limit} bytes")
    return body


def storing(
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


async def remember(
    owner: str, kept: StoredAnswer, state: StoredResponseCodec, keeper: StoreService, *, alike: bool
) -> ResolvedRequest:
    """Return the request with the items that it only names; `alike` is whether the upstream has the same dialect.

    Raises:
        FailureError: one of them does not exist, or the store cannot be used.
    """
    own = await resolve(owner, kept, state, keeper)
    items = [*await history(owner, kept.wish, state, keeper), *own]
    prepared = state.prepare(kept.request, items)
    return ResolvedRequest(
        owner=owner, kept=kept, own=own, items=items, prepared=state.ask_seals(prepared) if alike else prepared
    )


async def history(owner: str, wish: StoreOptions, state: StoredResponseCodec, keeper: StoreService) -> list[JSON]:
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


async def resolve(owner: str, kept: StoredAnswer, state: StoredResponseCodec, keeper: StoreService) -> list[JSON]:
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
