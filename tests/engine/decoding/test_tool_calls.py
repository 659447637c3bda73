"""Constrained text becomes a call or words, however it is cut."""

import json
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xenoglot.engine.decoding.tool_calls import Branch, ToolCallStage
from xenoglot.engine.grammar.free_output import written
from xenoglot.model.content import Text, ToolCall
from xenoglot.model.events import ArgumentsDelta, BlockEnded, BlockStarted, Event, TextDelta
from xenoglot.model.response import Finish

BRANCHES = (
    Branch('{"name": "add", "arguments": ', "arguments", "add"),
    Branch('{"name": "add_all", "arguments": ', "arguments", "add_all"),
    Branch('{"name": "run", "arguments": {"input": ', "input", "run", foot="}}"),
    Branch('{"name": "near__run", "arguments": ', "arguments", "run", "near"),
    Branch('{"reply": ', "reply"),
    Branch('{"value": ', "value"),
)
STOP = Finish(reason="stop")


def spoken(pieces: list[str], finish: Finish = STOP) -> tuple[list[Event], Finish]:
    numbers = count(1)
    speech = ToolCallStage(0, BRANCHES, lambda: f"call_{next(numbers)}")
    found = [event for piece in pieces for event in speech.feed(piece, ())]
    ending, finish = speech.close(finish)
    return [*found, *ending], finish


@pytest.mark.parametrize(
    ("text", "expected", "finish"),
    [
        pytest.param(
            '{"name": "add", "arguments": {"a": [1, {"b": "}\\"]"}]}}',
            [
                BlockStarted(part=ToolCall(id="call_1", name="add")),
                ArgumentsDelta(text='{"a": [1, {"b": "}\\"]"}]}'),
                BlockEnded(),
            ],
            "tool_calls",
            id="call",
        ),
        pytest.param(
            '{"name": "add_all", "arguments": {}}',
            [BlockStarted(part=ToolCall(id="call_1", name="add_all")), ArgumentsDelta(text="{}"), BlockEnded()],
            "tool_calls",
            id="name-that-begins-like-another",
        ),
        pytest.param(
            '{"name": "run", "arguments": {"input": "ls \\"a\\"\\n"}}',
            [
                BlockStarted(part=ToolCall(id="call_1", name="run", kind="custom")),
                ArgumentsDelta(text='ls "a"\n'),
                BlockEnded(),
            ],
            "tool_calls",
            id="custom",
        ),
        pytest.param(
            '{"name": "near__run", "arguments": {}}',
            [
                BlockStarted(part=ToolCall(id="call_1", name="run", namespace="near")),
                ArgumentsDelta(text="{}"),
                BlockEnded(),
            ],
            "tool_calls",
            id="namespace",
        ),
        pytest.param(
            '{"name": "run", "arguments": {"input": "ls"}}\n{"name": "add", "arguments": {"a": "}\\n{"}}',
            [
                BlockStarted(part=ToolCall(id="call_1", name="run", kind="custom")),
                ArgumentsDelta(text="ls"),
                BlockEnded(),
                BlockStarted(part=ToolCall(id="call_2", name="add")),
                ArgumentsDelta(text='{"a": "}\\n{"}'),
                BlockEnded(),
            ],
            "tool_calls",
            id="several",
        ),
        pytest.param(
            '{"name": "add", "arguments": {}}\n{"name": "ad',
            [BlockStarted(part=ToolCall(id="call_1", name="add")), ArgumentsDelta(text="{}"), BlockEnded()],
            "tool_calls",
            id="cut-before-the-second",
        ),
        pytest.param(
            '{"reply": "It is \\\\ 5 \\t{é}"}',
            [BlockStarted(part=Text(text="")), TextDelta(text="It is \\ 5 \t{é}"), BlockEnded()],
            "stop",
            id="reply",
        ),
        pytest.param(
            '{"value": 12.5}',
            [BlockStarted(part=Text(text="")), TextDelta(text="12.5"), BlockEnded()],
            "stop",
            id="value-of-no-brackets",
        ),
        pytest.param('{"name": "add"', [], "stop", id="cut-before-it-is-known-what"),
    ],
)
def test_what_text_becomes(text: str, expected: list[Event], finish: str) -> None:
    assert spoken([text]) == (expected, Finish(reason=finish))  # type: ignore[arg-type]  # a case


@pytest.mark.parametrize("cut", range(len('{"name": "add", "arguments": {"a": "x"}}')))
def test_a_call_that_was_cut_is_no_whole_call(cut: int) -> None:
    text = '{"name": "add", "arguments": {"a": "x"}}'
    found, finish = spoken([text[:cut]], Finish(reason="length"))
    arguments = "".join(event.text for event in found if isinstance(event, ArgumentsDelta))
    assert finish == Finish(reason="length")
    assert arguments == '{"a": "x"}'[: max(0, cut - len('{"name": "add", "arguments": '))]


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def cut(data: st.DataObject, text: str) -> list[str]:
    at = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=12)))
    return [text[first:last] for first, last in zip([0, *at], [*at, len(text)], strict=True)]


def joined(found: list[Event]) -> list[Event]:
    """The same events with all deltas in one."""
    text = "".join(event.text for event in found if isinstance(event, ArgumentsDelta | TextDelta))
    kind = next((type(event) for event in found if isinstance(event, ArgumentsDelta | TextDelta)), None)
    deltas: list[Event] = [kind(text=text)] if kind else []
    return [*found[:1], *deltas, *found[-1:]]


@given(st.data(), st.dictionaries(st.text(), JSON_VALUES, max_size=4))
def test_arguments_are_the_same_however_they_are_cut(data: st.DataObject, arguments: dict[str, object]) -> None:
    text = f'{{"name": "add", "arguments": {json.dumps(arguments)}}}'
    found, finish = spoken(cut(data, text))
    assert finish == Finish(reason="tool_calls")
    expected = ArgumentsDelta(text=json.dumps(arguments))
    assert joined(found) == [BlockStarted(part=ToolCall(id="call_1", name="add")), expected, BlockEnded()]


@given(st.data(), st.text(st.characters(min_codepoint=32, exclude_categories=["Cs"]) | st.sampled_from("\n\r\t")))
def test_words_are_the_same_however_they_are_cut(data: st.DataObject, words: str) -> None:
    found, finish = spoken(cut(data, f'{{"reply": {written(words)}}}'))
    expected = [BlockStarted(part=Text(text="")), *([TextDelta(text=words)] if words else []), BlockEnded()]
    assert (joined(found), finish) == (expected, STOP)
