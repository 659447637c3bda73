"""Converts Python literals to JSON text, incrementally."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from xenoglot.codec.json.json_io import encode_json
from xenoglot.text.json.text import LONGEST_NAME
from xenoglot.text.parser.parser_input import LONGEST_HELD, IncompleteInputError, MismatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from xenoglot.text.parser.parser_input import ParserInput, Reading

DEEPEST: Final = 64
"""How many lists and objects may stand inside each other; what is deeper is no literal."""

LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
"""What names and words begin with."""

_WORD = re.compile(r"[\w.-]+")
_NUMBER = re.compile(r"[\w.+-]+")
_DECIMAL = re.compile(r"(?P<sign>[+-]?)(?P<whole>\d*)(?P<point>\.?)(?P<part>\d*)(?P<power>(?:[eE][+-]?\d+)?)", re.ASCII)
_OTHER_BASE = re.compile(r"[+-]?0(?:[xX][0-9a-fA-F]{1,64}|[oO][0-7]{1,64}|[bB][01]{1,64})")
_IN_STRING: Final = {'"': re.compile(r'[^"\\]+'), "'": re.compile(r"[^'\\]+")}
_WORDS: Final = {"True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null"}
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\n": ""} | {
    sign: sign for sign in "\\'\""
}
_DIGITS: Final = {"x": 2, "u": 4, "U": 8}
_LAST: Final = 0x10FFFF
"""The last character that there is."""

_HEX = re.compile(r"[0-9a-fA-F]+")
_OCTAL = re.compile(r"[0-7]{1,3}")


class JSONWriter:
    """JSON text on its way to `send`. What is `due` goes before the next text, and nowhere if none comes."""

    __slots__ = ("_due", "_send")

    def __init__(self, send: Callable[[str], None]) -> None:
        self._send = send
        self._due = ""

    def due(self, text: str) -> None:
        """Let `text` go before the next; it takes the place of what was due."""
        self._due = text

    def emit(self, text: str) -> None:
        """Send what is due, and `text`."""
        due, self._due = self._due, ""
        self._send(due + text)


def word(section: ParserInput) -> Generator[None, None, str]:
    """Read a name or a word as far as it goes; empty where none begins."""
    if (yield from section.peek()) not in LETTERS:
        return ""
    return (yield from _run(section, _WORD))


def value(section: ParserInput, writer: JSONWriter, begun: str = "", depth: int = 0) -> Reading:
    """Read one literal, of which the word `begun` was read, and write it as JSON.

    Raises:
        MismatchError: it is no literal, or none that JSON has; with what was read and not written.
    """
    if not begun:
        yield from section.blank()
        begun = yield from word(section)
    if begun:
        yield from _word(section, writer, begun)
        return
    char = yield from section.peek()
    if char in _IN_STRING:
        yield from _string(section, writer, raw=False)
    elif char in "[{(":
        if depth == DEEPEST:
            raise MismatchError
        section.take(1)
        yield from _NESTED[char](section, writer, depth + 1)
    else:
        writer.emit(_number((yield from _run(section, _NUMBER))))


def _run(section: ParserInput, pattern: re.Pattern[str]) -> Generator[None, None, str]:
    """Read what `pattern` matches as far as it goes, at the end of the answer what there is of it."""
    said: list[str] = []
    size = 0
    while found := section.run(pattern):
        said.append(found)
        size += len(found)
        if size > LONGEST_NAME:
            raise MismatchError("".join(said))
        yield from section.ahead(1)
    return "".join(said)


def _word(section: ParserInput, writer: JSONWriter, begun: str) -> Reading:
    if begun in _WORDS:
        writer.emit(_WORDS[begun])
    elif begun in ("r", "R", "u", "U") and (yield from section.ahead(1)) in ('"', "'"):
        yield from _string(section, writer, raw=begun in "rR")
    else:
        raise MismatchError(begun)


def _number(said: str) -> str:
    """Return a number as JSON has it; zeros before it, `_` in it and a bare point are Python's."""
    bare = said.replace("_", "")
    if _OTHER_BASE.fullmatch(bare):
        return str(int(bare, 0))
    found = _DECIMAL.fullmatch(bare)
    if found is None or not (found["whole"] or found["part"]) or said[-1] == "_":
        raise MismatchError(said)
    sign = "-" if found["sign"] == "-" else ""
    part = f".{found['part'] or '0'}" if found["point"] else ""
    return f"{sign}{found['whole'].lstrip('0') or '0'}{part}{found['power']}"


# ---- strings


def _string(section: ParserInput, writer: JSONWriter, *, raw: bool) -> Reading:
    """Read a string, and those directly after it: Python joins them."""
    writer.emit('"')
    quote = section.take(1)
    while quote:
        yield from _quoted(section, writer, quote, raw=raw)
        quote = (yield from section.accept(('"', "'")))[-1:]
    writer.emit('"')


def _quoted(section: ParserInput, writer: JSONWriter, quote: str, *, raw: bool) -> Reading:
    triple = quote * 3
    tripled = (yield from section.ahead(2)) == quote * 2
    if tripled:
        section.take(2)
    while True:
        char = yield from section.peek()
        if char == "\\":
            said = (yield from _raw_escape(section)) if raw else (yield from _escape(section))
        elif char != quote:
            said = section.run(_IN_STRING[quote])
        elif not tripled or (yield from section.ahead(3)) == triple:
            section.take(3 if tripled else 1)
            return
        else:
            said = section.take(1)
        if said:
            writer.emit(inner(said))


def inner(text: str) -> str:
    """Return `text` as it stands inside of a JSON string."""
    try:
        return encode_json(text)[1:-1].decode()
    except UnicodeEncodeError:  # half of a pair, which JSON on the wire has no place for
        return encode_json(text.encode(errors="replace").decode())[1:-1].decode()


def _raw_escape(section: ParserInput) -> Generator[None, None, str]:
    said = yield from section.ahead(2)
    return section.take(len(said))


def _escape(section: ParserInput) -> Generator[None, None, str]:
    r"""Read one escape. One that Python does not know stays as it is; so does `\N{…}`, which asks for a name."""
    said = yield from section.ahead(2)
    if len(said) == 1:
        raise IncompleteInputError
    if said[1] in _DIGITS:
        return (yield from _coded(section, _DIGITS[said[1]]))
    if said[1] in "01234567":
        return (yield from _octal(section))
    section.take(2)
    return _ESCAPES.get(said[1], said)


def _octal(section: ParserInput) -> Generator[None, None, str]:
    found = _OCTAL.match((yield from section.ahead(4)), 1)
    digits = "0" if found is None else found[0]
    section.take(1 + len(digits))
    return chr(int(digits, 8))


def _coded(section: ParserInput, digits: int) -> Generator[None, None, str]:
    r"""Read `\x`, `\u` or `\U` with its digits; two halves of a pair, as JSON writes them, are one character."""
    char = yield from _code(section, digits)
    if not char:
        return section.take(2)
    section.take(2 + digits)
    if "\ud800" <= char <= "\udbff" and (yield from section.ahead(2)) == "\\u":
        low = yield from _code(section, 4)
        if "\udc00" <= low <= "\udfff":
            section.take(6)
            return (char + low).encode("utf-16", "surrogatepass").decode("utf-16")
    return char if not "\ud800" <= char <= "\udfff" else "\N{REPLACEMENT CHARACTER}"


def _code(section: ParserInput, digits: int) -> Generator[None, None, str]:
    """Return the character that the digits after the next two characters mean; the empty string without digits."""
    said = (yield from section.ahead(2 + digits))[2:]
    if len(said) < digits or not _HEX.fullmatch(said):
        return ""
    return chr(min(int(said, 16), _LAST))


# ---- lists and objects


def _list(section: ParserInput, writer: JSONWriter, depth: int) -> Reading:
    writer.emit("[")
    while not (yield from section.accept(("]",))):
        yield from value(section, writer, depth=depth)
        writer.due(", ")
        if not (yield from section.accept((",",))):
            yield from section.expect(("]",))
            break
    writer.due("")
    writer.emit("]")


def _tuple(section: ParserInput, writer: JSONWriter, depth: int) -> Reading:
    """Read a tuple, which is a list, or one value in parentheses: that is known at the end, so it is held."""
    held: list[str] = []
    try:
        listed = yield from _in_parentheses(section, held, depth)
    except MismatchError as error:
        raise MismatchError("".join(("(", *held, *error.args))) from None
    except IncompleteInputError:
        writer.emit("[" + "".join(held))
        raise
    writer.emit(f"[{''.join(held)}]" if listed else "".join(held))


def _in_parentheses(section: ParserInput, held: list[str], depth: int) -> Generator[None, None, bool]:
    """Read what stands in parentheses into `held`; return whether it is a tuple."""
    parts = 0
    inner = JSONWriter(_holding(held))
    while not (yield from section.accept((")",))):
        yield from value(section, inner, depth=depth)
        inner.due(", ")
        parts += 1
        if not (yield from section.accept((",",))):
            yield from section.expect((")",))
            return parts > 1
    return True


def _braces(section: ParserInput, writer: JSONWriter, depth: int) -> Reading:
    """Read a dict, or a set, which becomes a list: which one is known after the first key or item, so it is held."""
    if (yield from section.accept(("}",))):
        writer.emit("{}")
        return
    held: list[str] = []
    try:
        yield from _scalar(section, JSONWriter(_holding(held)))
        keyed = yield from section.accept((":",))
    except MismatchError as error:
        writer.emit("{")
        raise MismatchError("".join((*held, *error.args))) from None
    except IncompleteInputError:
        writer.emit("{" + "".join(held))
        raise
    first = "".join(held)
    if keyed:
        writer.emit("{" + _named(first))
        yield from _members(section, writer, depth)
    else:
        writer.emit("[" + first)
        yield from _items(section, writer, depth)


def _members(section: ParserInput, writer: JSONWriter, depth: int) -> Reading:
    """Read the rest of a dict, after the colon of its first key."""
    while True:
        writer.due(": ")
        yield from value(section, writer, depth=depth)
        writer.due(", ")
        if not (yield from section.accept((",",))):
            yield from section.expect(("}",))
            break
        if (yield from section.accept(("}",))):
            break
        held: list[str] = []
        yield from _scalar(section, JSONWriter(_holding(held)))
        writer.emit(_named("".join(held)))
        yield from section.expect((":",))
    writer.due("")
    writer.emit("}")


def _items(section: ParserInput, writer: JSONWriter, depth: int) -> Reading:
    """Read the rest of a set, after its first item."""
    while (yield from section.accept((",",))):
        if (yield from section.accept(("}",))):
            break
        writer.due(", ")
        yield from value(section, writer, depth=depth)
    else:
        yield from section.expect(("}",))
    writer.due("")
    writer.emit("]")


def _scalar(section: ParserInput, writer: JSONWriter) -> Reading:
    """Read what may be a key: no list, and no object."""
    yield from section.blank()
    if (yield from section.peek()) in "[{(":
        raise MismatchError
    yield from value(section, writer)


def _holding(held: list[str]) -> Callable[[str], None]:
    """Return what adds to `held`, as long as that is not too much."""
    size = 0

    def hold(text: str) -> None:
        nonlocal size
        held.append(text)
        size += len(text)
        if size > LONGEST_HELD:
            raise MismatchError

    return hold


def _named(text: str) -> str:
    """Return a scalar as a key; JSON has only strings there."""
    return text if text.startswith('"') else f'"{text}"'


_NESTED: Final = {"[": _list, "(": _tuple, "{": _braces}
