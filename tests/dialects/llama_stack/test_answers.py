"""Whole answers, both ways."""

import pytest

from tests.dialects.llama_stack.wire import answered
from xenoglot.dialects.llama_stack import LLAMA_STACK
from xenoglot.dialects.llama_stack.tool_calls import derived_id
from xenoglot.errors import WireError
from xenoglot.model.content import Image, Logprob, Opaque, Part, Reasoning, Refusal, Remote, Text, ToolCall
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.response import Candidate, Finish, FinishReason, Response, Usage


def read(**message: JSON) -> Candidate:
    body = {"completion_message": {"role": "assistant", "content": "", "stop_reason": "end_of_turn", **message}}
    (candidate,) = LLAMA_STACK.decode_response(body).candidates
    return candidate


def finish_of(candidate: Candidate) -> tuple[str, str | None]:
    assert candidate.finish is not None
    return candidate.finish.reason, candidate.finish.raw


CALL: JSONObject = {"call_id": "1", "tool_name": "now", "arguments": {}}


@pytest.mark.parametrize(
    ("word", "calls", "reason"),
    [
        ("end_of_turn", [], "stop"),
        ("end_of_message", [], "stop"),
        ("out_of_tokens", [], "length"),
        ("end_of_turn", [CALL], "tool_calls"),
        ("end_of_message", [CALL], "tool_calls"),
        ("out_of_tokens", [CALL], "length"),
        ("paused", [], "unknown"),
    ],
)
def test_l7_reasons_are_read(word: str, calls: list[JSON], reason: str) -> None:
    """L7, L-W8: one table; beside calls an answer waits for their results."""
    assert finish_of(read(stop_reason=word, tool_calls=calls)) == (reason, word)


@pytest.mark.parametrize(
    ("reason", "word", "exact"),
    [
        ("stop", "end_of_turn", True),
        ("tool_calls", "end_of_message", True),
        ("length", "out_of_tokens", True),
        ("context", "out_of_tokens", False),
        ("refusal", "end_of_turn", False),
        ("stop_sequence", "end_of_turn", False),
        ("unknown", "end_of_turn", False),
    ],
)
def test_l7_reasons_are_written(reason: FinishReason, word: str, exact: bool) -> None:  # noqa: FBT001  a case
    body, losses = answered(Response(candidates=(Candidate(finish=Finish(reason=reason)),)))
    assert body["completion_message"]["stop_reason"] == word
    told = [f"$.candidates[0].finish reason approximated (`{reason}` is written as `{word}`)"]
    assert losses == ([] if exact else told)


def test_l9_l13_words_and_calls_are_both_kept() -> None:
    """L9, L10, L12, L13, L-W9: a call whose arguments are no JSON takes neither the words nor other calls with it."""
    calls = [
        {"call_id": "1", "tool_name": "a", "arguments": {"x": 1}, "arguments_json": '{"x":1}'},
        {"call_id": "2", "tool_name": "b", "arguments": "not JSON"},
        {"call_id": "3", "tool_name": "c", "arguments": {}, "arguments_json": ""},
    ]
    parts = read(content="I look.", tool_calls=calls).content
    assert parts[0] == Text(text="I look.")
    assert [part.arguments for part in parts if isinstance(part, ToolCall)] == ['{"x":1}', "not JSON", ""]


def test_l11_a_call_that_nobody_could_parse_is_words() -> None:
    """L11: what is no call is kept as the model wrote it; nothing is searched for in prose (L-W15)."""
    text = 'Use [now()] or {"name": "now", "parameters": {}}'
    assert read(content=text).content == (Text(text=text),)


def test_calls_without_ids() -> None:
    """L-W7: a call without an id gets one, the same for the same call."""
    parts = read(
        tool_calls=[{"tool_name": "now", "arguments": {}}, {"call_id": "", "tool_name": "now", "arguments": {}}]
    )
    ids = [part.id for part in parts.content if isinstance(part, ToolCall)]
    assert ids == [derived_id(0, "now", "{}"), derived_id(1, "now", "{}")]


def test_l15_probabilities() -> None:
    """L15, L-W10: the drawn token is that with which the text goes on, else the likeliest; alternatives are kept."""
    places = [{"The": -0.1, "A": -2.5}, {" c": -0.5, " cat": -1.5}, {"x": -3, "y": -1}]
    body = {
        "completion_message": {"role": "assistant", "content": "The cat.", "stop_reason": "end_of_turn"},
        "logprobs": [{"logprobs_by_token": place} for place in places],
    }
    (part,) = LLAMA_STACK.decode_response(body).candidates[0].content
    assert isinstance(part, Text)
    assert [(one.token, one.logprob) for one in part.logprobs] == [("The", -0.1), (" cat", -1.5), ("y", -1)]
    assert part.logprobs[0].top == (Logprob(token="The", logprob=-0.1), Logprob(token="A", logprob=-2.5))


def test_w10_probabilities_are_written() -> None:
    """L-W10: a token without alternatives is not lost; its bytes are."""
    logprobs = (
        Logprob(token="a", logprob=-1.0, bytes=(97,), top=()),
        Logprob(token="b", logprob=-2.0, top=(Logprob(token="c", logprob=-0.5),)),
    )
    body, losses = answered(Response(candidates=(Candidate(content=(Text(text="ab", logprobs=logprobs),)),)))
    assert body["logprobs"] == [{"logprobs_by_token": {"a": -1.0}}, {"logprobs_by_token": {"c": -0.5, "b": -2.0}}]
    assert losses == [
        "$.candidates[0].content[0] logprobs dropped (the dialect has no bytes of a token)",
        "$.candidates[0].content[0] logprobs approximated (the token drawn is one of those at its place)",
    ]


def test_usage() -> None:
    """L-S4, L-W12: counts are metrics."""
    usage = Usage(input_tokens=5, output_tokens=2, cache_read=3, reasoning=0)
    body, losses = answered(Response(candidates=(Candidate(finish=Finish(reason="stop")),), usage=usage))
    assert body["metrics"] == [
        {"metric": "prompt_tokens", "value": 5, "unit": "tokens"},
        {"metric": "completion_tokens", "value": 2, "unit": "tokens"},
        {"metric": "total_tokens", "value": 7, "unit": "tokens"},
    ]
    assert losses == [
        "$.usage cache_read dropped (the dialect has no such field)",
        "$.usage reasoning dropped (the dialect has no such field)",
    ]
    read_again = LLAMA_STACK.decode_response(body).usage
    assert read_again is not None
    assert (read_again.input_tokens, read_again.output_tokens, read_again.total) == (5, 2, None)


def test_what_has_no_place() -> None:
    """L-W12: thoughts and further candidates are dropped, a refusal is words, calls come last."""
    parts: tuple[Part, ...] = (
        Reasoning(text="hm"),
        ToolCall(id="1", name="now"),
        Refusal(text="No."),
        Opaque(dialect="chat", data={}),
        Image(source=Remote(url="https://example.com/i.png")),
    )
    response = Response(
        id="r", model="m", candidates=(Candidate(content=parts, finish=Finish(reason="stop")), Candidate())
    )
    body, losses = answered(response)
    assert body["completion_message"] == {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "No."},
            {"type": "image", "image": {"url": {"uri": "https://example.com/i.png"}}},
        ],
        "stop_reason": "end_of_turn",
        "tool_calls": [{"call_id": "1", "tool_name": "now", "arguments": {}, "arguments_json": "{}"}],
    }
    assert losses == [
        "$ id dropped (an answer of the dialect has no such field)",
        "$ model dropped (an answer of the dialect has no such field)",
        "$.candidates[1] candidate dropped (an answer of the dialect is one)",
        "$.candidates[0] order approximated (calls come last)",
        "$.candidates[0].content[0] reasoning dropped (the dialect has no field for reasoning)",
        "$.candidates[0].content[2] refusal approximated (written as text)",
        "$.candidates[0] content approximated (its other content is written as text)",
        "$.candidates[0].finish reason approximated (only the text shows that the model refused)",
        "$.candidates[0].content[3] part dropped (the dialect holds texts and images only)",
    ]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"error": {"message": "no"}}, r"\$.error: the answer is an error"),
        ({"detail": "no"}, r"\$.error: the answer is an error"),
        ({}, r"\$.completion_message: required"),
    ],
)
def test_what_is_no_answer(body: JSONObject, problem: str) -> None:
    """C-W1, L-W12: an error with the status of an answer is not an empty one, and nothing is asserted away."""
    with pytest.raises(WireError, match=problem):
        LLAMA_STACK.decode_response(body)
