"""Encodes and decodes usage: tokens of reasoning are apart from the output, those of tools apart from the input.

Source: `Usage` in `google/genai/_gaos/types/interactions/usage.py` of the official SDK. `total_input_tokens` includes
what was read from a cache; `total_tokens` is the sum of all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.fields import Fields, by_hand, count
from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader
from xenoglot.dialects.google.shared import with_said
from xenoglot.dialects.google.token_counts import TokenDetails, add_counts, whole_of
from xenoglot.dialects.interactions.extras import NAME, own_fields
from xenoglot.model.content import Extra
from xenoglot.model.response import Usage

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSON, JSONObject

WHERE: Final = "$.usage"

_TOOLS: Final = "grounding_tool_count"
_SEARCH: Final = "google_search"

USAGE: Final = Fields(
    Usage,
    WHERE,
    (
        by_hand("input_tokens", "total_input_tokens", "total_tool_use_tokens", values="count", note="their sum"),
        by_hand("output_tokens", "total_output_tokens", "total_thought_tokens", values="count", note="their sum"),
        by_hand("total", "total_tokens", values="count"),
        count("cache_read", "total_cached_tokens"),
        count("reasoning", "total_thought_tokens"),
        by_hand("input_audio", "input_tokens_by_modality", values="count of the modality `audio`"),
        by_hand("output_audio", "output_tokens_by_modality", values="count of the modality `audio`"),
        by_hand("web_searches", _TOOLS, values="count of the tool `google_search`"),
    ),
    neutral={"cache_write_1h": 0, "page_fetches": 0},
)

_DETAILS: Final = TokenDetails(
    fields=(
        "input_tokens_by_modality",
        "output_tokens_by_modality",
        "cached_tokens_by_modality",
        "tool_use_tokens_by_modality",
    ),
    text="text",
    audio="audio",
    count="tokens",
)


def decode_usage(value: JSON) -> Usage | None:
    """Return the counts in `value`; `None` if they are none."""
    if not isinstance(value, dict) or not value:
        return None
    reader = Reader(value, WHERE)
    form: JSONObject = {}
    given, tools = reader.count("total_input_tokens"), reader.count("total_tool_use_tokens")
    made, counts = reader.count("total_output_tokens"), USAGE.read(reader, form)
    total = reader.count("total_tokens")
    form |= with_said({}, tools=tools)
    form |= {key: "absent" for key, found in (("input", given), ("output", made), ("total", total)) if found is None}
    entered, written = add_counts(given, tools), add_counts(made, counts.get("reasoning"))
    if total is not None and None not in (entered, written) and total == add_counts(entered, written):
        total = None
    input_audio, output_audio = _DETAILS.take(reader, form)
    searches = _take_searches(reader, form) if _TOOLS in reader else None
    return Usage(
        input_tokens=entered,
        output_tokens=written,
        input_audio=input_audio,
        output_audio=output_audio,
        total=total,
        web_searches=searches,
        **counts,
        extra=Extra(dialect=NAME, fields=reader.rest(), form=form),  # always there: it stands for its snapshot alone
    )


def _take_searches(reader: Reader, form: JSONObject) -> int | None:
    """Take how often the server searched; counts of other tools stay."""
    listed = reader.peek(_TOOLS)
    found = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    ours = [item for item in found if item.get("type") == _SEARCH and item.keys() == {"type", "count"}]
    searches = Reader(ours[0]).count("count") if len(ours) == 1 else None
    if searches is None:
        return None
    form[_TOOLS] = reader.take(_TOOLS, list)
    others = [item for item in form[_TOOLS] if item is not ours[0]]
    if others:
        reader.rest()[_TOOLS] = others
    return searches


def encode_usage(usage: Usage, losses: Losses) -> JSONObject:
    """Return the counts in wire form, without those that are not set."""
    form, own = form_of(usage.extra, NAME), own_fields(usage.extra, WHERE, losses)
    given, made = usage.input_tokens, usage.output_tokens
    if given is not None:
        given = max(0, given - form.get("tools", 0))
    if made is not None:
        made = max(0, made - (usage.reasoning or 0))
    written = with_said(
        {},
        total_tokens=None if "total" in form else whole_of(usage),
        total_input_tokens=None if "input" in form else given,
        total_output_tokens=None if "output" in form else made,
        total_tool_use_tokens=form.get("tools"),
        **form.get("details", {}),
    )
    USAGE.write_plain(usage, written)
    if usage.extra is None or usage.extra.dialect != NAME:
        written.update(_DETAILS.write(usage))
    USAGE.note_unsupported(usage, losses)
    if usage.web_searches is not None:
        own[_TOOLS] = form.get(_TOOLS, [{"type": _SEARCH, "count": usage.web_searches}])
    return written | own
