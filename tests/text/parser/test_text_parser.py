"""Where markers count, which blanks are markup, and what a thought is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.text.vectors import Declaration, declared
from xenoglot.text.output_pieces import (
    ArgumentsPiece,
    CallEnded,
    CallStart,
    LossPiece,
    ReasoningEnded,
    ReasoningPiece,
    TextPiece,
    joined,
)
from xenoglot.text.parser.parser_input import LONGEST_BLANK, LONGEST_HELD
from xenoglot.text.parser.text_parser import parser
from xenoglot.text.payloads.json_calls import JSONCalls, Named
from xenoglot.text.syntax import CallSyntax, ReasoningSyntax, Syntax

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.text.output_pieces import Piece

THINK: Final = ReasoningSyntax(open=("<think>",), close=("</think>",))
TAGS: Final = CallSyntax(open=("<call>",), close=("</call>",), payload=JSONCalls())


def row(
    *calls: CallSyntax, thoughts: tuple[ReasoningSyntax, ...] = (THINK,), dropped: tuple[str, ...] = ("<|end|>", "</s>")
) -> Syntax:
    """Return a syntax of our own."""
    return Syntax(name="ours", title="Ours", source="", calls=calls or (TAGS,), thoughts=thoughts, dropped=dropped)


def read(syntax: Syntax, *chunks: str, stopped: bool = True, thinking: bool | None = None) -> list[Piece]:
    """Return what `syntax` makes of `chunks`; the same has to come of single characters."""
    whole = _read(syntax, chunks, stopped=stopped, thinking=thinking)
    assert _read(syntax, "".join(chunks), stopped=stopped, thinking=thinking) == whole
    return whole


def _read(syntax: Syntax, chunks: Sequence[str], *, stopped: bool, thinking: bool | None) -> list[Piece]:
    stage = parser(syntax, declared(), thinking=thinking)
    pieces = [piece for chunk in chunks for piece in stage.feed(chunk)]
    return list(joined([*pieces, *stage.close(stopped=stopped)]))


def called(name: str = "now", arguments: str = "{}", *, whole: bool = True) -> list[Piece]:
    """Return the pieces of a call."""
    return [CallStart(name), *([ArgumentsPiece(arguments)] if arguments else []), CallEnded(whole=whole)]


def thought(text: str) -> list[Piece]:
    """Return the pieces of a thought."""
    return [ReasoningPiece(text), ReasoningEnded()]


WIDE: Final = " " * (LONGEST_BLANK + 9)
GHOST: Final = '<call>{"why": 1, "name": "ghost"}</call>'
NOW: Final = '<call>{"name": "now"}</call>'
BARE: Final = '{"name": "now"}'


@pytest.mark.parametrize(
    ("place", "text", "pieces"),
    [
        pytest.param("anywhere", f"a {NOW}", [TextPiece("a "), *called()], id="anywhere-in-words"),
        pytest.param("line", f"a\n{NOW}", [TextPiece("a\n"), *called()], id="line-at-its-start"),
        pytest.param("line", f"a {NOW}", [TextPiece(f"a {NOW}")], id="line-within"),
        pytest.param("line", f"{NOW}{NOW}", [*called(), *called()], id="line-behind-a-call"),
        pytest.param("start", f" \n{NOW}", called(), id="start-behind-blanks"),
        pytest.param("start", f"<think>t</think>{NOW}", [*thought("t"), *called()], id="start-behind-a-thought"),
        pytest.param("start", f"{NOW}\n{NOW}", [*called(), *called()], id="start-behind-a-call"),
        pytest.param("start", f"a {NOW}", [TextPiece(f"a {NOW}")], id="start-behind-words"),
        pytest.param("start", f"{NOW}a{NOW}", [*called(), TextPiece(f"a{NOW}")], id="start-behind-later-words"),
    ],
)
def test_markers_count_in_their_place(place: str, text: str, pieces: list[Piece]) -> None:
    form = CallSyntax(open=("<call>",), close=("</call>",), payload=JSONCalls(), place=place)  # type: ignore[arg-type]
    assert read(row(form), text) == pieces


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param(" \n", [TextPiece(" \n")], id="only-blanks"),
        pytest.param("  a  ", [TextPiece("  a  ")], id="around-words"),
        pytest.param(f"\n {NOW}\n ", called(), id="around-a-call"),
        pytest.param(f"{NOW} \n {NOW}", [*called(), *called()], id="between-calls"),
        pytest.param(f"a \n{NOW}", [TextPiece("a \n"), *called()], id="behind-words"),
        pytest.param(f"{NOW}\n a", [*called(), TextPiece("\n a")], id="before-words"),
        pytest.param("<think>\n t \n</think>\n\n a", [*thought("t"), TextPiece("a")], id="around-a-thought"),
        pytest.param("<think>\n\n</think>\na", [ReasoningEnded(), TextPiece("a")], id="empty-thought"),
        pytest.param(" <|end|>\n", [], id="around-a-control-token"),
        pytest.param("a <|end|>\nb", [TextPiece("a \nb")], id="control-token-in-words"),
        pytest.param(f" <|end|> {NOW}", called(), id="control-token-before-a-call"),
        pytest.param(
            ' <call>{"name": "ghost"}</call>', [TextPiece(' <call>{"name": "ghost"}</call>')], id="before-no-call"
        ),
        pytest.param(
            " " * (LONGEST_BLANK + 9) + "a", [TextPiece(" " * (LONGEST_BLANK + 9) + "a")], id="more-than-anybody-means"
        ),
    ],
)
def test_blanks_beside_markup_are_markup(text: str, pieces: list[Piece]) -> None:
    assert read(row(), text) == pieces


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        pytest.param("</think>\na", [TextPiece("a")], id="at-the-start"),
        pytest.param("t\n</think>\n\na", [TextPiece("t\n"), TextPiece("a")], id="behind-words"),
        pytest.param("</think>a", [TextPiece("a")], id="at-the-start-with-words-behind"),
        pytest.param("a</think>", [TextPiece("a")], id="at-the-end"),
        pytest.param("a</think>\n\nb", [TextPiece("a\n\nb")], id="at-the-end-of-a-line"),
        pytest.param(f"a</think>{NOW}", [TextPiece("a"), *called()], id="before-a-call"),
        pytest.param("a</think><call", [TextPiece("a</think><call")], id="before-no-call"),
        pytest.param("a </think> b", [TextPiece("a </think> b")], id="within-a-line"),
        pytest.param(
            "<think>t</think>a</think>\nb", [*thought("t"), TextPiece("a</think>\nb")], id="there-was-a-thought"
        ),
        pytest.param("</think>\na</think>\n", [TextPiece("a</think>\n")], id="only-once"),
        pytest.param("a <think>b</think>\n", [TextPiece("a <think>b</think>\n")], id="opened-among-words"),
    ],
)
def test_orphan_end_of_a_thought(text: str, pieces: list[Piece]) -> None:
    assert read(row(), text) == list(joined(pieces))


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        pytest.param("t</think>a", [*thought("t"), TextPiece("a")], id="begins-inside"),
        pytest.param("<think>t</think>a", [*thought("t"), TextPiece("a")], id="opened-again"),
        pytest.param("\n<think>\nt</think>a", [*thought("t"), TextPiece("a")], id="opened-again-behind-blanks"),
        pytest.param("<thi", [ReasoningPiece("<thi"), ReasoningEnded()], id="half-opened-again"),
        pytest.param("t <think> u</think>", thought("t <think> u"), id="opened-within"),
        pytest.param("t", thought("t"), id="never-closed"),
        pytest.param("", [ReasoningEnded()], id="nothing"),
    ],
)
def test_implied_thought(text: str, pieces: list[Piece]) -> None:
    begun = row(thoughts=(ReasoningSyntax(open=("<think>",), close=("</think>",), implied=True),))
    assert read(begun, text) == pieces


@pytest.mark.parametrize(
    ("asked", "thinking", "begun"),
    [
        *((False, None, True), (False, True, True), (False, False, False)),
        *((True, None, False), (True, True, True), (True, False, False)),
    ],
)
def test_implied_thought_that_the_request_wants_or_not(asked: bool, thinking: bool | None, begun: bool) -> None:  # noqa: FBT001
    implied = ReasoningSyntax(open=("<think>",), close=("</think>",), implied=True, asked=asked)
    assert read(row(thoughts=(implied,)), "a", thinking=thinking) == (thought("a") if begun else [TextPiece("a")])


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        pytest.param(f"<think>t\n{NOW}a", [*thought("t"), *called(), TextPiece("a")], id="a-call-ends-it"),
        pytest.param(
            '<think>t <call>{"name": "ghost"}</call> u</think>a',
            [*thought('t <call>{"name": "ghost"}</call> u'), TextPiece("a")],
            id="no-call-does-not",
        ),
    ],
)
def test_calls_in_a_thought(text: str, pieces: list[Piece]) -> None:
    inside = row(thoughts=(ReasoningSyntax(open=("<think>",), close=("</think>",), calls=True),))
    assert read(inside, text) == pieces


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        pytest.param(f"<think>t{NOW}</think>a", [*thought("t"), *called(), TextPiece("a")], id="at-once"),
        pytest.param(f"<think>t{NOW}u</think>\na", [*thought("t"), *called(), TextPiece("u\na")], id="behind-words"),
    ],
)
def test_a_thought_that_a_call_ended_may_still_be_closed(text: str, pieces: list[Piece]) -> None:
    """Kimi K2 does so: https://github.com/vybestack/llxprt-code/issues/749."""
    inside = row(thoughts=(ReasoningSyntax(open=("<think>",), close=("</think>",), calls=True),))
    assert read(inside, text) == pieces


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"Write `{NOW}`.", id="a-call"),
        pytest.param(f"Write ``{NOW}``.", id="a-call-in-two-backticks"),
        pytest.param("`<|end|>` ends a turn.", id="a-control-token"),
        pytest.param("Write `</think>\nand", id="the-end-of-a-thought"),
        pytest.param(f'say("{NOW}")', id="in-quotes"),
        pytest.param("<s>old</s> new", id="a-token-that-is-html"),
        pytest.param("ends = ['<|end|>', f'<|end|>{more}']", id="in-single-quotes"),
    ],
)
def test_what_is_quoted_stays(text: str) -> None:
    """F-W1, A-W10: prose tells of markers."""
    assert read(row(), text) == [TextPiece(text)]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        pytest.param(f"```{NOW}```", [TextPiece("```"), *called(), TextPiece("```")], id="in-a-block-of-code"),
        pytest.param(f"See `ls`{NOW}", [TextPiece("See `ls`"), *called()], id="behind-code"),
        pytest.param("no more</s>", [TextPiece("no more")], id="a-token-that-is-html-at-the-end"),
        pytest.param('She said "yes"<|end|>', [TextPiece('She said "yes"')], id="behind-a-quotation"),
    ],
)
def test_what_is_not_quoted_counts(text: str, pieces: list[Piece]) -> None:
    assert read(row(), text) == pieces


def test_calls_in_a_thought_are_thought_of_where_the_row_does_not_say() -> None:
    assert read(row(), f"<think>{NOW}</think>") == thought(NOW)


def test_thoughts_count_only_before_words() -> None:
    assert read(row(), "a <think>t</think> b") == [TextPiece("a <think>t</think> b")]


def test_thoughts_anywhere() -> None:
    anywhere = row(thoughts=(ReasoningSyntax(open=("<think>",), close=("</think>",), place="anywhere"),))
    assert read(anywhere, "a <think>t</think> b") == [TextPiece("a "), *thought("t"), TextPiece("b")]


FORMS: Final = (
    CallSyntax(open=("<call>",), close=("</call>",), payload=Named()),
    CallSyntax(open=("<call>",), close=("</call>",), payload=JSONCalls()),
)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        pytest.param(NOW, called(), id="second"),
        pytest.param('<call>add {"a": 1}</call>', called("add", '{"a": 1}'), id="first"),
        pytest.param("<call>ghost {}</call>", [TextPiece("<call>ghost {}</call>")], id="refused"),
        pytest.param("<call>?</call>", [TextPiece("<call>?</call>")], id="neither"),
        pytest.param(f"<call>{NOW}", called(), id="a-marker-written-twice"),
        pytest.param(f"{NOW}</call>", called(), id="an-end-written-twice"),
        pytest.param(f"<call>?{NOW}", [TextPiece("<call>?"), *called()], id="a-marker-behind-what-was-none"),
    ],
)
def test_forms_with_one_marker_are_tried_side_by_side(text: str, pieces: list[Piece]) -> None:
    assert read(row(*FORMS), text) == pieces


SECTION: Final = CallSyntax(
    begin=("[calls]",), end=("[/calls]",), open=("<c>",), close=("</c>",), between=(",",), payload=JSONCalls()
)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        pytest.param(f"[calls]<c>{BARE}</c>[/calls]", called(), id="one"),
        pytest.param(f"[calls] <c> {BARE} </c> , <c>{BARE}</c> [/calls]", [*called(), *called()], id="two"),
        pytest.param(f"[calls]<c>{BARE}</c><c>{BARE}</c>a", [*called(), *called(), TextPiece("a")], id="no-end"),
        pytest.param(f"[calls]<c>{BARE}</c>[/calls]<c>", [*called(), TextPiece("<c>")], id="marker-outside"),
        pytest.param(f"<c>{BARE}</c>", [TextPiece(f"<c>{BARE}</c>")], id="no-beginning"),
        pytest.param("[calls][/calls]", [], id="empty"),
        pytest.param("a [calls][/calls]", [TextPiece("a [calls][/calls]")], id="empty-in-a-line"),
        pytest.param(
            f'[calls]<c>{{"name": "ghost"}}</c><c>{BARE}</c>[/calls]',
            [TextPiece('[calls]<c>{"name": "ghost"}</c>'), *called()],
            id="only-the-second-is-declared",
        ),
    ],
)
def test_sections(text: str, pieces: list[Piece]) -> None:
    assert read(row(SECTION), text) == pieces


def test_bare_form_counts_only_before_words() -> None:
    bare = row(CallSyntax(payload=JSONCalls(strict=True)))
    assert read(bare, f"\n{BARE}") == called()
    assert read(bare, f"a {BARE}") == [TextPiece(f"a {BARE}")]
    assert read(bare, f"<think>t</think>{BARE}{BARE}") == [*thought("t"), *called(), *called()]


def test_without_tools_nothing_is_looked_for() -> None:
    stage = parser(row(), declared([]))
    assert [*stage.feed(NOW), *stage.close()] == [TextPiece(NOW)]


def test_arguments_leave_as_they_come() -> None:
    stage = parser(row(), declared())
    chunks = ['<call>{"name": "get_weather", ', '"arguments": {"ci', 'ty": "Pa', 'ris"}}', "</call>"]
    assert [list(stage.feed(chunk)) for chunk in chunks] == [
        [],
        [CallStart("get_weather"), ArgumentsPiece('{"ci')],
        [ArgumentsPiece('ty": "Pa')],
        [ArgumentsPiece('ris"}'), CallEnded()],
        [],
    ]


def test_words_leave_as_they_come_but_for_what_may_be_a_marker() -> None:
    stage = parser(row(), declared())
    assert [list(stage.feed(chunk)) for chunk in ("Hello", " wor", "ld <", "b", "> <ca", "ll")] == [
        [TextPiece("Hello")],
        [TextPiece(" wor")],
        [TextPiece("ld ")],
        [TextPiece("<b")],
        [TextPiece("> ")],
        [],
    ]
    assert list(stage.close()) == [TextPiece("<call")]


def test_what_is_held_for_a_name_is_bounded() -> None:
    text = '<call>{"arguments": {"a": "' + "x" * LONGEST_HELD
    stage = parser(row(), declared())
    assert joined([*stage.feed(text), *stage.feed("y")]) == [TextPiece(f"{text}y")]


def test_a_call_that_breaks_off_is_not_whole() -> None:
    assert read(row(), '<call>{"name": "add", "arguments": {"a"', stopped=False) == called("add", '{"a"', whole=False)


def test_a_field_that_a_call_does_not_have_is_told() -> None:
    lost = LossPiece("why", "dropped", "a call has no such field")
    assert read(row(), '<call>{"name": "now", "arguments": {}, "why": 1}</call>') == [
        *(CallStart("now"), ArgumentsPiece("{}"), lost, CallEnded())
    ]
    assert read(row(), '<call>{"why": 1, "name": "ghost"}</call>') == [
        TextPiece('<call>{"why": 1, "name": "ghost"}</call>')
    ]


def test_tools_are_known_by_the_names_that_models_give_them() -> None:
    known = declared([Declaration(name="now")])
    assert [known.resolve(name) for name in ("now", " now ", "functions.now", "functions.now:3", "Now", "no")] == [
        *("now", "now", "now", "now"),
        None,
        None,
    ]
