"""The paths of losses: what stands at one, in the request or the answer that crossed."""

import re
from collections.abc import Iterator

from msgspec import Struct

from xenoglot.model.content import Extra

_STEP = re.compile(r"\.([a-z_]+)|\[(\d+)\]")


def at(whole: Struct, path: str) -> object:
    """Return what stands at `path` in `whole`.

    Raises:
        LookupError: nothing can stand there, or it is no path at all.
    """
    if not path.startswith("$") or _STEP.sub("", path[1:]):
        raise LookupError(f"{path} is no path")
    value: object = whole
    for name, index in _STEP.findall(path):
        if index:
            if not isinstance(value, tuple) or int(index) >= len(value):
                raise LookupError(f"{path}: there is no [{index}]")
            value = value[int(index)]
        elif not isinstance(value, Struct) or name not in value.__struct_fields__:
            raise LookupError(f"{path}: there is no .{name}")
        else:
            value = getattr(value, name)
    return value


def is_field(whole: Struct, where: str, what: str) -> bool:
    """Whether `what` is a field of that which stands at `where`, be it one that only its dialect knows."""
    try:
        value = at(whole, where)
    except LookupError:
        return False
    extra = getattr(value, "extra", None)
    own = extra.fields if isinstance(extra, Extra) else {}
    known = {*own, *(value.__struct_fields__ if isinstance(value, Struct) else ())}
    return isinstance(value, Struct) and (what in own or what.partition(".")[0] in known)


def places(whole: Struct, where: str, what: str) -> list[str]:
    """Return where a thing is that is named at `where`: there, or in each of those in it that it is of."""
    if where == "$" or is_field(whole, where, what):
        return [where]
    try:
        value = at(whole, where)
    except LookupError:
        return [where]
    return [path for path, inner in _within(value, where) if _says(inner, what)] or [where]


def _within(value: object, path: str) -> Iterator[tuple[str, Struct]]:
    """Yield every value in `value`, with its path."""
    if isinstance(value, Struct):
        yield path, value
        for name in value.__struct_fields__:
            yield from _within(getattr(value, name), f"{path}.{name}")
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from _within(item, f"{path}[{index}]")


def _says(value: Struct, name: str) -> bool:
    """Whether a value says something under a name, or is of a kind of that name."""
    extra = getattr(value, "extra", None)
    own = isinstance(extra, Extra) and name in extra.fields
    return own or bool(getattr(value, name, None)) or getattr(value, "kind", None) == name


def inside(path: str, place: str) -> bool:
    """Whether `path` is `place`, or in it; everything but `$` itself is in a place of its own."""
    return place == path or path.startswith((f"{place}.", f"{place}["))
