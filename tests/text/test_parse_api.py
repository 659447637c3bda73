"""A text parsed by itself: what is asked, in the words of whichever dialect, and what is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xenoglot.codec.loss import Losses
from xenoglot.errors import ConfigurationError, WireError
from xenoglot.model.content import Reasoning, Text, ToolCall
from xenoglot.model.request import Tool
from xenoglot.model.response import Candidate, Finish
from xenoglot.text.parse_api import ParsedText, ParseRequest, decode_parse, decode_tools, encode_parsed, parse

if TYPE_CHECKING:
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER = Tool(name="weather", description="Tells it", parameters=SCHEMA)
CALLED = '<tool_call>\n{"name": "weather", "arguments": {"city": "Lyon"}}\n</tool_call>'


def parsed(syntax: str, *content: Part) -> ParsedText:
    return ParsedText(candidate=Candidate(content=content, finish=Finish(reason="stop")), syntax=syntax)


@pytest.mark.parametrize(
    ("text", "settings", "made"),
    [
        pytest.param("", {}, parsed("auto"), id="nothing"),
        pytest.param("Hi <b>", {}, parsed("auto", Text(text="Hi <b>")), id="words"),
        pytest.param("<think>Hm</think>Hi", {}, parsed("auto", Reasoning(text="Hm"), Text(text="Hi")), id="marker"),
        pytest.param("<think>Hm</think>", {"syntax": "off"}, parsed("off", Text(text="<think>Hm</think>")), id="off"),
        pytest.param(
            "Hm</think>Hi",
            {"model": "org/QwQ-32B"},
            parsed("qwen3_thinking", Reasoning(text="Hm"), Text(text="Hi")),
            id="begun-by-the-prompt",
        ),
        pytest.param(
            "Hi", {"model": "org/QwQ-32B", "thinking": False}, parsed("qwen3_thinking", Text(text="Hi")), id="not-begun"
        ),
        pytest.param(CALLED, {"tools": ()}, parsed("auto", Text(text=CALLED)), id="undeclared"),
    ],
)
def test_what_a_text_says(text: str, settings: dict[str, object], made: ParsedText) -> None:
    losses = Losses()
    assert parse(text, losses, **settings) == made  # type: ignore[arg-type]
    assert [str(loss) for loss in losses] == []


def test_the_same_text_gives_the_same_ids() -> None:
    first, again, other = (
        parse(text, Losses(), tools=[WEATHER]) for text in (CALLED + CALLED, CALLED + CALLED, CALLED)
    )
    ids = [part.id for part in (*first.candidate.content, *other.candidate.content) if isinstance(part, ToolCall)]
    assert again == first
    assert len(set(ids)) == len(ids) == 3
    assert first.candidate.finish == Finish(reason="tool_calls")


def test_a_syntax_that_nobody_knows() -> None:
    with pytest.raises(ConfigurationError, match="there is no text syntax `latin`"):
        parse("Hi", Losses(), syntax="latin")


@given(st.text())
def test_words_stay(text: str) -> None:
    assert parse(text, Losses(), syntax="off").candidate.content == ((Text(text=text),) if text else ())


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        pytest.param({"text": "Hi"}, ParseRequest(text="Hi"), id="text"),
        pytest.param({"input": "Hi", "model": None}, ParseRequest(text="Hi"), id="input"),
        pytest.param({"text": "", "input": "Hi"}, ParseRequest(text="", unknown=("input",)), id="text-before-input"),
        pytest.param(
            {"text": "Hi", "syntax": "hermes", "model": "m", "thinking": False, "tools": [{"name": "f"}]},
            ParseRequest(text="Hi", syntax="hermes", model="m", thinking=False, tools=(Tool(name="f"),)),
            id="all",
        ),
        pytest.param(
            {"text": "Hi", "tool_call_parser": "qwen25", "x": None},
            ParseRequest(text="Hi", unknown=("tool_call_parser",)),
            id="unknown",
        ),
    ],
)
def test_what_is_asked(body: JSON, asked: ParseRequest) -> None:
    assert decode_parse(body) == asked


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        pytest.param([], "$: expected object, got list", id="list"),
        pytest.param({}, "$.text: required, expected str", id="no-text"),
        pytest.param({"text": 1}, "$.text: expected str, got int", id="number"),
        pytest.param({"text": "", "tools": {}}, "$.tools: expected list, got object", id="tools"),
        pytest.param({"text": "", "tools": ["f"]}, "$.tools[0]: expected object, got str", id="name-alone"),
        pytest.param({"text": "", "tools": [{}]}, "$.tools[0].name: required, expected str", id="no-name"),
        pytest.param(
            {"text": "", "tools": [{"name": "f", "parameters": "any"}]},
            "$.tools[0].parameters: expected object, got str",
            id="schema",
        ),
    ],
)
def test_what_is_no_question(body: JSON, complaint: str) -> None:
    with pytest.raises(WireError) as caught:
        decode_parse(body)
    assert str(caught.value) == complaint


FUNCTION = {"name": "weather", "description": "Tells it", "parameters": SCHEMA}


@pytest.mark.parametrize(
    "said",
    [
        pytest.param([{"type": "function", "function": FUNCTION}], id="chat"),
        pytest.param([{"type": "function", **FUNCTION}], id="responses"),
        pytest.param([FUNCTION], id="bare"),
        pytest.param({"model": "m", "tools": [FUNCTION]}, id="of-a-request"),
        pytest.param([{"name": "weather", "description": "Tells it", "input_schema": SCHEMA}], id="messages"),
        pytest.param([{"functionDeclarations": [FUNCTION]}], id="gemini"),
        pytest.param([FUNCTION, {"type": "web_search"}], id="beside-a-provider-s-own"),
    ],
)
def test_tools_in_the_words_of_any_dialect(said: JSON) -> None:
    assert decode_tools(said) == (WEATHER,)


def test_a_tool_of_free_text() -> None:
    assert decode_tools([{"type": "custom", "name": "patch"}]) == (Tool(name="patch", kind="custom"),)


def test_what_is_told() -> None:
    losses = Losses()
    losses.dropped("$", "x", "why not")
    made = parse(f"<think>Hm</think>Look:{CALLED}", losses, tools=[WEATHER])
    (_, _, call) = made.candidate.content
    assert isinstance(call, ToolCall)
    arguments = '{"city": "Lyon"}'
    assert encode_parsed(made, losses) == {
        "syntax": "auto",
        "content": [
            {"type": "reasoning", "text": "Hm"},
            {"type": "text", "text": "Look:"},
            {"type": "tool_call", "id": call.id, "name": "weather", "arguments": arguments},
        ],
        "finish_reason": "tool_calls",
        "text": "Look:",
        "normal_text": "Look:",
        "reasoning_text": "Hm",
        "calls": [{"tool_index": 0, "name": "weather", "parameters": arguments}],
        "losses": [{"where": "$", "what": "x", "how": "dropped", "why": "why not"}],
    }
