"""Encodes and decodes the last fields of an answer: finish reason, usage and durations."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

_COUNTED = {"input_tokens": "prompt_eval_count", "output_tokens": "eval_count"}
_UNCOUNTED = ("cache_read", "cache_write", "reasoning", "input_audio", "output_audio", "total")


def decode_finish(raw: str | None, *, calls: bool) -> Finish:
    """Return why an answer ended; older servers do not say, and none says that it waits for a tool (pitfall-69)."""
    reason = "stop" if raw is None else _REASONS.get(raw, "unknown")
    return Finish(reason="tool_calls" if calls and reason == "stop" else reason, raw=raw, dialect=FAMILY)


def encode_finish(finish: Finish, where: str, losses: Losses) -> JSONObject:
    """Return the field that says why an answer ended; our own word returns unchanged, or not at all."""
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
    said, generated = reader.count("prompt_eval_count"), reader.count("eval_count")
    return None if said is None and generated is None else Usage(input_tokens=said, output_tokens=generated)


def encode_usage(usage: Usage, losses: Losses) -> JSONObject:
    """Return the counts; counts that are not set are left out."""
    where = "$.usage"
    own_fields(usage.extra, where, losses, FAMILY)
    for name in _UNCOUNTED:
        if getattr(usage, name) is not None:
            losses.dropped(where, name, "there is no field for it")
    if usage.estimated:
        losses.dropped(where, "estimated", "there is no field for it")
    counts = {key: getattr(usage, name) for name, key in _COUNTED.items()}
    return {key: count for key, count in counts.items() if count is not None}
