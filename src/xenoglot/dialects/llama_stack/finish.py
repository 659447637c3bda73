"""Maps the three values of `StopReason` (`llama_stack/models/llama/datatypes.py`) to finish reasons and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.dialects.llama_stack.extras import NAME
from xenoglot.model.response import Finish

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.model.response import FinishReason

_REASONS: dict[str, FinishReason] = {"end_of_turn": "stop", "end_of_message": "stop", "out_of_tokens": "length"}

_WORDS: dict[FinishReason, str] = {
    "stop": "end_of_turn",
    "length": "out_of_tokens",
    "context": "out_of_tokens",
    "tool_calls": "end_of_message",
}
_LAST = "end_of_turn"
_EXACT = ("stop", "length", "tool_calls")


def decode_finish(raw: str | None, *, calls: bool, name: str = NAME) -> Finish:
    """Return why an answer ended; with calls it waits for their results, whichever word the server uses (L7, L-W8)."""
    reason = "unknown" if raw is None else _REASONS.get(raw, "unknown")
    if calls and reason in ("stop", "unknown"):
        reason = "tool_calls"
    return Finish(reason=reason, raw=raw, dialect=name)


def encode_finish(finish: Finish, where: str, losses: Losses, *, name: str = NAME) -> str | None:
    """Return the word for why an answer ended; what came in this dialect returns unchanged, even if absent.

    The record for texts knows no calls, and needs a word.
    """
    losses.carry(finish.extra, where, name)
    if finish.dialect == name:
        return finish.raw
    word = _WORDS.get(finish.reason, _LAST)
    if finish.reason not in _EXACT or (finish.reason == "tool_calls" and name != NAME):
        losses.approximated(where, "reason", f"`{finish.reason}` is written as `{word}`")
    for field in ("stop_sequence", "explanation"):
        if getattr(finish, field) is not None:
            losses.dropped(where, field, "the dialect has one word only")
    return word
