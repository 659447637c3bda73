"""What holds for every row and any text: nothing is lost, cuts do not matter, calls come back, work is linear."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.text.vectors import TOOLS, Declaration, Made, declared, load, made, names
from xenoglot.text import registry
from xenoglot.text.output_pieces import ArgumentsPiece, ReasoningPiece, TextPiece, joined
from xenoglot.text.parser.text_parser import parser
from xenoglot.text.tools.render import written

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import FrameType

    from xenoglot.text.declared_tools import DeclaredTools
    from xenoglot.text.output_pieces import Piece
    from xenoglot.text.syntax import Syntax

ROWS: Final = (*registry.names(), registry.AUTO)
FORMS: Final = tuple(name for name in ROWS if registry.get(name).calls)  # the rest has a parser of its own
WRITERS: Final = tuple(name for name in FORMS if name != registry.AUTO and registry.get(name).own is None)

NOBODY: Final = declared([Declaration(name="zz_nobody")])
"""A tool that no text calls: everything is ready to read a call, and none is one."""


def markers(row: Syntax) -> tuple[str, ...]:
    """Return all that a row looks for."""
    calls = [
        mark
        for form in (*row.calls, *row.slips)
        for mark in (*form.begin, *form.end, *form.open, *form.close, *form.between)
    ]
    thoughts = [mark for one in row.thoughts for mark in (*one.open, *one.close)]
    return (*calls, *thoughts, *row.dropped)


MARKERS: Final = tuple(dict.fromkeys(mark for name in ROWS for mark in markers(registry.get(name))))
TEXTS: Final = tuple(load(*name).text for name in names())

PROSE: Final = st.text(st.sampled_from("ab c.\n\r\t<>[]{}|\"'\\`:,=()é\N{EARTH GLOBE EUROPE-AFRICA}"), max_size=12)
CUT: Final = st.tuples(st.sampled_from(MARKERS), st.integers(0, 24)).map(lambda cut: cut[0][: cut[1]])
WHOLE: Final = st.sampled_from(MARKERS)
SPANS: Final = st.tuples(st.integers(0, 400), st.integers(0, 400)).map(lambda ends: slice(*ends))
PIECE: Final = st.tuples(st.sampled_from(TEXTS), SPANS).map(lambda span: span[0][span[1]])
MIXED: Final = st.lists(PROSE | CUT | WHOLE | PIECE | st.sampled_from(TEXTS), max_size=8).map("".join)


def read(row: Syntax, known: DeclaredTools, *chunks: str, stopped: bool = True) -> Sequence[Piece]:
    """Return what `row` makes of `chunks`."""
    stage = parser(row, known, thinking=False)
    pieces = [piece for chunk in chunks for piece in stage.feed(chunk)]
    return joined([*pieces, *stage.close(stopped=stopped)])


def cut(text: str, places: Sequence[int]) -> list[str]:
    """Return `text` in pieces."""
    ends = sorted({min(place, len(text)) for place in places} | {len(text)})
    return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]


@settings(max_examples=400)
@given(st.sampled_from(FORMS), MIXED, st.lists(st.integers(0, 2000), max_size=6))
def test_text_without_calls_stays_as_it_was(name: str, text: str, places: list[int]) -> None:
    row = replace(registry.get(name), own=None, thoughts=(), dropped=(), strays=())
    assert read(row, NOBODY, *cut(text, places)) == ([TextPiece(text)] if text else [])


@settings(max_examples=200)
@given(st.sampled_from(FORMS), MIXED)
def test_without_tools_nothing_is_a_call(name: str, text: str) -> None:
    row = replace(registry.get(name), own=None, thoughts=(), dropped=(), strays=())
    assert read(row, declared([]), text) == ([TextPiece(text)] if text else [])


@settings(max_examples=600)
@given(st.sampled_from(ROWS), MIXED, st.lists(st.integers(0, 2000), max_size=8), st.booleans())
def test_cuts_do_not_matter(name: str, text: str, places: list[int], stopped: bool) -> None:  # noqa: FBT001  generated
    row, known = registry.get(name), declared()
    whole = read(row, known, text, stopped=stopped)
    assert read(row, known, *cut(text, places), stopped=stopped) == whole
    assert read(row, known, *text, stopped=stopped) == whole


@settings(max_examples=400)
@given(st.sampled_from(ROWS), MIXED)
def test_words_and_thoughts_stand_in_the_text_in_their_order(name: str, text: str) -> None:
    at = 0
    for piece in read(registry.get(name), declared(), text):
        if isinstance(piece, TextPiece | ReasoningPiece):
            for character in piece.text:
                at = text.index(character, at) + 1


VALUES: Final = {
    "string": st.text(st.sampled_from("ab Z09.,:;-_é{}/@#"), max_size=20).map(lambda said: f"a{said}b"),
    "number": st.integers(-1000, 1000) | st.sampled_from([0.5, -1.25, 1e3]),
    "integer": st.integers(-1000, 1000),
    "boolean": st.booleans(),
    "array": st.lists(st.sampled_from(["a", "b c", "é"]), max_size=3),
    "object": st.fixed_dictionaries({"lang": st.sampled_from(["fr", "de"]), "safe": st.booleans()}),
}


def calls_of(tool: Declaration) -> st.SearchStrategy[tuple[str, str]]:
    """Return calls to `tool` that its schema allows."""
    assert isinstance(tool.parameters, dict)
    properties = tool.parameters["properties"]
    assert isinstance(properties, dict)
    plain = {name: schema for name, schema in properties.items() if "type" in schema and "enum" not in schema}
    typed = {name: VALUES[schema["type"]] for name, schema in plain.items()}
    return st.fixed_dictionaries(typed).map(lambda values: (tool.name, json.dumps(values, ensure_ascii=False)))


CALLS: Final = st.lists(st.one_of([calls_of(tool) for tool in TOOLS]), min_size=1, max_size=3)


def decoded(parts: Sequence[Made]) -> list[object]:
    """Return calls with their arguments as values."""
    return [(part["call"], json.loads(part["arguments"])) if "call" in part else part for part in parts]


@settings(max_examples=600)
@given(st.sampled_from(WRITERS), CALLS)
def test_calls_come_back(name: str, calls: list[tuple[str, str]]) -> None:
    row = replace(registry.get(name), thoughts=())
    outcome = made(row, declared(), [written(row, calls)])
    assert decoded(outcome.parts) == [(tool, json.loads(arguments)) for tool, arguments in calls]
    assert outcome.losses == []


HOSTILE: Final = (
    *("<", "{", "[", '"', "\\", "\n", " ", "`", "x", "<|", "</", "[{", '{"name": ', '{"a": ', "(", "a(", ",", "'"),
    *('<tool_call>{"name": "', '<tool_call>{"arguments": {', '<tool_call>{"name": "now", "arguments": ["', "<think>\n"),
    *("{{", "`<tool_call>", "</think><", '<tool_call>{"a": 1, ', "<tool_call>```json", "</s>b", '"<|im_end|>'),
    *("<tool_call>x", "</think>\n", "```json\n", "<function=now><parameter=a>", "get_weather("),
)
ANY: Final = (registry.AUTO, "json", "pythonic")
SIZE: Final = 2_000


def work(row: Syntax, text: str, width: int) -> int:
    """Return how many calls of functions it takes to read `text` in chunks of `width` characters."""
    count = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    chunks = [text[start : start + width] for start in range(0, len(text), width)]
    stage = parser(row, declared(), thinking=False)
    earlier = sys.getprofile()
    sys.setprofile(note)
    try:
        for chunk in chunks:
            stage.feed(chunk)
        stage.close()
    finally:
        sys.setprofile(earlier)
    return count


@pytest.mark.parametrize("width", [7, 1_000_000])
@pytest.mark.parametrize("name", ROWS)
def test_work_is_linear(name: str, width: int) -> None:
    row = registry.get(name)
    for unit in dict.fromkeys(HOSTILE if name in ANY else markers(row)):
        text = unit * (SIZE // len(unit))
        once, twice = work(row, text, width), work(row, text * 2, width)
        assert twice <= 2.5 * once + 500, unit


@settings(max_examples=50)
@given(st.sampled_from(ROWS), st.sampled_from(HOSTILE), st.integers(1, 50))
def test_what_is_held_is_bounded(name: str, unit: str, width: int) -> None:
    """Something is given out before the end, unless it was removed: a marker again and again is no thought."""
    text = unit * (80_000 // len(unit))
    stage = parser(registry.get(name), declared(), thinking=False)
    pieces = [p for start in range(0, len(text), width * 100) for p in stage.feed(text[start : start + width * 100])]
    assert given_out(pieces) > 0 or given_out(stage.close()) == 0


def given_out(pieces: Iterable[Piece]) -> int:
    """Return the characters of `pieces`."""
    said = (piece for piece in pieces if isinstance(piece, TextPiece | ReasoningPiece | ArgumentsPiece))
    return sum(len(piece.text) for piece in said)
