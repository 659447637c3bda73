"""Encodes and decodes usage: reasoning tokens are apart from candidates, tool prompts apart from the prompt.

Source: `UsageMetadata` (https://ai.google.dev/api/generate-content#UsageMetadata). `promptTokenCount` includes what was
read from a cache; `totalTokenCount` is the sum of all. A count that is missing next to that of the prompt is zero: JSON
for protocol buffers leaves zeros out (https://protobuf.dev/programming-guides/json/).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.fields import Fields, by_hand, count
from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader
from xenoglot.dialects.gemini.extras import NAME, with_rest
from xenoglot.dialects.google.shared import with_said
from xenoglot.dialects.google.token_counts import TokenDetails, add_counts, whole_of
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
    neutral={"cache_write_1h": 0, "web_searches": 0, "page_fetches": 0},
)

_DETAILS: Final = TokenDetails(
    fields=(
        "promptTokensDetails",
        "candidatesTokensDetails",
        "cacheTokensDetails",
        "toolUsePromptTokensDetails",
        "thoughtsTokensDetails",
    ),
    text="TEXT",
    audio="AUDIO",
    count="tokenCount",
)


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
    entered, made = add_counts(prompt, tools), add_counts(candidates, counts.get("reasoning"))
    if total is None:
        form["total"] = "absent"
    elif None not in (entered, made) and total == add_counts(entered, made):
        total = None
    input_audio, output_audio = _DETAILS.take(reader, form)
    return Usage(
        input_tokens=entered,
        output_tokens=made,
        input_audio=input_audio,
        output_audio=output_audio,
        total=total,
        **counts,
        extra=Extra(dialect=NAME, fields=reader.rest(), form=form),  # always there: it stands for its snapshot alone
    )


def encode_usage(usage: Usage, losses: Losses) -> JSONObject:
    """Return the counts in wire form, without those that are not set."""
    form = form_of(usage.extra, NAME)
    prompt, candidates = usage.input_tokens, usage.output_tokens
    if prompt is not None:
        prompt = max(0, prompt - form.get("tools", 0))
    if candidates is not None:
        candidates = max(0, candidates - (usage.reasoning or 0))
    own = with_said(
        {},
        promptTokenCount=None if "prompt" in form else prompt,
        candidatesTokenCount=None if "candidates" in form else candidates,
        totalTokenCount=None if "total" in form else whole_of(usage),
        toolUsePromptTokenCount=form.get("tools"),
        **form.get("details", {}),
    )
    USAGE.write_plain(usage, own)
    if usage.extra is None or usage.extra.dialect != NAME:
        own.update(_DETAILS.write(usage))
    USAGE.note_unsupported(usage, losses)
    return with_rest(own, usage.extra, WHERE, losses)
