"""The search for tools: one of the tools that the client runs (`execution: client`), or run by the server.

What a server searched for and found are items of their own, without a `call_id` in common.

The client gets a `tool_search_call`, and returns the definitions that it found in a `tool_search_output`. Sources:
`openai/types/responses/tool_search_tool_param.py`, `response_tool_search_call.py` and
`response_tool_search_output_item_param_param.py` of the official SDK;
https://developers.openai.com/api/docs/guides/tools-tool-search.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.codec.json.json_io import to_text
from xenoglot.codec.json.tool_arguments import input_of
from xenoglot.codec.loss import form_of
from xenoglot.codec.requests.names import qualified
from xenoglot.dialects.responses.client_tools import ClientTool
from xenoglot.dialects.responses.extras import NAME, extra_of, own_fields
from xenoglot.model.content import FoundTool, HostedCall, HostedResult, Text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.reader import Reader
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject

SEARCH_CALL: Final = "tool_search_call"
SEARCH_OUTPUT: Final = "tool_search_output"

NOTHING_FOUND: Final = "No tool was found."


def _is_for_client(item: JSONObject) -> bool:
    return item.get("execution") == "client"


def _read(item: JSONObject) -> JSONObject | None:
    arguments = item.get("arguments")
    return arguments if isinstance(arguments, dict) else None


def _write(value: JSON, ours: bool) -> JSONObject:  # noqa: FBT001  the same for every kind
    arguments = value if isinstance(value, dict) else {"query": value if isinstance(value, str) else to_text(value)}
    return {"arguments": arguments} if ours else {"execution": "client", "arguments": arguments}


def _said(item: JSONObject) -> tuple[tuple[Part, ...], bool | None] | None:
    """Return which tools were found."""
    tools = item.get("tools")
    if not _is_for_client(item) or not isinstance(tools, list):
        return None
    names = (qualified(name, space) for name, space in _named(tools, None))
    said = "\n".join(f"The tool `{name}` can be called." for name in names) or NOTHING_FOUND
    return (Text(text=said),), None


def _named(tools: Iterable[JSON], space: str | None) -> Iterable[tuple[str, str | None]]:
    """Yield the name and the namespace of each tool that has a name."""
    for tool in tools:
        match tool:
            case {"type": "namespace", "name": str(name), "tools": list(inner)}:
                yield from _named(inner, name)
            case {"name": str(name)}:
                yield name, space
            case _:
                pass


def _result(_: str, __: JSONObject | None, ___: bool) -> JSONObject:  # noqa: FBT001  the same for every kind
    return {"execution": "client", "status": "completed", "tools": []}


TOOL_SEARCH: Final = ClientTool(
    tool="tool_search",
    call="tool_search_call",
    output="tool_search_output",
    prefix="tsc",
    name="tool_search",
    description="",
    parameters={},
    read=_read,
    write=_write,
    said=_said,
    result=_result,
    is_ours=_is_for_client,
    holds="nothing",
)


def decode_search(reader: Reader, mark: JSONObject, item_id: str) -> HostedCall | HostedResult | None:
    """Return what a server searched for, or found; `None` for an item of another shape.

    `mark` identifies the item and its progress; its type, id and status are taken. The call id of a result that names
    none is empty: `SearchPairs` sets it.
    """
    form: JSONObject = {"item": mark}
    call_id = reader.peek("call_id")
    if call_id is None and "call_id" in reader.rest():
        form["call_id"] = "null"
        reader.rest().pop("call_id")
    elif isinstance(call_id, str):
        form["call_id"] = "set"
    if mark["kind"] == SEARCH_CALL:
        arguments = reader.peek("arguments")
        if not isinstance(arguments, dict | None):
            return None
        form["arguments"] = None if arguments else "absent" if "arguments" not in reader.rest() else [arguments]
        reader.rest().pop("arguments", None)
        found = reader.take("call_id", str) or item_id
        text = to_text(arguments) if arguments else ""
        form["execution"] = reader.take_if("execution", str)
        return HostedCall(id=found, kind="tool_search", arguments=text, extra=extra_of(reader, form))
    tools = reader.peek("tools")
    if not isinstance(tools, list):
        return None
    form["tools"] = [reader.take("tools", list)]
    content = tuple(FoundTool(name=name, namespace=space) for name, space in _named(tools, None))
    found = reader.take("call_id", str) or ""
    form["execution"] = reader.take_if("execution", str)
    return HostedResult(call_id=found, kind="tool_search", content=content, extra=extra_of(reader, form))


class SearchPairs:
    """Gives each result of a search that names no call the id of the last search before it."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last = ""

    def paired(self, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        """Return the parts of the next item."""
        first = parts[0] if parts else None
        if isinstance(first, HostedCall) and first.kind == "tool_search":
            self._last = first.id
        elif isinstance(first, HostedResult) and not first.call_id:
            return (replace(first, call_id=self._last), *parts[1:])
        return parts


def encode_search(part: HostedCall | HostedResult, where: str, losses: Losses) -> JSONObject:
    """Return the item of a search that a server ran, or of what it found."""
    form, own = form_of(part.extra, NAME), own_fields(part.extra, where, losses)
    if part.cache is not None:
        losses.dropped(where, "cache", "an item takes no cache mark")
    is_call = isinstance(part, HostedCall)
    item: JSONObject = {"type": SEARCH_CALL if is_call else SEARCH_OUTPUT}
    mark = form.get("item")
    if mark is None:
        item |= {"call_id": part.id if isinstance(part, HostedCall) else part.call_id, "execution": "server"}
    else:
        item |= {key: mark[key] for key in ("id", "status") if key in mark}
        known = {"set": part.id if isinstance(part, HostedCall) else part.call_id, "null": None}
        item |= {"call_id": known[form["call_id"]]} if "call_id" in form else {}
        item |= {"execution": form["execution"]} if "execution" in form else {}
    if isinstance(part, HostedCall):
        kept = form.get("arguments")
        if part.arguments or kept is None:
            item["arguments"] = input_of(part.arguments) or {}
        elif kept != "absent":
            item["arguments"] = kept[0]
        if part.name is not None:
            losses.approximated(where, "name", "the dialect has one search for tools")
        return item | own
    if part.error is not None:
        losses.dropped(where, "error", "the item has no place for it")
    return {**item, "tools": _definitions(part, form, where, losses), **own}


def _definitions(part: HostedResult, form: JSONObject, where: str, losses: Losses) -> list[JSON]:
    """Return the tools that were found: as the server defined them, else by their names, for the request has them."""
    found = [(one.name, one.namespace) for one in part.content if isinstance(one, FoundTool)]
    if len(found) < len(part.content):
        losses.dropped(where, "result", "a search for tools finds tools")
    kept: list[JSON] = form["tools"][0] if "tools" in form else []
    if "tools" in form and [*_named(kept, None)] == found:
        return kept
    tools: list[JSON] = []
    for index, one in enumerate(part.content):
        if isinstance(one, FoundTool):
            own_fields(one.extra, f"{where}.content[{index}]", losses)
            named: JSONObject = {"type": "function", "name": one.name, "parameters": None, "strict": None}
            spaced: JSONObject = {"type": "namespace", "name": one.namespace, "description": "", "tools": [named]}
            tools.append(named if one.namespace is None else spaced)
    return tools
