"""Encodes and decodes tool calls in messages."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from xenoglot.codec.json.json_io import decode_json, to_text
from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader, leave, left, need_object
from xenoglot.dialects.chat.extras import NAME, extra_of, own_fields
from xenoglot.errors import WireError
from xenoglot.model.content import Opaque, ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSON, JSONObject

NO_ARGUMENTS = "{}"
"""What a client reads where a call has no arguments: it will parse them (pitfall-94)."""

_BODIES = {"function": "arguments", "custom": "input"}
"""The kinds of calls, and where each keeps what the model wrote."""


def derived_id(scope: str, position: int) -> str:
    """Return the id of a call that came without one: the same for the same answer and position."""
    digest = sha256(f"{scope}:{position}".encode("utf-8", "surrogatepass")).hexdigest()
    return f"call_{digest[:24]}"


def decode_call(item: JSON, path: str, fallback_id: Callable[[], str] | None) -> ToolCall | Opaque:
    """Return one of `tool_calls`; where its id is missing it is what `fallback_id` gives.

    Raises:
        WireError: it is no object, or lacks a name, or an id for which there is no fallback.
    """
    reader = Reader(item, path)
    kind = reader.peek("type")
    if kind is None or kind == "":
        kind = "function"
    if not isinstance(kind, str) or kind not in _BODIES:
        return Opaque(dialect=NAME, data={"tool_calls": [item]})
    typed = reader.take_word("type", _BODIES) is not None
    call_id = reader.take("id", str)
    if not call_id and fallback_id is not None:
        reader.rest().pop("id", None)
        call_id = fallback_id()
    if call_id is None:
        raise WireError(reader.at("id"), "required, expected str")
    inner = need_object(reader, kind)
    name = inner.need("name", str)
    arguments, spelled = take_arguments(inner, _BODIES[kind])
    nulls = leave(reader, kind, inner)
    form = {
        "untyped": not typed and "type" not in item,
        "index": {"index": reader.take_any("index")} if type(reader.peek("index")) is int else None,
        "arguments": spelled,
        kind: None if nulls is True else nulls,
    }
    return ToolCall(
        id=call_id,
        name=name,
        arguments=arguments,
        kind="custom" if kind == "custom" else "function",
        extra=extra_of(reader, form),
    )


def take_arguments(reader: Reader, key: str) -> tuple[str, str | None]:
    """Take arguments as text, and how they were spelled where that is unusual: `object` (Ollama does), `absent`."""
    value = reader.peek(key)
    if isinstance(value, dict):
        reader.take(key, dict)
        return to_text(value), "object"
    text = reader.take(key, str)
    return ("", "absent") if text is None else (text, None)


def decode_function_call(reader: Reader, call_id: str) -> ToolCall:
    """Return the call in a deprecated `function_call`, under an id of our own."""
    name = reader.need("name", str)
    arguments, spelled = take_arguments(reader, "arguments")
    return ToolCall(
        id=call_id,
        name=name,
        arguments=arguments,
        extra=extra_of(reader, {"legacy": True, "arguments": spelled}),
    )


def encode_call(call: ToolCall, call_id: str, name: str, where: str, losses: Losses) -> JSONObject:
    """Return one of `tool_calls`."""
    form, own = form_of(call.extra, NAME), own_fields(call.extra, where, losses)
    inner = {"name": name, **_arguments(call, form), **left(own, form, call.kind)}
    kind = {} if "untyped" in form else {"type": call.kind}
    if call.namespace is not None and name == call.name:
        losses.dropped(where, "namespace", "the client's tools have none")
    return {"id": call_id, **kind, call.kind: inner, **form.get("index", {}), **own}


def encode_function_call(call: ToolCall, name: str, where: str, losses: Losses) -> JSONObject:
    """Return the call as a deprecated `function_call`."""
    form, own = form_of(call.extra, NAME), own_fields(call.extra, where, losses)
    if "legacy" not in form:  # what stood beside a modern call has no place beside this one
        own = {}
    return {"name": name, **_arguments(call, form), **own}


def _arguments(call: ToolCall, form: JSONObject) -> JSONObject:
    key = _BODIES[call.kind]
    spelled = form.get("arguments")
    if spelled == "absent" and not call.arguments:
        return {}
    if spelled == "object":
        return {key: decode_json(call.arguments)}
    return {key: call.arguments}
