"""What the grammar of a regular expression lets pass matches the expression, and is written as JSON wants it."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.grammar.derive import Grammar
from xenoglot.engine.grammar.patterns import Bounds, Matched, PatternError, fitted, translate

TEXTS = 60
LAWFUL = [
    "^abc$",
    "^a|b$",
    "abc",
    "^(?:a|bc)+?$",
    r"^(?<year>\d{4})-(0[1-9]|1[0-2])$",
    r"^[^\s@]+@[^\s@]+\.[a-z]{2,}$",
    r"^\$\{\w*\}$",
    "^[\\]a\\-z^-]{3}$",
    '^["\\\\]+$',
    r"^\x41B\u{43}$",
    "^.{2,5}$",
    r"^\D\W\S$",
    "^[\t\n x]*$",
    "^$",
    "^(a(b(c)?)?)?$",
]


def derived(matched: Matched | None) -> list[str]:
    assert matched is not None
    grammar = Grammar(f'root ::= "\\x22" {matched.text} "\\x22"')
    return [json.loads(grammar.derive(seed), strict=True) for seed in range(TEXTS)]


@pytest.mark.parametrize("pattern", LAWFUL)
def test_what_passes_matches(pattern: str) -> None:
    matched = translate(pattern, Bounds())
    spelled = pattern.replace("(?<", "(?P<").replace(r"\u{43}", "C")
    found = derived(matched)
    assert [text for text in found if not re.search(spelled, text, re.ASCII)] == []
    assert [text for text in found if not matched.least <= len(text) <= matched.most] == []


@pytest.mark.parametrize(
    ("pattern", "least", "most", "lengths"),
    [
        pytest.param("^[a-z]+$", 0, 3, {1, 2, 3}, id="most"),
        pytest.param("^[a-z]+$", 4, 5, {4, 5}, id="both"),
        pytest.param("^a{2,3}b?$", 2, 4, {2, 3, 4}, id="fits-as-it-is"),
        pytest.param("x", 5, 6, {5, 6}, id="within"),
    ],
)
def test_lengths_are_held_beside_the_pattern(pattern: str, least: int, most: int, lengths: set[int]) -> None:
    assert {len(text) for text in derived(fitted(pattern, least, most))} <= lengths


@pytest.mark.parametrize(("least", "most"), [(4, None), (0, 2), (5, 9)], ids=str)
def test_lengths_that_the_pattern_cannot_have_are_told(least: int, most: int | None) -> None:
    assert fitted("^abc$", least, most) is None


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(?=x)", "looking around is not supported"),
        ("(?<!x)y", "looking around is not supported"),
        (r"\bword\b", "`\\b` is not supported"),
        (r"(a)\1", "`\\1` is not supported"),
        (r"\p{L}", "`\\p` is not supported"),
        ("a**", "it repeats a repetition"),
        ("*a", "`*` at 0 is not supported there"),
        ("a(^b)", "`^` at 2 is not supported there"),
        ("(a", "a group is not closed, or has an anchor inside"),
        ("a)", "it has an unexpected `)` at 1"),
        ("[b-a]", "a range in a character class is wrong"),
        ("[a", "it ends too early"),
        ("[]", "it has a character class that nothing matches"),
        ("a{3,1}", "a number of times ends before it begins"),
        ("a{x}", "a number of times is wrong at 2"),
        ("a{5000}", "it repeats something more than 2000 times"),
        ("(a{100}){100}", "it matches more than 2000 characters"),
        (r"\xZZ", "an escape has wrong digits"),
        ("a" * 1001, "it is longer than 1000 characters"),
        ("(" * 100, "its groups are nested more than 32 deep"),
    ],
)
def test_what_no_grammar_holds_is_refused(pattern: str, problem: str) -> None:
    with pytest.raises(PatternError) as raised:
        translate(pattern, Bounds())
    assert str(raised.value) == problem


@given(st.text(alphabet="ab1^$|()[]{}*+?.\\-,:<>=!dwsWx0\"'u", max_size=24))
def test_whatever_comes_is_matched_or_refused(pattern: str) -> None:
    try:
        found = derived(translate(pattern, Bounds()))
    except PatternError:
        return
    try:
        lawful = re.compile(pattern, re.ASCII)
    except re.error:
        return  # Python's notation is another one there
    if not re.search(r"\\[0x]|\[\^?\]|\[.*[\[&~|-].*\]|\(\?[^:]", pattern):
        assert [text for text in found if not lawful.search(text)] == []
