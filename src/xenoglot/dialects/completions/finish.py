"""Maps finish reasons of this dialect to canonical ones and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.dialects.completions.extras import NAME
from xenoglot.model.response import Finish

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.codec.reader import Reader
    from xenoglot.model.json import JSONObject
    from xenoglot.model.response import FinishReason

_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "refusal",
    "eos": "stop",
    "eos_token": "stop",
    "stop_sequence": "stop_sequence",
    "max_tokens": "length",
    "model_length": "context",
}
"""The words of OpenAI (`CompletionChoice.finish_reason` in the SDK) first, then those of servers that have others."""

_WORDS: dict[FinishReason, str] = {
    "stop": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "context": "length",
    "tool_calls": "stop",
    "refusal": "content_filter",
    "pause": "stop",
    "compaction": "stop",
    "unknown": "stop",
}
_EXACT = frozenset({"stop", "stop_sequence", "length", "refusal"})

_STOPS = ("stop_reason", "matched_stop")
"""The field of a choice with the matched stop string: vLLM's field, and SGLang's."""


def take_finish(choice: Reader, form: JSONObject) -> Finish | None:
    """Take the finish reason of a choice, with the matched stop string, if the server sends it."""
    if not choice.peek("finish_reason"):
        return None
    raw = choice.take_if("finish_reason", str)
    if raw is None:
        return None
    stop = _take_stop(choice, form)
    reason = _REASONS.get(raw, "unknown")
    if reason == "stop" and stop is not None:
        reason = "stop_sequence"
    return Finish(reason=reason, raw=raw, dialect=NAME, stop_sequence=stop)


def encode_finish(finish: Finish, form: JSONObject, where: str, losses: Losses, *, refused: bool) -> JSONObject:
    """Return the finish fields of a choice; words that are `refused` look like any others else."""
    losses.carry(finish.extra, f"{where}.finish", NAME)
    own = finish.dialect == NAME and finish.raw is not None
    reason = "refusal" if refused and finish.reason == "stop" else finish.reason
    fields: JSONObject = {"finish_reason": finish.raw if own else _WORDS[reason]}
    if finish.stop_sequence is not None:
        fields[form.get("stop", _STOPS[0])] = finish.stop_sequence
    if own:
        return fields
    if finish.reason not in _EXACT:
        losses.approximated(f"{where}.finish", "reason", f"`{finish.reason}` is written as `{fields['finish_reason']}`")
        if finish.raw is not None:
            fields["native_finish_reason"] = finish.raw  # OpenRouter's field
    if finish.explanation is not None:
        losses.dropped(f"{where}.finish", "explanation", "there is no field for it")
    return fields


def _take_stop(choice: Reader, form: JSONObject) -> str | None:
    for key in _STOPS:
        stop = choice.take_if(key, str)
        if stop is not None:
            if key != _STOPS[0]:
                form["stop"] = key
            return stop
    return None
