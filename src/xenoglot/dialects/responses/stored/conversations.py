"""Conversations: lists of items that a client stores on a server, and that answers append to.

Source: `openai/resources/conversations/` and `openai/types/conversations/`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from xenoglot.codec.features.stored_responses import Conversations
from xenoglot.codec.reader import Reader, expected
from xenoglot.dialects.openai.shared import refusal

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from xenoglot.model.failure import Failure
    from xenoglot.model.json import JSON, JSONObject

_PREFIXES: dict[str, str] = {
    "message": "msg",
    "function_call": "fc",
    "function_call_output": "fc",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctc",
    "reasoning": "rs",
}
"""How ids of items begin; a server refuses an item whose id begins otherwise."""

_MADE = re.compile(r"[a-z]+_k[0-9a-f]{24,}i[0-9]+")
"""An id that `identify` made: no server knows it."""

_FITTING = re.compile(r"[\x21-\x7e]{1,256}")
"""An id that a path can name, and a database keep."""


def identify(items: Sequence[JSON], seed: str, there: Sequence[JSON] = ()) -> list[JSONObject]:
    """Return items as a server shows them: each has an id that no other has, and messages have parts.

    Ids are made from `seed` where an item has none, or that of one before it or `there` already.
    """
    digits = seed.rpartition("_")[2]
    taken = {item["id"] for item in there if isinstance(item, dict) and isinstance(item.get("id"), str)}
    shown = []
    for index, item in enumerate(items):
        if isinstance(item, dict):
            shown.append(_identified(item, f"k{digits}i{index}", taken))
            taken.add(shown[-1]["id"])
    return shown


def anonymous(item: JSON) -> JSON:
    """Return an item without the id that `identify` made for it: no server knows that id."""
    made = isinstance(item, dict) and isinstance(item.get("id"), str) and _MADE.fullmatch(item["id"])
    return {key: value for key, value in item.items() if key != "id"} if made else item


def _identified(item: JSONObject, name: str, taken: Container[str]) -> JSONObject:
    kind = item.get("type") or "message"
    found = item.get("id")
    fits = isinstance(found, str) and _FITTING.fullmatch(found) and found not in taken
    own = found if fits else f"{_PREFIXES.get(kind, 'item')}_{name}"
    if kind != "message":
        return {**item, "id": own}
    content = item.get("content")
    if isinstance(content, str):
        part = {"type": "output_text" if item.get("role") == "assistant" else "input_text", "text": content}
        content = [part | {"annotations": []} if part["type"] == "output_text" else part]
    return {"id": own, "type": kind, "status": "completed", **item, "content": content} | {"id": own, "type": kind}


def _create(body: JSON) -> tuple[JSON, list[JSONObject]]:
    reader = Reader({} if body is None else body)
    return reader.take("metadata", dict) or {}, _items(reader)


def _added(body: JSON) -> list[JSONObject]:
    reader = Reader(body)
    reader.need("items", list)
    return _items(Reader(body))


def _items(reader: Reader) -> list[JSONObject]:
    items = reader.take("items", list) or []
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            raise expected(f"{reader.at('items')}[{index}]", "object", item)
        Reader(item, f"{reader.at('items')}[{index}]").take("type", str)
    return items


def _metadata(body: JSON) -> JSON:
    return Reader(body).take("metadata", dict) or {}


def _show(name: str, created: int, metadata: JSON) -> JSONObject:
    return {"id": name, "object": "conversation", "created_at": created, "metadata": metadata}


def _deleted(name: str) -> JSONObject:
    return {"id": name, "object": "conversation.deleted", "deleted": True}


def _unknown(name: str) -> Failure:
    return refusal("not_found", f"Conversation with id '{name}' not found.")


def _unknown_item(name: str, conversation: str) -> Failure:
    return refusal("not_found", f"Item with id '{name}' not found in conversation '{conversation}'.")


def _locked() -> Failure:
    message = "Another process is currently operating on this conversation. Please retry in a few seconds."
    return refusal("invalid_request", message, param="conversation", code="conversation_locked")


CONVERSATIONS: Final = Conversations(
    path="/v1/conversations",
    id_prefix="conv_",
    create=_create,
    metadata=_metadata,
    added=_added,
    identify=identify,
    show=_show,
    deleted=_deleted,
    unknown=_unknown,
    unknown_item=_unknown_item,
    locked=_locked,
)
