"""The channels of gpt-oss: headers in every order, messages that begin or end badly, and text that only looks so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.text.vectors import Declaration, declared, made
from xenoglot.text import registry
from xenoglot.text.formats.harmony import LONGEST_HEADER, HarmonyParser
from xenoglot.text.output_pieces import ArgumentsPiece, ReasoningPiece, TextPiece, joined
from xenoglot.text.parser.parser_input import LONGEST_BLANK
from xenoglot.text.tools.render import written

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.response import FinishReason
    from xenoglot.text.output_pieces import Piece

ROW: Final = registry.get("gpt_oss")
NOW: Final = {"call": "now", "arguments": "{}"}
LONG: Final = "<|channel|>" + "a" * LONGEST_HEADER
WIDE: Final = " " * (LONGEST_BLANK + 1)

THINK: Final = "<|channel|>analysis<|message|>"
FINAL: Final = "<|channel|>final<|message|>"
TWICE: Final = "<|channel|>commentary to=functions.now<|channel|>x<|message|>{}<|call|>"

CASES = [
    pytest.param(
        "<|channel|> analysis<|message|>x<|end|><|start|> assistant<|channel|> final<|message|>y",
        [{"reasoning": "x"}, {"text": "y"}],
        id="blanks in headers",
    ),
    pytest.param("<|start|>assistant<|message|>Hi<|end|>", [{"text": "Hi"}], id="no channel"),
    pytest.param(
        "<|channel|>final <|constrain|>json<|message|>{}<|return|>", [{"text": "{}"}], id="a final answer of a type"
    ),
    pytest.param(TWICE, [NOW], id="two channels"),
    pytest.param(
        "<|channel|>musing<|message|>x<|end|>",
        [{"reasoning": "x"}],
        id="a channel that nobody knows",
    ),
    pytest.param("<|start|>user<|message|>x<|end|>", [{"text": "<|start|>user<|message|>x<|end|>"}], id="another role"),
    pytest.param(
        FINAL + "The <|channel|> token.<|return|>", [{"text": "The <|channel|> token."}], id="a token in prose"
    ),
    pytest.param(
        f"{THINK}a <|start|> b<|end|>{FINAL}c",
        [{"reasoning": "a <|start|> b"}, {"text": "c"}],
        id="a token in a thought",
    ),
    pytest.param(
        f"<|channel|>commentary to=now<|message|>{{}}<|end|>\n\n<|start|>assistant{FINAL}ok",
        [NOW, {"text": "ok"}],
        id="blanks between messages",
    ),
    pytest.param(
        "<|channel|>commentary to=now<|message|>{}<|call|> and words",
        [NOW, {"text": " and words"}],
        id="words behind a message",
    ),
    pytest.param("<|channel|>commentary to=now<|message|>{}<|call|><|end|>", [NOW], id="an end too many"),
    pytest.param(
        "  to=functions.now<|channel|>commentary<|message|>{}",
        [NOW],
        id="the recipient alone, behind the prompt's role",
    ),
    pytest.param("to=functions.now is how", [{"text": "to=functions.now is how"}], id="a recipient in prose"),
    pytest.param("to", [{"text": "to"}], id="half a recipient"),
    pytest.param(f"\n {FINAL}ok", [{"text": "ok"}], id="blanks before all"),
    pytest.param(" \n", [{"text": " \n"}], id="nothing but blanks"),
    pytest.param("", [], id="nothing"),
    pytest.param(f"{WIDE}{FINAL}ok", [{"text": WIDE}, {"text": "ok"}], id="more blanks than are held"),
    pytest.param(f"{LONG}<|message|>x", [{"text": f"{LONG}<|message|>x"}], id="a header without end"),
    pytest.param("<|channel|>analysis", [{"text": "<|channel|>analysis"}], id="half a header"),
    pytest.param(f"{THINK}", [], id="an empty thought"),
    pytest.param("<|message|>Hi<|end|>", [{"text": "Hi"}], id="an empty header"),
    pytest.param("<|channel|>analysis Hm<|end|>", [{"reasoning": "Hm"}], id="a header that goes over into its message"),
    pytest.param("<|channel|>commentary to=now json{}<|call|>", [NOW], id="the same, of a call"),
    pytest.param(
        "<|channel|>finale Hm<|end|>", [{"text": "<|channel|>finale Hm<|end|>"}], id="the same, of no channel"
    ),
    pytest.param(
        FINAL + "The <|channel|>analysis token.<|end|>",
        [{"text": "The <|channel|>analysis token."}],
        id="such a header in prose",
    ),
    pytest.param(
        "<|channel|>commentary to=now<|message|>{}<|call|> commentary <|start|>",
        [NOW, {"text": " commentary <|start|>"}],
        id="a channel's name in words behind a call",
    ),
    pytest.param(
        "analysisHm.assistantcommentary to=functions.now json{}assistantfinalok",
        [{"reasoning": "Hm."}, NOW, {"text": "ok"}],
        id="tokens that were stripped",
    ),
    pytest.param(
        "analysisHm.assistant to=functions.nowcommentary json{}", [{"reasoning": "Hm."}, NOW], id="the recipient first"
    ),
    pytest.param("commentary to=nowjson{}", [NOW], id="a type joined to a name"),
    pytest.param(
        "commentary to=ghost json{}assistantfinal!",
        [{"text": "commentary to=ghost json{}!"}],
        id="an undeclared tool, tokens stripped",
    ),
    pytest.param("commentary to=now and", [{"text": "to=now and"}], id="no object behind a recipient"),
    pytest.param("analysisAn assistant to=x", [{"reasoning": "An assistant to=x"}], id="a recipient in a thought"),
    pytest.param("assistantfinal ok", [{"text": "ok"}], id="a blank behind a channel"),
    pytest.param("finalOk", [{"text": "Ok"}], id="an answer alone"),
    *(
        pytest.param(words, [{"text": words}], id=f"words: {words}")
        for words in (
            "analysis of it",
            "finally",
            "final",
            "commentary to be",
            "assistants",
            "an",
            "analysis: x",
            "commentary",
        )
    ),
]


def read(text: str, *, finish: FinishReason = "stop", cut: bool = False) -> list[dict[str, str]]:
    """Return the parts made of `text`, cut into characters or whole."""
    return made(ROW, declared(), list(text) if cut else [text], finish).parts


@pytest.mark.parametrize(("text", "parts"), CASES)
def test_messages(text: str, parts: list[dict[str, str]]) -> None:
    whole = "".join(part["text"] for part in parts) if all("text" in part for part in parts) else None
    expected = parts if whole is None else [{"text": whole}] if whole else []
    assert [read(text, cut=cut) for cut in (False, True)] == [expected, expected]


@pytest.mark.parametrize(
    ("arguments", "finish", "ends"),
    [
        pytest.param('{"a": 1}', "stop", "tool_calls", id="whole, its token stripped"),
        pytest.param('{"a": 1', "length", "length", id="cut off"),
        pytest.param('{"a": 1}', "length", "length", id="whole, and cut off behind it"),
    ],
)
def test_how_a_call_ends(arguments: str, finish: FinishReason, ends: str) -> None:
    text = f"<|channel|>commentary to=functions.now <|constrain|>json<|message|>{arguments}"
    outcome = made(ROW, declared(), [text], finish)
    assert (outcome.parts, outcome.ends) == ([{"call": "now", "arguments": arguments}], ends)
    assert outcome.losses == []


def test_calls_as_they_are_written() -> None:
    text = written(ROW, [("now", "{}"), ("add", '{"a": 1}')])
    assert text == (
        "<|channel|>commentary to=functions.now <|constrain|>json<|message|>{}<|call|><|start|>assistant"
        '<|channel|>commentary to=functions.add <|constrain|>json<|message|>{"a": 1}<|call|>'
    )
    assert read(text) == [NOW, {"call": "add", "arguments": '{"a": 1}'}]


TOKENS: Final = ("<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", "<|end|>", "<|return|>", "<|call|>")
SAID: Final = (
    "assistant",
    "analysis",
    "commentary",
    "final",
    " to=functions.now",
    " to=ghost",
    "json",
    " ",
    "\n",
    "{}",
)
MIXED: Final = st.lists(st.sampled_from((*TOKENS, *SAID)) | st.text("<|to=e>x", max_size=4), max_size=14).map("".join)


def pieces(text: str, known: Sequence[Declaration] | None, cuts: Sequence[int] = ()) -> Sequence[Piece]:
    """Return what is made of `text`, cut at `cuts`."""
    stage = HarmonyParser(declared(known))
    ends = sorted({min(cut, len(text)) for cut in cuts} | {len(text)})
    chunks = [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    return joined([*(piece for chunk in chunks for piece in stage.feed(chunk)), *stage.close()])


@settings(max_examples=400)
@given(MIXED, st.lists(st.integers(0, 120), max_size=6))
def test_cuts_do_not_matter(text: str, cuts: list[int]) -> None:
    assert pieces(text, None, cuts) == pieces(text, None)


@settings(max_examples=400)
@given(MIXED)
def test_nothing_is_lost_but_headers_and_ends(text: str) -> None:
    left = iter(text)
    for piece in pieces(text, []):
        if isinstance(piece, TextPiece | ReasoningPiece | ArgumentsPiece):
            assert all(character in left for character in piece.text)


@settings(max_examples=200)
@given(st.text("<|to=e>x \n", max_size=20))
def test_text_without_tokens_stays(text: str) -> None:
    if not any(token in text for token in TOKENS):
        assert pieces(text, None) == ([TextPiece(text)] if text else [])
