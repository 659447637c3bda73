"""Tools that Anthropic defines and the client runs: `bash_*`, `text_editor_*`, `memory_*`, `computer_*`.

On the wire such a tool is a type and a name; the models know the rest. Here it gets its published schema, so that it is
a function for any other model. Calls and results need nothing: they are the usual ones in every case.

Sources: `beta_tool_bash_20250124_param.py`, `beta_tool_text_editor_20250728_param.py`,
`beta_memory_tool_20250818_*_command.py` and `beta_tool_computer_use_20251124_param.py` of the official SDK;
https://platform.claude.com/docs/en/agents-and-tools/tool-use/bash-tool, and `text-editor-tool`, `memory-tool` and
`computer-use-tool` next to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from xenoglot.codec.requests.provider_tools import DIRECT, object_schema
from xenoglot.dialects.messages.extras import NAME, encode_cache, take_cache
from xenoglot.model.json import JSONObject
from xenoglot.model.request import ProviderDefinition, Tool

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.reader import Reader
    from xenoglot.model.json import JSON

_STRING: Final[JSONObject] = {"type": "string"}
_LINES: Final[JSONObject] = {
    "type": "array",
    "items": {"type": "integer"},
    "minItems": 2,
    "maxItems": 2,
    "description": "The first and the last line to show, counted from 1; -1 is the end of the file.",
}
_POINT: Final[JSONObject] = {
    "type": "array",
    "items": {"type": "integer"},
    "minItems": 2,
    "maxItems": 2,
    "description": "A point of the screen: x and y in pixels from its left upper corner.",
}


class ClientTool(Struct, frozen=True):
    """What a provider publishes of a tool: its description, its schema, and the options that stand in the request."""

    description: str
    parameters: JSONObject
    options: tuple[str, ...] = ()


def _described(text: str, schema: JSONObject = _STRING) -> JSONObject:
    return {**schema, "description": text}


def _words(*words: str) -> JSONObject:
    return {"type": "string", "enum": [*words]}


_BASH: Final = ClientTool(
    "Runs commands in a bash session that lasts: variables, files and the working directory stay from call to call.",
    object_schema(
        "",
        command=_described("The command to run. Required, unless the session is restarted."),
        restart=_described("Whether to restart the session.", {"type": "boolean"}),
    ),
)


def _editor(insert: str, *more: str) -> ClientTool:
    """Return an editor whose `insert` takes its text as `insert`; `more` are its further commands."""
    return ClientTool(
        "Views, creates and edits text files. `view` shows a file with numbered lines, or lists a folder; `create`"
        " writes a whole file; `str_replace` replaces a text that occurs exactly once; `insert` puts text behind a"
        " line." + (" `undo_edit` takes back the last edit of a file." if more else ""),
        object_schema(
            "command path",
            command=_words("view", "create", "str_replace", "insert", *more),
            path=_described("The absolute path of the file or folder."),
            view_range=_LINES,
            file_text=_described("For `create`: the text of the file."),
            old_str=_described("For `str_replace`: the text to replace, exactly as it stands in the file."),
            insert_line=_described(
                "For `insert`: the line after which the text goes; 0 is the start.", {"type": "integer"}
            ),
            **(
                {"new_str": _described("For `str_replace`: the new text. For `insert`: the text to insert.")}
                if insert == "new_str"
                else {
                    "new_str": _described("For `str_replace`: the new text."),
                    insert: _described("For `insert`: the text to insert."),
                }
            ),
        ),
        ("max_characters",),
    )


_MEMORY: Final = ClientTool(
    "Keeps notes in files under `/memories`, which last from conversation to conversation. Look there before a task,"
    " and write down what will be of use later.",
    object_schema(
        "command",
        command=_words("view", "create", "str_replace", "insert", "delete", "rename"),
        path=_described("The path of the file or folder, below `/memories`."),
        view_range=_LINES,
        file_text=_described("For `create`: the text of the file."),
        old_str=_described("For `str_replace`: the text to replace."),
        new_str=_described("For `str_replace`: the new text."),
        insert_line=_described("For `insert`: the line at which the text goes.", {"type": "integer"}),
        insert_text=_described("For `insert`: the text to insert."),
        old_path=_described("For `rename`: the path until now."),
        new_path=_described("For `rename`: the new path."),
    ),
)

_ACTIONS: Final = ("key", "type", "mouse_move", "left_click", "left_click_drag", "right_click", "middle_click")
_MORE_ACTIONS: Final = ("triple_click", "left_mouse_down", "left_mouse_up", "scroll", "hold_key", "wait")
_COMPUTER: Final = object_schema(
    "action",
    coordinate=_POINT,
    text=_described("For `type`: the text. For `key` and `hold_key`: the keys, like `ctrl+s`. Else: keys held down."),
)
_LATER: Final[JSONObject] = {
    "start_coordinate": {**_POINT, "description": "For `left_click_drag`: the point where it starts."},
    "scroll_direction": _words("up", "down", "left", "right"),
    "scroll_amount": _described("For `scroll`: how many steps.", {"type": "integer"}),
    "duration": _described("For `wait` and `hold_key`: seconds.", {"type": "number"}),
}
_REGION: Final[JSONObject] = {
    "type": "array",
    "items": {"type": "integer"},
    "minItems": 4,
    "maxItems": 4,
    "description": "For `zoom`: the left, upper, right and lower edge of the region to show.",
}


def _computer(*actions: str, **more: JSON) -> ClientTool:
    words = (*_ACTIONS, "double_click", "screenshot", "cursor_position", *actions)
    properties = {"action": _words(*words), **_COMPUTER["properties"], **more}
    return ClientTool(
        "Uses the mouse and keyboard of a computer, and takes screenshots of it. Look at a screenshot before clicking.",
        {**_COMPUTER, "properties": properties},
        ("display_width_px", "display_height_px", "display_number", "enable_zoom"),
    )


CLIENT_TOOLS: Final[Mapping[str, ClientTool]] = {
    "bash_20241022": _BASH,
    "bash_20250124": _BASH,
    "text_editor_20241022": _editor("new_str", "undo_edit"),
    "text_editor_20250124": _editor("new_str", "undo_edit"),
    "text_editor_20250429": _editor("new_str"),
    "text_editor_20250728": _editor("insert_text"),
    "memory_20250818": _MEMORY,
    "computer_20241022": _computer(),
    "computer_20250124": _computer(*_MORE_ACTIONS, **_LATER),
    "computer_20251124": _computer(*_MORE_ACTIONS, **_LATER),
}
"""What is published of each type. `undo_edit` went with `text_editor_20250429`."""

_ZOOMING: Final = _computer(*_MORE_ACTIONS, "zoom", **_LATER, region=_REGION)
"""The newest computer where `enable_zoom` is set."""


def decode_client_tool(reader: Reader, kind: str, published: ClientTool) -> Tool:
    """Return the function that a tool of type `kind` is; the type has been taken from `reader`.

    Raises:
        WireError: it has no name, or an option is of the wrong type.
    """
    whole: JSONObject = {"type": kind, **reader.rest()}
    name, cache, strict = reader.need("name", str), take_cache(reader), reader.take("strict", bool)
    callers = reader.strings("allowed_callers")
    options = {option: reader.take_any(option) for option in published.options if option in reader}
    if options.get("enable_zoom") is True:
        published = _ZOOMING
    return Tool(
        name=name,
        description=_with_options(published.description, options),
        parameters=published.parameters,
        strict=strict,
        definition=ProviderDefinition(dialect=NAME, kind=kind, fields=whole),
        defer_loading=reader.take("defer_loading", bool),
        allowed_callers=callers if callers != (DIRECT,) else None,
        cache=cache,
        extra=reader.extra(NAME),
    )


def _with_options(description: str, options: Mapping[str, JSON]) -> str:
    width, height = options.get("display_width_px"), options.get("display_height_px")
    if width is not None and height is not None:
        description += f" The screen is {width} pixels wide and {height} high."
    most = options.get("max_characters")
    return description if most is None else f"{description} `view` shows at most {most} characters."


def encode_client_tool(
    tool: Tool, definition: ProviderDefinition, where: str, losses: Losses, *, home: bool
) -> JSONObject:
    """Return the tool of the wire that `decode_client_tool` read, with the cache mark that it has now."""
    encoded = {key: value for key, value in definition.fields.items() if key != "cache_control"}
    if tool.cache is not None:
        encoded["cache_control"] = encode_cache(tool.cache, where, losses, home=home)
    return encoded
