"""Toolsets that Anthropic defines and the client runs: `computer_toolset_20260801`, `browser_toolset_20260801`.

One entry of `tools` stands for many functions. Here each member is a function with its published schema, in a namespace
by the name of the toolset; `tool_use` blocks name that in `toolset_name`. The entry itself is written again as it came.

Sources: `beta_computer_toolset_20260801_param.py`, `beta_browser_toolset_20260801_param.py`, and the
`beta_computer_*_input.py` and `beta_browser_*_input.py` next to them in the official SDK;
https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-reference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.codec.requests.provider_tools import object_schema, typed
from xenoglot.dialects.messages.extras import NAME, take_cache
from xenoglot.model.request import ProviderDefinition, Tool

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.codec.reader import Reader
    from xenoglot.model.json import JSON, JSONObject

Members = dict[str, tuple[str, "JSONObject"]]
"""The description and the schema of each member, by its name."""


def _integers(count: int, description: str) -> JSONObject:
    return typed("array", description, items={"type": "integer"}, minItems=count, maxItems=count)


_DIRECTION: Final[JSONObject] = {"type": "string", "enum": ["up", "down", "left", "right"]}
_POINT: Final = _integers(2, "x and y: pixels from the left and the upper edge.")
_REGION: Final = _integers(4, "The left, upper, right and lower edge, in pixels of a screenshot.")
_HELD: Final = typed("string", "Keys to hold down meanwhile, like `ctrl+shift`.")
_KEYS: Final = typed("string", "The key, or keys joined by `+`, like `ctrl+s`.")
_REPEAT: Final = typed("integer", "How many times to press; 1 by default.")
_TYPED: Final = typed("string", "The text.")
_SECONDS: Final = typed("number", "Seconds.")


def _on_screen(what: str, required: str = "", **properties: JSON) -> tuple[str, JSONObject]:
    return what, object_schema(required, **properties)


def _clicks(what: str) -> tuple[str, JSONObject]:
    where = "at a point of the screen, or where the cursor is"
    return _on_screen(f"{what} {where}.", coordinate=_POINT, text=_HELD)


_COMPUTER: Final[Members] = {
    "key": _on_screen("Press keys on the keyboard.", "text", text=_KEYS, repeat=_REPEAT),
    "hold_key": _on_screen(
        "Hold keys down for some time.", "text duration", text=_KEYS, duration={**_SECONDS, "type": "integer"}
    ),
    "type": _on_screen("Type a text on the keyboard.", "text", text=_TYPED),
    "cursor_position": _on_screen("Return where the cursor is, in pixels."),
    "mouse_move": _on_screen("Move the cursor without clicking.", "coordinate", coordinate=_POINT),
    "left_mouse_down": _on_screen("Press the left mouse button and hold it."),
    "left_mouse_up": _on_screen("Release the left mouse button."),
    "left_click": _clicks("Click the left mouse button"),
    "left_click_drag": _on_screen(
        "Drag from one point to another.",
        "start_coordinate coordinate",
        start_coordinate=_POINT,
        coordinate=_POINT,
        text=_HELD,
    ),
    "right_click": _clicks("Click the right mouse button"),
    "middle_click": _clicks("Click the middle mouse button"),
    "double_click": _clicks("Click the left mouse button twice"),
    "triple_click": _clicks("Click the left mouse button three times"),
    "scroll": _on_screen(
        "Scroll at a point of the screen, or where the cursor is.",
        "scroll_direction scroll_amount",
        scroll_direction=_DIRECTION,
        scroll_amount=typed("integer", "How many steps of the wheel."),
        coordinate=_POINT,
        text=_HELD,
    ),
    "wait": _on_screen("Wait for some time.", "duration", duration={**_SECONDS, "type": "integer"}),
    "screenshot": _on_screen("Take a screenshot."),
    "zoom": _on_screen("Take a screenshot of a region, scaled up.", "region", region=_REGION),
}

_TAB: Final = typed("string", "The tab; the active one by default.")
_SPOT: Final[JSONObject] = {
    "type": "object",
    "properties": {"type": {"const": "coordinate"}, "x": {"type": "integer"}, "y": {"type": "integer"}},
    "required": ["type", "x", "y"],
    "description": "A point of the viewport, in pixels.",
}
_REF: Final[JSONObject] = {
    "type": "object",
    "properties": {"type": {"const": "ref"}, "ref": {"type": "string"}},
    "required": ["type", "ref"],
    "description": "An element, by a reference from `read_page` or `find`.",
}
_EITHER: Final[JSONObject] = {"anyOf": [_SPOT, _REF]}
_LIST: Final[JSONObject] = {"type": "array", "items": {"type": "string"}}


def _in_tab(what: str, required: str = "", **properties: JSON) -> tuple[str, JSONObject]:
    return what, object_schema(required, **properties, tab_id=_TAB)


def _clicks_in_tab(what: str) -> tuple[str, JSONObject]:
    return _in_tab(f"{what} at a point or on an element.", "target", target=_EITHER, modifiers=_HELD)


_BROWSER: Final[Members] = {
    "key": _in_tab("Press keys; a space separates presses.", "text", text=_KEYS, repeat=_REPEAT),
    "find": _in_tab("Find elements by a description.", "query", query=typed("string", "What to look for.")),
    "type": _in_tab("Type a text where the focus is.", "text", text=_TYPED),
    "wait": _in_tab("Wait for some time.", "duration", duration=_SECONDS),
    "zoom": _in_tab("Take a screenshot of a region, scaled up.", "region", region=_REGION),
    "hover": _in_tab("Move the cursor over a point or an element.", "target", target=_EITHER),
    "scroll": _in_tab(
        "Scroll at a point.",
        "scroll_direction target",
        scroll_direction=_DIRECTION,
        target=_SPOT,
        scroll_amount=typed("integer", "How many steps."),
    ),
    "new_tab": ("Open an empty tab and return its id.", object_schema("")),
    "hold_key": _in_tab("Hold keys down for some time.", "text duration", text=_KEYS, duration=_SECONDS),
    "navigate": _in_tab(
        "Open a page, or go in the history.", "url", url=typed("string", "A URL, or `back`, `forward` or `reload`.")
    ),
    "close_tab": ("Close a tab.", object_schema("tab_id", tab_id=typed("string", "The tab."))),
    "list_tabs": ("Return the id, the title and the URL of each tab.", object_schema("")),
    "read_page": _in_tab(
        "Return the page as a tree of elements with references.",
        depth=typed("integer", "How deep the tree is at most."),
        filter={"type": "string", "enum": ["all", "interactive"]},
        ref=typed("string", "The element to begin with."),
    ),
    "scroll_to": _in_tab("Scroll until an element is visible.", "target", target=_REF),
    "form_input": _in_tab(
        "Set the value of an element of a form.",
        "target value",
        target=_REF,
        value={"type": ["string", "number", "boolean"], "description": "A boolean for a checkbox."},
    ),
    "left_click": _clicks_in_tab("Click the left mouse button"),
    "mouse_move": _in_tab("Move the cursor to a point.", "target", target=_SPOT),
    "screenshot": _in_tab("Take a screenshot of the viewport."),
    "switch_tab": ("Make a tab the active one.", object_schema("tab_id", tab_id=typed("string", "The tab."))),
    "file_upload": _in_tab(
        "Set the files of a file input; `paths` or `document_ids` is required.",
        "target",
        target=_REF,
        paths=_LIST,
        document_ids=_LIST,
    ),
    "right_click": _clicks_in_tab("Click the right mouse button"),
    "double_click": _clicks_in_tab("Click the left mouse button twice"),
    "middle_click": _clicks_in_tab("Click the middle mouse button"),
    "read_console": _in_tab("Return what the console has printed since the last read."),
    "read_network": _in_tab("Return the network requests since the last read."),
    "triple_click": _clicks_in_tab("Click the left mouse button three times"),
    "get_page_text": _in_tab("Return the visible text of the page."),
    "left_mouse_up": _in_tab("Release the left mouse button at a point.", "target", target=_SPOT),
    "javascript_exec": _in_tab(
        "Run JavaScript in the page; the result is the value of the last expression.",
        "text",
        text=typed("string", "The code, without `return`."),
    ),
    "left_click_drag": _in_tab("Drag from one point to another.", "from target", **{"from": _SPOT, "target": _SPOT}),
    "left_mouse_down": _in_tab("Press the left mouse button at a point and hold it.", "target", target=_SPOT),
}

TOOLSETS: Final[Mapping[str, tuple[str, Members]]] = {
    "computer_toolset_20260801": ("computer", _COMPUTER),
    "browser_toolset_20260801": ("browser", _BROWSER),
}
"""The name and the members of each type of toolset."""

_ON_REQUEST: Final = frozenset({"javascript_exec", "file_upload"})
"""Members that are offered only if `configs` enables them: the entry does not show the provider's own default."""


def decode_members(reader: Reader, kind: str) -> list[Tool]:
    """Return the functions of a toolset of type `kind` that are enabled; the type has been taken from `reader`."""
    name, members = TOOLSETS[kind]
    whole: JSONObject = {"type": kind, **reader.rest()}
    configs = reader.take("configs", dict) or {}
    cache, extra = take_cache(reader), reader.extra(NAME)
    definition = ProviderDefinition(dialect=NAME, kind=kind, fields=whole)
    tools = [
        Tool(
            name=member,
            description=description,
            parameters=schema,
            namespace=name,
            definition=definition,
            defer_loading=_is_deferred(configs.get(member)),
        )
        for member, (description, schema) in members.items()
        if _is_enabled(configs.get(member), member)
    ]
    if tools:
        tools[0] = replace(tools[0], cache=cache, extra=extra)  # of the whole entry, which is reported once
    return tools


def _is_deferred(config: JSON) -> bool | None:
    deferred = config.get("defer_loading") if isinstance(config, dict) else None
    return True if deferred is True else None


def _is_enabled(config: JSON, member: str) -> bool:
    enabled = config.get("enabled") if isinstance(config, dict) else None
    return enabled if isinstance(enabled, bool) else member not in _ON_REQUEST
