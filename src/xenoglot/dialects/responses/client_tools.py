"""Tools that OpenAI defines and the client runs: `shell`, `local_shell`, `apply_patch`, `computer`.

On the wire such a tool is a type, its calls and outputs are items of their own kinds. Here each is a function with the
published schema of its action, so that any other model can call it. A `shell` in a container of OpenAI is not among
them. None is crossed to a tool of Anthropic or Gemini: `bash_*` is one session with a `restart`, `text_editor_*`
replaces texts and knows no diffs, and the actions and points of `computer_*` and `computerUse` are others. A model
gets the function that its client can run.

Sources: `function_shell_tool_param.py`, `apply_patch_tool_param.py`, `computer_tool_param.py`,
`computer_use_preview_tool_param.py`, `tool_param.py`, `computer_action.py` and `response_input_item_param.py` of the
official SDK; https://developers.openai.com/api/docs/guides/tools-shell, and `tools-apply-patch` and
`tools-computer-use` next to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from msgspec import Struct

from xenoglot.codec.data_url import source_of
from xenoglot.codec.requests.provider_tools import object_schema, typed
from xenoglot.model.content import Image, Part, Stored, Text
from xenoglot.model.json import JSON, JSONObject


class ClientTool(Struct, frozen=True, kw_only=True):
    """A kind of tool that the client runs: its types on the wire, the function that it is, and how to convert calls.

    `read` returns the arguments that a call stands for, `write` the fields of a call from arguments; `ours`: the
    call came in this dialect, so nothing is completed. `said` returns the parts of an output and whether it is an
    error, `result` the fields of an output from a text, an image and whether it is an error; `holds` is what an
    output has a place for. Each returns `None` for what it does not understand. `is_ours` distinguishes tools and calls
    of the client from those of the server. The id of a call stands under `id_key` in its output.
    """

    tool: str
    call: str
    output: str
    prefix: str
    name: str
    description: str
    parameters: JSONObject
    read: Callable[[JSONObject], JSONObject | None]
    write: Callable[[JSON, bool], JSONObject | None]
    said: Callable[[JSONObject], tuple[tuple[Part, ...], bool | None] | None]
    result: Callable[[str, JSONObject | None, bool], JSONObject]
    is_ours: Callable[[JSONObject], bool] = lambda _: True
    holds: Literal["text", "image", "nothing"] = "text"
    id_key: str = "call_id"


def described(kind: ClientTool, tool: JSONObject) -> str:
    """Return the description of a tool, with the screen that the request describes."""
    width, height = tool.get("display_width"), tool.get("display_height")
    if width is None or height is None:
        return kind.description
    return f"{kind.description} The screen ({tool.get('environment')}) is {width} pixels wide and {height} high."


_STRINGS: Final[JSONObject] = {"type": "array", "items": {"type": "string"}}


def _are_strings(value: JSON) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)


def _known(value: JSONObject, **types: type) -> JSONObject:
    """Return the fields of `value` that are of their types."""
    return {key: value[key] for key, kind in types.items() if type(value.get(key)) is kind}


# shell


def _is_local(item: JSONObject) -> bool:
    environment = item.get("environment")
    return environment is None or (isinstance(environment, dict) and environment.get("type") == "local")


def _read_shell(item: JSONObject) -> JSONObject | None:
    action = item.get("action")
    return action if isinstance(action, dict) and isinstance(action.get("commands"), list) else None


def _write_shell(value: JSON, ours: bool) -> JSONObject | None:  # noqa: FBT001  the same for every kind
    if ours or not isinstance(value, dict):
        return {"action": value} if isinstance(value, dict) else None
    commands = value.get("commands", value.get("command"))
    commands = [commands] if isinstance(commands, str) else commands
    if not _are_strings(commands):
        return None
    limits: JSONObject = {"timeout_ms": None, "max_output_length": None}
    limits |= _known(value, timeout_ms=int, max_output_length=int)
    return {"action": {"commands": commands, **limits}, "environment": None}


def _shell_said(item: JSONObject) -> tuple[tuple[Part, ...], bool | None] | None:
    output = item.get("output")
    if not isinstance(output, list) or not all(isinstance(chunk, dict) for chunk in output):
        return None
    said = "\n".join(_chunk_said(chunk) for chunk in output)
    return ((Text(text=said),) if said else ()), None


def _chunk_said(chunk: JSONObject) -> str:
    """Return what a command printed and how it ended, where that is not success."""
    printed = [text.rstrip("\n") for key in ("stdout", "stderr") if isinstance(text := chunk.get(key), str) and text]
    match chunk.get("outcome"):
        case {"type": "timeout"}:
            printed.append("[timed out]")
        case {"type": "exit", "exit_code": int(code)} if code or not printed:
            printed.append(f"[exit code {code}]")
        case _:
            pass
    return "\n".join(printed)


def _shell_result(text: str, _: JSONObject | None, failed: bool) -> JSONObject:  # noqa: FBT001  as above
    return {"output": [{"stdout": text, "stderr": "", "outcome": {"type": "exit", "exit_code": int(failed)}}]}


SHELL: Final = ClientTool(
    tool="shell",
    call="shell_call",
    output="shell_call_output",
    prefix="sh",
    name="shell",
    description="Runs shell commands on the user's computer and returns what they print.",
    parameters=object_schema(
        "commands",
        commands={**_STRINGS, "description": "The commands to run, in order."},
        timeout_ms=typed("integer", "How long all of them may take, in milliseconds."),
        max_output_length=typed("integer", "How many characters of their output are returned at most."),
    ),
    read=_read_shell,
    write=_write_shell,
    said=_shell_said,
    result=_shell_result,
    is_ours=_is_local,
)


# local_shell

_EXEC: Final[JSONObject] = {"type": "exec"}


def _read_local_shell(item: JSONObject) -> JSONObject | None:
    action = item.get("action")
    if not isinstance(action, dict) or action.get("type") != "exec" or not isinstance(action.get("command"), list):
        return None
    return {key: value for key, value in action.items() if key != "type"}


def _write_local_shell(value: JSON, ours: bool) -> JSONObject | None:  # noqa: FBT001  the same for every kind
    if ours or not isinstance(value, dict):
        return {"action": {**_EXEC, **value}} if isinstance(value, dict) else None
    command = value.get("command")
    command = ["bash", "-lc", command] if isinstance(command, str) and command else command
    if not _are_strings(command):
        return None
    limits = _known(value, timeout_ms=int, user=str, working_directory=str)
    env = value.get("env")
    kept = {name: text for name, text in env.items() if isinstance(text, str)} if isinstance(env, dict) else {}
    return {"action": {**_EXEC, "command": command, "env": kept, **limits}}


def _text_said(item: JSONObject) -> tuple[tuple[Part, ...], bool | None] | None:
    output = item.get("output")
    return ((Text(text=output),) if output else (), None) if isinstance(output, str) else None


def _text_result(text: str, _: JSONObject | None, __: bool) -> JSONObject:  # noqa: FBT001  as above
    return {"output": text}


LOCAL_SHELL: Final = ClientTool(
    tool="local_shell",
    call="local_shell_call",
    output="local_shell_call_output",
    prefix="lsh",
    name="local_shell",
    description="Runs a command on the user's computer and returns what it prints.",
    parameters=object_schema(
        "command",
        command={**_STRINGS, "description": "The program and its arguments, like `bash`, `-lc` and a script."},
        env=typed("object", "Environment variables of the command.", additionalProperties={"type": "string"}),
        working_directory=typed("string", "The folder in which it runs."),
        timeout_ms=typed("integer", "How long it may take, in milliseconds."),
        user=typed("string", "The user as which it runs."),
    ),
    read=_read_local_shell,
    write=_write_local_shell,
    said=_text_said,
    result=_text_result,
    id_key="id",
)


# apply_patch

_OPERATIONS: Final = ("create_file", "update_file", "delete_file")


def _read_patch(item: JSONObject) -> JSONObject | None:
    operation = item.get("operation")
    return operation if isinstance(operation, dict) and isinstance(operation.get("path"), str) else None


def _write_patch(value: JSON, ours: bool) -> JSONObject | None:  # noqa: FBT001  the same for every kind
    if ours or not isinstance(value, dict):
        return {"operation": value} if isinstance(value, dict) else None
    inner = value.get("operation", value)
    if not isinstance(inner, dict) or inner.get("type") not in _OPERATIONS:
        return None
    deletes = inner["type"] == "delete_file"
    operation = _known(inner, type=str, path=str, **({} if deletes else {"diff": str}))
    return {"operation": operation} if len(operation) == 3 - deletes else None


def _patch_said(item: JSONObject) -> tuple[tuple[Part, ...], bool | None] | None:
    status, output = item.get("status"), item.get("output")
    if not isinstance(status, str) or not (output is None or isinstance(output, str)):
        return None
    return (Text(text=output or status),), True if status == "failed" else None


def _patch_result(text: str, _: JSONObject | None, failed: bool) -> JSONObject:  # noqa: FBT001  as above
    return {"status": "failed" if failed else "completed", "output": text}


APPLY_PATCH: Final = ClientTool(
    tool="apply_patch",
    call="apply_patch_call",
    output="apply_patch_call_output",
    prefix="apc",
    name="apply_patch",
    description=(
        "Creates, updates or deletes one file. A `diff` for `create_file` has the whole file, `+` in front of each"
        " line. One for `update_file` has sections that begin with a line `@@`, or `@@` and the line of the class or"
        " function that the section is in; then some lines of context after a space, lines to remove after `-` and"
        " lines to add after `+`, without line numbers. `delete_file` takes no diff."
    ),
    parameters=object_schema(
        "type path",
        type=typed("string", "What to do.", enum=[*_OPERATIONS]),
        path=typed("string", "The path of the file, relative to the workspace."),
        diff=typed("string", "For `create_file` and `update_file`: the diff."),
    ),
    read=_read_patch,
    write=_write_patch,
    said=_patch_said,
    result=_patch_result,
)


# computer

_POINT: Final[JSONObject] = {"x": {"type": "integer"}, "y": {"type": "integer"}}
_BUTTONS: Final = ("left", "right", "wheel", "back", "forward")
_ACTIONS: Final[dict[str, JSONObject]] = {
    "click": {"button": "left", "x": None, "y": None},
    "double_click": {"x": None, "y": None},
    "drag": {"path": None},
    "keypress": {"keys": None},
    "move": {"x": None, "y": None},
    "screenshot": {},
    "scroll": {"x": None, "y": None, "scroll_x": 0, "scroll_y": 0},
    "type": {"text": None},
    "wait": {},
}
"""The actions, with the fields that each needs and what stands for one that is left out; `None`: nothing may."""

_ACTION: Final = object_schema(
    "type",
    type={"type": "string", "enum": [*_ACTIONS]},
    x=typed("integer", "For `click`, `double_click`, `move` and `scroll`: pixels from the left edge of the screen."),
    y=typed("integer", "For the same: pixels from the upper edge."),
    button=typed("string", "For `click`.", enum=[*_BUTTONS]),
    scroll_x=typed("integer", "For `scroll`: pixels to the right."),
    scroll_y=typed("integer", "For `scroll`: pixels down."),
    path={"type": "array", "items": object_schema("x y", **_POINT), "description": "For `drag`: points to drag along."},
    keys={**_STRINGS, "description": "For `keypress`: the keys to press together. Else: keys held down."},
    text=typed("string", "For `type`: the text."),
)
_USES: Final = "Uses the mouse and keyboard of a computer; the result is a screenshot taken afterwards."


def _read_computer(item: JSONObject) -> JSONObject | None:
    found = {key: item[key] for key in ("action", "actions") if item.get(key) is not None}
    fits = isinstance(found.get("actions", []), list) and isinstance(found.get("action", {}), dict)
    return found if found and fits else None


def _completed(value: JSON) -> JSONObject | None:
    """Return an action with the fields that it needs; `None` if one of them is missing."""
    if not isinstance(value, dict) or value.get("type") not in _ACTIONS:
        return None
    action = {**_ACTIONS[value["type"]], **value}
    return None if None in action.values() else action


def _actions_of(value: JSON) -> list[JSON] | None:
    if isinstance(value, dict) and isinstance(value.get("actions"), list):
        found: list[JSON] = value["actions"]
        return found
    inner = value.get("action") if isinstance(value, dict) and isinstance(value.get("action"), dict) else value
    return [inner] if isinstance(inner, dict) and "type" in inner else None


def _write_computer(value: JSON, ours: bool) -> JSONObject | None:  # noqa: FBT001  the same for every kind
    if ours and isinstance(value, dict):
        return value
    actions = [_completed(action) for action in _actions_of(value) or ()]
    return {"actions": actions, "pending_safety_checks": []} if actions and None not in actions else None


def _write_preview(value: JSON, ours: bool) -> JSONObject | None:  # noqa: FBT001  the same for every kind
    fields = _write_computer(value, ours)
    if ours or fields is None:
        return fields
    actions = fields.pop("actions")
    return {"action": actions[0], **fields} if len(actions) == 1 else None


def _screen_said(item: JSONObject) -> tuple[tuple[Part, ...], bool | None] | None:
    match item.get("output"):
        case {"image_url": str(url)}:
            return (Image(source=source_of(url)),), None
        case {"file_id": str(file_id)}:
            return (Image(source=Stored(id=file_id)),), None
        case _:
            return None


def _screen_result(_: str, image: JSONObject | None, __: bool) -> JSONObject:  # noqa: FBT001  as above
    return {"output": {"type": "computer_screenshot", **(image or {})}}


COMPUTER: Final = ClientTool(
    tool="computer",
    call="computer_call",
    output="computer_call_output",
    prefix="cu",
    name="computer",
    description=_USES,
    parameters=object_schema(
        "actions", actions={"type": "array", "items": _ACTION, "description": "What to do, in this order."}
    ),
    read=_read_computer,
    write=_write_computer,
    said=_screen_said,
    result=_screen_result,
    holds="image",
)
COMPUTER_PREVIEW: Final = ClientTool(
    tool="computer_use_preview",
    call="computer_call",
    output="computer_call_output",
    prefix="cu",
    name="computer",
    description=_USES,
    parameters=object_schema("action", action={**_ACTION, "description": "What to do."}),
    read=_read_computer,
    write=_write_preview,
    said=_screen_said,
    result=_screen_result,
    holds="image",
)
