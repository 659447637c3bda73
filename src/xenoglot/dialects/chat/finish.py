"""Maps finish reasons of this dialect to canonical ones and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.dialects.chat.extras import NAME
from xenoglot.model.response import Finish

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.codec.reader import Reader
    from xenoglot.model.json import JSONObject
    from xenoglot.model.response import FinishReason

REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "refusal",
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop_sequence",
    "max_tokens": "length",
    "model_length": "context",
    "tool_use": "tool_calls",
    "sensitive": "refusal",
}
"""The words of OpenAI (`Choice.finish_reason` in the SDK) first, then those of servers that have others."""

WORDS: dict[FinishReason, str] = {
    "stop": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "context": "length",
    "tool_calls": "tool_calls",
    "refusal": "content_filter",
    "pause": "stop",
    "compaction": "stop",
    "unknown": "stop",
}
_EXACT = frozenset({"stop", "stop_sequence", "length", "tool_calls", "refusal"})

STOPS = ("stop_reason", "matched_stop")
"""The field of a choice with the matched stop string: vLLM's field, and SGLang's."""


def take_stop(choice: Reader, form: JSONObject) -> str | None:
    """Take the matched stop string, if the server sends it."""
    for key in STOPS:
        stop = choice.take_if(key, str)
        if stop is not None:
            if key != STOPS[0]:
                form["stop"] = key
            return stop
    return None


def decode_finish(raw: str, stop: str | None, *, calls: bool, refused: bool) -> Finish:
    """Return the finish reason of an answer, given the stop string that was matched and what the answer holds.

    With tool calls, `stop` waits for their results (Ollama, Gemini and vLLM send that); with a refusal it is one.
    """
    reason = REASONS.get(raw, "unknown")
    if reason in ("stop", "stop_sequence"):
        if calls:
            reason = "tool_calls"
        elif stop is not None:
            reason = "stop_sequence"
        elif refused:
            reason = "refusal"
    return Finish(reason=reason, raw=raw, dialect=NAME, stop_sequence=stop)


def encode_finish(finish: Finish, where: str, losses: Losses, *, legacy: bool) -> JSONObject:
    """Return the finish fields of a choice.

    A word of another dialect without an exact equivalent stays readable in OpenRouter's `native_finish_reason`.
    """
    losses.carry(finish.extra, f"{where}.finish", NAME)
    own = finish.dialect == NAME and finish.raw is not None
    word = finish.raw if own else WORDS[finish.reason]
    fields: JSONObject = {"finish_reason": "function_call" if legacy and word == "tool_calls" else word}
    if own:
        return fields
    if finish.reason not in _EXACT:
        losses.approximated(where, "finish", f"`{finish.reason}` is written as `{word}`")
        if finish.raw is not None:
            fields["native_finish_reason"] = finish.raw
    return fields


def matched_stop(finish: Finish, form: JSONObject) -> JSONObject:
    """Return the field of a choice with the matched stop string (pitfall-70)."""
    return {} if finish.stop_sequence is None else {form.get("stop", STOPS[0]): finish.stop_sequence}
