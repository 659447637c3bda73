"""What can be said of a part or a tool that only its own dialect understands."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xenoglot.model.content import Opaque


_MOST_NAMES = 4


def kind_of(part: Opaque) -> str:
    """Return what the dialect of a part or a tool calls its kind.

    Without a `type` its kind is the name of the object in it (`{"googleSearch": {}}`), or the names of several.
    """
    data = part.data if isinstance(part.data, dict) else {}
    kind = data.get("type")
    if isinstance(kind, str):
        return kind
    names = [name for name, value in data.items() if isinstance(value, dict)]
    return ", ".join(names[:_MOST_NAMES]) or "part"
