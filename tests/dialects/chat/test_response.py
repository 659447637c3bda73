"""Whole answers: exact canonical values, and what clients of this dialect read of others'."""

import pytest

from xenoglot.codec.loss import Losses
from xenoglot.dialects.chat import CHAT
from xenoglot.dialects.chat.tool_calls import derived_id
from xenoglot.errors import WireError
from xenoglot.model.content import Citation, Opaque, Origin, Part, Reasoning, Text, ToolCall
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import Request
from xenoglot.model.response import Candidate, Finish, Response, Usage

HEAD: JSONObject = {"id": "chatcmpl-1", "object": "chat.completion", "created": 7, "model": "m"}


def answer(message: JSONObject, finish: str = "stop", **choice: JSON) -> JSONObject:
    message = {"role": "assistant", "refusal": None, **message}
    return {**HEAD, "choices": [{"index": 0, "message": message, "logprobs": None, **choice, "finish_reason": finish}]}


def of(*parts: Part, finish: Finish) -> Response:
    return Response(id="chatcmpl-1", model="m", created=7, candidates=(Candidate(content=parts, finish=finish),))


def written(response: Response, request: Request | None = None) -> tuple[JSONObject, list[str]]:
    losses = Losses()
    body = CHAT.encode_response(response, request or Request(model="m"), losses)
    return body, [str(loss) for loss in losses]


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("tool_calls", "tool_calls"),
        ("function_call", "tool_calls"),
        ("content_filter", "refusal"),
        ("model_length", "context"),
        ("abort", "unknown"),
    ],
)
def test_finish_reasons(raw: str, reason: str) -> None:
    """pitfall-68, U34, L-W8."""
    (candidate,) = CHAT.decode_response(answer({"content": "a"}, raw)).candidates
    assert candidate.finish is not None
    assert (candidate.finish.reason, candidate.finish.raw, candidate.finish.dialect) == (reason, raw, "chat")


def test_missing_ids_are_derived_and_shown() -> None:
    """U30: the client must have an id to answer to, the same each time."""
    body = answer({"content": None, "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": ""}}]})
    call = CHAT.decode_response(body).candidates[0].content[0]
    assert call == ToolCall(id=derived_id("chatcmpl-1:0", 0), name="f")
    shown = {"id": derived_id("chatcmpl-1:0", 0), "type": "function", "function": {"name": "f", "arguments": "{}"}}
    again, losses = written(CHAT.decode_response(body))
    assert again["choices"][0]["message"]["tool_calls"] == [shown]
    assert losses == []


@pytest.mark.parametrize(
    ("usage", "canonical"),
    [
        pytest.param(
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "total_tokens": 15,
                "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
            },
            {"input_tokens": 10, "output_tokens": 5, "cache_read": 4, "cache_write": 2},
            id="pitfall-79-openai",
        ),
        pytest.param(
            {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "prompt_cache_hit_tokens": 8},
            {"input_tokens": 10, "output_tokens": 5, "cache_read": 8},
            id="C-W4-deepseek",
        ),
        pytest.param(
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "total_tokens": 35,
                "completion_tokens_details": {"reasoning_tokens": 20},
            },
            {"input_tokens": 10, "output_tokens": 25, "reasoning": 20},
            id="pitfall-81-xai",
        ),
        pytest.param(
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "total_tokens": 15,
                "completion_tokens_details": {"reasoning_tokens": 4},
            },
            {"input_tokens": 10, "output_tokens": 5, "reasoning": 4},
            id="pitfall-81-openai",
        ),
        pytest.param(
            {"prompt_eval_count": 3, "eval_count": 4}, {"input_tokens": 3, "output_tokens": 4}, id="C5-ollama"
        ),
        pytest.param({"prompt_tokens": None, "completion_tokens": -1, "total_tokens": "9"}, {"total": 9}, id="U29-odd"),
    ],
)
def test_usage(usage: JSONObject, canonical: dict[str, int]) -> None:
    decoded = CHAT.decode_response(answer({"content": "a"}) | {"usage": usage}).usage
    assert decoded is not None
    counts = {name: getattr(decoded, name) for name in Usage.__struct_fields__ if name not in ("estimated", "extra")}
    assert {name: count for name, count in counts.items() if count is not None} == canonical


def test_an_error_with_the_status_of_an_answer() -> None:
    """U23."""
    with pytest.raises(WireError) as caught:
        CHAT.decode_response({"error": {"message": "no"}})
    assert str(caught.value) == "$.error: the answer is an error"


SEALED = Reasoning(text="t", signature="s", origin=Origin(dialect="messages", provider="acme"))


@pytest.mark.parametrize(
    ("response", "body", "losses"),
    [
        pytest.param(of(finish=Finish(reason="stop")), answer({"content": ""}), [], id="pitfall-73-empty"),
        pytest.param(
            of(SEALED, Text(text="a"), finish=Finish(reason="stop", raw="end_turn", dialect="messages")),
            answer(
                {
                    "reasoning_content": "t",
                    "reasoning_details": [
                        {
                            "type": "reasoning.text",
                            "text": "t",
                            "signature": "s",
                            "format": "anthropic-claude-v1",
                            "provider": "acme",
                            "index": 0,
                        }
                    ],
                    "content": "a",
                }
            ),
            [],
            id="pitfall-50-sealed",
        ),
        pytest.param(
            of(Text(text="a"), ToolCall(id="c", name="f", arguments='{"x":1.0}'), finish=Finish(reason="tool_calls")),
            answer(
                {
                    "content": "a",
                    "tool_calls": [
                        {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"x":1.0}'}}
                    ],
                },
                "tool_calls",
            ),
            [],
            id="pitfall-128-call",
        ),
        pytest.param(
            of(ToolCall(id="c", name="f", arguments="{}"), Text(text="a"), finish=Finish(reason="tool_calls")),
            answer(
                {
                    "content": "a",
                    "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
                },
                "tool_calls",
            ),
            ["$.candidates[0] order approximated (reasoning comes first, calls last)"],
            id="pitfall-12-words-behind-a-call",
        ),
        pytest.param(
            of(
                Text(text="a"), finish=Finish(reason="context", raw="model_context_window_exceeded", dialect="messages")
            ),
            answer({"content": "a"}, "length", native_finish_reason="model_context_window_exceeded"),
            ["$.candidates[0] finish approximated (`context` is written as `length`)"],
            id="pitfall-71-context",
        ),
        pytest.param(
            of(
                Text(text="ab"),
                Text(text="cd", citations=(Citation(kind="page_location", title="t"), Citation(kind="web", url="u"))),
                Opaque(dialect="messages", data={"type": "x"}),
                finish=Finish(reason="stop"),
            ),
            answer(
                {
                    "content": "abcd",
                    "annotations": [
                        {
                            "type": "url_citation",
                            "url_citation": {"url": "u", "title": "", "start_index": 2, "end_index": 4},
                        }
                    ],
                }
            ),
            [
                "$.candidates[0].content[2] x dropped (only messages has it)",
                "$.candidates[0].content[1].citations[0] page_location dropped (only URLs can be cited)",
                "$.candidates[0].content[1].citations[1] title approximated (the dialect requires one: it is empty)",
                "$.candidates[0].content[1].citations[1] web approximated (written as a URL citation)",
            ],
            id="pitfall-8-citations",
        ),
        pytest.param(
            of(Text(text="no"), finish=Finish(reason="refusal", explanation="policy")),
            answer({"content": "no", "refusal": "policy"}, "content_filter"),
            ["$.candidates[0].finish explanation emulated (written as the `refusal` of the message)"],
            id="pitfall-72-explained",
        ),
    ],
)
def test_answers_of_others(response: Response, body: JSONObject, losses: list[str]) -> None:
    assert written(response) == (body, losses)


def test_a_legacy_client_reads_a_legacy_call() -> None:
    """pitfall-45."""
    request = CHAT.decode_request({"model": "m", "messages": [], "functions": [{"name": "f"}]})
    response = of(ToolCall(id="c", name="f"), finish=Finish(reason="tool_calls", raw="tool_use", dialect="messages"))
    body = answer({"content": None, "function_call": {"name": "f", "arguments": "{}"}}, "function_call")
    assert written(response, request) == (body, [])


def test_the_alias_stands_for_a_model_that_was_not_said() -> None:
    """pitfall-75."""
    body, _ = written(Response(candidates=()), Request(model="alias"))
    assert body == {"id": "", "object": "chat.completion", "created": 0, "model": "alias", "choices": []}
