"""Decodes a call with partial arguments, which Vertex AI streams with `streamFunctionCallArguments`.

The first piece has the name, each `partialArgs` entry a JSON path and a value; strings grow by entries of the same
path. `willContinue` stands in every piece but the last, which is often an empty `functionCall`. Paths may come in any
order, so the arguments are text only when the call is complete. Each entry costs its own length, however many came
before.

Source: `FunctionCall` and `PartialArg` in `google/genai/types.py` and in `google/cloud/aiplatform/v1/content.proto`.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from msgspec.structs import replace

from xenoglot.codec.json.json_io import to_text
from xenoglot.codec.reader import Reader
from xenoglot.dialects.gemini.extras import NAME, SIGNATURE
from xenoglot.dialects.gemini.tool_calls import read_call
from xenoglot.errors import WireError
from xenoglot.model.content import Extra, ToolCall

if TYPE_CHECKING:
    from xenoglot.dialects.gemini.tool_calls import CallIds
    from xenoglot.model.json import JSON, JSONObject

CALL = "functionCall"
_PARTS = frozenset({"partialArgs", "willContinue"})
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")

MAX_DEPTH = 100
"""Steps of a path; no schema of a function is nearly as deep."""

_STEP = re.compile(
    r"""
    \.(?P<name>[^.\[\]]+) | \[(?P<index>[0-9]{1,9})\]
    | \['(?P<single>(?:[^'\\]|\\.)*)'\] | \["(?P<double>(?:[^"\\]|\\.)*)"\]
    """,
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(.)")

_Key: TypeAlias = "str | int"


class _Node:
    """An object or a list that is incomplete; `values` by key, or by index."""

    __slots__ = ("is_list", "values")

    def __init__(self, *, is_list: bool) -> None:
        self.is_list = is_list
        self.values: dict[_Key, _Value] = {}


_Value: TypeAlias = "_Node | list[str] | float | bool | None"
"""A list holds the pieces of a string."""


def is_partial(value: JSON) -> bool:
    """Return whether a part holds a piece of a call: its beginning, some arguments, or its end."""
    call = value.get(CALL) if isinstance(value, dict) else None
    return isinstance(call, dict) and (not call or not _PARTS.isdisjoint(call))


class PartialCall:
    """A call that started with the part `value`, which contains its name.

    Raises:
        WireError: it has none.
    """

    __slots__ = ("_last", "_path", "_root", "_signature", "header")

    def __init__(self, value: JSONObject, path: str, ids: CallIds) -> None:
        own = {key: field for key, field in value[CALL].items() if key not in _PARTS}
        header = read_call(Reader({**value, CALL: {"args": {}, **own}}, path), ids)
        self.header = replace(header, arguments="")
        self._root = _Node(is_list=False)
        self._root.values |= {key: _grown(inner) for key, inner in (own.get("args") or {}).items()}
        self._path = ""
        self._last: tuple[_Node, _Key] | None = None
        """Where the last value stands, whose path was `_path`."""
        self._signature: str | None = None

    def is_continued_by(self, value: JSONObject) -> bool:
        """Return whether a piece belongs to this call: it repeats the name and id of the call, or has none."""
        call = value[CALL]
        same_name = call.get("name") in (None, "", self.header.name)
        return same_name and call.get("id") in (None, "", self.header.id)

    def feed(self, value: JSONObject, path: str) -> bool:
        """Take a piece; return whether another follows.

        Raises:
            WireError: it is malformed.
        """
        reader = Reader(value[CALL], f"{path}.{CALL}")
        for entry in reader.objects("partialArgs"):
            self._take(entry)
        if isinstance(signature := value.get(SIGNATURE), str):
            self._signature = signature
        return reader.take("willContinue", bool) is True

    def whole(self, *, complete: bool) -> ToolCall:
        """Return the call; one that is not `complete` lacks the end of its arguments, so that no client runs it."""
        text = to_text(_json(self._root))
        extra = self.header.extra
        if self._signature is not None and (extra is None or SIGNATURE not in extra.fields):
            extra = extra or Extra(dialect=NAME)
            extra = replace(extra, fields={**extra.fields, SIGNATURE: self._signature})
        return replace(self.header, arguments=text if complete else text[:-1], extra=extra)

    def _take(self, entry: Reader) -> None:
        path = entry.need("jsonPath", str)
        if path != self._path or self._last is None:
            self._last, self._path = self._place(path, entry.at("jsonPath")), path
        node, key = self._last
        said = next((name for name in _VALUES if name in entry.rest()), None)  # `nullValue` may itself be null
        if said in (None, "stringValue"):
            text = (entry.take("stringValue", str) if said else None) or ""
            before = node.values.get(key)
            if isinstance(before, list):
                before.append(text)
            else:
                node.values[key] = [text]
        elif said == "nullValue":
            node.values[key] = None
        elif said == "boolValue":
            node.values[key] = entry.take("boolValue", bool)
        else:
            number = entry.take_any("numberValue")
            if type(number) not in (int, float):
                raise WireError(entry.at("numberValue"), "expected a number")
            node.values[key] = number

    def _place(self, path: str, where: str) -> tuple[_Node, _Key]:
        steps = _steps(path, where)
        node = self._root
        for key, following in pairwise(steps):
            inner = node.values.get(key)
            if not isinstance(inner, _Node):
                inner = node.values[key] = _Node(is_list=isinstance(following, int))
            node = inner
        return node, steps[-1]


def _steps(path: str, where: str) -> list[_Key]:
    """Return the keys and indexes of a path below `$` (RFC 9535)."""
    steps: list[_Key] = []
    place = 1
    while place < len(path) and path[0] == "$" and len(steps) <= MAX_DEPTH:
        match = _STEP.match(path, place)
        if match is None:
            break
        if match["index"] is not None:
            steps.append(int(match["index"]))
        elif match["name"] is not None:
            steps.append(match["name"])
        else:
            quoted = match["single"] if match["single"] is not None else match["double"]
            steps.append(_ESCAPE.sub(r"\1", quoted))
        place = match.end()
    if place < len(path) or not steps or len(steps) > MAX_DEPTH:
        raise WireError(where, "expected a JSON path of an argument, like `$.city`")
    return steps


def _grown(value: JSON) -> _Value:
    """Return a value that came whole as one that can grow."""
    match value:
        case dict() | list():
            node = _Node(is_list=isinstance(value, list))
            pairs = value.items() if isinstance(value, dict) else enumerate(value)
            node.values |= {key: _grown(inner) for key, inner in pairs}
            return node
        case str():
            return [value]
        case int() | float() | None:
            return value
        case _:
            return None


def _json(value: _Value) -> JSON:
    match value:
        case _Node(is_list=True):
            return [_json(value.values[key]) for key in sorted(value.values, key=_order)]
        case _Node():
            return {str(key): _json(inner) for key, inner in value.values.items()}
        case list():
            return "".join(value)
        case _:
            return value


def _order(key: _Key) -> tuple[int, str]:
    return (key, "") if isinstance(key, int) else (0, key)
