"""Maps the status and incomplete reason of an answer to a canonical finish reason and back (pitfall-82).

Source: `openai/types/responses/response_status.py` and `IncompleteDetails` in `response.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.loss import Losses, form_of
from xenoglot.dialects.responses.extras import NAME
from xenoglot.model.content import CompactedHistory, Extra, Refusal, ToolCall
from xenoglot.model.response import Finish

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.reader import Reader
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSONObject
    from xenoglot.model.response import FinishReason

UNFINISHED = ("queued", "in_progress")
"""Statuses of an answer that is not over."""

_INCOMPLETE: dict[str, FinishReason] = {
    "max_output_tokens": "length",
    "max_tokens": "length",
    "content_filter": "refusal",
}
"""What `incomplete_details.reason` means; `max_messages` and `steered` end a conversation of OpenAI's own."""

_REASONS: dict[FinishReason, str] = {
    "length": "max_output_tokens",
    "context": "max_output_tokens",
    "refusal": "content_filter",
}
"""Ends that are incomplete answers here; any other is a completed one."""

_EXACT = frozenset({"stop", "length", "tool_calls", "refusal"})


def take_finish(reader: Reader, parts: Sequence[Part]) -> Finish | None:
    """Take the status and why the answer is incomplete; `None` while it is not over.

    A completed answer with calls waits for their results; one with a refusal is a refusal.
    """
    status = reader.peek("status")
    if not isinstance(status, str) or status in UNFINISHED:
        return None
    reader.take("status", str)
    if status == "completed":
        return Finish(reason=completed_as(parts), raw=status, dialect=NAME)
    details = reader.object("incomplete_details") if isinstance(reader.peek("incomplete_details"), dict) else None
    raw = None if details is None else details.take_if("reason", str)
    rest: JSONObject = {} if details is None else details.rest()
    said = {} if raw is None else {"reason": raw}
    form: JSONObject = {"status": status, "details": None if details is None else {**said, **rest}}
    return Finish(
        reason=_INCOMPLETE.get(raw or "", "unknown"),
        raw=raw or status,
        dialect=NAME,
        extra=None if status == "incomplete" and raw and not rest else Extra(dialect=NAME, form=form),
    )


def completed_as(parts: Sequence[Part]) -> FinishReason:
    """Return what it means that an answer of `parts` is completed."""
    if any(isinstance(part, ToolCall) for part in parts):
        return "tool_calls"
    return "refusal" if any(isinstance(part, Refusal) for part in parts) else "stop"


def is_cut(finish: Finish | None, parts: Sequence[Part]) -> bool:
    """Whether the status of an answer that ended so is `incomplete`."""
    return finish is not None and bool(encode_finish(finish, parts, Losses())["status"] == "incomplete")


def explained(finish: Finish | None, parts: Sequence[Part]) -> tuple[Refusal, ...]:
    """Return what a provider of another dialect wrote about its refusal, as the model's own; none if it has one."""
    if finish is None or finish.explanation is None or any(isinstance(part, Refusal) for part in parts):
        return ()
    return (Refusal(text=finish.explanation),)


def encode_finish(finish: Finish | None, parts: Sequence[Part], losses: Losses) -> JSONObject:
    """Return the status, and why the answer is incomplete."""
    where = "$.candidates[0].finish"
    if finish is None:
        return {"status": "in_progress", "incomplete_details": None}
    form = form_of(finish.extra, NAME)
    losses.carry(finish.extra, where, NAME)
    if "status" in form:
        return {"status": form["status"], "incomplete_details": form["details"]}
    if finish.dialect == NAME and finish.raw is not None:
        details = None if finish.raw == "completed" else {"reason": finish.raw}
        return {"status": "completed" if details is None else "incomplete", "incomplete_details": details}
    if finish.stop_sequence is not None:
        losses.dropped(where, "stop_sequence", "there is no field for it")
    if explained(finish, parts):
        losses.emulated(where, "explanation", "written as a `refusal` of the output")
    elif finish.explanation is not None:
        losses.dropped(where, "explanation", "the model's own words are the `refusal`")
    word = _REASONS.get(finish.reason)
    if finish.reason == "refusal" and any(isinstance(part, Refusal) for part in parts):
        word = None  # the model's own words tell of it
    summarized = finish.reason == "compaction" and any(isinstance(part, CompactedHistory) for part in parts)
    if finish.reason not in _EXACT and not summarized:
        losses.approximated(where, "reason", f"`{finish.reason}` is written as `{word or 'completed'}`")
    return {
        "status": "completed" if word is None else "incomplete",
        "incomplete_details": None if word is None else {"reason": word},
    }
