"""Values that grow: every list, object and text of a vector, repeated as often as one likes.

What is repeated comes `alike`, as a server or a client that repeats itself would send it, or `apart`: each round has
ids, names, indexes and texts of its own. `crossed` are rounds of several items: first that of each round, then the next
of each, as calls that grow side by side. So a new vector, and a new dialect with its vectors, bring their elements.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from xenoglot.model.json import JSON

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Path: TypeAlias = tuple[str | int, ...]

How: TypeAlias = Literal["alike", "apart", "crossed"]

HOWS: tuple[How, ...] = ("alike", "apart", "crossed")

FEW = 4
"""Items that are repeated as often as was asked; more are repeated less often."""

LONGEST = 300
"""Characters of a name."""

DEEPEST = 24
"""Schemas nest that much deeper in a round; no server takes hundreds of levels."""


class Element(Struct, frozen=True):
    """Something that can be repeated: its name, a key by which those of one shape are the same, and the maker."""

    name: str
    key: str
    make: Callable[[int], JSON]


def elements(value: JSON) -> Iterator[Element]:
    """Yield all that can grow in a JSON value."""
    for path, inner in _walk(value, ()):
        where = _spelled(path)
        if isinstance(inner, list) and inner:
            yield from _of_list(value, path, inner, where)
        elif isinstance(inner, dict):
            yield _element(f"{where}, fields", value, path, partial(_widened, inner))
            if isinstance(inner.get("properties"), dict):
                yield _element(f"{where}, nested", value, path, partial(_nested, inner))
        elif isinstance(inner, str) and inner:
            yield _element(f"{where}, text", value, path, inner.__mul__)
            if inner.startswith("{"):
                yield _element(f"{where}, arguments", value, path, _arguments)


def _of_list(value: JSON, path: Path, inner: list[JSON], where: str) -> Iterator[Element]:
    last = len(inner)
    single = [(index, index + 1) for index in range(last)]
    several = [(0, last), (1, last - 1), (1, last - 2)]
    for begin, end in (*single, *several):
        if end <= begin or (end == begin + 1 and (begin, end) in several and last > 1):
            continue
        shapes = ", ".join(dict.fromkeys(shape(item) for item in inner[begin:end]))
        for how in HOWS if end > begin + 1 else HOWS[:2]:
            yield _element(f"{where}: {shapes} {how}", value, path, _spliced(inner, begin, end, how))


def together(value: JSON) -> Element:
    """Return all lists of a value that lie in no other one as one element: what is looked up in what grows, too."""
    found = [(path, inner) for path, inner in _walk(value, ()) if isinstance(inner, list) and inner]
    outer = [(path, inner) for path, inner in found if not any(isinstance(step, int) for step in path)]

    def make(count: int) -> JSON:
        made = value
        for path, inner in outer:
            made = _replaced(made, path, repeated(inner, count, "apart"))
        return made

    name = ", ".join(f"{_spelled(path)}: {shape(inner)}" for path, inner in outer)
    return Element(f"together {name}"[:LONGEST], name, make)


def _spliced(items: Sequence[JSON], begin: int, end: int, how: How) -> Callable[[int], JSON]:
    """Return what gives `items` with those from `begin` to `end` repeated in their place."""

    def make(count: int) -> JSON:
        rounds = max(count // -(-(end - begin) // FEW), 1)
        return [*items[:begin], *repeated(items[begin:end], rounds, how), *items[end:]]

    return make


def repeated(items: Sequence[JSON], count: int, how: How) -> list[JSON]:
    """Return `items` so many times."""
    if how == "alike":
        return [deepcopy(item) for _ in range(count) for item in items]
    if how == "apart":
        return [apart(item, number) for number in range(count) for item in items]
    return [apart(item, number) for item in items for number in range(count)]


def apart(value: JSON, number: int, key: str = "") -> JSON:
    """Return a value with ids, names and places that no other round has."""
    match value:
        case dict():
            return {name: apart(inner, number, name) for name, inner in value.items()}
        case list():
            return [apart(inner, number, key) for inner in value]
        case str() if key.endswith(("id", "name", "text", "content", "signature", "thinking")) and value:
            return f"{value}_{number:04}"
        case int() if key.endswith("index") and not isinstance(value, bool):
            return value + number
        case _:
            return value


def shape(value: JSON, depth: int = 2) -> str:
    """Return what a value looks like, to some depth: those of one shape cost the same."""
    match value:
        case dict() if depth:
            kind = next((value[key] for key in ("type", "role") if isinstance(value.get(key), str)), "")
            nested = [(key, inner) for key, inner in value.items() if isinstance(inner, dict | list)]
            inside = [f"{key}={shape(inner, depth - 1)}" for key, inner in nested]
            return f"{kind}{{{' '.join(sorted(inside))}}}"
        case list() if depth:
            return f"[{', '.join(sorted({shape(inner, depth - 1) for inner in value}))}]"
        case dict() | list():
            return "..."
        case _:
            return type(value).__name__


def _element(name: str, value: JSON, path: Path, make: Callable[[int], JSON]) -> Element:
    return Element(name[:LONGEST], name, lambda count: _replaced(value, path, make(count)))


def _replaced(value: JSON, path: Path, new: JSON) -> JSON:
    if not path:
        return new
    first, *rest = path
    if isinstance(value, dict):
        return {**value, first: _replaced(value[first], tuple(rest), new)}
    return [_replaced(item, tuple(rest), new) if index == first else item for index, item in enumerate(value)]


def _walk(value: JSON, path: Path) -> Iterator[tuple[Path, JSON]]:
    yield path, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from _walk(inner, (*path, key))


def _spelled(path: Path) -> str:
    return "$" + "".join("[]" if isinstance(step, int) else f".{step}" for step in path)


def _widened(old: JSON, count: int) -> JSON:
    return {**old, **{f"x_{number}": number for number in range(count)}}


def _nested(schema: JSON, count: int) -> JSON:
    for _ in range(min(count, DEEPEST)):
        schema = {"type": "object", "properties": {"x": schema}, "required": ["x"]}
    return schema


def _arguments(count: int) -> str:
    return "{" + ", ".join(f'"k{number}": "v"' for number in range(count)) + "}"
