"""Every field of the vendors' request types, one at a time: a body without it, and the same body with it."""

import collections.abc
import types
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, Required, TypeAlias, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from xenoglot.model.json import JSON, JSONObject

Hint: TypeAlias = Any
"""A type as the SDKs write it: a class, a `TypedDict`, or a form of `typing`."""

Values: TypeAlias = Mapping[str, JSON]
"""The value of a field by its name, for those of which any string or number is not enough."""


class Change(NamedTuple):
    """One field (`path` into the body) with the body before and after it is set.

    `outer` are bodies without one of the objects that it stands in, the innermost first.
    """

    path: str
    before: JSON
    after: JSON
    outer: tuple[JSON, ...] = ()


class Types:
    """What the types of one vendor allow.

    `bases` are the smallest valid objects, by the name of their type, or of type and field (`Part.thought`): that one
    is what stands beside the field.
    """

    def __init__(self, bases: Mapping[str, JSONObject], values: Values) -> None:
        self._bases = bases
        self._values = values

    def changes(self, hint: Hint, name: str = "", seen: tuple[Hint, ...] = ()) -> Iterator[Change]:
        """Yield the changes within the values of a type, each path relative to the value."""
        if hint in seen:
            return
        if is_struct(hint):
            yield from self._of_struct(hint, (*seen, hint))
        elif (item := item_of(hint)) is not None:
            for path, before, after, outer in self.changes(item, name, seen):
                yield Change(f"[0]{path}", [before], [after], tuple([value] for value in outer))
        elif is_union(hint):
            for member in get_args(hint):
                yield from self.changes(member, name, seen)

    def _of_struct(self, struct: Hint, seen: tuple[Hint, ...]) -> Iterator[Change]:
        for name, hint in fields_of(struct).items():
            base = self._bases.get(f"{struct.__name__}.{name}", self.base(struct))
            without = {key: value for key, value in base.items() if key != name}
            for sample in self.samples(hint, name):
                if sample != base.get(name, ...):
                    yield Change(f".{name}", base, {**without, name: sample})
            for path, before, after, outer in self.changes(hint, name, seen):
                around = tuple({**without, name: value} for value in outer)
                around = (*around, base if name in required(struct) else without)
                yield Change(f".{name}{path}", {**without, name: before}, {**without, name: after}, around)

    def base(self, struct: Hint) -> JSONObject:
        """Return the smallest object of a type."""
        if (given := self._bases.get(struct.__name__)) is not None:
            return given
        hints = fields_of(struct)
        return {name: self.samples(hints[name], name)[0] for name in required(struct)}

    def samples(self, hint: Hint, name: str) -> list[JSON]:
        """Return a value of each form that a type has."""
        if name in self._values:
            return [self._values[name]]
        if is_struct(hint):
            return [self.base(hint)]
        if is_union(hint):
            return [sample for member in get_args(hint) for sample in self.samples(member, name)]
        if (item := item_of(hint)) is not None:
            return [[sample] for sample in self.samples(item, name)] or [[]]
        return _plain(hint)


def _plain(hint: Hint) -> list[JSON]:
    origin: object = get_origin(hint)
    if origin is Literal:
        return [*get_args(hint)]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return [word.value for word in hint]
    plain: dict[Hint, list[JSON]] = {
        type(None): [],
        bool: [True, False],
        int: [1],
        float: [0.5],
        bytes: ["QUFB"],
        str: ["x"],
    }
    return plain.get(hint, [{"key": "value"}])


def is_struct(hint: Hint) -> bool:
    """Return whether a type is an object with fields of its own."""
    return hasattr(hint, "__required_keys__") or (isinstance(hint, type) and issubclass(hint, BaseModel))


def is_union(hint: Hint) -> bool:
    """Return whether a type is one of several."""
    origin: object = get_origin(hint)
    return origin in (Union, types.UnionType)


def item_of(hint: Hint) -> Hint:
    """Return the type of the items of a list."""
    origin: object = get_origin(hint)
    if origin in (list, collections.abc.Iterable, collections.abc.Sequence):
        return _bare(get_args(hint)[0])
    return None


@cache
def fields_of(struct: Hint) -> dict[str, Hint]:
    """Return the types of the fields of an object, by their names on the wire."""
    if hasattr(struct, "__required_keys__"):
        return {name: _bare(hint) for name, hint in get_type_hints(struct).items()}
    return {field.alias or name: _bare(field.annotation) for name, field in struct.model_fields.items()}


@cache
def required(struct: Hint) -> list[str]:
    """Return the names of the fields that an object must have."""
    if hasattr(struct, "__required_keys__"):
        hints = get_type_hints(struct, include_extras=True)
        return [
            name for name, hint in hints.items() if get_origin(hint) is Required or name in struct.__required_keys__
        ]
    return [field.alias or name for name, field in struct.model_fields.items() if field.is_required()]


def _bare(hint: Hint) -> Hint:
    origin: object = get_origin(hint)
    if origin is Annotated:
        return _bare(get_args(hint)[0])
    if is_union(hint):
        members = [_bare(member) for member in get_args(hint) if member is not type(None)]
        return members[0] if len(members) == 1 else Union[tuple(members)]  # noqa: UP007  made of a list
    return hint
