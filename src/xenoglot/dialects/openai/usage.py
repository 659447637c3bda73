"""Encodes and decodes usage, under the field names that servers use.

These dialects count cached tokens inside `prompt_tokens` and reasoning inside `completion_tokens`, as the model does. A
server that leaves reasoning out (xAI, Gemini) gives itself away by a total that is only right with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeGuard

from xenoglot.codec.fields import Fields, by_hand
from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader, leave, left
from xenoglot.model.content import Extra
from xenoglot.model.response import Usage
from xenoglot.shortcuts import shortcut

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSON, JSONObject

_NAMES = {
    "input": ("prompt_tokens", "input_tokens", "prompt_eval_count"),
    "output": ("completion_tokens", "output_tokens", "eval_count"),
    "cache_read": ("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens"),
    "cache_write": ("cache_write_tokens", "cache_creation_input_tokens"),
    "reasoning": ("reasoning_tokens",),
}
"""Each count by the names it has at the top level, the standard one first; details have their own objects."""

_PROMPT, _COMPLETION = "prompt_tokens_details", "completion_tokens_details"

_TOOLS, _SEARCHES, _QUERIES = "server_tool_use", "web_search_requests", "num_search_queries"
"""How OpenRouter reports the searches of an answer, and how Perplexity does."""

_DETAILS: dict[str, dict[str, str]] = {
    _PROMPT: {"cached_tokens": "cache_read", "cache_write_tokens": "cache_write", "audio_tokens": "input_audio"},
    _COMPLETION: {"reasoning_tokens": "reasoning", "audio_tokens": "output_audio"},
}
"""The standard names of details, and ours."""

USAGE: Final = Fields(
    Usage,
    "$.usage",
    (
        by_hand("input_tokens", *_NAMES["input"], values="count"),
        by_hand("cache_read", f"{_PROMPT}.cached_tokens", *_NAMES["cache_read"], values="count"),
        by_hand("cache_write", f"{_PROMPT}.cache_write_tokens", *_NAMES["cache_write"], values="count"),
        by_hand("input_audio", f"{_PROMPT}.audio_tokens", values="count"),
        by_hand("output_tokens", *_NAMES["output"], values="count"),
        by_hand("reasoning", f"{_COMPLETION}.reasoning_tokens", *_NAMES["reasoning"], values="count"),
        by_hand("output_audio", f"{_COMPLETION}.audio_tokens", values="count"),
        by_hand("total", "total_tokens", values="count"),
        by_hand("web_searches", f"{_TOOLS}.{_SEARCHES}", _QUERIES, values="count"),
    ),
    neutral={"cache_write_1h": 0, "page_fetches": 0},
)

_NO_DETAILS = frozenset({"prompt_tokens", "completion_tokens", "total_tokens"})
_STANDARD = _NO_DETAILS | _DETAILS.keys()
_USUAL = 2**53
"""Counts below this are counts beyond doubt."""


def decode_usage(value: JSON, path: str, dialect: str) -> Usage | None:
    """Return the counts of a `usage` object; what is no count stays in its rest. No object gives no usage."""
    if not isinstance(value, dict):
        return None
    return _plain_usage(value, dialect) or _decode_usage(value, path, dialect)


@shortcut("messages")
def _plain_usage(value: JSONObject, dialect: str) -> Usage | None:
    """Return the counts under their standard names where there are no others and they agree; else `None`."""
    if not _STANDARD.issuperset(value):
        return None
    given, made, total = value.get("prompt_tokens"), value.get("completion_tokens"), value.get("total_tokens")
    if not (_is_count(given) and _is_count(made) and type(total) is int and total == given + made):
        return None
    if _NO_DETAILS.issuperset(value) and None not in value.values():
        return Usage(input_tokens=given, output_tokens=made)
    counts: dict[str, int] = {}
    fields: JSONObject = {key: None for key in value if value[key] is None}
    form: JSONObject = {}
    for key, names in _DETAILS.items():
        inner = value.get(key)
        if inner is None:
            continue
        if type(inner) is not dict or not _take_details(key, inner, names, counts, fields, form):
            return None
    return Usage(
        input_tokens=given,
        output_tokens=made,
        cache_read=counts.get("cache_read"),
        cache_write=counts.get("cache_write"),
        reasoning=counts.get("reasoning"),
        input_audio=counts.get("input_audio"),
        output_audio=counts.get("output_audio"),
        extra=Extra(dialect=dialect, fields=fields, form=form) if fields or form else None,
    )


def _take_details(  # noqa: PLR0913, PLR0917  where each goes
    key: str,
    inner: JSONObject,
    names: Mapping[str, str],
    counts: dict[str, int],
    fields: JSONObject,
    form: JSONObject,
) -> bool:
    """Take the counts of `inner`, as `leave` does the other fields; return whether they are no doubt counts."""
    rest: JSONObject = {}
    nulls: JSONObject = {}
    for name, count in inner.items():
        if count is None:
            nulls[name] = None
        elif name not in names:
            rest[name] = count
        elif _is_count(count):
            counts[names[name]] = count
        else:
            return False
    if rest:
        fields[key] = rest
    form[key] = nulls or True
    return True


def _is_count(value: JSON) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < _USUAL


def _decode_usage(value: JSONObject, path: str, dialect: str) -> Usage:
    reader = Reader(value, path)
    form: JSONObject = {}
    prompt, completion = _details(reader, _PROMPT), _details(reader, _COMPLETION)
    read, write = prompt.count("cached_tokens"), prompt.count("cache_write_tokens")
    input_audio, output_audio = prompt.count("audio_tokens"), completion.count("audio_tokens")
    reasoning = completion.count("reasoning_tokens")
    form |= {
        key: leave(reader, key, inner)
        for key, inner in ((_PROMPT, prompt), (_COMPLETION, completion))
        if type(value.get(key)) is dict
    }
    input_tokens, output_tokens = _first(reader, "input", form), _first(reader, "output", form)
    read = _first(reader, "cache_read", form) if read is None else read
    write = _first(reader, "cache_write", form) if write is None else write
    reasoning = _first(reader, "reasoning", form) if reasoning is None else reasoning
    total = reader.count("total_tokens")
    if total is None:
        form["total"] = "absent"
    elif input_tokens is not None and output_tokens is not None:
        if reasoning and total == input_tokens + output_tokens + reasoning:
            output_tokens += reasoning
            form["output_without_reasoning"] = True
        total = None if total == input_tokens + output_tokens else total
    return Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cache_read=read,
        cache_write=write,
        reasoning=reasoning,
        input_audio=input_audio,
        output_audio=output_audio,
        total=total,
        web_searches=_take_searches(reader, form),
        extra=_extra(reader, form, dialect),
    )


def _take_searches(reader: Reader, form: JSONObject) -> int | None:
    tools = reader.peek(_TOOLS)
    searches = Reader(tools).count(_SEARCHES) if isinstance(tools, dict) else None
    if searches is None:
        queries = reader.count(_QUERIES)
        if queries is not None:
            form["web_searches"] = _QUERIES
        return queries
    inner = Reader(reader.take(_TOOLS, dict), reader.at(_TOOLS))
    form[_TOOLS] = leave(reader, _TOOLS, inner) if inner.take(_SEARCHES, int) is not None else None
    return searches


def encode_usage(usage: Usage, losses: Losses, dialect: str) -> JSONObject:
    """Return the `usage` object; counts that are not set are left out."""
    where = "$.usage"
    form, own = form_of(usage.extra, dialect), dict(losses.carry(usage.extra, where, dialect))
    USAGE.note_unsupported(usage, losses)
    output = usage.output_tokens
    if "output_without_reasoning" in form and output is not None:
        output -= usage.reasoning or 0
    prompt = {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write}
    prompt["audio_tokens"] = usage.input_audio
    completion = {"reasoning_tokens": usage.reasoning, "audio_tokens": usage.output_audio}
    fields: JSONObject = {}
    for key, count in (("input", usage.input_tokens), ("output", output)):
        if count is not None:
            fields[form.get(key, _NAMES[key][0])] = count
    for key, name, details in (
        ("cache_read", "cached_tokens", prompt),
        ("cache_write", "cache_write_tokens", prompt),
        ("reasoning", "reasoning_tokens", completion),
    ):
        if key in form and (count := details.pop(name)) is not None:
            fields[form[key]] = count
    fields |= _total(usage, form)
    for key, details in ((_PROMPT, prompt), (_COMPLETION, completion)):
        counts = {name: count for name, count in details.items() if count is not None}
        if counts or key in form:
            fields[key] = {**counts, **left(own, form, key)}
    if usage.web_searches is not None:
        fields |= _searches(usage.web_searches, own, form)
    return {**fields, **own}


def _searches(searches: int, own: JSONObject, form: JSONObject) -> JSONObject:
    if "web_searches" in form:
        return {_QUERIES: searches}
    return {_TOOLS: {_SEARCHES: searches, **left(own, form, _TOOLS)}}


def _details(reader: Reader, key: str) -> Reader:
    value = reader.take_if(key, dict)
    return Reader({} if value is None else value, reader.at(key))


def _first(reader: Reader, key: str, form: JSONObject) -> int | None:
    """Take a count under the first of its names that exists; another than the standard one is noted."""
    names = _NAMES[key]
    for name in names:
        count = reader.count(name)
        if count is not None:
            if name != names[0] or key in ("cache_read", "cache_write", "reasoning"):
                form[key] = name
            return count
    return None


def _total(usage: Usage, form: JSONObject) -> JSONObject:
    if usage.total is not None:
        return {"total_tokens": usage.total}
    if form.get("total") == "absent" or usage.input_tokens is None or usage.output_tokens is None:
        return {}
    return {"total_tokens": usage.input_tokens + usage.output_tokens}


def _extra(reader: Reader, form: JSONObject, dialect: str) -> Extra | None:
    return reader.extra(dialect, **{key: value for key, value in form.items() if value})
