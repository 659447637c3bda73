"""Client-side tool search (`tool_search` with `execution: client`), as one of the tools that the client runs.

The client gets a `tool_search_call`, and returns the definitions that it found in a `tool_search_output`. Sources:
`openai/types/responses/tool_search_tool_param.py`, `response_tool_search_call.py` and
`response_tool_search_output_item_param_param.py` of the official SDK;
https://developers.openai.com/api/docs/guides/tools-tool-search.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.json.json_io import to_text
from xenoglot.codec.requests.names import qualified
from xenoglot.dialects.responses.client_tools import ClientTool
from xenoglot.model.content import Text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject

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
    said = "\n".join(f"The tool `{name}` can be called." for name in _names(tools, None)) or NOTHING_FOUND
    return (Text(text=said),), None


def _names(tools: Iterable[JSON], space: str | None) -> Iterable[str]:
    for tool in tools:
        match tool:
            case {"type": "namespace", "name": str(name), "tools": list(inner)}:
                yield from _names(inner, name)
            case {"name": str(name)}:
                yield qualified(name, space)
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
