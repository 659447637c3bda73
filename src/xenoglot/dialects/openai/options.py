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
    """Take a schema for the answer and what is said of it."""
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


def _cache(dialect: str) -> Field:
    """Return the row of `prompt_cache_options`, as far as it requests the implicit breakpoint."""

    def read(reader: Reader, key: str, _form: JSONObject) -> CacheMark | None:
        value = reader.peek(key)
        if not isinstance(value, dict) or value.get("mode") != "implicit":
            return None
        inner = Reader(reader.take(key, dict), reader.at(key))
        inner.take("mode", str)
        ttl = inner.take("ttl", str)
        return CacheMark(ttl=ttl, extra=Extra(dialect=dialect, fields=inner.rest(), form={"options": True}))

    def write(cache: CacheMark, _form: JSONObject, context: EncodeContext) -> JSON:
        own = context.losses.carry(cache.extra, "$.cache", dialect)
        if "options" not in form_of(cache.extra, dialect):
            context.losses.dropped("$", "cache", "the server decides what it caches")
            return None
        return {"mode": "implicit", **({} if cache.ttl is None else {"ttl": cache.ttl}), **own}

    return Field("cache", "prompt_cache_options", read=read, write=write, values="object with `mode` `implicit`")
