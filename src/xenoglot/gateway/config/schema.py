"""Plain data (what TOML gives) into frozen structs, with every mistake collected, each under its path.

The struct is the schema: its fields are the keys, their types what may stand there, their defaults what is meant where
nothing does. A nested struct is a table, a tuple of structs an array of tables, a dictionary of structs named tables.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin

import msgspec

from xenoglot.backends.redaction import for_log

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from xenoglot.model.json import JSON

T = TypeVar("T", bound=msgspec.Struct)

LONGEST_SHOWN = 60
"""Characters of a text that a message repeats."""

NOTHING: Any = object()
"""What a mistaken value becomes: its field takes the default, so that the rest can be looked at."""


class Problems:
    """The mistakes found so far. `names` are what some paths are called where the data came from."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.lines: list[str] = []
        self._names = names

    def add(self, path: str, problem: str) -> None:
        """Note what is wrong at `path`, once."""
        line = f"{self._names.get(path, path)}: {problem}"
        if line not in self.lines:
            self.lines.append(line)


def read(kind: type[T], value: JSON, path: str, problems: Problems) -> T | None:
    """Return `value` as a `kind`; `None` if a field without default is missing or wrong, or it is no table at all."""
    if not isinstance(value, dict):
        problems.add(path or "the file", f"found {shown(value)}; expected a table")
        return None
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    taken: dict[str, Any] = {}
    for key, item in value.items():
        if key not in fields:
            problems.add(join(path, key), unknown(key, fields))
            continue
        read_item = _read(fields[key].type, item, join(path, key), problems)
        if read_item is not NOTHING:
            taken[key] = read_item
    missing = [name for name, field in fields.items() if field.required and name not in taken]
    for name in missing:
        if name not in value:
            problems.add(join(path, name), "required, and not there")
    return None if missing else kind(**taken)


def join(path: str, key: str) -> str:
    """Return the path of `key` under `path`, written as TOML writes it."""
    bare = key.replace("-", "").replace("_", "")
    name = key if bare.isalnum() and bare.isascii() else f'"{key}"'
    return f"{path}.{name}" if path else name


def shown(value: JSON) -> str:
    """Return `value` for a message: short, and no more of it than helps."""
    if isinstance(value, str):
        return f'"{for_log(value, LONGEST_SHOWN)}"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a table"
    return "a list" if isinstance(value, list) else str(value)


def unknown(key: str, known: Iterable[str]) -> str:
    """Return what to say of a word that is none of `known`."""
    words = list(known)
    near = get_close_matches(key, words, n=1)
    return f"unknown; did you mean `{near[0]}`?" if near else f"unknown; expected one of {', '.join(words)}"


def _read(kind: Any, value: JSON, path: str, problems: Problems) -> Any:  # noqa: ANN401  as its field says
    """Return `value` as `kind`, a field's type; `NOTHING` if it is not one."""
    kind, nested = _unwrapped(kind), None
    origin, arguments = get_origin(kind), get_args(kind)
    if _is_struct(kind):
        nested = read(kind, value, path, problems)
        return NOTHING if nested is None else nested
    if origin is dict and _is_struct(arguments[1]) and isinstance(value, dict):
        tables = {key: read(arguments[1], item, join(path, key), problems) for key, item in value.items()}
        return {key: table for key, table in tables.items() if table is not None}
    if origin is tuple and _is_struct(arguments[0]) and isinstance(value, list):
        rows = [read(arguments[0], item, f"{path}[{index}]", problems) for index, item in enumerate(value)]
        return tuple(row for row in rows if row is not None)
    if origin is Literal and value not in arguments:
        problems.add(path, f"found {shown(value)}; expected one of {', '.join(arguments)}")
        return NOTHING
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        problems.add(path, f"found {shown(value)}; {_expected(str(error))}")
        return NOTHING


def _unwrapped(kind: Any) -> Any:  # noqa: ANN401  a type
    """Return the struct in `Struct | None`, and anything else as it is."""
    arguments = [argument for argument in get_args(kind) if argument is not type(None)]
    return arguments[0] if len(arguments) == 1 and type(None) in get_args(kind) and _is_struct(arguments[0]) else kind


def _is_struct(kind: Any) -> bool:  # noqa: ANN401  a type
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _expected(message: str) -> str:
    """Return msgspec's message without its own path: `Expected `int`, got `str` - at `$[0]`` -> `expected int`."""
    text = message.partition(" - at ")[0].partition(", got")[0].replace("`", "")
    return text[:1].lower() + text[1:]
