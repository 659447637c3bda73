"""Encodes and decodes calls of functions and their results.

Source: `FunctionCallStep` and `FunctionResultStep` in `google/genai/_gaos/types/interactions` of the official SDK.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from xenoglot.codec.json.json_io import to_text
from xenoglot.codec.json.tool_arguments import RAW_ARGUMENTS, input_of, text_of
from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import expected
from xenoglot.codec.requests.custom_tools import WRAPPED
from xenoglot.dialects.interactions.content import decode_contents
from xenoglot.dialects.interactions.extras import NAME, NO_CACHE, extra_of, own_fields
from xenoglot.errors import WireError
from xenoglot.model.content import Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.reader import Reader
    from xenoglot.dialects.interactions.content import ContentEncoder
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject

CALL: Final = "function_call"
RESULT: Final = "function_result"


def derived_id(scope: str, path: str) -> str:
    """Return the id of a call that came without one: the same for the same answer and place."""
    digest = sha256(f"{scope}:{path}".encode("utf-8", "surrogatepass")).hexdigest()
    return f"call_{digest[:24]}"


def decode_call(reader: Reader, answer_id: str | None) -> ToolCall:
    """Return a call; one of an answer (`answer_id`) may lack its id, one of a client may not.

    Raises:
        WireError: it lacks what it needs.
    """
    reader.take("type", str)
    form: JSONObject = {}
    given = reader.take("id", str)
    if not given and answer_id is None:
        raise WireError(reader.at("id"), "required, expected str")
    if not given:
        form["id"] = "empty" if given == "" else "absent"
        given = derived_id(answer_id or "", reader.path)
    arguments = reader.take("arguments", dict)
    if arguments is None:
        form["arguments"] = "absent"
    return ToolCall(
        id=given,
        name=reader.need("name", str),
        arguments="" if arguments is None else text_of(arguments),
        extra=extra_of(reader, form),
    )


def arguments_of(call: ToolCall) -> tuple[JSONObject, bool]:
    """Return the arguments of a call, and whether they are what the model wrote."""
    if call.kind == "custom":
        return {WRAPPED: call.arguments}, True
    value = input_of(call.arguments)
    return ({RAW_ARGUMENTS: call.arguments}, False) if value is None else (value, True)


def encode_call(part: ToolCall, name: str, where: str, losses: Losses, *, home: bool) -> JSONObject:
    """Return the step of a call of the function `name`."""
    form, own = form_of(part.extra, NAME), own_fields(part.extra, where, losses)
    arguments, exact = arguments_of(part)
    if part.kind == "custom":
        losses.emulated(where, "kind", "the free text of a custom tool is written as an object")
    if not exact and not home:
        losses.approximated(where, "arguments", "no JSON object; written as `_raw`")
    if part.cache is not None:
        losses.dropped(where, "cache", NO_CACHE)
    spelled: JSONObject = {"empty": {"id": ""}, "absent": {}}.get(form.get("id", ""), {"id": part.id})
    written: JSONObject = {"type": CALL, **spelled, "name": name}
    if part.arguments or "arguments" not in form:
        written["arguments"] = arguments
    return written | own


def decode_result(reader: Reader) -> ToolResult:
    """Return what a function returned.

    Raises:
        WireError: it lacks what it needs.
    """
    reader.take("type", str)
    form: JSONObject = {}
    content = take_outcome(reader, form)
    return ToolResult(
        call_id=reader.need("call_id", str),
        content=tuple(content),
        is_error=reader.take("is_error", bool),
        name=reader.take("name", str),
        extra=extra_of(reader, form),
    )


def take_outcome(reader: Reader, form: JSONObject) -> Sequence[Part]:
    """Take `result`: a text, contents, or an object; `form` gets which.

    Raises:
        WireError: it is something else.
    """
    value = reader.peek("result")
    if value is None:
        form["result"] = "absent" if "result" not in reader.rest() else "null"
        return ()
    reader.take_any("result")
    if isinstance(value, str):
        form["result"] = "text"
        return (Text(text=value),) if value else ()
    if isinstance(value, list):
        form["result"] = "list"
        return decode_contents(value, reader.at("result"))
    if not isinstance(value, dict):
        raise expected(reader.at("result"), "str, object or list", value)
    form["result"] = "object"
    return (Text(text=to_text(value)),)


def encode_result(part: ToolResult, where: str, contents: ContentEncoder, losses: Losses, *, home: bool) -> JSONObject:
    """Return the step of a result."""
    form, own = form_of(part.extra, NAME), own_fields(part.extra, where, losses)
    if part.cache is not None:
        losses.dropped(where, "cache", NO_CACHE)
    if part.kind == "custom":
        losses.emulated(where, "kind", "the result of a custom tool is written as that of a function")
    items = [item for at, inner in enumerate(part.content) for item in contents.encode(inner, f"{where}.content[{at}]")]
    written: JSONObject = {"type": RESULT, "call_id": part.call_id, **outcome(items, form)}
    if part.name is not None:
        written["name"] = part.name
    if part.is_error is not None:
        written["is_error"] = part.is_error
    return written | own if home or not own else {**written, **own}


def outcome(items: Sequence[JSONObject], form: JSONObject) -> JSONObject:
    """Return `result`, spelled as it came; a stranger's lone text is a text."""
    spelled = form.get("result")
    if spelled in ("absent", "null") and not items:
        return {}
    text = _lone_text(items)
    if spelled == "object" and text and (value := input_of(text)) is not None:
        return {"result": value}
    if spelled != "list" and text is not None:
        return {"result": text}
    return {"result": list(items)}


def _lone_text(items: Sequence[JSONObject]) -> JSON:
    if not items:
        return ""
    alone = len(items) == 1 and items[0].keys() == {"type", "text"} and items[0]["type"] == "text"
    return items[0]["text"] if alone else None
