"""What a grammar can read of a text that comes in pieces, and what becomes of what it read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import pytest

from tests.text.vectors import declared
from xenoglot.text.output_pieces import ArgumentsPiece, CallEnded, CallStart, LossPiece, TextPiece
from xenoglot.text.parser.parser_input import (
    LONGEST_BLANK,
    LONGEST_HELD,
    IncompleteInputError,
    MismatchError,
    ParserInput,
)
from xenoglot.text.parser.scanner import MarkerScanner

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from xenoglot.text.output_pieces import Piece

Got = TypeVar("Got")

OPTIONS: Final = ("<a>", "<ab>", "<a>x")


def section(*stops: str) -> ParserInput:
    """Return a section with nothing in it yet."""
    return ParserInput(declared(), MarkerScanner(stops))


def drive(part: ParserInput, reading: Generator[None, None, Got], text: str) -> Got:
    """Return what `reading` gives when `text` comes one character at a time."""
    characters = iter(text)
    while True:
        try:
            next(reading)
        except StopIteration as over:
            part.more("".join(characters))
            return over.value  # type: ignore[no-any-return]
        character = next(characters, None)
        part.ended = character is None
        part.more(character or "")


@pytest.mark.parametrize(
    ("text", "read", "rest"),
    [
        pytest.param("<a>", "<a>", "", id="at-the-end"),
        pytest.param("<a>y", "<a>", "y", id="the-longest-that-is-there"),
        pytest.param("<a>x", "<a>x", "", id="the-longest"),
        pytest.param(" \n<ab>", "<ab>", "", id="behind-blanks"),
        pytest.param(" <b>", "", " <b>", id="none-and-nothing-is-read"),
        pytest.param("<a", "", "<a", id="half-of-one"),
        pytest.param("", "", "", id="nothing"),
    ],
)
def test_accepts_one_of_the_options(text: str, read: str, rest: str) -> None:
    part = section()
    assert drive(part, part.accept(OPTIONS), text) == read
    assert part.rest == rest


def test_accepts_nothing_where_there_are_no_options() -> None:
    part = section()
    part.more(" <a>")
    assert not drive(part, part.accept(()), "")
    assert part.rest == " <a>"


def test_accepts_nothing_behind_more_blanks_than_anybody_writes() -> None:
    part = section()
    part.more(" " * (LONGEST_BLANK + 1) + "<a>")
    assert not drive(part, part.accept(OPTIONS), "")


def test_minds_blanks_where_it_is_told_to() -> None:
    part = section()
    part.more(" <a>")
    assert not drive(part, part.accept(OPTIONS, blanks=False), "")


@pytest.mark.parametrize(
    ("text", "error"), [("<b>", MismatchError), ("  ", IncompleteInputError), ("", IncompleteInputError)]
)
def test_expects_one_of_the_options(text: str, error: type[Exception]) -> None:
    part = section()
    with pytest.raises(error):
        drive(part, part.expect(OPTIONS), text)


@pytest.mark.parametrize(
    ("text", "follows"), [("[", True), (" \n{", True), ("x", False), (" x", False), (" ", False), ("", False)]
)
def test_sees_what_follows(text: str, follows: bool) -> None:  # noqa: FBT001  a parameter
    part = section()
    assert drive(part, part.follows("[{"), text) is follows
    assert part.rest == text


@pytest.mark.parametrize(
    ("text", "stands"), [("</a>", True), ("</a", False), ("x</a>", False), ("", False), ("</ab", False)]
)
def test_sees_a_stop(text: str, stands: bool) -> None:  # noqa: FBT001  a parameter
    part = section("</a>")
    assert drive(part, part.at_stop(), text) is stands


def test_reads_blanks_up_to_what_is_none() -> None:
    part = section()
    drive(part, part.blank(), " \n\tx")
    assert part.rest == "x"


def test_blanks_with_nothing_behind_them() -> None:
    part = section()
    with pytest.raises(IncompleteInputError):
        drive(part, part.blank(), " ")


def declared_call(part: ParserInput) -> None:
    part.begin()
    part.take(3)
    part.name("now")
    part.arguments("{}")
    part.take(1)
    part.complete()
    part.end()


def undeclared_call(part: ParserInput) -> None:
    part.begin()
    part.take(3)
    part.name("ghost")
    part.arguments("{}")
    part.take(1)
    part.end()


def nameless(part: ParserInput) -> None:
    part.begin()
    part.take(4)


def broken_off(part: ParserInput) -> None:
    part.begin()
    part.take(3)
    part.name("now")
    part.arguments("{")
    part.take(1)


NOW: Final[list[Piece]] = [CallStart("now"), ArgumentsPiece("{}"), CallEnded()]


@pytest.mark.parametrize(
    ("steps", "pieces"),
    [
        pytest.param([declared_call, ParserInput.close], NOW, id="declared"),
        pytest.param([undeclared_call, ParserInput.close], [TextPiece("abc"), TextPiece("d")], id="undeclared"),
        pytest.param([nameless, ParserInput.give_back], [TextPiece("abcd")], id="no-call"),
        pytest.param(
            [broken_off, ParserInput.cut], [*NOW[:1], ArgumentsPiece("{"), CallEnded(whole=False)], id="broken-off"
        ),
        pytest.param([declared_call, declared_call, ParserInput.close], [*NOW, *NOW], id="two"),
        pytest.param([declared_call, nameless, ParserInput.give_back], [*NOW, TextPiece("efgh")], id="then-none"),
        pytest.param(
            [undeclared_call, declared_call, ParserInput.close],
            [TextPiece("abc"), TextPiece("d"), *NOW],
            id="then-a-declared-one",
        ),
    ],
)
def test_what_was_read_is_a_call_or_words(steps: Sequence[Callable[[ParserInput], None]], pieces: list[Piece]) -> None:
    part = section()
    part.more("abcdefgh")
    for step in steps:
        step(part)
    assert part.pieces == pieces


def test_blanks_behind_a_call_are_markup_at_the_end_and_words_before_words() -> None:
    part = section()
    part.more("abcd  ")
    declared_call(part)
    part.take(2)
    part.cut()
    assert part.pieces == NOW


def test_a_loss_waits_until_it_is_known_whose_it_is() -> None:
    part = section()
    part.more("abcdefgh")
    part.begin()
    part.lost("early", "no such field")
    assert part.pieces == []
    declared_call(part)
    part.lost("late", "no such field")
    assert part.pieces in (
        [
            NOW[0],
            LossPiece("early", "dropped", "no such field"),
            *NOW[1:],
            LossPiece("late", "dropped", "no such field"),
        ],
        [*NOW, LossPiece("late", "dropped", "no such field")],
    )


def test_a_loss_of_what_stays_text_is_none() -> None:
    part = section()
    part.more("abcdefgh")
    undeclared_call(part)
    part.lost("late", "no such field")
    assert part.pieces == [TextPiece("abc"), TextPiece("d")]


def test_no_more_is_held_than_anybody_names_a_tool_in() -> None:
    part = section()
    part.more("x" * (LONGEST_HELD + 1))
    part.begin()
    with pytest.raises(MismatchError):
        part.take(LONGEST_HELD + 1)


def test_whether_it_is_decided_or_refused() -> None:
    calls, words = section(), section()
    for part in (calls, words):
        part.more("abcd")
        assert (part.decided, part.refused) == (False, False)
    declared_call(calls)
    undeclared_call(words)
    assert [(part.decided, part.refused) for part in (calls, words)] == [(True, False), (False, True)]
