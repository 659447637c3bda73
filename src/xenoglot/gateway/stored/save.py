"""Resolved requests of stored responses, and saving their answers to the store and the conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from xenoglot.codec.features.stored_responses import StoredAnswer
from xenoglot.model.json import JSON, JSONObject
from xenoglot.store.records import Stored

if TYPE_CHECKING:
    from xenoglot.codec.dialect import Dialect
    from xenoglot.codec.features.stored_responses import StoredResponseCodec
    from xenoglot.gateway.store_service import StoreService

ADDED = ("completed", "incomplete")
"""The statuses of answers that a conversation continues with."""


class ResolvedRequest(Struct, frozen=True, kw_only=True):
    """A request with all that it means: its own (`own`) and the `items` that the model is given."""

    owner: str
    kept: StoredAnswer
    own: list[JSON]
    items: list[JSON]
    prepared: JSONObject


def stored(
    remembered: ResolvedRequest, dialect: Dialect, state: StoredResponseCodec, answer: JSONObject, now: float
) -> Stored:
    """Return the answer as it is stored."""
    kept = remembered.kept
    return Stored(
        id=kept.id,
        owner=remembered.owner,
        kind=dialect.name,
        created=now,
        status=state.status(answer),
        items=remembered.items,
        response=answer,
        output=state.output(answer),
        previous=kept.wish.previous,
        conversation=kept.wish.conversation,
        background=kept.wish.background,
    )


async def keep(keeper: StoreService, answer: Stored, remembered: ResolvedRequest, state: StoredResponseCodec) -> None:
    """Store an answer that is over, and continue its conversation with it.

    Raises:
        StoreError: it cannot be stored.
    """
    await keeper.within(keeper.store.put(answer))
    await add_to_conversation(keeper, answer, remembered, state)
    keeper.sweep()


async def add_to_conversation(
    keeper: StoreService, answer: Stored, remembered: ResolvedRequest, state: StoredResponseCodec
) -> None:
    """Continue an answer's conversation, if it has one, with the answer; other requests can then continue it."""
    conversation = answer.conversation
    if conversation is None or state.conversations is None:
        return
    if answer.status in ADDED:
        before = remembered.items[: len(remembered.items) - len(remembered.own)]
        items = state.conversations.identify([*remembered.own, *answer.output], answer.id, before)
        await keeper.within(keeper.store.add_items(answer.owner, conversation, items, keeper.now()))
    await keeper.release((answer.owner, conversation, answer.id))
