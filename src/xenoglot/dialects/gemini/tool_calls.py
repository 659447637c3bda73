"""Encodes and decodes tool calls and results: arguments and results as JSON objects, ids that may be missing.

Source: `FunctionCall` and `FunctionResponse` (https://ai.google.dev/api/caching#FunctionCall). The id is optional:
results belong to calls by name and order.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from xenoglot.codec.json.json_io import decode_json, to_text
from xenoglot.codec.json.tool_arguments import RAW_ARGUMENTS, input_of, text_of
from xenoglot.codec.reader import need_object
from xenoglot.codec.requests.call_ids import PendingCalls
from xenoglot.codec.requests.custom_tools import WRAPPED
from xenoglot.codec.unknown_fields import keep_rest
from xenoglot.dialects.gemini.extras import NAME
from xenoglot.errors import WireError
from xenoglot.model.content import Part, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.codec.reader import Reader
    from xenoglot.model.json import JSON, JSONObject

OUTPUT = "output"
ERROR = "error"
_KEYS = (OUTPUT, "result", ERROR)
"""The keys of a `response` that mean something by themselves (`FunctionResponse.response`)."""


class CallIds:
    """The ids of calls and results, in order of decoding: missing ids are derived and matched.

    `scope` is what makes them different from those of another answer.
    """

    __slots__ = ("_count", "_pending", "_scope")

    def __init__(self, scope: str) -> None:
        self._scope = scope
        self._count = 0
        self._pending = PendingCalls()

    def call(self, given: str | None, name: str) -> str:
        """Return the id of the next call."""
        call_id = given or derived_id(self._scope, self._count)
        self._count += 1
        self._pending.add(call_id, name)
        return call_id

    def result(self, given: str | None, name: str) -> str:
        """Return the id of the call that the next result belongs to: one of its name, else the first that waits."""
        if given:
            self._pending.answer(given)
            return given
        found = self._pending.first(name) or self._pending.first()
        if found is not None:
            return found
        self._count += 1
        return derived_id(self._scope, self._count - 1)

    def turn(self) -> None:
        """Begin another turn of the model: results of calls before it can not follow any more."""
        self._pending.clear()


def derived_id(scope: str, position: int) -> str:
    """Return the id of a call that came without one: the same for the same answer and position."""
    digest = sha256(f"{scope}:{position}".encode("utf-8", "surrogatepass")).hexdigest()
    return f"call_{digest[:24]}"


def read_call(reader: Reader, ids: CallIds) -> ToolCall:
    """Take `functionCall`."""
    call = need_object(reader, "functionCall")
    name = call.need("name", str)
    given = call.take("id", str)
    args = call.take("args", dict)
    form: JSONObject = {"id": "derived"} if given is None else {"id": "empty"} if not given else {}
    if args is None:
        form["args"] = "absent"
    keep_rest(reader, "functionCall", call, form)
    return ToolCall(
        id=ids.call(given, name),
        name=name,
        arguments="" if args is None else text_of(args),
        extra=reader.extra(NAME, **form),
    )


def args_of(call: ToolCall) -> tuple[JSONObject, bool]:
    """Return the `args` of a call, and whether they are what the model wrote."""
    if call.kind == "custom":
        return {WRAPPED: call.arguments}, True
    value = input_of(call.arguments)
    return ({RAW_ARGUMENTS: call.arguments}, False) if value is None else (value, True)


def read_result(reader: Reader, ids: CallIds, read: Callable[[JSON, str], Part]) -> ToolResult:
    """Take `functionResponse`; `read` reads its parts."""
    result = need_object(reader, "functionResponse")
    name = result.need("name", str)
    given = result.take("id", str)
    form: JSONObject = {"id": "derived"} if given is None else {"id": "empty"} if not given else {}
    response = result.take("response", dict)
    content, is_error = _said(response, form)
    parts = result.take("parts", list)
    if parts is not None:
        path = result.at("parts")
        content = (*content, *(read(part, f"{path}[{index}]") for index, part in enumerate(parts)))
        form["parts"] = len(parts)
    keep_rest(reader, "functionResponse", result, form)
    return ToolResult(
        call_id=ids.result(given, name),
        content=content,
        is_error=is_error,
        name=name,
        extra=reader.extra(NAME, **form),
    )


def _said(response: JSONObject | None, form: JSONObject) -> tuple[tuple[Part, ...], bool | None]:
    """Return the parts of a `response`, and whether it is an error; its form is put into `form`."""
    if response is None:
        form["response"] = "absent"
        return (), None
    key = next(iter(response), None)
    if len(response) != 1 or key not in _KEYS:
        form["response"] = "object"
        return (Text(text=to_text(response)),), None
    if key not in (OUTPUT, ERROR):
        form["response"] = key
    value = response[key]
    is_error = True if key == ERROR else None
    if isinstance(value, str):
        return (Text(text=value),), is_error
    form["json"] = True
    return (Text(text=to_text(value)),), is_error


def response_of(text: str, *, is_error: bool | None, form: JSONObject) -> JSONObject | None:
    """Return a result's words as a `response`, spelled as `form` has it."""
    spelled = form.get("response", ERROR if is_error else OUTPUT)
    if spelled == "absent" and not text:
        return None
    value: JSON = text
    if spelled == "object" or form.get("json"):
        try:
            value = decode_json(text)
        except WireError:
            value = text
    if spelled == "object" and isinstance(value, dict):
        return value
    return {ERROR if is_error else spelled if spelled in _KEYS else OUTPUT: value}
