"""Rows of the options that requests of OpenAI's chat and responses dialects share: user, metadata, storage, cache."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from msgspec.structs import replace

from xenoglot.codec.fields import Field, Fields
from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader
from xenoglot.codec.requests.encode_context import EncodeContext
from xenoglot.codec.schemas import is_strict
from xenoglot.model.content import CacheMark, Extra
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import BUDGETS, Effort, OutputFormat

EFFORTS: Final[tuple[Effort, ...]] = ("none", *BUDGETS)

_USER_LIMIT: Final = 64
"""The longest `user`; a longer one is written as its SHA-256, which is just as opaque (pitfall-23)."""

_UNMARKED: Final = "the server decides what it caches"

_MODES: Final = ("implicit", "explicit")
"""Whether the server sets a cache breakpoint of its own, or caches up to the breakpoints of the request alone."""

CACHE_TTLS: Final = ("30m", "12h")
"""The lifetimes of a cache breakpoint (`PromptCacheOptions.ttl` in the SDK)."""

_SCHEMA_NAME: Final = "response"
"""The name of a schema that came without one: the dialects require it."""

_FORMAT: Final = Fields(
    OutputFormat,
    "$.output",
    (
        "kind",
        Field("name", "name"),
        Field("description", "description"),
        Field("schema", "schema", read=lambda reader, key, _form: reader.take_any(key), values="JSON Schema"),
        Field("strict", "strict", bool),
    ),
)


def options(dialect: str, user: str) -> tuple[Field, ...]:
    """Return the rows for `dialect`; `user` is its name for the id of the end user."""
    return (
        Field("metadata", "metadata", dict),
        Field("service_tier", "service_tier"),
        Field("store", "store", bool),
        Field("cache_key", "prompt_cache_key"),
        Field("cache_retention", "prompt_cache_retention", write=_write_retention),
        Field("moderation", "moderation", dict),
        Field(
            "user",
            ("safety_identifier", "user"),
            written=user,
            write=_write_user,
            note=f"longer than {_USER_LIMIT} characters: its SHA-256",
        ),
        _cache(dialect),
    )


def take_format(reader: Reader) -> OutputFormat:
    """Take a schema for the answer and its attributes."""
    return OutputFormat(kind="json_schema", **_FORMAT.read(reader, {}))


def encode_format(output: OutputFormat, context: EncodeContext) -> JSONObject:
    """Return a schema for the answer; one from elsewhere gets the name and the strictness that servers require."""
    if not context.home:
        strict = is_strict(output.schema) if output.strict is None else output.strict
        if output.strict is None and not strict:
            context.losses.approximated("$.output", "schema", "servers hold strictly to closed schemas alone")
        output = replace(output, name=output.name or _SCHEMA_NAME, strict=strict)
    spec: JSONObject = {}
    _FORMAT.write(output, spec, {}, context)
    return spec


def _write_user(user: str, _form: JSONObject, context: EncodeContext) -> str:
    if context.home or len(user) <= _USER_LIMIT:
        return user
    context.losses.approximated("$", "user", f"longer than {_USER_LIMIT} characters: its SHA-256 is written")
    return sha256(user.encode("utf-8", "surrogatepass")).hexdigest()


def _write_retention(retention: str, _form: JSONObject, context: EncodeContext) -> JSON:
    if context.home or context.target.cache_marks:
        return retention
    context.losses.dropped("$", "cache_retention", _UNMARKED)
    return None


def _cache(dialect: str) -> Field:
    """Return the row of `prompt_cache_options`: whether there is an implicit breakpoint, and how long all live.

    Source: `PromptCacheOptions` in `openai/types/chat/completion_create_params.py` of the SDK.
    """

    def read(reader: Reader, key: str, _form: JSONObject) -> CacheMark | None:
        value = reader.peek(key)
        if not isinstance(value, dict) or value.get("mode", _MODES[0]) not in _MODES:
            return None
        inner = Reader(reader.take(key, dict), reader.at(key))
        mode, ttl = inner.take("mode", str), inner.take("ttl", str)
        extra = Extra(dialect=dialect, fields=inner.rest(), form={"options": "bare" if mode is None else True})
        return CacheMark(ttl=ttl, explicit=mode == _MODES[1], extra=extra)

    def write(cache: CacheMark, _form: JSONObject, context: EncodeContext) -> JSON:
        own = context.losses.carry(cache.extra, "$.cache", dialect)
        form = form_of(cache.extra, dialect)
        if "options" not in form and not context.target.cache_marks:
            context.losses.dropped("$", "cache", _UNMARKED)
            return None
        mode = {} if form.get("options") == "bare" else {"mode": _MODES[cache.explicit]}
        return {**mode, **_ttl(cache, context, known="options" in form), **own}

    return Field("cache", "prompt_cache_options", read=read, write=write, values="object")


def _ttl(cache: CacheMark, context: EncodeContext, *, known: bool) -> JSONObject:
    if cache.ttl is None:
        return {}
    if known or cache.ttl in CACHE_TTLS:
        return {"ttl": cache.ttl}
    context.losses.approximated("$", "cache.ttl", "the server's default lifetime")
    return {}
