"""What a request says, apart from how: the things of it, each with its path, in a form that can be compared."""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct
from msgspec.json import encode
from msgspec.structs import replace

from xenoglot.codec.loss import Loss
from xenoglot.codec.wire import decode_json
from xenoglot.errors import WireError
from xenoglot.model.content import Extra, Opaque, Part, Reasoning, Refusal, Text, ToolCall, ToolResult
from xenoglot.model.json import JSON
from xenoglot.model.request import Request, Thinking, Tool
from xenoglot.model.response import Response

ROLES = {"developer": "system", "tool": "user"}
"""Respelling: two roles of one meaning. Results of tools stand in turns of their own, or in the user's."""

NO_PARAMETERS = {"type": "object", "properties": {}}
"""Respelling: a function of which no parameters were said takes none."""

NO_THINKING = Thinking(mode="disabled")
"""Respelling: thinking is off, or its effort is none."""

DEFAULTS: dict[str, tuple[JSON, ...]] = {
    "$.store": (False,),
    "$.stream": (False,),
    "$.cache_key": ("",),
    "$.sampling.n": (1,),
    "$.sampling.temperature": (1,),
    "$.sampling.top_p": (1,),
    "$.sampling.top_k": (-1, 0),
    "$.sampling.min_p": (0,),
    "$.sampling.repetition_penalty": (1,),
    "$.sampling.frequency_penalty": (0,),
    "$.sampling.presence_penalty": (0,),
    "$.sampling.logprobs": (False,),
    "$.sampling.top_logprobs": (0,),
    "$.output.kind": ("text",),
}
"""Respelling: what is the case where nothing is said."""

ALWAYS = {"$.stream_usage"}
"""Not compared: some dialects always send it."""


class Thing(Struct, frozen=True):
    """One thing that a request says."""

    path: str
    said: bytes

    def covered_by(self, loss: Loss) -> bool:
        """Whether `loss` tells of this thing, of something inside it, or of what it is inside of."""
        named = f"{loss.where}.{loss.what}"
        return any(_inside(self.path, place) or _inside(place, self.path) for place in (loss.where, named))


def _inside(path: str, place: str) -> bool:
    return place in {"$", path} or path.startswith((f"{place}.", f"{place}["))


def things(request: Request) -> Iterator[Thing]:
    """Yield all that a request says. Where one turn ends and the next of the same speaker begins is a respelling."""
    for index, message in enumerate(request.messages):
        role = ROLES.get(message.role, message.role)
        for number, part in enumerate(message.content):
            if not (isinstance(part, Text | Refusal) and not part.text):  # respelling: empty text says nothing
                yield Thing(f"$.messages[{index}].content[{number}]", encode([role, message.name, _plain(part)]))
    for index, tool in enumerate(request.tools):
        yield Thing(f"$.tools[{index}]", encode(_plain(tool), order="sorted"))
    for name in Request.__struct_fields__:
        if name not in {"messages", "tools", "extra"}:
            value = getattr(request, name)
            yield from _fields(f"$.{name}", NO_THINKING if value == Thinking(effort="none") else value)


def settled(response: Response) -> Response:
    """Return the answer without what a stream may say otherwise than the whole.

    That is the spelling of arguments (some wires hold the text, some the value), and what says nothing: nulls that were
    carried, and the spellings of understood fields.
    """
    settled_response: Response = _settled(response)
    return settled_response


def _settled(value: Any) -> Any:  # noqa: ANN401  whatever stands in a struct
    match value:
        case Extra():
            fields = {name: item for name, item in value.fields.items() if item is not None}
            return Extra(dialect=value.dialect, fields=fields) if fields else None
        case Struct():
            if isinstance(value, ToolCall) and value.kind == "function":
                value = replace(value, arguments=_value(value.arguments))
            return replace(value, **{name: _settled(getattr(value, name)) for name in value.__struct_fields__})
        case tuple():
            return tuple(_settled(item) for item in value)
        case _:
            return value


def _fields(path: str, value: object) -> Iterator[Thing]:
    if isinstance(value, Struct):
        for name in value.__struct_fields__:
            if name != "extra":
                yield from _fields(f"{path}.{name}", getattr(value, name))
    elif value not in (None, {}, *DEFAULTS.get(path, ())) and path not in ALWAYS:  # respelling: nothing in a map
        yield Thing(path, encode(value, order="sorted"))


def _plain(part: Part | Tool) -> JSON:
    """Return a part or a tool as it can be compared."""
    match part:
        case Tool(kind="function", parameters=None):
            part = replace(part, parameters=NO_PARAMETERS)
        case ToolCall():
            part = replace(_settled(part), item_id=None)
        case ToolResult():  # respelling: not an error, or nothing said of errors; empty text says nothing
            content = tuple(inner for inner in part.content if getattr(inner, "text", inner))
            part = replace(part, is_error=part.is_error or None, content=content)
        case Opaque():
            part = replace(part, text=None)
        case Reasoning():
            part = replace(part, origin=None, text=part.text or None)
        case _:
            pass  # the same on every wire
    return _bare(part)


def _value(arguments: str) -> str:
    """Respelling: the blanks between the tokens of arguments, and nothing where there are none (pitfall-94)."""
    try:
        return encode(decode_json(arguments or "{}")).decode()
    except WireError:
        return arguments


def _bare(value: object) -> JSON:
    """Return a struct as JSON, without its extras and without what is not said."""
    if isinstance(value, Extra):
        return None
    if isinstance(value, Struct):
        kind = type(value).__name__
        fields = {name: _bare(getattr(value, name)) for name in value.__struct_fields__}
        return [kind, {name: said for name, said in fields.items() if said not in (None, [])}]
    if isinstance(value, tuple):
        return [_bare(item) for item in value]
    return value
