"""Statements for conversations, as generators; see `store.queries`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.json.json_io import encode_json
from xenoglot.store.queries import Row, Statement, Steps, read
from xenoglot.store.records import Conversation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.store.records import Order, Window


def create(conversation: Conversation, items: Sequence[JSONObject]) -> Steps[None]:
    """Store a new conversation."""
    metadata = encode_json(conversation.metadata)
    created = conversation.created
    yield Statement(
        "INSERT INTO conversation (owner, id, created, used, metadata, length, size)"
        " VALUES ($1, $2, $3, $4, $5, 0, $6)",
        (conversation.owner, conversation.id, created, created, metadata, len(metadata)),
    )
    yield from add_items(conversation.owner, conversation.id, items, created)


def get(owner: str, conversation: str) -> Steps[Conversation | None]:
    """Return the conversation with that id."""
    rows = yield Statement(
        "SELECT created, metadata FROM conversation WHERE owner = $1 AND id = $2", (owner, conversation)
    )
    return _conversation(owner, conversation, rows)


def update(owner: str, conversation: str, metadata: JSON) -> Steps[Conversation | None]:
    """Replace its metadata."""
    rows = yield Statement(
        "UPDATE conversation SET metadata = $3 WHERE owner = $1 AND id = $2 RETURNING created, metadata",
        (owner, conversation, encode_json(metadata)),
    )
    return _conversation(owner, conversation, rows)


def delete(owner: str, conversation: str) -> Steps[bool]:
    """Forget a conversation and its items."""
    rows = yield Statement("DELETE FROM conversation WHERE owner = $1 AND id = $2 RETURNING id", (owner, conversation))
    yield Statement("DELETE FROM conversation_item WHERE owner = $1 AND conversation = $2", (owner, conversation))
    return bool(rows)


def add_items(owner: str, conversation: str, items: Sequence[JSONObject], now: float) -> Steps[bool]:
    """Append items; the update locks the row, so their positions are unique."""
    encoded = [(str(item["id"]), encode_json(item)) for item in items]
    rows = yield Statement(
        "UPDATE conversation SET length = length + $3, used = $4, size = size + $5"
        " WHERE owner = $1 AND id = $2 RETURNING length",
        (owner, conversation, len(items), now, sum(len(data) for _, data in encoded)),
    )
    if not rows:
        return False
    first = rows[0][0] - len(items)
    if items:
        yield Statement(
            "INSERT INTO conversation_item (owner, conversation, position, id, data) VALUES ($1, $2, $3, $4, $5)",
            many=[(owner, conversation, first + index, name, data) for index, (name, data) in enumerate(encoded)],
        )
    return True


_ITEMS = "SELECT data FROM conversation_item WHERE owner = $1 AND conversation = $2"
_PLACE = "SELECT {}(position) FROM conversation_item WHERE owner = $1 AND conversation = $2 AND id = $3"
_ITEM_PAGES: dict[Order, tuple[str, str, str]] = {
    "asc": (
        f"{_ITEMS} ORDER BY position LIMIT $3",
        _PLACE.format("MAX"),
        f"{_ITEMS} AND position > $4 ORDER BY position LIMIT $3",
    ),
    "desc": (
        f"{_ITEMS} ORDER BY position DESC LIMIT $3",
        _PLACE.format("MIN"),
        f"{_ITEMS} AND position < $4 ORDER BY position DESC LIMIT $3",
    ),
}
"""By order: the first page, the position of an item (the last of those with its id: pages must end), a later page."""


def items(owner: str, conversation: str, window: Window) -> Steps[list[JSONObject]]:
    """Return items of a conversation; none if the cursor does not exist."""
    first, place, further = _ITEM_PAGES[window.order]
    if window.after is None:
        rows = yield Statement(first, (owner, conversation, window.limit))
        return [read(row[0]) for row in rows]
    found = yield Statement(place, (owner, conversation, window.after))
    if found[0][0] is None:
        return []
    rows = yield Statement(further, (owner, conversation, window.limit, found[0][0]))
    return [read(row[0]) for row in rows]


def item(owner: str, conversation: str, item: str) -> Steps[JSON]:
    """Return one item of a conversation."""
    rows = yield Statement(
        "SELECT data FROM conversation_item WHERE owner = $1 AND conversation = $2 AND id = $3",
        (owner, conversation, item),
    )
    return read(rows[0][0]) if rows else None


def delete_item(owner: str, conversation: str, item: str) -> Steps[bool]:
    """Delete one item of a conversation."""
    rows = yield Statement(
        "DELETE FROM conversation_item WHERE owner = $1 AND conversation = $2 AND id = $3 RETURNING data",
        (owner, conversation, item),
    )
    freed = sum(len(row[0]) for row in rows)
    yield Statement(
        "UPDATE conversation SET size = size - $3 WHERE owner = $1 AND id = $2", (owner, conversation, freed)
    )
    return bool(rows)


def lock(owner: str, conversation: str, holder: str, now: float, until: float) -> Steps[bool]:
    """Lock a conversation if it is unlocked or its lock has expired; the holder can extend its own lock."""
    rows = yield Statement(
        "UPDATE conversation SET holder = $3, held_until = $5 WHERE owner = $1 AND id = $2"
        " AND (holder IS NULL OR holder = $3 OR held_until < $4) RETURNING id",
        (owner, conversation, holder, now, until),
    )
    return bool(rows)


def unlock(owner: str, conversation: str, holder: str) -> Steps[None]:
    """Release the lock of a conversation, if this holder has it."""
    yield Statement(
        "UPDATE conversation SET holder = NULL, held_until = NULL WHERE owner = $1 AND id = $2 AND holder = $3",
        (owner, conversation, holder),
    )


def _conversation(owner: str, name: str, rows: Sequence[Row]) -> Conversation | None:
    if not rows:
        return None
    created, metadata = rows[0]
    return Conversation(id=name, owner=owner, created=created, metadata=read(metadata))
