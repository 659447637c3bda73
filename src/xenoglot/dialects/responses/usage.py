"""Encodes and decodes usage.

The wire counts cached tokens inside `input_tokens` and reasoning inside `output_tokens`, as the model does; it requires
every count (`openai/types/responses/response_usage.py`, pitfall-80).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.codec.fields import Fields, by_hand
from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader, leave, left
from xenoglot.dialects.responses.extras import NAME, extra_of, own_fields
from xenoglot.model.content import Extra
from xenoglot.model.response import Usage

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSON, JSONObject

WHERE = "$.usage"

_INPUT, _OUTPUT = "input_tokens_details", "output_tokens_details"
_DETAILS = {
    _INPUT: ("cached_tokens", "cache_write_tokens"),
    _OUTPUT: ("reasoning_tokens",),
}
"""The counts that stand in objects of their own."""


USAGE: Final = Fields(
    Usage,
    WHERE,
    (
        by_hand("input_tokens", "input_tokens", values="count"),
        by_hand("cache_read", f"{_INPUT}.cached_tokens", values="count"),
        by_hand("cache_write", f"{_INPUT}.cache_write_tokens", values="count"),
        by_hand("output_tokens", "output_tokens", values="count"),
        by_hand("reasoning", f"{_OUTPUT}.reasoning_tokens", values="count"),
        by_hand("total", "total_tokens", values="count"),
        by_hand("web_searches", values="count", note="`tool_usage` of the answer"),
    ),
    neutral={"cache_write_1h": 0, "page_fetches": 0},
)

TOOLS: Final = "tool_usage"
_WEB: Final = "web_search"
_SEARCHES: Final = "num_requests"
_NO_IMAGES: Final[JSONObject] = {
    "input_tokens": 0,
    "input_tokens_details": {"image_tokens": 0, "text_tokens": 0},
    "output_tokens": 0,
    "total_tokens": 0,
}
"""What hosted tools used is next to `usage`: `ToolUsage` in `openai/types/responses/response.py`."""


def decode_usage(value: JSON, path: str) -> Usage | None:
    """Return the counts of a `usage` object; what is no count stays in its rest. No object gives no usage."""
    if not isinstance(value, dict):
        return None
    reader = Reader(value, path)
    form: JSONObject = {}
    inner = {key: _details(reader, key) for key in _DETAILS}
    counts = {name: inner[key].count(name) for key, names in _DETAILS.items() for name in names}
    for key, details in inner.items():
        if type(value.get(key)) is dict:
            form[key] = leave(reader, key, details)
    counts |= {name: reader.count(name) for name in ("input_tokens", "output_tokens", "total_tokens")}
    form["absent"] = [name for name, count in counts.items() if count is None]
    total, sides = counts["total_tokens"], (counts["input_tokens"], counts["output_tokens"])
    if total is not None and None not in sides and total == sum(side or 0 for side in sides):
        total = None
    if form["absent"] in ([], ["cache_write_tokens"]) and form[_INPUT] is True and form[_OUTPUT] is True:
        form = {"absent": form["absent"]}  # the usual spelling
    return Usage(
        input_tokens=counts["input_tokens"],
        output_tokens=counts["output_tokens"],
        cache_read=counts["cached_tokens"],
        cache_write=counts["cache_write_tokens"],
        reasoning=counts["reasoning_tokens"],
        total=total,
        extra=extra_of(reader, form),
    )


def take_tool_usage(reader: Reader, usage: Usage) -> Usage:
    """Return `usage` with the searches of an answer, which are taken; other tools stay, unless they used nothing."""
    tools = reader.peek(TOOLS)
    if not isinstance(tools, dict):
        return usage
    web = tools.get(_WEB)
    searches = Reader(web).count(_SEARCHES) if isinstance(web, dict) and [*web] == [_SEARCHES] else None
    if searches is None:
        return usage
    reader.take(TOOLS, dict)
    others: JSONObject = {key: value for key, value in tools.items() if key != _WEB}
    extra = usage.extra or Extra(dialect=NAME)
    if _is_unused(others):
        extra = replace(extra, form={**extra.form, TOOLS: others})
    else:
        reader.rest()[TOOLS] = others
    return replace(usage, web_searches=searches, extra=extra)


def _is_unused(value: JSON) -> bool:
    """Whether all counts are zero."""
    if isinstance(value, dict):
        return all(map(_is_unused, value.values()))
    return value is None or (type(value) is int and value == 0)


def encode_tool_usage(usage: Usage | None, others: JSON) -> JSONObject:
    """Return the field of what hosted tools used, where that is known; `others` are tools that are no searches."""
    if usage is None or usage.web_searches is None:
        return {}
    known = form_of(usage.extra, NAME).get(TOOLS) if usage.extra is not None and usage.extra.dialect == NAME else None
    if not isinstance(others, dict):
        others = {"image_gen": _NO_IMAGES} if known is None else known
    return {TOOLS: {_WEB: {_SEARCHES: usage.web_searches}, **others}}


def encode_usage(usage: Usage, losses: Losses) -> JSONObject:
    """Return the `usage` object. A missing count is 0, because clients compute with it, and that is a loss."""
    form, own = form_of(usage.extra, NAME), own_fields(usage.extra, WHERE, losses)
    USAGE.note_unsupported(usage, losses)
    absent = form.get("absent", ())
    total = usage.total
    if total is None:
        total = (usage.input_tokens or 0) + (usage.output_tokens or 0)
    counts = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cache_read,
        "cache_write_tokens": usage.cache_write,
        "reasoning_tokens": usage.reasoning,
    }
    told: JSONObject = {"total_tokens": total}
    for name, count in counts.items():
        if count is None and name not in absent:
            losses.approximated(WHERE, name, "not reported, and the dialect requires a number: 0")
        told[name] = count or 0
    told = {name: count for name, count in told.items() if name not in absent}
    own_details = {key: left(own, form, key) for key in _DETAILS if isinstance(own.get(key, {}), dict)}
    fields: JSONObject = {name: count for name, count in told.items() if name not in _INNER}
    for key, names in _DETAILS.items():
        details = {name: told[name] for name in names if name in told}
        if details or key in form or not form:
            fields[key] = {**details, **own_details.get(key, {})}
    return {**fields, **own}


_INNER = frozenset(name for names in _DETAILS.values() for name in names)


def _details(reader: Reader, key: str) -> Reader:
    value = reader.take_if(key, dict)
    return Reader({} if value is None else value, reader.at(key))
