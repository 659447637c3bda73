"""Encodes and decodes why an answer ended.

Source: `StopReason` in the published model of the API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.dialects.converse.extras import NAME, with_rest
from xenoglot.model.content import Part, Refusal, ToolCall
from xenoglot.model.response import Finish, FinishReason

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSONObject

REASONS: Final[dict[str, FinishReason]] = {
    "end_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "stop_sequence": "stop_sequence",
    "guardrail_intervened": "refusal",
    "content_filtered": "refusal",
    "model_context_window_exceeded": "context",
}
_WORDS: Final[dict[FinishReason, str]] = {reason: word for word, reason in REASONS.items()}

FINISH: Final = "$.candidates[0].finish"


FIELDS: Final = "additionalModelResponseFields"
"""What a model reports with its answer; a stream has it with the reason of the end."""

_SEQUENCE: Final = "stop_sequence"
"""The field of Anthropic's models with the stop string, if a request asks for `/stop_sequence`."""


def decode_finish(raw: str, parts: Iterable[Part], late: JSONObject) -> Finish:
    """Return why an answer of these `parts` ended; after calls the end is theirs (pitfall-69)."""
    fields = late.get(FIELDS)
    sequence = fields.get(_SEQUENCE) if isinstance(fields, dict) else None
    reason = REASONS.get(raw, "unknown")
    if reason == "stop" and any(isinstance(part, ToolCall) for part in parts):
        reason = "tool_calls"
    stop = sequence if isinstance(sequence, str) else None
    return Finish(reason=reason, raw=raw, dialect=NAME, stop_sequence=stop)


def encode_fields(finish: Finish | None, late: JSONObject) -> JSONObject:
    """Return the fields at the end of an answer, with the stop string among them."""
    if finish is None or finish.stop_sequence is None or finish.dialect == NAME:
        return late
    return {**late, FIELDS: {_SEQUENCE: finish.stop_sequence}}


def encode_finish(finish: Finish | None, parts: Iterable[Part], losses: Losses) -> str:
    """Return the word for why an answer of these `parts` ended."""
    if finish is None:
        return "end_turn"
    with_rest({}, finish.extra, FINISH, losses)
    if finish.explanation is not None:
        losses.dropped(FINISH, "explanation", "the dialect has no such field")
    if finish.dialect == NAME and finish.raw is not None:
        return finish.raw
    if finish.reason == "stop":
        kinds = {type(part) for part in parts}
        return "content_filtered" if Refusal in kinds else "tool_use" if ToolCall in kinds else "end_turn"
    if finish.reason not in _WORDS:
        losses.approximated(FINISH, "reason", "unknown to the dialect; written as `end_turn`")
    return _WORDS.get(finish.reason, "end_turn")
