"""Encodes and decodes the output format: `response_format`."""

from __future__ import annotations

from msgspec.structs import replace

from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader, leave, left
from xenoglot.codec.requests.encode_context import EncodeContext
from xenoglot.dialects.chat.extras import NAME, extra_of, own_fields
from xenoglot.dialects.openai.options import encode_format, take_format
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import OutputFormat


def take_output(reader: Reader, key: str, _form: JSONObject) -> OutputFormat | None:
    """Take `response_format`; a type that we do not know stays in the rest."""
    inner = Reader(reader.peek(key), reader.at(key))
    kind = inner.need("type", str)
    if kind not in ("text", "json_object", "json_schema"):
        return None
    reader.take(key, dict)
    if kind == "text":
        return OutputFormat(kind="text", extra=extra_of(inner, {}))
    if kind == "json_object":  # llama.cpp and Together take a schema beside it
        schema = inner.take("schema", dict)
        extra = extra_of(inner, {"json_object": schema is not None})
        return OutputFormat(kind="json" if schema is None else "json_schema", schema=schema, extra=extra)
    spec = Reader(inner.need("json_schema", dict), inner.at("json_schema"))
    output = take_format(spec)
    nulls = leave(inner, "json_schema", spec)
    return replace(output, extra=extra_of(inner, {"json_schema": nulls}))


def write_output(output: OutputFormat, _form: JSONObject, context: EncodeContext) -> JSON:
    """Return `response_format`."""
    form, own = form_of(output.extra, NAME), own_fields(output.extra, "$.output", context.losses)
    if output.kind == "text":
        return {"type": "text", **own}
    if output.kind == "json":
        return {"type": "json_object", **own}
    if form.get("json_object"):
        return {"type": "json_object", "schema": output.schema, **own}
    spec = encode_format(output, context)
    return {"type": "json_schema", "json_schema": {**spec, **left(own, form, "json_schema")}, **own}
