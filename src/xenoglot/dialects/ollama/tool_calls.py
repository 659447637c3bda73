"""Encodes and decodes complete tool calls, with their arguments as an object."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from xenoglot.codec.json.tool_arguments import RAW_ARGUMENTS, input_of, text_of
from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import leave, left, need_object
from xenoglot.codec.requests.custom_tools import WRAPPED
from xenoglot.dialects.ollama.extras import FAMILY, own_fields
from xenoglot.model.content import Extra, ToolCall

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.codec.reader import Reader
    from xenoglot.model.json import JSON, JSONObject


def derived_id(scope: str) -> str:
    """Return the id of a call that came without one: the same for the same answer, place and call."""
    return f"call_{sha256(scope.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"


def decode_call(reader: Reader, scope: str) -> ToolCall:
    """Return one of `tool_calls`; servers before 0.12 give no ids, so one is derived from `scope` and the call.

    Raises:
        WireError: it has no function, or that has no name.
    """
    form: JSONObject = {"typed": reader.take_word("type", ("function",)) is not None}
    call_id = reader.take("id", str)
    inner = need_object(reader, "function")
    name = inner.need("name", str)
    form["index"] = inner.take_any("index") if type(inner.peek("index")) is int else None
    arguments = _take_arguments(inner, form)
    if not call_id:
        form["derived"] = True
        call_id = derived_id(f"{scope}:{name}:{arguments}")
    nulls = leave(reader, "function", inner)
    form["function"] = None if nulls is True else nulls
    spelled = {key: value for key, value in form.items() if value or key == "index"}  # to have none is a spelling too
    extra = Extra(dialect=FAMILY, fields=reader.rest(), form=spelled)
    return ToolCall(id=call_id, name=name, arguments=arguments, extra=extra)


def encode_call(call: ToolCall, position: int, name: str, where: str, losses: Losses) -> JSONObject:
    """Return one of `tool_calls`, the one at `position`; `name` is what the server or the client calls the tool."""
    form, own = form_of(call.extra, FAMILY), own_fields(call.extra, where, losses, FAMILY)
    index = form.get("index", position)
    function: JSONObject = {} if index is None else {"index": index}
    function["name"] = name
    if form.get("arguments") != "absent" or call.arguments:
        function["arguments"] = _arguments(call, form, where, losses)
    call_id = {} if "derived" in form else {"id": call.id}
    kind = {"type": "function"} if "typed" in form else {}
    return {**call_id, **kind, "function": {**function, **left(own, form, "function")}, **own}


def _take_arguments(inner: Reader, form: JSONObject) -> str:
    """Take arguments as text; some clients send them so, as another dialect wants it."""
    value = inner.peek("arguments")
    if isinstance(value, str):
        form["arguments"] = "string"
        return inner.need("arguments", str)
    if value is None:
        form["arguments"] = "absent"
        return ""
    return text_of(inner.need("arguments", dict))


def _arguments(call: ToolCall, form: JSONObject, where: str, losses: Losses) -> JSON:
    if form.get("arguments") == "string":
        return call.arguments
    if call.kind == "custom":
        losses.emulated(where, "kind", "a call of a custom tool is written as one of a function of one string")
        return {WRAPPED: call.arguments}
    value = input_of(call.arguments)
    if value is not None:
        return value
    if call.extra is None or call.extra.dialect != FAMILY:
        losses.approximated(where, "arguments", f"no JSON object; written as `{RAW_ARGUMENTS}`")
    return {RAW_ARGUMENTS: call.arguments}
