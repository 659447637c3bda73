"""Encodes and decodes usage: reasoning tokens are apart from candidates, tool prompts apart from the prompt.

Source: `UsageMetadata` (https://ai.google.dev/api/generate-content#UsageMetadata). `promptTokenCount` includes what was
read from a cache; `totalTokenCount` is the sum of all. A count that is missing beside that of the prompt is zero: JSON
for protocol buffers leaves zeros out (https://protobuf.dev/programming-guides/json/).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.fields import Fields, by_hand, count
from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader
from xenoglot.dialects.gemini.extras import NAME, with_rest, with_said
from xenoglot.model.content import Extra
from xenoglot.model.response import Usage

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSON, JSONObject

WHERE = "$.usage"

USAGE: Final = Fields(
    Usage,
    WHERE,
    (
        by_hand("input_tokens", "promptTokenCount", "toolUsePromptTokenCount", values="count", note="their sum"),
        by_hand("output_tokens", "candidatesTokenCount", "thoughtsTokenCount", values="count", note="their sum"),
        by_hand("total", "totalTokenCount", values="count"),
        count("cache_read", "cachedContentTokenCount"),
        count("reasoning", "thoughtsTokenCount"),
        by_hand("input_audio", "promptTokensDetails", values="count of the modality `AUDIO`"),
        by_hand("output_audio", "candidatesTokensDetails", values="count of the modality `AUDIO`"),
    ),
)

_DETAILS = (
    "promptTokensDetails",
    "candidatesTokensDetails",
    "cacheTokensDetails",
    "toolUsePromptTokensDetails",
    "thoughtsTokensDetails",
)
_UNDERSTOOD = frozenset({"TEXT", "AUDIO"})
"""Modalities of which nothing is lost where the details are: the rest of a count is text."""


def decode_usage(value: JSON, path: str = WHERE) -> Usage | None:
    """Return the counts in `value`; `None` if they are none."""
    if not isinstance(value, dict):
        return None
    reader = Reader(value, path)
    form: JSONObject = {}
    prompt, tools = reader.count("promptTokenCount"), reader.count("toolUsePromptTokenCount")
    candidates, counts = reader.count("candidatesTokenCount"), USAGE.read(reader, form)
    total = reader.count("totalTokenCount")
    if tools is not None:
        form["tools"] = tools
    if prompt is None and tools is not None:
        form["prompt"] = "absent"
    if candidates is None:
        candidates, form["candidates"] = None if prompt is None else 0, "absent"
    entered, made = _sum(prompt, tools), _sum(candidates, counts.get("reasoning"))
    if total is None:
        form["total"] = "absent"
    elif None not in (entered, made) and total == _sum(entered, made):
        total = None
    audio = [_audio(reader.peek(key)) for key in ("promptTokensDetails", "candidatesTokensDetails")]
    for key in _DETAILS:
        if _modalities(reader.peek(key)) <= _UNDERSTOOD and isinstance(reader.peek(key), list):
            form.setdefault("details", {})[key] = reader.take(key, list)
    return Usage(
        input_tokens=entered,
        output_tokens=made,
        input_audio=audio[0],
        output_audio=audio[1],
        total=total,
        **counts,
        extra=Extra(dialect=NAME, fields=reader.rest(), form=form),  # always there: it stands for its snapshot alone
    )


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None and other is None else (one or 0) + (other or 0)


def _modalities(details: JSON) -> set[JSON]:
    if not isinstance(details, list):
        return set()
    return {str(item.get("modality")) if isinstance(item, dict) else "" for item in details}


def _audio(details: JSON) -> int | None:
    for item in details if isinstance(details, list) else ():
        if isinstance(item, dict) and item.get("modality") == "AUDIO":
            return Reader(item).count("tokenCount")
    return None


def encode_usage(usage: Usage, losses: Losses) -> JSONObject:
    """Return the counts in wire form, without those that are not set."""
    form = form_of(usage.extra, NAME)
    prompt, candidates, total = usage.input_tokens, usage.output_tokens, usage.total
    if prompt is not None:
        prompt -= form.get("tools", 0)
    if candidates is not None:
        candidates = max(0, candidates - (usage.reasoning or 0))
    if total is None and usage.input_tokens is not None and usage.output_tokens is not None:
        total = usage.input_tokens + usage.output_tokens
    own = with_said(
        {},
        promptTokenCount=None if "prompt" in form else prompt,
        candidatesTokenCount=None if "candidates" in form else candidates,
        totalTokenCount=None if "total" in form else total,
        toolUsePromptTokenCount=form.get("tools"),
        **form.get("details", {}),
    )
    USAGE.write_plain(usage, own)
    for key, audio in (("promptTokensDetails", usage.input_audio), ("candidatesTokensDetails", usage.output_audio)):
        if audio is not None and (usage.extra is None or usage.extra.dialect != NAME):
            own[key] = [{"modality": "AUDIO", "tokenCount": audio}]
    USAGE.note_unsupported(usage, losses)
    return with_rest(own, usage.extra, WHERE, losses)
