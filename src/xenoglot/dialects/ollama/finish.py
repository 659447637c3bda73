"""Encodes and decodes the last fields of an answer: finish reason, usage and durations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.fields import Fields, count
from xenoglot.dialects.ollama.extras import FAMILY, own_fields
from xenoglot.model.response import Finish, Usage

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.codec.reader import Reader
    from xenoglot.model.json import JSONObject
    from xenoglot.model.response import FinishReason

_REASONS: dict[str, FinishReason] = {"stop": "stop", "length": "length", "load": "stop", "unload": "stop"}
"""`DoneReason` in `llm/server.go`, and the words for a request that only loads the model or drops it."""

_WORDS: dict[FinishReason, str] = {"length": "length", "context": "length"}
"""All other reasons are `stop`, also where a tool is called."""

_EXACT = frozenset({"stop", "length", "tool_calls"})

USAGE: Final = Fields(
    Usage, "$.usage", (count("input_tokens", "prompt_eval_count"), count("output_tokens", "eval_count"))
)


def decode_finish(raw: str | None, *, calls: bool) -> Finish:
    """Return why an answer ended; older servers do not report it, and none reports a wait for a tool (pitfall-69)."""
    reason = "stop" if raw is None else _REASONS.get(raw, "unknown")
    return Finish(reason="tool_calls" if calls and reason == "stop" else reason, raw=raw, dialect=FAMILY)


def encode_finish(finish: Finish, where: str, losses: Losses) -> JSONObject:
    """Return the field with the reason why an answer ended; our own word returns unchanged, or not at all."""
    own_fields(finish.extra, f"{where}.finish", losses, FAMILY)
    if finish.dialect == FAMILY:
        return {} if finish.raw is None else {"done_reason": finish.raw}
    word = _WORDS.get(finish.reason, "stop")
    if finish.reason not in _EXACT:
        losses.approximated(where, "finish", f"`{finish.reason}` is written as `{word}`")
    for name in ("stop_sequence", "explanation"):
        if getattr(finish, name) is not None:
            losses.dropped(f"{where}.finish", name, "there is no field for it")
    return {"done_reason": word}


def decode_usage(reader: Reader) -> Usage | None:
    """Take the counts; a prompt that was answered from the cache of the server has none."""
    counts = USAGE.read(reader, {})
    return Usage(**counts) if counts else None


def encode_usage(usage: Usage, losses: Losses) -> JSONObject:
    """Return the counts; counts that are not set are left out."""
    own_fields(usage.extra, "$.usage", losses, FAMILY)
    counts: JSONObject = {}
    USAGE.write_plain(usage, counts)
    USAGE.note_unsupported(usage, losses)
    return counts
