"""Plain text of an item, for dialects that cannot hold the item."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.json.json_io import to_text

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

MAX_DEPTH = 8

_TEXTS = ("text", "stdout", "stderr", "logs", "output", "outputs", "result", "results", "content", "error", "message")
"""The keys under which items hold texts and printed output, in the order in which these are joined."""

_SEALED = ("compaction", "compaction_trigger", "item_reference", "image_generation_call", "computer_call_output")
"""Items that hold nothing in words."""


_ACTIONS = {"commands": "Commands run", "command": "Command run", "query": "Searched for", "url": "Page opened"}


def words_of(item: JSONObject) -> str | None:
    """Return the text of `item`; `None` if it has none."""
    kind = item.get("type")
    if not isinstance(kind, str) or kind in _SEALED:
        return None
    done = _done(kind, item)
    told = _told(item)
    return "\n".join(text for text in (done, told) if text) or None


def _done(kind: str, item: JSONObject) -> str:
    """Return what the model did, in one line."""
    done = ""
    match item:
        case {"action": dict(action)}:
            done = _acted(action)
        case {"queries": list(queries)}:
            done = f"Searched for: {to_text(queries)}"
        case {"operation": {"type": str(operation), "path": str(path), **rest}}:
            done = f"Patch ({operation}) of {path}:\n{rest.get('diff') or ''}".rstrip(":\n")
        case {"code": str(code)}:
            done = f"Code run:\n{code}"
        case {"name": str(name), "arguments": arguments} if kind.startswith("mcp_"):
            done = f"Tool called: {name} {arguments if isinstance(arguments, str) else to_text(arguments)}"
        case {"author": str(author)}:
            done = f"From {author}:"
        case {"approve": bool(approve)}:
            done = "Approved." if approve else "Not approved."
        case _:
            pass  # what was done stands in words of its own, or in none
    return done


def _acted(action: JSONObject) -> str:
    for key, said in _ACTIONS.items():
        value = action.get(key)
        if isinstance(value, str | list):
            return f"{said}: {value if isinstance(value, str) else to_text(value)}"
    return ""


def _told(value: JSON, depth: int = 0) -> str:
    """Return all texts and printed output in `value`."""
    match value:
        case str():
            return value
        case list() if depth < MAX_DEPTH:
            return "\n".join(filter(None, (_told(inner, depth + 1) for inner in value)))
        case dict() if depth < MAX_DEPTH:
            return "\n".join(filter(None, (_told(value[key], depth + 1) for key in _TEXTS if key in value)))
        case _:
            return ""
