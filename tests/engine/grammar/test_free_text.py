"""Words and thoughts as grammar: all words pass but the marker, and behind the marker only what has to follow."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.grammar.derive import Grammar
from tests.engine.grammar.match import matches
from xenoglot.engine.grammar.free_output import LINE_LENGTH, Place, thought, words_not_from, words_until
from xenoglot.engine.grammar.gbnf import GrammarRules, literal

MARKERS = ("<tool_call>", "aabaaab", "[TOOL_CALLS]", "<<call>>", "x")


def grammar(marker: str) -> str:
    rules = GrammarRules()
    return rules.text(words_until(rules, marker, literal("!")))


@pytest.mark.parametrize("marker", MARKERS)
def test_what_is_derived_holds_the_marker_at_its_end_or_not_at_all(marker: str) -> None:
    derived = [Grammar(grammar(marker)).derive(seed) for seed in range(200)]
    assert [text for text in derived if marker in text.removesuffix(f"{marker}!")] == []


@given(st.sampled_from(MARKERS), st.data())
def test_words_pass_if_and_only_if_they_do_not_hold_the_marker(marker: str, data: st.DataObject) -> None:
    pieces = st.sampled_from([marker[:size] for size in range(1, len(marker) + 1)]) | st.text(max_size=3)
    text = "".join(data.draw(st.lists(pieces, max_size=5)))
    text = re.sub("[\x00\ud800-\udfff]", "", text)
    assert matches(grammar(marker), text) == (marker not in text)
    assert matches(grammar(marker), f"{text}{marker}!") == ((text + marker).index(marker) == len(text))


@pytest.mark.parametrize(
    ("place", "text", "passes"),
    [
        pytest.param("line", "<a>!", True, id="at-the-very-start"),
        pytest.param("line", "Hi\n<a>!", True, id="at-a-line"),
        pytest.param("line", "Hi <a>?", True, id="in-a-line"),
        pytest.param("line", "Hi\n\n<a>?", False, id="at-a-line-and-not-followed"),
        pytest.param("start", "<a>!", True, id="start"),
        pytest.param("start", "\n <a>!", True, id="behind-blanks"),
        pytest.param("start", "\n <a>?", False, id="behind-blanks-and-not-followed"),
        pytest.param("start", "<b <a>?", True, id="behind-words"),
        pytest.param("start", "<", True, id="its-beginning"),
    ],
)
def test_a_marker_that_counts_only_in_places(place: Place, text: str, *, passes: bool) -> None:
    rules = GrammarRules()
    assert matches(rules.text(words_until(rules, "<a>", literal("!"), place)), text) is passes


@pytest.mark.parametrize(
    ("text", "passes"), [("", True), ("Hi {", True), ("{", False), (" Hi", False), ("\nHi", False), ("[", True)]
)
def test_words_that_do_not_begin_like_a_call(text: str, *, passes: bool) -> None:
    rules = GrammarRules()
    assert matches(rules.text(words_not_from(rules, "{")), text) is passes


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        pytest.param("<think>\nA < b.\n</think>\n\n", True, id="lines"),
        pytest.param("<think></think>", True, id="nothing"),
        pytest.param("<think>a</b></think>", False, id="the-beginning-of-an-end"),
        pytest.param("<think>a", False, id="no-end"),
        pytest.param(f"<think>{'x' * LINE_LENGTH}</think>", True, id="a-long-line"),
        pytest.param(f"<think>{'x' * (LINE_LENGTH + 1)}</think>", False, id="one-line-too-long"),
        pytest.param("<think>" + "x\n" * 4 + "</think>", True, id="many-lines"),
        pytest.param("<think>" + "x\n" * 5 + "</think>", False, id="too-many-lines"),
    ],
)
def test_a_bounded_thought(text: str, *, passes: bool) -> None:
    rules = GrammarRules()
    assert matches(rules.text(thought(rules, "<think>", "</think>", 4 * LINE_LENGTH)), text) is passes
