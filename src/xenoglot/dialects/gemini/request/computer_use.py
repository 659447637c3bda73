"""The tool `computerUse`, which Google defines and the client runs: one entry that stands for predefined functions.

The models know these functions; the calls and results are the usual `functionCall` and `functionResponse`. Here each
function that is not excluded gets its schema, so that any other model can call it. That is possible for a browser,
whose functions are published; a mobile or desktop environment stays an entry of this dialect alone.

Sources: `ComputerUse` in `google/genai/types.py` of the official SDK, the reference implementation
https://github.com/google-gemini/computer-use-preview, and https://ai.google.dev/gemini-api/docs/computer-use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.codec.requests.provider_tools import object_schema, typed
from xenoglot.dialects.gemini.extras import NAME
from xenoglot.model.content import Extra
from xenoglot.model.request import ProviderDefinition, Tool

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from xenoglot.model.json import JSON, JSONObject

KIND: Final = "computerUse"

_BROWSERS: Final = (None, "ENVIRONMENT_BROWSER", "ENVIRONMENT_UNSPECIFIED")


def _function(description: str, required: str = "", **properties: JSON) -> tuple[str, JSONObject]:
    return description, object_schema(required, **properties)


_X: Final = typed("integer", "From the left edge of the page (0) to the right (999), whatever its size.")
_Y: Final = typed("integer", "From the upper edge of the page (0) to the lower (999), whatever its size.")
_DIRECTION: Final = typed("string", "Where to scroll.", enum=["up", "down", "left", "right"])

FUNCTIONS: Final[Mapping[str, tuple[str, JSONObject]]] = {
    "open_web_browser": _function("Open the browser."),
    "wait_5_seconds": _function("Wait five seconds, for a page that is still loading."),
    "go_back": _function("Go to the page before in the history."),
    "go_forward": _function("Go to the next page in the history."),
    "search": _function("Open the start page of the search engine."),
    "navigate": _function("Open a page.", "url", url=typed("string", "The URL.")),
    "click_at": _function("Click a point of the page.", "x y", x=_X, y=_Y),
    "hover_at": _function("Move the mouse over a point of the page.", "x y", x=_X, y=_Y),
    "type_text_at": _function(
        "Click a point of the page and type a text there.",
        "x y text",
        x=_X,
        y=_Y,
        text=typed("string", "The text."),
        press_enter=typed("boolean", "Whether to press Enter after it."),
        clear_before_typing=typed("boolean", "Whether to delete what the field has; true by default."),
    ),
    "key_combination": _function(
        "Press keys together.", "keys", keys=typed("string", "The keys, joined by `+`, like `control+c`.")
    ),
    "scroll_document": _function("Scroll the whole page.", "direction", direction=_DIRECTION),
    "scroll_at": _function(
        "Scroll at a point of the page.",
        "x y direction",
        x=_X,
        y=_Y,
        direction=_DIRECTION,
        magnitude=typed("integer", "How far, in the units of x and y; 800 by default."),
    ),
    "drag_and_drop": _function(
        "Drag from one point of the page to another.",
        "x y destination_x destination_y",
        x=_X,
        y=_Y,
        destination_x=_X,
        destination_y=_Y,
    ),
}
"""The description and the schema of each predefined function, by its name."""

_EXPRESSED: Final = frozenset({"environment", "excludedPredefinedFunctions"})
"""The options that the functions express."""


def predefined_functions(entry: JSONObject, declared: Container[str]) -> list[Tool]:
    """Return the functions that an entry of `tools` stands for; none if it is not this tool, or has more in it.

    A function that the client has `declared` itself replaces the predefined one.
    """
    use = entry.get(KIND)
    if entry.keys() != {KIND} or not isinstance(use, dict) or use.get("environment") not in _BROWSERS:
        return []
    excluded = use.get("excludedPredefinedFunctions") or []
    if not isinstance(excluded, list):
        return []
    definition = ProviderDefinition(dialect=NAME, kind=KIND, fields=entry)
    tools = [
        Tool(name=name, description=description, parameters=schema, definition=definition)
        for name, (description, schema) in FUNCTIONS.items()
        if name not in excluded and name not in declared
    ]
    options = {key: value for key, value in use.items() if key not in _EXPRESSED}
    if tools and options:
        tools[0] = replace(tools[0], extra=Extra(dialect=NAME, fields=options))  # reported once
    return tools
