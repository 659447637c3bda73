"""Whole answers: what they say again of their request, and what the wire requires of them."""

import pytest

from tests.dialects.responses.wire import ANSWER, answered, encoded, message, text
from xenoglot.codec.loss import Losses
from xenoglot.dialects.responses import RESPONSES
from xenoglot.dialects.responses.errors import encode_failure, read_failure
from xenoglot.errors import FailureError, WireError
from xenoglot.model.content import Refusal, Text, ToolCall
from xenoglot.model.failure import STATUS, Failure, FailureKind
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import Message, Request, Sampling, Thinking, Tool, ToolChoice
from xenoglot.model.response import Candidate, Finish, Response, Usage


def test_the_defaults_of_the_schema() -> None:
    """pitfall-83: nothing is missing, and nothing is null that may not be."""
    body, losses = encoded(answered(Text(text="Hi")))
    assert body.pop("output")[0]["id"] == "msg_1_0"
    assert body == {
        "id": "resp_1",
        "object": "response",
        "created_at": 7,
        "completed_at": None,
        "status": "completed",
        "incomplete_details": None,
        "error": None,
        "model": "m",
        "usage": None,
        "service_tier": "default",
        "background": False,
        "frequency_penalty": 0.0,
        "instructions": None,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "presence_penalty": 0.0,
        "previous_response_id": None,
        "prompt_cache_key": None,
        "reasoning": {"effort": None, "summary": None},
        "safety_identifier": None,
        "store": body["store"],
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": 0,
        "top_p": 1.0,
        "truncation": "disabled",
    }
    assert losses == []


def test_the_request_is_told_again() -> None:
    request = Request(
        model="m",
        messages=(Message(role="system", content=(Text(text="Be brief."),)), Message(role="user")),
        tools=(Tool(name="f", parameters={"type": "object", "properties": {}}),),
        tool_choice=ToolChoice(mode="required"),
        parallel_tool_calls=False,
        sampling=Sampling(temperature=0.5, max_tokens=99),
        thinking=Thinking(effort="high"),
        metadata={"a": "b"},
        previous="resp_0",
    )
    body, _ = encoded(answered(Text(text="Hi")), request)
    told = ("instructions", "tool_choice", "parallel_tool_calls", "temperature", "max_output_tokens", "metadata")
    assert {key: body[key] for key in told} == {
        "instructions": "Be brief.",
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "temperature": 0.5,
        "max_output_tokens": 99,
        "metadata": {"a": "b"},
    }
    assert body["reasoning"] == {"effort": "high", "summary": None}
    assert body["previous_response_id"] == "resp_0"
    (tool,) = body["tools"]
    assert tool.keys() >= {"type", "name", "parameters", "strict"}


def test_the_own_words_of_a_request_are_told_again() -> None:
    """pitfall-67: what is no field of ours comes back too."""
    asked = {
        "model": "m",
        "input": "Hi",
        "truncation": "auto",
        "max_tool_calls": 3,
        "conversation": "conv_1",
        "text": {"verbosity": "low"},
        "tools": [{"type": "function", "name": "f", "parameters": None}, {"type": "web_search"}],
        "include": ["reasoning.encrypted_content"],
    }
    body, _ = encoded(answered(Text(text="Hi")), RESPONSES.decode_request(asked))
    assert {key: body[key] for key in ("truncation", "max_tool_calls", "conversation", "text", "tools")} == {
        "truncation": "auto",
        "max_tool_calls": 3,
        "conversation": {"id": "conv_1"},
        "text": {"format": {"type": "text"}, "verbosity": "low"},
        "tools": [
            {"type": "function", "name": "f", "description": None, "parameters": None, "strict": True},
            {"type": "web_search"},
        ],
    }
    assert "include" not in body


@pytest.mark.parametrize(
    ("finish", "parts", "status", "reason"),
    [
        ("stop", (), "completed", None),
        ("tool_calls", (ToolCall(id="c", name="f"),), "completed", None),
        ("length", (), "incomplete", "max_output_tokens"),
        ("context", (), "incomplete", "max_output_tokens"),
        ("refusal", (), "incomplete", "content_filter"),
        ("refusal", (Refusal(text="no"),), "completed", None),
        ("pause", (), "completed", None),
    ],
)
def test_ends(finish: str, parts: tuple[Text, ...], status: str, reason: str | None) -> None:
    """pitfall-82, pitfall-72."""
    body, losses = encoded(answered(*parts, finish=Finish(reason=finish)))  # type: ignore[arg-type]
    assert (body["status"], body["incomplete_details"]) == (status, None if reason is None else {"reason": reason})
    assert [loss.split(" ")[1] for loss in losses] == (["reason"] if finish in ("context", "pause") else [])


def test_usage_has_every_count() -> None:
    """pitfall-80, pitfall-81: what nobody said is 0, and a loss; reasoning is inside the output."""
    usage = Usage(input_tokens=10, output_tokens=7, cache_read=4, reasoning=5, output_audio=1)
    response = Response(id="r", candidates=(Candidate(finish=Finish(reason="stop")),), usage=usage)
    body, losses = encoded(response)
    assert body["usage"] == {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 5},
        "total_tokens": 17,
    }
    assert losses == [
        "$.usage output_audio dropped (the dialect has no such field)",
        "$.usage cache_write_tokens approximated (not reported, and the dialect requires a number: 0)",
    ]


def test_one_answer_is_all_there_is() -> None:
    response = Response(candidates=(Candidate(), Candidate()))
    assert encoded(response)[1] == ["$.candidates[1] candidate dropped (an answer of the dialect is one)"]


def test_a_whole_answer_is_over_whoever_does_not_say_so() -> None:
    body = {key: value for key, value in ANSWER.items() if key != "status"} | {"output": [message(text("a"))]}
    (candidate,) = RESPONSES.decode_response(body).candidates
    assert candidate.finish == Finish(reason="stop", dialect="responses")


@pytest.mark.parametrize("body", [{}, {"output": None}, {"output": "x"}, {"error": {"message": "no"}}, []])
def test_what_is_no_answer(body: JSON) -> None:
    with pytest.raises(WireError):
        RESPONSES.decode_response(body)


def test_an_answer_that_failed() -> None:
    error = {"code": "server_error", "message": "Something broke."}
    with pytest.raises(FailureError) as caught:
        RESPONSES.decode_response({**ANSWER, "status": "failed", "error": error})
    assert (caught.value.failure.kind, caught.value.failure.message) == ("internal", "Something broke.")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": "context_length_exceeded", "message": "Your input exceeds the context window."}, "context_overflow"),
        ({"code": "insufficient_quota", "message": "m"}, "billing"),
        ({"code": "server_is_overloaded", "message": "m"}, "overloaded"),
        ({"code": "slow_down", "message": "m"}, "rate_limit"),
        ({"code": "invalid_prompt", "message": "m"}, "invalid_request"),
        ({"code": "invalid_image_url", "message": "m"}, "invalid_request"),
        ({"code": "cyber_policy", "message": "m"}, "permission"),
        ({"code": "x_new", "message": "m"}, "upstream"),
        ({"type": "invalid_request_error", "message": "m"}, "invalid_request"),
        (None, "upstream"),
    ],
)
def test_errors_inside_an_answer(error: JSONObject | None, kind: FailureKind) -> None:
    """pitfall-105."""
    assert read_failure({"status": "failed", "error": error}).kind == kind


@pytest.mark.parametrize("kind", STATUS)
def test_a_failure_keeps_its_kind(kind: FailureKind) -> None:
    """The code tells a client what to do, and with the type beside it the kind."""
    error = encode_failure(Failure(kind=kind, message="no"))
    assert read_failure({"error": error}).kind == kind


def test_a_code_that_says_less_than_the_failure_is_not_repeated() -> None:
    failure = Failure(
        kind="authentication", message="no", dialect="openai", code="x_new", raw_type="authentication_error"
    )
    assert encode_failure(failure) == {"code": "invalid_api_key", "message": "no"}


def test_nothing_of_the_own_is_lost_on_the_way_home() -> None:
    body = {**ANSWER, "status": "completed", "output": [message(text("a"), phase="final_answer")], "novel": {"x": 1}}
    losses = Losses()
    response = RESPONSES.decode_response(body)
    assert RESPONSES.encode_response(response, Request(model="other"), losses) == body
    assert list(losses) == []
