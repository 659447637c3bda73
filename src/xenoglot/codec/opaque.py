"""What can be said of a part or a tool that only its own dialect understands."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xenoglot.model.content import Opaque


def kind_of(part: Opaque) -> str:
    """Return what the dialect of a part or a tool calls its kind."""
    kind = part.data.get("type") if isinstance(part.data, dict) else None
    return kind if isinstance(kind, str) else "part"
