"""Code behind a marker is a call where a tool takes it (L-S1), and text where none does."""

from __future__ import annotations

import pytest

from tests.text.vectors import Declaration, declared, made
from xenoglot.text.payloads.code import Code
from xenoglot.text.syntax import CallSyntax, Syntax
from xenoglot.text.tools.render import in_form

FORM = CallSyntax(begin=("<py>",), end=("<end>",), payload=Code())
SYNTAX = Syntax(name="test", title="", source="", calls=(FORM,))
SOURCE = Declaration("python", parameters={"type": "object", "properties": {"source": {"type": "string"}}})


@pytest.mark.parametrize(
    ("tool", "text", "parts"),
    [
        (
            Declaration("python"),
            "<py>a < b<end>c",
            [{"call": "python", "arguments": '{"code": "a < b"}'}, {"text": "c"}],
        ),
        (SOURCE, "<py># <en\n'", [{"call": "python", "arguments": '{"source": "# <en\\n\'"}'}]),
        (Declaration("now"), "<py>1<end>", [{"text": "<py>1<end>"}]),
        (SOURCE, '<py>{"a": 1}', [{"text": '<py>{"a": 1}'}]),
        (SOURCE, "<py>search.call(a=1)", [{"text": "<py>search.call(a=1)"}]),
        (SOURCE, "<py>search.caller(a)", [{"call": "python", "arguments": '{"source": "search.caller(a)"}'}]),
        (SOURCE, "<py>", [{"text": "<py>"}]),
    ],
    ids=["whole", "stopped", "nobody takes it", "JSON", "a builtin", "a method", "nothing"],
)
def test_code(tool: Declaration, text: str, parts: list[dict[str, str]]) -> None:
    known = declared([tool])
    for chunks in ([text], list(text)):
        assert made(SYNTAX, known, chunks).parts == parts


def test_cut_off() -> None:
    outcome = made(SYNTAX, declared([SOURCE]), ['<py>print("a'], "length")
    assert (outcome.parts, outcome.ends) == ([{"call": "python", "arguments": '{"source": "print(\\"a'}], "length")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [('{"code": "print(1)"}', "print(1)"), ('{"source": "x"}', "x"), ("{}", ""), ("[1]", "[1]")],
)
def test_written(arguments: str, said: str) -> None:
    assert in_form(FORM, [("python", arguments)]) == f"<py>{said}<end>"
