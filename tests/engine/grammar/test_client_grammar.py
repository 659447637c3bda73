"""Grammars of clients, read and written again: what they match, and which are refused."""

from __future__ import annotations

import pytest

from xenoglot.engine.extras import Demand
from xenoglot.engine.grammar.client_grammar import ClientGrammarError, translated
from xenoglot.engine.grammar.gbnf import GrammarRules
from xenoglot.engine.prompting.constrain import format_expression
from xenoglot.errors import FailureError

CHESS = r"""
# Specifies chess moves as a list in algebraic notation, using PGN conventions
root ::= "1. " move " " move "\n" ([1-9] [0-9]? ". " move " " move "\n")+
move ::= (pawn | nonpawn | castle) [+#]?
nonpawn ::= [NBKQR] [a-h]? [1-8]? "x"? [a-h] [1-8]
pawn ::= ([a-h] "x")? [a-h] [1-8] ("=" [NBKQR])?
castle ::= "O-O" "-O"?
"""
"""From the notation's own page."""


@pytest.mark.parametrize(
    ("text", "written"),
    [
        pytest.param('root ::= "yes" | "no"', 'r1 ::= ("yes" | "no")', id="either"),
        pytest.param("root ::= [a-z]{2,3}", "r1 ::= ([a-z]){2,3}", id="counted"),
        pytest.param("root ::= [^a]", "r1 ::= [\\x00-`b-\\U0000D7FF\\U0000E000-\\U0010FFFF]", id="negated"),
        pytest.param('root ::= [-a] "\\n\\x41\\""', 'r1 ::= [\\x2Da] "\\x0AA\\x22"', id="escapes"),
        pytest.param('root ::= a-b\na-b ::= "x" # y\n', 'r1 ::= r2\nr2 ::= "x"', id="names"),
        pytest.param("root ::= [a]*", "r2 ::= (([a]) r2)?\nr1 ::= r2", id="star"),
        pytest.param("root ::= [a]+", "r2 ::= (([a]) r2)?\nr1 ::= ([a]){1,1} r2", id="plus"),
        pytest.param("root ::= ", 'r1 ::= ""', id="nothing"),
    ],
)
def test_a_grammar_in_our_form(text: str, written: str) -> None:
    rules = GrammarRules()
    assert translated(rules, text) == "r1"
    assert [f"{name} ::= {body}" for name, body in rules.bodies.items()] == written.split("\n")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param('a ::= "x"', "no rule `root`", id="no-root"),
        pytest.param("root ::= a", "`a` does not exist", id="no-such-rule"),
        pytest.param('root ::= "x"\nroot ::= "y"', "expected a new rule", id="twice"),
        pytest.param('root ::= ("x"', "not closed", id="open-group"),
        pytest.param("root ::= [z-a]", "ends before it begins", id="range"),
        pytest.param('root ::= "\\q"', "is no escape", id="escape"),
        pytest.param("root ::= $", "cannot be read in line 1", id="unreadable"),
        pytest.param('root ::= root "x"', "can begin with itself", id="left-recursion"),
        pytest.param('root ::= "a"? b\nb ::= c | "x"\nc ::= root', "can begin with itself", id="hidden-left-recursion"),
        pytest.param('root ::= ("a"?)*', "may be empty", id="endless-nothing"),
        pytest.param("root ::= [a]{1,2001}", "repetitions", id="too-often"),
        pytest.param("root ::= " + "[a]{0,2000} " * 5, "repetitions", id="too-often-in-all"),
        pytest.param("root ::= " + "(" * 33, "nested", id="deep"),
        pytest.param('root ::= "a"' + "*" * 60_000, "repetitions of one another", id="stacked"),
        pytest.param("root ::= a0\n" + "\n".join(f"a{i} ::= a{i + 1}" for i in range(1000)), "1000 rules", id="rules"),
        pytest.param("root ::= " + " " * 65_536, "longer", id="long"),
    ],
)
def test_s_a_grammar_that_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ClientGrammarError, match=problem):
        translated(GrammarRules(), text)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        pytest.param("grammar", 'root ::= (("a"?){200}){200}', id="nothing-often"),
        pytest.param(
            "grammar", "root ::= " + " | ".join(f"[a-z]{{0,40}} [{chr(97 + i % 26)}]" for i in range(400)), id="alike"
        ),
        pytest.param("choice", [f"{'a' * 60}{index:03}" for index in range(1000)], id="choices"),
        pytest.param("regex", "(a|b|ab)*" * 300, id="pattern"),
    ],
)
def test_s_what_would_stop_the_runtime_is_refused(kind: str, value: object) -> None:
    with pytest.raises(FailureError) as error:
        format_expression(GrammarRules(), Demand(kind, value, "$.grammar"))
    assert error.value.failure.kind == "invalid_request"


def test_a_grammar_of_the_notations_own_page_is_taken() -> None:
    assert format_expression(GrammarRules(), Demand("grammar", CHESS, "$.grammar"))
