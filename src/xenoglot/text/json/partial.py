"""Incremental JSON parser: returns the value so far at any point of a growing text.

reader = PartialJSON()
reader.feed('{"city": "Par')
reader.value        # {"city": "Par"}
reader.feed('is"}')
reader.complete     # True

Theory of operation. Each character is looked at once, by the step of the state that the reader is in; what is open lies
on a stack, and is already in its place in the value. The cost is linear in the text however it is cut, and the text is
read as `codec.json.json_io.decode_json` reads the whole (RFC 8259): no `NaN`, no bare line break in a string, no
half of a surrogate pair. Reading ends at the first character that cannot stand in its place; the value stays as it was.
"""

from __future__ import annotations

import math
import re
from enum import Enum, auto
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from xenoglot.model.json import JSON

DEEPEST: Final = 512
"""The most containers within each other."""

LONGEST_NUMBER: Final = 4_300
"""The most characters of a number: as many digits as Python makes an integer of."""

_SPACE = re.compile(r"[ \t\n\r]*")
_PLAIN = re.compile(r'[^"\\\x00-\x1f\ud800-\udfff]+')
_NUMERIC = re.compile(r"[-+.0-9eE]+")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_INTEGER = re.compile(r"-?[0-9]+")
_WORDS: Final[Mapping[str, JSON]] = {"true": True, "false": False, "null": None}
_FIRST_LETTERS: Final = {word[0]: word for word in _WORDS}

_ESCAPES: Final = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_HEX: Final = "0123456789abcdefABCDEF"
_HIGH: Final = "89abAB"
_LOW: Final = "cdefCDEF"
_ESCAPE_SHAPE: Final = ("\\", "u" + "".join(_ESCAPES), _HEX, _HEX, _HEX, _HEX, "\\", "u", "dD", _LOW, _HEX, _HEX)
"""What may stand at each place of an escape, the longest of which is a pair of surrogates."""


class _State(Enum):
    VALUE = auto()
    FIRST_ITEM = auto()  # a value, or the end of the list
    FIRST_KEY = auto()  # a key, or the end of the object
    KEY = auto()
    COLON = auto()
    AFTER = auto()  # a comma, or the end of the container
    STRING = auto()
    KEY_STRING = auto()
    NUMBER = auto()
    WORD = auto()
    END = auto()
    BROKEN = auto()


class PartialJSON:
    """A reader of one JSON text that comes in pieces, cut anywhere.

    A string counts as far as it has come; an escape, a key, a number and a word count when they are whole, and a number
    is when a character follows it. With `cut_numbers` it counts as far as it makes a number: `12` of `12.`.
    """

    __slots__ = (
        "_before",
        "_cut_numbers",
        "_escape",
        "_key",
        "_pieces",
        "_shown",
        "_size",
        "_stack",
        "_state",
        "_value",
    )

    def __init__(self, *, cut_numbers: bool = False) -> None:
        self._cut_numbers = cut_numbers
        self._state = _State.VALUE
        self._stack: list[JSON] = []
        self._value: JSON = None
        self._key = ""
        self._shown = False  # whether the value that is being read is in its place
        self._pieces: list[str] = []  # of the string, number or word that is open
        self._size = 0  # in characters, of the number that is open
        self._escape = ""
        self._before = 0  # characters fed before the piece that is being read, or before the one that broke it

    @property
    def value(self) -> JSON:
        """The value so far; `None` before there is any.

        Containers are the same objects from one moment to the next, and grow: copy what is to stay as it is. The string
        that is open costs its own length each time it is read.
        """
        self._show_open()
        return self._value

    @property
    def complete(self) -> bool:
        """Whether the text is whole, so that nothing but white space may follow."""
        return self._state is _State.END

    @property
    def invalid_at(self) -> int | None:
        """The offset, in characters, of the first that cannot stand where it does; `None` while all can.

        Of a number that is none it is where the number ends.
        """
        return self._before if self._state is _State.BROKEN else None

    def feed(self, text: str, /) -> None:
        """Take more of the text."""
        at, end = 0, len(text)
        while at < end and self._state is not _State.BROKEN:
            at = self._STEPS[self._state](self, text, at)
        if self._state is not _State.BROKEN:
            self._before += end

    def close(self) -> None:
        """Take it that the text is over: a number that nothing stands around is whole by that alone."""
        if self._state is _State.NUMBER and not self._stack:
            self._end_number(0)

    def _show_open(self) -> None:
        if self._state is _State.STRING:
            self._pieces = ["".join(self._pieces)]
            self._put(self._pieces[0])
        elif self._state is _State.NUMBER and self._cut_numbers:
            self._put_cut_number()

    def _break(self, at: int) -> int:
        self._show_open()
        self._before += at
        self._state = _State.BROKEN
        return at

    def _put(self, value: JSON) -> None:
        """Put `value` in the place of the one that is being read."""
        if not self._stack:
            self._value = value
        elif isinstance(top := self._stack[-1], dict):
            top[self._key] = value
        elif self._shown:
            top[-1] = value
        else:
            top.append(value)
        self._shown = True

    def _end_value(self) -> None:
        self._shown = False
        self._state = _State.AFTER if self._stack else _State.END

    def _begin_value(self, text: str, at: int) -> int:
        at = _after_space(text, at)
        if at == len(text):
            return at
        char = text[at]
        if char in "{[":
            return self._push(char, at)
        if char == "]" and self._state is _State.FIRST_ITEM:
            return self._pop(at)
        return self._begin_scalar(char, at)

    def _begin_scalar(self, char: str, at: int) -> int:
        self._pieces.clear()
        if char == '"':
            self._state = _State.STRING
            return at + 1
        if char in "-0123456789":
            self._state, self._size = _State.NUMBER, 0
            return at
        if char in _FIRST_LETTERS:
            self._state = _State.WORD
            return at
        return self._break(at)

    def _push(self, char: str, at: int) -> int:
        if len(self._stack) == DEEPEST:
            return self._break(at)
        container: JSON = {} if char == "{" else []
        self._put(container)
        self._stack.append(container)
        self._shown = False
        self._state = _State.FIRST_KEY if char == "{" else _State.FIRST_ITEM
        return at + 1

    def _pop(self, at: int) -> int:
        self._stack.pop()
        self._end_value()
        return at + 1

    def _begin_key(self, text: str, at: int) -> int:
        at = _after_space(text, at)
        if at == len(text):
            return at
        if text[at] == "}" and self._state is _State.FIRST_KEY:
            return self._pop(at)
        if text[at] != '"':
            return self._break(at)
        self._pieces.clear()
        self._state = _State.KEY_STRING
        return at + 1

    def _colon(self, text: str, at: int) -> int:
        at = _after_space(text, at)
        if at == len(text):
            return at
        if text[at] != ":":
            return self._break(at)
        self._state = _State.VALUE
        return at + 1

    def _after(self, text: str, at: int) -> int:
        at = _after_space(text, at)
        if at == len(text):
            return at
        in_object = isinstance(self._stack[-1], dict)
        if text[at] == ("}" if in_object else "]"):
            return self._pop(at)
        if text[at] != ",":
            return self._break(at)
        self._state = _State.KEY if in_object else _State.VALUE
        return at + 1

    def _string(self, text: str, at: int) -> int:
        if self._escape:
            return self._in_escape(text[at], at)
        if found := _PLAIN.match(text, at):
            self._pieces.append(found[0])
            return found.end()
        if text[at] == "\\":
            self._escape = "\\"
        elif text[at] == '"':
            self._end_string()
        else:
            return self._break(at)
        return at + 1

    def _end_string(self) -> None:
        text = "".join(self._pieces)
        if self._state is _State.KEY_STRING:
            self._key, self._state = text, _State.COLON
        else:
            self._put(text)
            self._end_value()

    def _in_escape(self, char: str, at: int) -> int:
        if char not in _allowed(self._escape):
            return self._break(at)
        self._escape += char
        if (meant := _unescaped(self._escape)) is not None:
            self._pieces.append(meant)
            self._escape = ""
        return at + 1

    def _number(self, text: str, at: int) -> int:
        found = _NUMERIC.match(text, at)
        if found is None:
            return self._end_number(at)
        self._size += found.end() - at
        if self._size > LONGEST_NUMBER:
            return self._break(at)
        self._pieces.append(found[0])
        return found.end()

    def _end_number(self, at: int) -> int:
        text = "".join(self._pieces)
        number = _number(text) if _NUMBER.fullmatch(text) else None
        if number is None:
            return self._break(at)
        self._put(number)
        self._end_value()
        return at

    def _put_cut_number(self) -> None:
        self._pieces = ["".join(self._pieces)]
        found = _NUMBER.match(self._pieces[0])
        if found is not None and (number := _number(found[0])) is not None:
            self._put(number)

    def _word(self, text: str, at: int) -> int:
        word = _FIRST_LETTERS[self._pieces[0][0]] if self._pieces else _FIRST_LETTERS[text[at]]
        place = len(self._pieces)
        if text[at] != word[place]:
            return self._break(at)
        self._pieces.append(text[at])
        if place + 1 == len(word):
            self._put(_WORDS[word])
            self._end_value()
        return at + 1

    def _nothing(self, text: str, at: int) -> int:
        at = _after_space(text, at)
        return at if at == len(text) else self._break(at)

    _STEPS: ClassVar[Mapping[_State, Callable[[PartialJSON, str, int], int]]] = {
        _State.VALUE: _begin_value,
        _State.FIRST_ITEM: _begin_value,
        _State.FIRST_KEY: _begin_key,
        _State.KEY: _begin_key,
        _State.COLON: _colon,
        _State.AFTER: _after,
        _State.STRING: _string,
        _State.KEY_STRING: _string,
        _State.NUMBER: _number,
        _State.WORD: _word,
        _State.END: _nothing,
    }


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _allowed(escape: str) -> str:
    """Return what may follow the beginning of an escape; the second half of a pair does not stand alone."""
    place = len(escape)
    if place == len("\\ud") and escape[-1] in "dD":
        return _HEX.translate(_NO_LOW)
    return _ESCAPE_SHAPE[place]


_NO_LOW: Final = {ord(char): None for char in _LOW}


def _unescaped(escape: str) -> str | None:
    """Return the character that an escape means; `None` while it is not whole."""
    if escape[1] != "u":
        return _ESCAPES[escape[1]]
    if len(escape) < len("\\u0000"):
        return None
    code = int(escape[2:6], 16)
    if escape[2] in "dD" and escape[3] in _HIGH:
        if len(escape) < len("\\u0000\\u0000"):
            return None
        return chr(0x10000 + ((code & 0x3FF) << 10) + (int(escape[8:12], 16) & 0x3FF))  # RFC 8259 section 7
    return chr(code)


def _number(text: str) -> int | float | None:
    """Return the number; `None` where a double cannot hold it."""
    if _INTEGER.fullmatch(text):
        return int(text)
    number = float(text)
    return number if math.isfinite(number) else None
