"""Moves system turns out of a conversation, for servers that allow them at its start only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.model.content import ToolResult
from xenoglot.model.request import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Part


def fold_system(messages: Sequence[Message], losses: Losses) -> list[Message]:
    """Return the messages with each system turn after the first others folded into the next user turn (pitfall-3)."""
    folded: list[Message] = []
    waiting: list[Part] = []
    leading = True
    for index, message in enumerate(messages):
        system = message.role in ("system", "developer")
        if system and not leading:
            losses.approximated(f"$.messages[{index}]", "role", "folded into the next user turn")
            waiting += message.content
        elif waiting and message.role == "user":
            results = [part for part in message.content if isinstance(part, ToolResult)]
            others = [part for part in message.content if not isinstance(part, ToolResult)]
            folded.append(replace(message, content=(*results, *waiting, *others)))
            waiting = []
        else:
            folded.append(message)
        leading = leading and system
    if waiting:
        folded.append(Message(role="user", content=tuple(waiting)))
    return folded
