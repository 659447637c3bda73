"""Decodes and encodes JSON; detects duplicate keys, and when an object that arrives in pieces is complete."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.json import format as shaped

from xenoglot.codec.json import slices
from xenoglot.codec.json.slices import SLICE_BYTES, decode
from xenoglot.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.model.json import JSON, JSONObject


encode_json = msgspec.json.Encoder().encode
"""Any JSON value to compact UTF-8 bytes; text is not escaped to ASCII, keys keep their order."""

_decode = msgspec.json.Decoder().decode

_PAIR: Final = len(r"\ud83d\ude00")

_ESCAPE = re.compile(
    r"""\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}  # a whole pair
    | (?P<half> \\u[dD][89a-fA-F][0-9a-fA-F]{2} | [\ud800-\udfff] )
    | \\.                                                           # any other escape: its backslash begins no half
    """,
    re.VERBOSE,
)


class _ManyValuesError(WireError):
    """Not repairable."""


MOST_VALUES: Final = 1_000_000
"""Values that JSON may hold where nothing else is set: some 150 MB of memory where all are members of objects."""


MOST_NUMBERS: Final = 16_000_000
"""Values that an answer with embeddings may hold: its rows are of numbers, which take a fifth of that memory."""


def decode_json(data: bytes | str, path: str = "$", most: int = MOST_VALUES) -> JSON:
    """Return the JSON value in `data`. Of duplicate keys the last counts; integers of any size are exact.

    What is large is decoded in slices (see `codec.json.slices`): a thread that does it does not stop the others.

    Raises:
        WireError: it is not JSON (RFC 8259): malformed, not UTF-8, too deep, `NaN`, a number beyond a double, or half
            of a surrogate pair; or it holds more than `most` values.
    """
    try:
        if len(data) > most or len(data) >= slices.SLICE_BYTES:
            return _decode_large(data, path, most)
        return _decode(data)
    except RecursionError:
        raise WireError(path, "the JSON is nested too deeply") from None
    except UnicodeError:
        raise WireError(path, "not valid JSON: it is not UTF-8") from None
    except msgspec.DecodeError as error:
        raise WireError(path, f"not valid JSON: {str(error).removeprefix('JSON is malformed: ')}") from None


def _decode_large(data: bytes | str, path: str, most: int) -> JSON:
    data = data.encode() if isinstance(data, str) else data
    values = slices.count_values(data, most)
    if values > most:
        told = f"the JSON holds more than {most} values (each item, member, list and object is one): send fewer at once"
        raise _ManyValuesError(path, told)
    few = slices.SLICE_VALUES
    if values <= few or slices.count_values(data, few) <= few:  # in texts there are commas, too
        return _decode(data)
    return slices.decode(data)


def decode_answer(data: bytes | str, path: str = "$", most: int = MOST_VALUES) -> JSON:
    """Return the JSON value in `data` that a server sent: as `decode_json`, but broken characters become U+FFFD.

    Servers that cut text between two tokens send half of a surrogate pair, or of a UTF-8 sequence; the rest of the
    answer is worth having.

    Raises:
        WireError: it is not JSON all the same, or holds more than `most` values.
    """
    try:
        return decode_json(data, path, most)
    except _ManyValuesError:
        raise
    except WireError:
        return decode_json(_mend(data), path, most)


def encode_large(value: JSON) -> bytes:
    """Return `value` as `encode_json` does; what is large in slices: for threads that are not to stop the others."""
    return slices.encode(value)


def to_text(value: JSON) -> str:
    """Return `value` as compact JSON text."""
    return encode_json(value).decode()


def _mend(data: bytes | str) -> str:
    """Return the text with U+FFFD for what is no character: RFC 8259 section 8.2 on lone surrogates."""
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    return "".join(_ESCAPE.sub(lambda found: "\ufffd" if found["half"] else found[0], piece) for piece in _cut(text))


def _cut(text: str) -> Iterator[str]:
    """Yield `text` in slices, none of which ends within an escape, or between the two of a pair."""
    at = 0
    while at < len(text):
        end = at + slices.SLICE_BYTES
        while (begin := text.rfind("\\", end - _PAIR + 1, end)) >= 0:
            end = begin + _PAIR
        yield text[at:end]
        at = end


class _DuplicateError(Exception):
    pass


def unambiguous(data: bytes, value: JSON) -> bytes:
    """Return `data`, JSON that was read as `value`; serialized again if readers could differ about its value.

    RFC 8259 section 4 leaves it to each reader which of several members of one name counts. What is checked by the one
    and obeyed by the other would be two things.
    """
    written = encode_json(value) if len(data) < SLICE_BYTES else encode_large(value)
    # What is the same, or the same but for the blanks, is the usual case, and seen in a tenth of the time.
    if written == data or written == shaped(data, indent=-1) or not _has_duplicates(data):
        return data
    return written


def _has_duplicates(data: bytes) -> bool:
    """Whether two members of an object have one name; also where that is too deep to be seen."""
    try:
        if len(data) < SLICE_BYTES:
            _load(data)
        else:
            decode(data, _load, _join)
    except (_DuplicateError, RecursionError, ValueError):
        return True
    return False


def _load(data: bytes) -> JSON:
    import json  # noqa: PLC0415  slow to load, and most gateways never get here

    value: JSON = json.loads(data, object_pairs_hook=_object, parse_int=str, parse_float=str)
    return value


def _object(members: list[tuple[str, JSON]]) -> JSONObject:
    found = dict(members)
    if len(found) < len(members):
        raise _DuplicateError
    return found


def _join(members: JSONObject, more: JSONObject) -> None:
    if not members.keys().isdisjoint(more):
        raise _DuplicateError
    members.update(more)


_MARK = re.compile(r'["\\{}\[\]]')
_DEPTHS = {"{": 1, "[": 1, "}": -1, "]": -1}


class ObjectText:
    """The pieces so far. `is_complete` may be called after every piece; no character is read twice."""

    __slots__ = ("_begun", "_complete", "_depth", "_escaped", "_looked", "_quoted", "pieces")

    def __init__(self, text: str = "") -> None:
        self.pieces: list[str] = [text] if text else []
        self._looked = 0  # pieces
        self._depth = 0
        self._begun = self._quoted = self._escaped = False
        self._complete: bool | None = None  # known once the outermost bracket is closed

    def __bool__(self) -> bool:
        """Whether there is any text."""
        return bool(self.pieces)

    def __str__(self) -> str:
        return "".join(self.pieces)

    def is_complete(self) -> bool:
        """Whether the text is one JSON object, after which only white space could follow."""
        while self._looked < len(self.pieces):
            piece = self.pieces[self._looked]
            self._looked += 1
            if self._complete is None:
                self._look(piece)
            elif piece.strip():
                self._complete = False
        return self._complete is True

    def _look(self, piece: str) -> None:
        """Follow the brackets of one more piece."""
        escaped = 0 if self._escaped else -1
        self._escaped = False
        for mark in _MARK.finditer(piece):
            at, sign = mark.start(), mark[0]
            if at == escaped:
                continue
            if sign == '"':
                self._quoted = not self._quoted
            elif self._quoted:
                if sign == "\\":
                    escaped = at + 1
            elif sign != "\\":
                self._depth += _DEPTHS[sign]
                self._begun = True
            if self._begun and self._depth <= 0:
                self._complete = self._is_object()
                return
        self._escaped = escaped == len(piece)

    def _is_object(self) -> bool:
        try:
            return isinstance(decode_json(str(self)), dict)
        except WireError:
            return False
