"""The messages of Muse Glimmer: the first header lacks its beginning, and what is no header stays."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.text.vectors import declared, made
from xenoglot.text import registry
from xenoglot.text.formats.glimmer import GlimmerParser
from xenoglot.text.output_pieces import TextPiece, joined

ROW: Final = registry.get("muse_glimmer")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        pytest.param(" to=user<|message|>Hi<|eot|>", [{"text": "Hi"}], id="words"),
        pytest.param("<|start|>assistant to=user<|message|>Hi<|eot|>", [{"text": "Hi"}], id="a whole header"),
        pytest.param("<|message|>Hi", [{"text": "Hi"}], id="no recipient"),
        pytest.param(" to=self<|message|>Hm<|eot|>", [{"reasoning": "Hm"}], id="nothing but a thought"),
        pytest.param(" to=us", [{"text": " to=us"}], id="half a header"),
        pytest.param(" to=nobody<|message|>Hi", [{"text": " to=nobody<|message|>Hi"}], id="nobody we know"),
        pytest.param("Hi to=user<|message|>", [{"text": "Hi to=user<|message|>"}], id="words before"),
        pytest.param("", [], id="nothing"),
    ],
)
def test_messages(text: str, parts: list[dict[str, str]]) -> None:
    assert [made(ROW, declared(), chunks).parts for chunks in ([text], list(text))] == [parts, parts]


@settings(max_examples=200)
@given(st.lists(st.sampled_from([" to=", "user", "now", "<|mess", "age", "|>", " ", "x"]), max_size=6).map("".join))
def test_what_begins_with_no_header_stays(text: str) -> None:
    stage = GlimmerParser(declared([]))
    pieces = joined([*(piece for char in text for piece in stage.feed(char)), *stage.close()])
    if "<|message|>" not in text:
        assert pieces == ([TextPiece(text)] if text else [])
