"""Parses and serializes large JSON in slices: no call of the JSON library gets more than one slice of values.

Theory of operation. The library holds the interpreter's lock while it decodes, so that a thread which decodes 30 MB of
small values stops the event loop for half a second. Here the brackets and commas outside of strings are found first, a
window at a time; containers that are small go to the library as they are, many neighbours at once, and only the large
ones around them are put together in Python, between whose steps other threads run. Every byte of the text is in one
slice that the library decodes, or is a bracket, comma or white space between slices: what is accepted is JSON, and its
value is that of decoding it in one call (`tests/laws/test_slices.py`).

A flat container, which has no other in it, is one match of a pattern: its items are not walked through.
"""

from __future__ import annotations

import re
from array import array
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from xenoglot.model.json import JSON, JSONObject

SLICE_VALUES: Final = 16_384
"""Values that one call decodes: 5 ms at worst, where all are members of objects with names of their own."""

SLICE_BYTES: Final = 256 * 1024
"""Bytes that one call decodes or encodes, unless a single string is longer: that takes 1.3 ns for each at worst."""

WINDOW: Final = 128 * 1024
"""Bytes that are looked through at a time for what is no string."""

_EACH: Final = 16
"""Weight of a value in addition to the characters of its text: a slice that is encoded has at most 16,384 of them."""

_SCALARS: Final = frozenset({float, int, bool, type(None)})
_MANY: Final = 64

_BLANKS: Final = b" \t\n\r"
_STRUCTURE = re.compile(rb"[^][{},]*+(?:\[[^][{}]*+\]|\{[^][{}]*+\}|([][{},])|\Z)")
_CLOSES: Final = {ord("]"): ord("["), ord("}"): ord("{")}
_COMMA, _LIST = ord(","), ord("[")

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def count_values(data: bytes, most: int) -> int:
    """Return how many values the JSON in `data` holds; of more than `most`, some number beyond that.

    Each member of an object, item of a list, object and list counts: the commas and opening brackets outside of
    strings, of which there are as many or a few more. Where there are few, those in strings are counted too.
    """
    found = 0
    for at in range(0, len(data), SLICE_BYTES):
        found += _count(data, at, at + SLICE_BYTES)
        if found > most:
            break
    else:
        return found
    found = 0
    for parts, inside in _windows(data):
        outside = b"".join(parts[inside::2])
        found += _count(outside, 0, len(outside))
        if found > most:
            break
    return found


def _count(data: bytes, start: int, end: int) -> int:
    return data.count(b",", start, end) + data.count(b"{", start, end) + data.count(b"[", start, end)


def _windows(data: bytes) -> Iterator[tuple[list[bytes], int]]:
    """Yield `data` in windows, split at the quotes that begin and end strings; 1 where the first part is in a string.

    Escapes are overwritten: what is split is as long as the text.
    """
    at, inside = 0, 0
    while at < len(data):
        bracket = data.find(b"]", at + WINDOW, at + 2 * WINDOW)  # after a row of numbers, and not within it
        end = bracket + 1 if bracket > 0 else at + WINDOW
        window = data[at:end]
        if (len(window) - len(window.rstrip(b"\\"))) % 2:  # no window ends within an escape
            window += data[end : end + 1]
        at += len(window)
        parts = window.replace(b"\\\\", b"__").replace(b'\\"', b"__").split(b'"')
        yield parts, inside
        inside ^= (len(parts) - 1) & 1


def decode(
    data: bytes,
    decode_slice: Callable[[bytes], JSON] | None = None,
    join: Callable[[JSONObject, JSONObject], None] = dict.update,
) -> JSON:
    """Return the JSON value in `data`.

    `decode_slice` decodes a slice, where that is not the library's function; `join` adds members to those of an object.

    Raises:
        DecodeError: it is none. `UnicodeError` and `RecursionError` alike.
    """
    return _Text(data, decode_slice or _decode, join).value()


class _Text:
    """A JSON text and the positions of its structure: brackets and commas outside flat containers."""

    def __init__(
        self, data: bytes, decode: Callable[[bytes], JSON], join: Callable[[JSONObject, JSONObject], None]
    ) -> None:
        self._data = data
        self._decode = decode
        self._join = join
        self._at = array("Q")
        """Where each is."""
        self._ends = array("Q")
        """For each opening bracket, the index of the closing one."""
        self._find()

    def _find(self) -> None:
        data, at, ends = self._data, self._at, self._ends
        opened: list[int] = []
        for start, window in self._outside():
            for found in _STRUCTURE.finditer(window):
                place = found.start(1)
                if place < 0:
                    continue
                sign = window[place]
                if sign in _CLOSES:
                    if not opened or data[at[opened[-1]]] != _CLOSES[sign]:
                        raise _malformed(f"a bracket closes what was not opened (byte {start + place})")
                    ends[opened.pop()] = len(at)
                elif sign != _COMMA:
                    opened.append(len(at))
                at.append(start + place)
                ends.append(0)
        if opened:
            raise _malformed("the text ends too early")

    def _outside(self) -> Iterator[tuple[int, bytes]]:
        """Yield where each window begins, and its bytes with the strings blanked out."""
        start = 0
        for parts, inside in _windows(self._data):
            for index in range(1 - inside, len(parts), 2):
                parts[index] = b" " * len(parts[index])
            window = b" ".join(parts)
            yield start, window
            start += len(window)

    def value(self) -> JSON:
        """Return its value."""
        return self._decoded(0, len(self._data), 0, len(self._at))

    def _decoded(self, start: int, end: int, first: int, last: int) -> JSON:
        """Return the value between two bytes, between which are the signs from `first` to `last`."""
        if not _is_large(start, end, first, last):
            return self._decode(self._data[start:end])
        opening = self._at[first]
        closing = self._at[self._ends[first]] if self._ends[first] else 0
        around = self._data[start:opening] + self._data[closing + 1 : end]
        if self._ends[first] != last - 1 or around.strip(_BLANKS):
            raise _malformed(f"unexpected text next to a list or object (byte {start})")
        if self._data[opening] == _LIST:
            return self._list(first)
        return self._object(first)

    def _list(self, opening: int) -> JSON:
        items: list[JSON] = []
        for start, end, first, last, count in self._groups(opening):
            if count == 1 and _is_large(start, end, first, last):
                items.append(self._decoded(start, end, first, last))
                continue
            group = self._decode(b"[" + self._data[start:end] + b"]")
            if len(group) != count and not self._is_all(opening, start, end):
                raise _malformed(f"an item is missing (byte {start})")
            items += group
        return items

    def _object(self, opening: int) -> JSON:
        members: JSONObject = {}
        for start, end, first, last, count in self._groups(opening):
            if count == 1 and _is_large(start, end, first, last):
                self._join(members, self._member(start, end, first, last))
                continue
            group = self._decode(b"{" + self._data[start:end] + b"}")
            if not group and not self._is_all(opening, start, end):
                raise _malformed(f"a member is missing (byte {start})")
            self._join(members, group)
        return members

    def _is_all(self, opening: int, start: int, end: int) -> bool:
        """Whether what is between two bytes is all that a container holds, which may then be nothing."""
        return start == self._at[opening] + 1 and end == self._at[self._ends[opening]]

    def _member(self, start: int, end: int, first: int, last: int) -> JSONObject:
        """Return the member of an object whose value is large."""
        opening = self._at[first]
        (name,) = self._decode(b"{" + self._data[start:opening] + b"0}")
        return {name: self._decoded(opening, end, first, last)}

    def _groups(self, opening: int) -> Iterator[tuple[int, int, int, int, int]]:
        """Yield the items or members of a container, as many neighbours at once as are a slice; a large one is alone.

        Each group is where it begins and ends, its first sign and the one after its last, and how many are in it.
        """
        at, ends, closing = self._at, self._ends, self._ends[opening]
        start = after = at[opening] + 1
        first = sign = behind = opening + 1
        count = 0
        while sign <= closing:
            if ends[sign]:
                sign = ends[sign] + 1
                continue
            end = at[sign]
            if count and _is_large(start, end, first, sign):
                yield start, after - 1, first, behind, count
                start, first, count = after, behind + 1, 0
            count += 1
            after, behind = end + 1, sign
            sign += 1
        yield start, after - 1, first, behind, count


def _is_large(start: int, end: int, first: int, last: int) -> bool:
    """Whether what is between two bytes, with so many signs, is more than a slice, and can be parted."""
    return last > first and (end - start > SLICE_BYTES or last - first > SLICE_VALUES)


def _malformed(problem: str) -> msgspec.DecodeError:
    return msgspec.DecodeError(f"JSON is malformed: {problem}")


def size_seen(value: JSON) -> int:
    """Return the approximate bytes of the JSON of `value`; for larger values, a number above the size of a slice."""
    return _weight(value, 0)


def encode(value: JSON) -> bytes:
    """Return `value` as the JSON that encoding it in one call gives."""
    pieces: list[bytes] = []
    _write(value, pieces)
    return b"".join(pieces)


def _write(value: JSON, pieces: list[bytes]) -> None:
    if not value or _weight(value, 0) < SLICE_BYTES:
        pieces.append(_encode(value))
    elif isinstance(value, dict):
        _write_members(value, pieces)
    elif isinstance(value, list | tuple):
        _write_items(value, pieces)
    elif isinstance(value, str):
        _write_text(value, pieces)
    else:
        pieces.append(_encode(value))


def _write_items(items: Sequence[JSON], pieces: list[bytes]) -> None:
    begin, weight = 0, 0
    sign = b"["
    for index, item in enumerate(items):
        weight = _weight(item, weight)
        if weight < SLICE_BYTES:
            continue
        if index > begin:
            pieces += (sign, _encode(items[begin:index])[1:-1])
            sign = b","
        begin, weight = index, _weight(item, 0)
        if weight >= SLICE_BYTES:
            pieces.append(sign)
            _write(item, pieces)
            begin, weight, sign = index + 1, 0, b","
    if begin < len(items):
        pieces += (sign, _encode(items[begin:])[1:-1])
    pieces.append(b"]")


def _write_members(members: JSONObject, pieces: list[bytes]) -> None:
    group: JSONObject = {}
    weight = 0
    sign = b"{"
    for key, value in members.items():
        weight = _weight(value, weight + len(key))
        if weight >= SLICE_BYTES and group:
            pieces += (sign, _encode(group)[1:-1])
            sign, group, weight = b",", {}, _weight(value, len(key))
        if weight < SLICE_BYTES:
            group[key] = value
            continue
        pieces += (sign, _encode(key), b":")
        _write(value, pieces)
        sign, weight = b",", 0
    if group:
        pieces += (sign, _encode(group)[1:-1])
    pieces.append(b"}")


def _write_text(text: str, pieces: list[bytes]) -> None:
    pieces.append(b'"')
    pieces += (_encode(text[at : at + SLICE_BYTES])[1:-1] for at in range(0, len(text), SLICE_BYTES))
    pieces.append(b'"')


def _weight(value: JSON, weight: int) -> int:
    """Return `weight` with about the bytes of `value` added; only so far that it is seen to be more than a slice."""
    if isinstance(value, str):
        return weight + len(value) + _EACH
    if isinstance(value, dict):
        for key, member in value.items():
            weight = _weight(member, weight + len(key))
            if weight >= SLICE_BYTES:
                break
    elif isinstance(value, list | tuple):
        if len(value) > _MANY and _SCALARS.issuperset(map(type, value)):  # a vector: seen in a tenth of the time
            return weight + _EACH * (len(value) + 1)
        for item in value:
            weight = _weight(item, weight)
            if weight >= SLICE_BYTES:
                break
    return weight + _EACH
