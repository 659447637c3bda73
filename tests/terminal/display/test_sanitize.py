"""What a terminal is shown of texts from outside."""

import pytest

from xenoglot.terminal.display.sanitize import STAND_IN, harmless, in_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("plain, with\na\ttab", "plain, with\na\ttab", id="plain"),
        pytest.param("Ünïcödé 日本 ب", "Ünïcödé 日本 ب", id="other-letters"),
        pytest.param("👩‍👩‍👧 ❤️", "👩‍👩‍👧 ❤️", id="joined-emoji"),
        pytest.param("a b　c", "a b　c", id="wide-blanks"),
        pytest.param("\x1b[31mred", f"{STAND_IN}[31mred", id="colour"),
        pytest.param("\x1b]0;title\x07", f"{STAND_IN}]0;title{STAND_IN}", id="title"),
        pytest.param("\x1b]52;c;cm0=\x1b\\", f"{STAND_IN}]52;c;cm0={STAND_IN}\\", id="clipboard"),
        pytest.param("\x9b2J", f"{STAND_IN}2J", id="c1"),
        pytest.param("safe\rrm", "saferm", id="carriage-return"),
        pytest.param("one\r\ntwo", "one\ntwo", id="lines-of-windows"),
        pytest.param("one\u2028two\u2029", "one\ntwo\n", id="other-breaks"),
        pytest.param("rm \u202egpj.exe", f"rm {STAND_IN}gpj.exe", id="bidirectional"),
        pytest.param("\U000e0041", STAND_IN, id="tag-characters"),
        pytest.param("a\b\x00\x7f", f"a{STAND_IN * 3}", id="controls"),
        pytest.param("\ud800\ue000", STAND_IN * 2, id="surrogate-and-private"),
    ],
)
def test_nothing_is_obeyed(text: str, shown: str) -> None:
    assert harmless(text) == shown
    assert "".join(harmless(character) for character in text) == shown


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("a\nb\t c", "a b c", id="one-line"),
        pytest.param("abcdefghij", "abcdefghij", id="as-long-as-it-may"),
        pytest.param("abcdefghijk", "abcdefghi…", id="cut"),
        pytest.param(" " * 50 + "x", "…", id="blanks-beyond"),
    ],
)
def test_a_line_is_short(text: str, line: str) -> None:
    assert in_line(text, 10) == line
