"""Encodes and decodes tool calls.

The wire is between two spellings: `arguments` is an object, to become the text that `arguments_json` holds as well
(`ToolCall` in `llama_stack/models/llama/datatypes.py`). Its object nests one level only; what nests deeper, or is no
object at all, is written as text in both places, which the type allows.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from xenoglot.codec.json.json_io import decode_json, to_text
from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader
from xenoglot.codec.requests.custom_tools import WRAPPED
from xenoglot.dialects.llama_stack.extras import NAME, own_fields
from xenoglot.errors import WireError
from xenoglot.model.content import ToolCall

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSON, JSONObject

_ARGUMENTS = ("arguments", "arguments_json")


def derived_id(position: int, name: str, arguments: str) -> str:
    """Return the id of a call that came without one: the same for the same call at the same position."""
    digest = sha256(f"{position}:{name}:{arguments}".encode("utf-8", "surrogatepass")).hexdigest()
    return f"call_{digest[:24]}"


def decode_call(item: JSON, path: str, position: int | None = None) -> ToolCall:
    """Return one call; where it has no id and stands in an answer, at `position`, the id is derived.

    Raises:
        WireError: it lacks a name, or an id that its result could name; or its arguments are of a wrong type.
    """
    reader = Reader(item, path)
    call_id = reader.take("call_id", str)
    name = reader.need("tool_name", str)
    wire = {key: item[key] for key in _ARGUMENTS if isinstance(item.get(key), str | dict)}
    if not isinstance(reader.peek("arguments"), dict):
        reader.take("arguments", str)
    reader.take_if("arguments", dict)
    reader.take_if("arguments_json", str)
    text = said(wire)
    if not call_id and position is not None:
        reader.rest().pop("call_id", None)
        call_id = derived_id(position, name, text)
    if call_id is None:
        raise WireError(reader.at("call_id"), "required, expected str")
    usual = wire == spelled(text)
    return ToolCall(id=call_id, name=name, arguments=text, extra=reader.extra(NAME, wire=None if usual else wire))


def said(wire: JSONObject) -> str:
    """Return the arguments that a call on the wire has, as text: the text where there is one."""
    text = wire.get("arguments_json")
    if isinstance(text, str):
        return text
    value = wire.get("arguments", "")
    return value if isinstance(value, str) else to_text(value)


def spelled(text: str) -> JSONObject:
    """Return the fields that hold arguments; none at all are an empty object (pitfall-94, L-W6)."""
    try:
        value = decode_json(text or "{}")
    except WireError:
        value = None
    if isinstance(value, dict) and all(map(_is_shallow, value.values())):
        return {"arguments": value, "arguments_json": text or "{}"}
    return {"arguments": text, "arguments_json": text}


def _is_shallow(value: JSON) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return not any(isinstance(item, dict | list) for item in inner)


def encode_call(call: ToolCall, name: str, where: str, losses: Losses) -> JSONObject:
    """Return one call under the `name` that the server knows."""
    own = own_fields(call.extra, where, losses)
    if call.cache is not None:
        losses.dropped(where, "cache", "the server decides what it caches")
    if call.namespace is not None and name == call.name:
        losses.dropped(where, "namespace", "the dialect has none")
    wire = form_of(call.extra, NAME).get("wire")
    if isinstance(wire, dict) and said(wire) == call.arguments:
        arguments = wire
    elif call.kind == "custom":
        losses.emulated(where, "kind", "a custom tool is written as a function of one string")
        arguments = spelled(to_text({WRAPPED: call.arguments}))
    else:
        arguments = spelled(call.arguments)
    return {"call_id": call.id, "tool_name": name, **arguments, **own}


def is_parsed(call: JSONObject) -> bool:
    """Whether the arguments of a call on the wire are JSON of an object."""
    try:
        return isinstance(decode_json(said(call) or "{}"), dict)
    except WireError:
        return False
