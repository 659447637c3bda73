"""Encodes and decodes non-streaming responses.

Source: `anthropic/types/beta/beta_message.py`, `beta_stop_reason.py` and `beta_refusal_stop_details.py` of the SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader
from xenoglot.codec.responses.reasoning import reported_changes
from xenoglot.dialects.messages.errors import read_error
from xenoglot.dialects.messages.extras import NAME, keep_rest, with_rest
from xenoglot.dialects.messages.part_decoder import decode_parts, with_own_ids
from xenoglot.dialects.messages.part_encoder import PartEncoder
from xenoglot.dialects.messages.usage import completed, decode_usage, encode_usage
from xenoglot.errors import FailureError, WireError
from xenoglot.model.content import Extra, Part, Refusal, ToolCall
from xenoglot.model.response import Candidate, Finish, FinishReason, Response

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request

REASONS: dict[str, FinishReason] = {
    "end_turn": "stop",
    "max_tokens": "length",
    "stop_sequence": "stop_sequence",
    "tool_use": "tool_calls",
    "pause_turn": "pause",
    "refusal": "refusal",
    "model_context_window_exceeded": "context",
    "compaction": "compaction",
}
WORDS: dict[FinishReason, str] = {reason: word for word, reason in REASONS.items()}

FINISH = "$.candidates[0].finish"

AT_THE_END = ("container", "context_management", "input_transformations")
"""Fields of a message that a stream has in its `message_delta`: they belong to the candidate."""

REQUIRED = ("id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage")
"""What every answer has; a server that leaves one out gets it back left out."""


def decode_response(value: JSON) -> Response:
    """Return the answer in `value`.

    Raises:
        WireError: it is not an answer of this dialect.
        FailureError: it is an error (some servers send one with status 200).
    """
    reader = Reader(value)
    if reader.peek("type") == "error":
        raise FailureError(read_error(value))
    if "content" not in value:  # whatever it is, an empty answer it is not (U24)
        raise WireError("$.content", "required, expected list")
    form = _absent(value)
    answer_id, model = take_head(reader)
    content = with_own_ids(reader.take_any("content"))
    parts = () if content is None else decode_parts(content, reader.at("content"), answer_id or "")
    usage, tier = (None, None) if reader.peek("usage") is None else decode_usage(reader.take_any("usage"))
    finish = take_finish(reader, parts)
    late = late_fields({key: reader.rest().pop(key) for key in AT_THE_END if key in reader.rest()})
    return Response(
        id=answer_id,
        model=model,
        candidates=(Candidate(content=parts, finish=finish, extra=late),),
        usage=usage,
        service_tier=tier,
        extra=reader.extra(NAME, **form),
    )


def late_fields(fields: JSONObject) -> Extra | None:
    """Return what a message has at its end, with the losses that the server reports (`BetaInputTransformation`)."""
    if not fields:
        return None
    entries = fields.get("input_transformations")
    if not entries or not isinstance(entries, list):
        return Extra(dialect=NAME, fields=fields)
    reasons: dict[str, list[JSON]] = {"thinking_dropped": [], "thinking_mismatch_allowed": []}
    for entry in entries:
        kind = entry.get("type") if isinstance(entry, dict) else None
        if kind in reasons:
            reasons[kind].append(entry.get("reason"))
    return Extra(dialect=NAME, fields=fields, form=reported_changes(*reasons.values()))


def _absent(value: JSON) -> JSONObject:
    missing = [key for key in REQUIRED if key not in value]
    return {"absent": missing} if missing else {}


def take_head(reader: Reader) -> tuple[str | None, str | None]:
    """Take the fields of a message that precede its content: its id and its model."""
    reader.take_word("type", ("message",))
    reader.take_word("role", ("assistant",))
    return reader.take("id", str), reader.take("model", str)


def take_finish(reader: Reader, parts: Iterable[Part]) -> Finish | None:
    """Take why the answer ended, or return `None` if it has not; with calls, the calls are the reason (pitfall-69)."""
    raw = reader.take("stop_reason", str)
    if not raw:
        _drop_nulls(reader)
        return None
    reason = REASONS.get(raw, "unknown")
    if reason == "stop" and any(isinstance(part, ToolCall) for part in parts):
        reason = "tool_calls"
    explanation = None
    fields: JSONObject = {}
    form: JSONObject = {}
    details = reader.peek("stop_details")
    if isinstance(details, dict):
        stop = Reader(reader.take("stop_details", dict), reader.at("stop_details"))
        explanation = stop.take_if("explanation", str)
        if explanation is not None:  # the encoder writes the type beside it
            stop.take_word("type", ("refusal",))
        keep_rest(reader, "stop_details", stop, form, said=explanation is not None)
    if "stop_details" in reader.rest():
        fields["stop_details"] = reader.rest().pop("stop_details")
    sequence = reader.take("stop_sequence", str)
    if sequence is None:
        reader.rest().pop("stop_sequence", None)
    return Finish(
        reason=reason,
        raw=raw,
        dialect=NAME,
        stop_sequence=sequence,
        explanation=explanation,
        extra=Extra(dialect=NAME, fields=fields, form=form) if fields or form else None,
    )


def _drop_nulls(reader: Reader) -> None:
    """Take the nulls that the encoder writes by itself."""
    for key in ("stop_reason", "stop_sequence"):
        if key in reader.rest() and reader.peek(key) is None:
            del reader.rest()[key]


def encode_response(response: Response, request: Request, losses: Losses) -> JSONObject:
    """Return `response` as the answer to `request`; of several candidates the first."""
    encoder = PartEncoder(losses, home=False)
    for index in range(1, len(response.candidates)):
        losses.dropped(f"$.candidates[{index}]", "candidate", "an answer of the dialect is one")
    candidate = response.candidates[0] if response.candidates else Candidate()
    absent = form_of(response.extra, NAME).get("absent", ())
    usage = encode_usage(response.usage, response.service_tier, losses)
    if candidate.finish is None or candidate.finish.dialect != NAME:
        usage = completed(usage, losses, "input_tokens", "output_tokens")
    body: JSONObject = {
        **encode_head(response.id, response.model or request.model),
        "content": encoder.blocks(candidate.content, "$.candidates[0].content", "assistant"),
        **encode_finish(candidate.finish, candidate.content, losses),
        "usage": usage,
    }
    body = with_rest(body, candidate.extra, "$.candidates[0]", losses)
    body = with_rest(body, response.extra, "$", losses)
    return {key: value for key, value in body.items() if key not in absent} if absent else body


def encode_head(answer_id: str | None, model: str) -> JSONObject:
    """Return the fields of a message that precede its content."""
    return {"id": answer_id or "", "type": "message", "role": "assistant", "model": model}


def encode_finish(finish: Finish | None, parts: Sequence[Part], losses: Losses) -> JSONObject:
    """Return the fields for why the answer ended."""
    if finish is None:
        return {"stop_reason": None, "stop_sequence": None}
    own: JSONObject = {"stop_reason": _stop_reason(finish, parts, losses), "stop_sequence": finish.stop_sequence}
    if finish.explanation is not None:
        own["stop_details"] = {"type": "refusal", "explanation": finish.explanation}
    return with_rest(own, finish.extra, FINISH, losses)


def _stop_reason(finish: Finish, parts: Sequence[Part], losses: Losses) -> str:
    if finish.dialect == NAME and finish.raw is not None:
        return finish.raw
    if finish.reason == "stop":
        kinds = [*map(type, parts)]
        if Refusal in kinds:
            return "refusal"
        return "tool_use" if ToolCall in kinds else "end_turn"
    if finish.reason == "unknown":
        losses.approximated(FINISH, "reason", "unknown to the dialect; written as `end_turn`")
    return WORDS.get(finish.reason, "end_turn")
