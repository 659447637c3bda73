"""The paths of losses: what stands at one, in the request or the answer that crossed."""

import re

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
    return isinstance(value, Struct) and (what in own or what.partition(".")[0] in value.__struct_fields__)


def inside(path: str, place: str) -> bool:
    """Whether `path` is `place`, or in it; everything but `$` itself is in a place of its own."""
    return place == path or path.startswith((f"{place}.", f"{place}["))
