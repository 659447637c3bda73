"""The fields of a struct that a dialect or a backend supports; every other field that is set is a `Loss`.

An encoder lists the fields that it handles, never those that it does not. So a field that is added to the canonical
model is reported by every dialect and backend until one of them handles it.
"""

from __future__ import annotations

from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from msgspec import Struct

    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSON

NO_FIELD: Final = "the dialect has no such field"

CORE: Final = (
    "model",
    "messages",
    "prompt",
    "tools",
    "tool_choice",
    "sampling",
    "output",
    "stream",
    "stream_usage",
    "previous",
)
"""The fields of a `Request` that every encoder and backend handles: written, refused or reported part by part."""

NEUTRAL: Final[Mapping[str, JSON]] = MappingProxyType({"user": "", "metadata": {}, "verbosity": "", "cache_key": ""})
"""Values of fields of a `Request` that request nothing: some clients send all their defaults."""

STATELESS: Final[Mapping[str, JSON]] = MappingProxyType({**NEUTRAL, "store": False})
"""The same for a server that stores nothing anyway."""


class Fields:
    """The fields of `struct` that are supported: `known`. `where` is the path of the struct in losses.

    `neutral` maps a field to the value that requests nothing; a field that is not set has its default value. `extra`
    is not one of the fields: `Losses.carry` reports it.
    """

    def __init__(
        self,
        struct: type[Struct],
        where: str,
        known: Iterable[str],
        *,
        neutral: Mapping[str, JSON] = MappingProxyType({}),
        why: str = NO_FIELD,
    ) -> None:
        fields = {field.name: field.default for field in msgspec.structs.fields(struct) if field.name != "extra"}
        supported = frozenset(known)
        if wrong := sorted((supported | neutral.keys()) - fields.keys()):
            raise ValueError(f"{struct.__name__} has no field {', '.join(wrong)}")
        self.unsupported: Final = tuple(name for name in fields if name not in supported)
        self._where = where
        self._why = why
        self._values = _getter(self.unsupported)
        self._unset = tuple(fields[name] for name in self.unsupported)
        self._neutral = tuple(neutral.get(name, fields[name]) for name in self.unsupported)

    def note_unsupported(self, value: Struct, losses: Losses) -> None:
        """Record each field of `value` that is set, requests something and is not supported."""
        if not self.unsupported or (given := self._values(value)) == self._unset:
            return
        for name, one, unset, neutral in zip(self.unsupported, given, self._unset, self._neutral, strict=True):
            if one not in (unset, neutral):
                losses.dropped(self._where, name, self._why)


def _getter(names: tuple[str, ...]) -> Callable[[Struct], tuple[JSON, ...]]:
    """Return a function that gets all these attributes as a tuple, however few they are."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)
