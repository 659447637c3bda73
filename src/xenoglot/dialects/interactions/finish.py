"""Maps the `status` of an interaction to finish reasons and back.

Source: `InteractionStatus` in `google/genai/_gaos/types/interactions/interaction.py` of the official SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.dialects.interactions.extras import NAME, own_fields
from xenoglot.model.content import Refusal
from xenoglot.model.response import Finish

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON
    from xenoglot.model.response import FinishReason

WHERE: Final = "$.candidates[0]"

COMPLETED: Final = "completed"
ACTION: Final = "requires_action"
INCOMPLETE: Final = "incomplete"
IN_PROGRESS: Final = "in_progress"
BROKEN: Final = ("failed", "cancelled")
"""The statuses of an interaction that is no answer."""
UNFINISHED: Final = (IN_PROGRESS, "queued")

REASONS: Final[Mapping[str, FinishReason]] = {
    COMPLETED: "stop",
    ACTION: "tool_calls",
    INCOMPLETE: "length",
    "budget_exceeded": "length",
    "requires_continuation": "pause",
}
_WORDS: Final[Mapping[FinishReason, str]] = {
    "stop": COMPLETED,
    "stop_sequence": COMPLETED,
    "length": INCOMPLETE,
    "context": INCOMPLETE,
    "tool_calls": ACTION,
    "refusal": INCOMPLETE,
    "pause": INCOMPLETE,
    "compaction": INCOMPLETE,
    "unknown": COMPLETED,
}
_EXACT: Final = frozenset({"stop", "length", "tool_calls"})


def decode_finish(status: JSON) -> Finish | None:
    """Return why an interaction ended; `None` if it has not, or does not report it."""
    if not isinstance(status, str) or status in UNFINISHED:
        return None
    return Finish(reason=REASONS.get(status, "unknown"), raw=status, dialect=NAME)


def encode_finish(finish: Finish | None, parts: Sequence[Part], losses: Losses) -> str:
    """Return the status of an interaction that ended so; without a reason it is still in progress."""
    if finish is None:
        return IN_PROGRESS
    own_fields(finish.extra, f"{WHERE}.finish", losses)
    if finish.dialect == NAME and finish.raw is not None:
        return finish.raw
    refused = finish.reason == "stop" and any(isinstance(part, Refusal) for part in parts)
    reason = "refusal" if refused else finish.reason
    word = _WORDS[reason]
    if reason not in _EXACT:
        losses.approximated(f"{WHERE}.finish", "reason", f"`{reason}` is written as `{word}`")
    for field in ("stop_sequence", "explanation"):
        if getattr(finish, field) is not None:
            losses.dropped(f"{WHERE}.finish", field, "an interaction has a status alone")
    return word
