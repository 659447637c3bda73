"""Encodes and decodes `web_search_options`, with which some models search the web.

Source: `openai/types/chat/completion_create_params.py` (`WebSearchOptions`) of the official SDK. Whether a server
searches is a fact about it (`hosted_tools`): one that ignores the field would answer without a search, and the
client would not know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.reader import Reader
from xenoglot.codec.requests.hosted_tools import encode_location, note_settings, take_location
from xenoglot.dialects.chat.extras import NAME, extra_of, own_fields
from xenoglot.model.hosted import HostedTool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import RequestTool

OPTIONS: Final = "web_search_options"


def take_search(reader: Reader) -> tuple[HostedTool, ...]:
    """Take the options of the search, which ask for one."""
    if not isinstance(reader.peek(OPTIONS), dict):
        return ()
    options = Reader(reader.take(OPTIONS, dict), reader.at(OPTIONS))
    return (
        HostedTool(
            kind="web_search",
            location=take_location(options, "user_location", NAME),
            context_size=options.take("search_context_size", str),
            extra=extra_of(options, {"options": True}),
        ),
    )


def encode_search(tools: Sequence[RequestTool], crossing: EncodeContext) -> JSONObject:
    """Return the options, in the field of their name, if the server searches or the request came in this dialect."""
    for index, tool in enumerate(tools):
        if not isinstance(tool, HostedTool) or not searches(tool, crossing):
            continue
        where, losses = f"$.tools[{index}]", crossing.losses
        own: JSONObject = {}
        if tool.context_size is not None:
            own["search_context_size"] = tool.context_size
        if tool.location is not None:
            place = encode_location(tool.location, where, losses, NAME)
            own["user_location"] = {"type": "approximate", "approximate": place}
        note_settings(tool, where, losses, "location", "context_size")
        return {OPTIONS: own | own_fields(tool.extra, where, losses)}
    return {}


def searches(tool: HostedTool, crossing: EncodeContext) -> bool:
    """Return whether a tool is a search that the server does."""
    known = crossing.target.hosted_tools
    return tool.kind == "web_search" and (crossing.home if known is None else "web_search" in known)
