"""Field tables: the fields of a struct as a dialect or a backend spells them, one row each.

Decoding, encoding, losses and documentation are all derived from the rows. A table lists the fields that are supported,
never those that are not: every other field that is set is a `Loss`. So a field that is added to the canonical model is
reported by every dialect and backend until one of them has a row for it.

A table is compiled when it is made: reading looks up only the keys that a body has, and writing visits the rows only
if a field is set.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import compress
from math import inf
from operator import attrgetter, is_not
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from xenoglot.codec.loss import Losses
from xenoglot.codec.reader import Reader
from xenoglot.codec.requests.checks import between
from xenoglot.codec.requests.encode_context import EncodeContext
from xenoglot.errors import WireError
from xenoglot.model.context import KEEP_THINKING, ContextManagement
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import MediaOutput

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

NEUTRAL: Final[Mapping[str, Any]] = MappingProxyType(
    {"user": "", "metadata": {}, "verbosity": "", "cache_key": "", "media": MediaOutput(modalities=("text",))}
)
"""Values of fields of a `Request` that request nothing: some clients send all their defaults."""

STATELESS: Final[Mapping[str, Any]] = MappingProxyType({**NEUTRAL, "store": False})
"""The same for a server that stores nothing anyway."""

_NO_CHANGE: Final[Mapping[str, JSON]] = MappingProxyType(
    {"context_management": ContextManagement(edits=(KEEP_THINKING,))}
)
"""Values that request nothing of any server."""

Read: TypeAlias = Callable[[Reader, str, JSONObject], JSON]
"""Takes the value under a key; an unusual spelling goes into the form. `None`: not set, or not understood."""

Write: TypeAlias = Callable[[Any, JSONObject, EncodeContext], JSON]
"""Returns the wire's value for one of ours, from the form of the struct; `None`: nothing is written."""

OutOfRange: TypeAlias = Callable[[float, float, float | None], str]
"""The problem of a number that is out of its range, from the number and the range."""


_is_set: Final = partial(is_not, None)


class FieldTexts(NamedTuple):
    """The texts of a table: for losses of fields without a row, and for errors of numbers out of range."""

    no_field: str = NO_FIELD
    out_of_range: OutOfRange = between


_TEXTS: Final = FieldTexts()


class Field(NamedTuple):
    """One row: a field of ours, and how a dialect spells it.

    `keys` are its names on the wire. The first that a body has counts, and is written back to the same dialect; a
    request from elsewhere gets `written` (without it the first). `server_key` is the fact about a server that names
    the key. `kind` is the type on the wire; numbers are from `low` to `high`, both allowed; `list` is one of strings.
    `read` and `write` stand in for that where the wire's value is not ours. `when` is for which requests the field
    is written; for others it is a `Loss`. A row that does not `reads` is for servers alone: from clients the field is
    unknown.

    A row `by_hand` is read and written by code of the dialect, since it needs more than its own value. `values` and
    `note` are for the documentation.
    """

    name: str
    keys: str | tuple[str, ...] = ()
    kind: type = str
    low: float | None = None
    high: float | None = None
    read: Read | None = None
    write: Write | None = None
    written: str = ""
    server_key: str = ""
    when: Callable[[EncodeContext], bool] | None = None
    reads: bool = True
    by_hand: bool = False
    values: str = ""
    note: str = ""

    def names(self) -> tuple[str, ...]:
        """Return the names on the wire."""
        return (self.keys,) if isinstance(self.keys, str) else self.keys


class NestedFields(NamedTuple):
    """Fields of the same struct that the wire has in an object under `key`."""

    key: str
    fields: Fields


class FieldSummary(NamedTuple):
    """One row of the documentation: names on the wire, our name, the values that are accepted, and a note."""

    keys: tuple[str, ...]
    name: str
    values: str
    note: str


def by_hand(name: str, *keys: str, values: str = "", note: str = "") -> Field:
    """Return the row of a field that code of the dialect reads and writes, not the table."""
    return Field(name, keys, by_hand=True, values=values, note=note)


def count(name: str, *keys: str) -> Field:
    """Return the row of a count, which is read leniently: what is no count stays in the rest."""
    return Field(name, keys, int, read=lambda reader, key, _form: reader.count(key), values="count")


class _Reading(NamedTuple):
    """How the field under one key is read: `takes` are all its names in order if it has several.

    A value of the type `plain`, from `low` to `high`, is taken as it is, if the body has none of the `others`, which
    are the other names of the field. With `unusual` the form notes the name.
    """

    name: str
    take: Read
    takes: tuple[tuple[str, Read], ...]
    plain: type | None
    low: float
    high: float
    others: frozenset[str]
    unusual: bool


class _Writing(NamedTuple):
    """How one field is written: under `key`, or the name in the form if it is `spelled` in several ways."""

    name: str
    key: str
    spelled: bool
    server_key: str
    when: Callable[[EncodeContext], bool] | None
    write: Write | None
    neutral: JSON


class Fields:
    """The fields of `struct` that are supported: a row each, or the name alone if it needs none.

    `where` is the path of the struct in losses. `neutral` maps a field to the value that requests nothing; a field that
    is not set has its default value. `extra` is not one of the fields: `Losses.carry` reports it.
    """

    def __init__(
        self,
        struct: type[Struct],
        where: str,
        rows: Iterable[str | Field | NestedFields],
        *,
        neutral: Mapping[str, JSON] = MappingProxyType({}),
        texts: FieldTexts = _TEXTS,
    ) -> None:
        self._entries: Final = tuple(rows)
        self._where = where
        self._texts = texts
        fields = {field.name: field.default for field in msgspec.structs.fields(struct) if field.name != "extra"}
        supported = self.supported()
        if wrong := sorted((supported | neutral.keys()) - fields.keys()):
            raise ValueError(f"{struct.__name__} has no field {', '.join(wrong)}")
        self.unsupported: Final = tuple(name for name in fields if name not in supported)
        self._values = _getter(self.unsupported)
        self._unset = tuple(fields[name] for name in self.unsupported)
        self._neutral = tuple(neutral.get(name, _NO_CHANGE.get(name, fields[name])) for name in self.unsupported)
        table = [row for row in self._entries if isinstance(row, Field) and not row.by_hand]
        self._readings = {
            key: reading for row in table if row.reads for key, reading in _readings(row, texts.out_of_range)
        }
        self._keys = frozenset(self._readings)
        self._writings = tuple(_writing(row, neutral.get(row.name)) for row in table)
        self._plain = tuple(_plain_key(row) for row in self._writings)
        self._written = _getter(tuple(row.name for row in table))
        self._nothing = (None,) * len(table)

    def supported(self) -> frozenset[str]:
        """Return the names of the fields that have a row here, or in an object within."""
        names: set[str] = set()
        for row in self._entries:
            match row:
                case NestedFields():
                    names |= row.fields.supported()
                case Field():
                    names.add(row.name)
                case _:
                    names.add(row)
        return frozenset(names)

    def read(self, reader: Reader, form: JSONObject) -> JSONObject:
        """Take the fields of the table that `reader` has; `form` gets the names that are not the usual ones.

        Raises:
            WireError: one of them is of a wrong type, or out of its range.
        """
        left, readings = reader.rest(), self._readings
        if self._keys.isdisjoint(left):
            return {}
        found: JSONObject = {}
        for key in [key for key in left if key in readings]:
            name, take, takes, plain, low, high, others, unusual = readings[key]
            value: JSON = left.get(key)
            if name in found or value is None:
                continue
            if type(value) is plain and low <= value <= high and others.isdisjoint(left):  # type: ignore[operator]
                found[name] = value
                if unusual:
                    form[name] = key
                del left[key]
                continue
            value = _first(takes, reader, form) if takes else take(reader, key, form)
            if value is not None:
                found[name] = value
        return found

    def write(self, value: Struct, body: JSONObject, form: JSONObject, context: EncodeContext) -> None:
        """Write the fields of `value` that are set into `body`; those that cannot be written are losses."""
        self.write_known(value, body, form, context)
        self.note_unsupported(value, context.losses)

    def write_known(self, value: Struct, body: JSONObject, form: JSONObject, context: EncodeContext) -> None:
        """Write the fields of the table that are set into `body`: one object of several that hold the struct."""
        given = self._written(value)
        if given == self._nothing:
            return
        rows = zip(self._writings, self._plain, given)  # noqa: B905  each has one item for each row
        for row, key, one in compress(rows, map(_is_set, given)):
            if key:
                body[key] = one
            else:
                self._write(row, one, body, form, context)

    def write_plain(self, value: Struct, body: JSONObject) -> None:
        """Write the fields of the table that are set into `body` as they are: no row has a writer or several names."""
        given = self._written(value)
        body.update(compress(zip(self._plain, given), map(_is_set, given)))  # noqa: B905  both have one item for each row

    def _write(self, row: _Writing, given: JSON, body: JSONObject, form: JSONObject, context: EncodeContext) -> None:
        name, key, spelled, server_key, when, write, neutral = row
        if when is not None and not when(context):
            if given != neutral:
                context.losses.dropped(self._where, name, self._texts.no_field)
            return
        value = given if write is None else write(given, form, context)
        if value is None:
            return
        if spelled:
            key = form.get(name, key)
        if server_key:
            key = getattr(context.target, server_key) or key
        body[key] = value

    def note_unsupported(self, value: Struct, losses: Losses, where: str | None = None) -> None:
        """Record each field of `value` that is set, requests something and is not supported; `where` of one of many."""
        if not self.unsupported or (given := self._values(value)) == self._unset:
            return
        for name, one, unset, neutral in zip(self.unsupported, given, self._unset, self._neutral):  # noqa: B905  as above
            if one != unset and one != neutral:  # noqa: PLR1714  a tuple costs more
                losses.dropped(where or self._where, name, self._texts.no_field)

    def documented(self, prefix: str = "") -> Iterator[FieldSummary]:
        """Yield each row for the documentation, its names on the wire with `prefix` in front."""
        for row in self._entries:
            match row:
                case NestedFields():
                    yield from row.fields.documented(f"{prefix}{row.key}.")
                case Field(keys=keys) if keys:
                    yield FieldSummary(tuple(prefix + key for key in row.names()), row.name, _values(row), row.note)


def words(known: Mapping[str, str] | Collection[str]) -> Read:
    """Return what takes one of the `known` words, ours for the wire's if it is a mapping; another stays in the rest."""

    def take(reader: Reader, key: str, _form: JSONObject) -> JSON:
        word = reader.take_word(key, known)
        return known[word] if isinstance(known, Mapping) and word is not None else word

    return take


def _readings(row: Field, out_of_range: OutOfRange) -> Iterator[tuple[str, _Reading]]:
    take = row.read or _taker(row, out_of_range)
    names = row.names()
    usual = row.written or names[0]
    takes = tuple((key, take if key == usual else _noted(row.name, take)) for key in names)
    number = row.read is None and row.kind in (int, float) and row.low is not None
    low, high = row.low or 0, inf if row.high is None else row.high
    for key, taking in takes:
        yield (
            key,
            _Reading(
                row.name,
                taking,
                takes if len(names) > 1 else (),
                row.kind if number else None,
                low,
                high,
                frozenset(names) - {key},
                key != usual,
            ),
        )


def _first(takes: tuple[tuple[str, Read], ...], reader: Reader, form: JSONObject) -> JSON:
    """Return the value under the first of several names that has one."""
    for key, take in takes:
        if key in reader and (value := take(reader, key, form)) is not None:
            return value
    return None


def _noted(name: str, take: Read) -> Read:
    """Return `take` with a note in the form of which of its names the field has."""

    def noted(reader: Reader, key: str, form: JSONObject) -> JSON:
        value = take(reader, key, form)
        if value is not None:
            form[name] = key
        return value

    return noted


def _taker(row: Field, out_of_range: OutOfRange) -> Read:
    kind, low, high = row.kind, row.low, row.high
    if kind is list:
        return lambda reader, key, _form: reader.strings(key)
    if low is None:
        return lambda reader, key, _form: reader.take(key, kind)

    def take_number(reader: Reader, key: str, _form: JSONObject) -> JSON:
        value: JSON = reader.take(key, kind)
        if value < low or (high is not None and value > high):
            raise WireError(reader.at(key), out_of_range(value, low, high))
        return value

    return take_number


def _writing(row: Field, neutral: JSON) -> _Writing:
    names = row.names()
    write = _listed if row.write is None and row.kind is list else row.write
    return _Writing(row.name, row.written or names[0], len(names) > 1, row.server_key, row.when, write, neutral)


def _plain_key(row: _Writing) -> str:
    """Return the key of a field whose value is written as it is; empty if there is more to it."""
    special = row.spelled or row.server_key or row.when is not None or row.write is not None
    return "" if special else row.key


def _listed(value: tuple[str, ...], _form: JSONObject, _context: EncodeContext) -> JSON:
    return list(value)


_KINDS: Final[Mapping[type, str]] = MappingProxyType(
    {bool: "boolean", int: "integer", float: "number", str: "string", list: "list of strings", dict: "object"}
)


def _values(row: Field) -> str:
    """Return the values that a row accepts, in words."""
    if row.values or row.by_hand:
        return row.values
    kind = _KINDS[row.kind]
    if row.low is None:
        return kind
    low = _number(row.low)
    return f"{kind} from {low}" if row.high is None else f"{kind}, {low} to {_number(row.high)}"


def _number(value: float) -> str:
    """Return a bound; one of as many bits as an integer type has as a power of two."""
    for bits in (31, 63, 64):
        for power, text in ((2**bits, f"2^{bits}"), (-(2**bits), f"-2^{bits}"), (2**bits - 1, f"2^{bits} - 1")):
            if value == power:
                return text
    return str(value)


def _getter(names: tuple[str, ...]) -> Callable[[Struct], tuple[JSON, ...]]:
    """Return a function that gets all these attributes as a tuple, however few they are."""
    if len(names) > 1:
        return attrgetter(*names)
    if not names:
        return lambda _value: ()
    get = attrgetter(*names)
    return lambda value: (get(value),)
