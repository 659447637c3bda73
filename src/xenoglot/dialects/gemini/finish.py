"""Maps finish reasons of this dialect to canonical ones and back.

Source: `FinishReason` and `BlockReason` (https://ai.google.dev/api/generate-content#FinishReason).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.dialects.gemini.extras import NAME, with_rest
from xenoglot.dialects.google.shared import with_said
from xenoglot.model.content import Extra, Refusal
from xenoglot.model.response import Finish

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.reader import Reader
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSONObject
    from xenoglot.model.response import FinishReason

REASONS: dict[str, FinishReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "refusal",
    "RECITATION": "refusal",
    "LANGUAGE": "refusal",
    "BLOCKLIST": "refusal",
    "PROHIBITED_CONTENT": "refusal",
    "SPII": "refusal",
    "IMAGE_SAFETY": "refusal",
    "IMAGE_PROHIBITED_CONTENT": "refusal",
    "IMAGE_RECITATION": "refusal",
    "MODEL_ARMOR": "refusal",
    "CONTINUATION": "pause",
}
"""Any other word is carried as it is: `OTHER`, `MALFORMED_FUNCTION_CALL`, `UNEXPECTED_TOOL_CALL`, `NO_IMAGE`, ..."""

WORDS: dict[FinishReason, str] = {
    "stop": "STOP",
    "stop_sequence": "STOP",
    "length": "MAX_TOKENS",
    "context": "MAX_TOKENS",
    "tool_calls": "STOP",
    "refusal": "SAFETY",
    "pause": "OTHER",
    "compaction": "OTHER",
    "unknown": "OTHER",
}
_EXACT = frozenset({"stop", "length", "tool_calls", "refusal", "unknown"})


def take_finish(reader: Reader, *, calls: bool) -> Finish | None:
    """Take why a candidate ended, or return `None` if it has not; after calls, `STOP` waits for their results.

    `finishMessage` explains a refusal. Servers send it with other reasons too (`Model generated function call(s).`
    with `STOP`); there it is a note that only this dialect has a field for.
    """
    raw = reader.take_if("finishReason", str)
    if not raw:
        return None
    reason = REASONS.get(raw, "unknown")
    if reason == "stop" and calls:
        reason = "tool_calls"
    message = reader.take_if("finishMessage", str)
    if reason == "refusal":
        return Finish(reason=reason, raw=raw, dialect=NAME, explanation=message)
    extra = None if message is None else Extra(dialect=NAME, fields={"finishMessage": message})
    return Finish(reason=reason, raw=raw, dialect=NAME, extra=extra)


def encode_finish(finish: Finish, parts: Iterable[Part], where: str, losses: Losses) -> JSONObject:
    """Return the finish fields of a candidate."""
    own = finish.dialect == NAME and finish.raw is not None
    word = finish.raw if own else WORDS[finish.reason]
    if not own:
        if finish.assumed and finish.reason == "unknown":
            word = WORDS["stop"]  # the words are whole, and clients retry or raise at `OTHER`
        if finish.reason == "stop" and any(isinstance(part, Refusal) for part in parts):
            word = WORDS["refusal"]
        if finish.reason not in _EXACT:
            losses.approximated(where, "finish", f"`{finish.reason}` is written as `{word}`")
        if finish.stop_sequence is not None:
            losses.dropped(where, "stop_sequence", "the dialect does not report the matched stop string")
    fields: JSONObject = with_said({"finishReason": word}, finishMessage=finish.explanation)
    return with_rest(fields, finish.extra, where, losses)
