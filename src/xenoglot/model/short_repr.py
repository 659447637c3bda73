"""`repr()` of values: one line of at most `LONGEST` characters, with the fields that differ from their defaults."""

from __future__ import annotations

from itertools import chain
from reprlib import Repr
from typing import Final

from msgspec import NODEFAULT, Struct

LONGEST: Final = 300
"""Characters of the `repr()` of a value."""

_END: Final = "...)"


class _ShortRepr(Repr):
    """Shortens texts and collections, leaves out fields of structs that have their defaults, hides secret ones."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 5
        self.maxstring = self.maxother = 80

    def repr1(self, x: object, level: int) -> str:
        if not isinstance(x, Struct):
            return super().repr1(x, level)
        kind = type(x).__name__
        if level <= 0:
            return f"{kind}(...)"
        secret = getattr(type(x), "SECRET", ())
        shown = ((name, "..." if name in secret else self.repr1(value, level - 1)) for name, value in set_fields(x))
        fields = ", ".join(f"{name}={value}" for name, value in shown)
        return f"{kind}({fields})"


_shorten = _ShortRepr().repr


def set_fields(value: Struct) -> list[tuple[str, object]]:
    """Return the fields of a struct that differ from their defaults."""
    names, defaults = value.__struct_fields__, value.__struct_defaults__
    missing = [NODEFAULT] * (len(names) - len(defaults))
    fields = [
        (name, getattr(value, name), default) for name, default in zip(names, chain(missing, defaults), strict=True)
    ]
    return [(name, found) for name, found, default in fields if found != _made(default)]


def _made(default: object) -> object:
    """Return a default; that of a list or a dict is a function that makes it."""
    make = getattr(default, "factory", None)
    return default if make is None else make()


def short_repr(value: object) -> str:
    """Return the `repr()` of a struct, or of anything else; a longer one is cut."""
    return _cut(_shorten(value))


def described(value: object, /, **facts: object) -> str:
    """Return the `repr()` of an object whose class does not hold its fields: its class and `facts` that are set."""
    shown = ", ".join(f"{name}={_shorten(fact)}" for name, fact in facts.items() if fact not in (None, ()))
    return _cut(f"{type(value).__name__}({shown})")


def _cut(text: str) -> str:
    line = text if text.isprintable() else " ".join(text.split())
    return line if len(line) <= LONGEST else line[: LONGEST - len(_END)] + _END
