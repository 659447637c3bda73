"""Streams as vendors write them, made from the rows of `vendor_streams.toml`, with as many pieces as a test needs."""

from __future__ import annotations

import json
import re
import tomllib
from itertools import count, cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
import pytest
from msgspec import Struct

from xenoglot.codec.framing.formats import EVENT_STREAM
from xenoglot.dialect_registry import get

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from xenoglot.codec.dialect import Dialect

WORDS = ("One", " zwölf", " 🎉", "", ' "a\\b"\n', " <b>&", " 9", "\u2028", "]}", " data: {", ".")
"""Pieces of text; escaped or not, with a piece that says nothing among them."""
FRAGMENTS = ('{"city"', ': "Zü', 'rich \\"', "}", '", "n": [1', ', 10], "', 'x": {}}')
"""Fragments of arguments that are one object."""
HOLES = {"TEXT": WORDS, "THOUGHT": WORDS, "ARGS": FRAGMENTS}
_HOLE = re.compile("<(TEXT|THOUGHT|ARGS|ALL|N|PAD|TIME|NANO|ID)>")
PADDING = "abcdefghijklmnopqrstuvwxyz0123456789"


class Vendor(Struct, frozen=True):
    """One row."""

    id: str
    dialect_name: str = msgspec.field(name="dialect")
    lines: str
    escapes: Literal["utf8", "ascii", "html"] = "utf8"
    names: Literal["type", "none"] = "none"
    end: str = "\n"
    space: bool = True
    comments: str = ""

    @property
    def dialect(self) -> Dialect:
        return get(self.dialect_name)

    def stream(self, pieces: int, first: int = 8) -> bytes:
        """Return the bytes of a stream with so many pieces of each text, whose counts begin with `first`."""
        return "".join(map(self._framed, self._data(pieces, first))).encode()

    def _data(self, pieces: int, first: int) -> Iterator[str]:
        filled = _Filled(self.escapes, first)
        for line in self.lines.strip().splitlines():
            kind = next((kind for kind in HOLES if f"<{kind}>" in line), None)
            if kind is None:
                yield filled.line(line, "")
                continue
            texts = list(islice(cycle(HOLES[kind]), pieces)) if kind != "ARGS" else _fragments(pieces)
            filled.all = "".join(texts)
            for number, text in enumerate(texts):
                if self.comments and number % 3 == 2:
                    yield self.comments
                yield filled.line(line, text)

    def _framed(self, data: str) -> str:
        if self.dialect.framing is not EVENT_STREAM:
            return data + self.end
        if data.startswith(":"):
            return data + self.end * 2
        name = f"event: {json.loads(data)['type']}{self.end}" if self.names == "type" else ""
        return f"{name}data:{' ' if self.space else ''}{data}{self.end * 2}"


class _Filled:
    """Fills the holes of one stream's lines."""

    def __init__(self, escapes: str, first: int) -> None:
        self.all = ""
        self._escapes = escapes
        self._numbers = count(first)
        self._events = count()

    def line(self, line: str, text: str) -> str:
        event = next(self._events)
        number = next(self._numbers) if "<N>" in line else 0
        values = {
            "N": str(number),
            "PAD": PADDING[: event * 5 % len(PADDING)],
            "TIME": str(1_780_000_000 + event // 2),
            "NANO": str(event * 10_487).zfill(6),
            "ID": f"id{event:x}",
            "ALL": self._escaped(self.all),
        }
        said = self._escaped(text)
        return _HOLE.sub(lambda found: values.get(found[1], said), line)

    def _escaped(self, text: str) -> str:
        escaped = json.dumps(text, ensure_ascii=self._escapes == "ascii")[1:-1]
        if self._escapes == "html":  # as Go and Google write JSON
            escaped = re.sub("[<>&\u2028]", lambda found: f"\\u{ord(found[0]):04x}", escaped)
        return escaped


def _fragments(pieces: int) -> Sequence[str]:
    """Return so many fragments of one object: with more than there are, its list is longer."""
    more = [f", {10 + number}" for number in range(pieces - len(FRAGMENTS))]
    return [*FRAGMENTS[:5], *more, *FRAGMENTS[5:]]


def _rows() -> tuple[Vendor, ...]:
    table = tomllib.loads((Path(__file__).with_name("vendor_streams.toml")).read_text(encoding="utf-8"))
    return tuple(msgspec.convert(table["defaults"] | row, Vendor) for row in table["stream"])


VENDORS = _rows()

each_vendor = pytest.mark.parametrize("vendor", [pytest.param(vendor, id=vendor.id) for vendor in VENDORS])
