"""Requests of chat clients: exact canonical values, and errors that name the field."""

import pytest
from msgspec.structs import replace

from xenoglot.codec.loss import Losses
from xenoglot.codec.target import Target
from xenoglot.dialects.chat import CHAT
from xenoglot.errors import WireError
from xenoglot.model.catalog import ModelInfo
from xenoglot.model.content import Extra, Origin, Part, Reasoning, Text, ToolCall, ToolResult
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import Message, OutputFormat, Request, Sampling, Thinking, Tool, ToolChoice


def decode(**fields: JSON) -> Request:
    return CHAT.decode_request({"model": "m", "messages": [], **fields})


def content(message: JSONObject) -> tuple[Part, ...]:
    return decode(messages=[message]).messages[0].content


def test_a_plain_request() -> None:
    request = decode(
        messages=[{"role": "system", "content": "s"}, {"role": "user", "content": "u", "name": "ann"}],
        max_completion_tokens=5,
        temperature=0.5,
        stop="x",
        repeat_penalty=1.1,
        stream=True,
        stream_options={"include_usage": True},
        safety_identifier="id",
        reasoning_effort="high",
        x_new=1,
    )
    form = {
        "max_tokens": "max_completion_tokens",
        "stop": "string",
        "repetition_penalty": "repeat_penalty",
        "stream_options": True,
        "user": "safety_identifier",
        "thinking": "reasoning_effort",
    }
    assert request == Request(
        model="m",
        messages=(
            Message(role="system", content=(Text(text="s"),)),
            Message(role="user", content=(Text(text="u"),), name="ann"),
        ),
        sampling=Sampling(max_tokens=5, temperature=0.5, stop=("x",), repetition_penalty=1.1),
        stream=True,
        stream_usage=True,
        user="id",
        thinking=Thinking(effort="high"),
        extra=Extra(dialect="chat", fields={"x_new": 1}, form=form),
    )


def test_legacy_functions() -> None:
    """pitfall-45: functions are tools, called one at a time; a result belongs to the last call of its name."""
    request = decode(
        messages=[
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "function", "name": "f", "content": "r"},
        ],
        functions=[{"name": "f", "parameters": {}}],
        function_call={"name": "f"},
    )
    call, result = (message.content[0] for message in request.messages)
    legacy = Extra(dialect="chat", form={"legacy": True})
    assert call == ToolCall(id="call_function_0", name="f", arguments="{}", extra=legacy)
    assert result == ToolResult(call_id="call_function_0", content=(Text(text="r"),), name="f")
    assert request.tools == (Tool(name="f", parameters={}),)
    assert request.tool_choice == ToolChoice(mode="required", names=("f",))
    assert request.parallel_tool_calls is False


def test_errors_of_tools_are_marked_in_their_text() -> None:
    """pitfall-9."""
    parts = content({"role": "tool", "tool_call_id": "c", "content": "[tool error] no"})
    assert parts == (ToolResult(call_id="c", content=(Text(text="no"),), is_error=True),)


@pytest.mark.parametrize(
    ("fields", "thoughts"),
    [
        pytest.param({"reasoning_content": "t"}, [Reasoning(text="t")], id="deepseek"),
        pytest.param(
            {"reasoning": "t", "reasoning_content": "t"},
            [Reasoning(text="t", extra=Extra(dialect="chat", form={"fields": ["reasoning_content", "reasoning"]}))],
            id="vllm-twice",
        ),
        pytest.param(
            {"thinking_blocks": [{"type": "thinking", "thinking": "t", "signature": "s"}]},
            [
                Reasoning(
                    text="t",
                    signature="s",
                    origin=Origin(dialect="messages"),
                    extra=Extra(dialect="chat", form={"list": "thinking_blocks", "type": "thinking"}),
                )
            ],
            id="pitfall-50-litellm",
        ),
        pytest.param(
            {"reasoning_details": [{"type": "reasoning.encrypted", "data": "d", "format": "xenoglot:alien"}]},
            [
                Reasoning(
                    encrypted="d",
                    redacted=True,
                    origin=Origin(dialect="alien"),
                    extra=Extra(
                        dialect="chat",
                        form={
                            "list": "reasoning_details",
                            "type": "reasoning.encrypted",
                            "format": "xenoglot:alien",
                        },
                    ),
                )
            ],
            id="pitfall-50-our-own-label",
        ),
    ],
)
def test_reasoning_by_every_name(fields: JSONObject, thoughts: list[Part]) -> None:
    """pitfall-76."""
    assert content({"role": "assistant", "content": "a", **fields}) == (*thoughts, Text(text="a"))


@pytest.mark.parametrize(
    ("fields", "output"),
    [
        ({"type": "text"}, OutputFormat(kind="text")),
        ({"type": "json_object"}, OutputFormat(kind="json")),
        (
            {"type": "json_object", "schema": {"a": 1}},
            OutputFormat(kind="json_schema", schema={"a": 1}, extra=Extra(dialect="chat", form={"json_object": True})),
        ),
        ({"type": "structural_tag"}, None),
    ],
)
def test_output_formats(fields: JSONObject, output: OutputFormat | None) -> None:
    assert decode(response_format=fields).output == output


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"model": None}, "$.model: required, expected str"),
        ({"messages": None}, "$.messages: required, expected list"),
        ({"messages": [1]}, "$.messages[0]: expected object, got int"),
        (
            {"messages": [{"role": "x"}]},
            "$.messages[0].role: expected one of system, developer, user, assistant, tool, function",
        ),
        ({"messages": [{"role": "user", "content": 1}]}, "$.messages[0].content: expected str or list, got int"),
        (
            {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
            "$.messages[0].content[0].text: required, expected str",
        ),
        ({"messages": [{"role": "user", "content": ["a"]}]}, "$.messages[0].content[0]: expected object, got str"),
        ({"messages": [{"role": "tool", "content": "a"}]}, "$.messages[0].tool_call_id: required, expected str"),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"type": "function", "function": {"name": "f"}}]}]},
            "$.messages[0].tool_calls[0].id: required, expected str",
        ),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"id": "c", "function": {}}]}]},
            "$.messages[0].tool_calls[0].function.name: required, expected str",
        ),
        ({"temperature": 3}, "$.temperature: integer above maximum value. Expected a value <= 2, but got 3 instead."),
        ({"temperature": True}, "$.temperature: expected number, got bool"),
        ({"top_p": 1.5}, "$.top_p: decimal above maximum value. Expected a value <= 1, but got 1.5 instead."),
        ({"n": 0}, "$.n: integer below minimum value. Expected a value >= 1, but got 0 instead."),
        ({"max_tokens": 0}, "$.max_tokens: integer below minimum value. Expected a value >= 1, but got 0 instead."),
        (
            {"top_logprobs": 21},
            "$.top_logprobs: integer above maximum value. Expected a value <= 20, but got 21 instead.",
        ),
        ({"stop": 1}, "$.stop: expected str or list, got int"),
        ({"stop": [1]}, "$.stop[0]: expected str, got int"),
        ({"logit_bias": {"1": "a"}}, "$.logit_bias.1: expected number, got str"),
        ({"logit_bias": {"1": True}}, "$.logit_bias.1: expected number, got bool"),
        ({"logit_bias": "1"}, "$.logit_bias: expected object or list, got str"),
        ({"logit_bias": [[1, 2], [1]]}, "$.logit_bias[1]: expected a pair of a token and its bias"),
        ({"logit_bias": [[-1, 2]]}, "$.logit_bias[0][0]: expected the number of a token, or a text"),
        ({"logit_bias": [[True, 2]]}, "$.logit_bias[0][0]: expected the number of a token, or a text"),
        ({"logit_bias": [["a", None]]}, "$.logit_bias[0][1]: expected number, got null"),
        ({"logit_bias": [[2**63, 2]]}, "$.logit_bias[0][0]: expected the number of a token, or a text"),
        ({"tools": [{"type": "function"}]}, "$.tools[0].function: required, expected object"),
        ({"tools": [{"function": {}}]}, "$.tools[0].function.name: required, expected str"),
        ({"tool_choice": 1}, "$.tool_choice: expected str or object, got int"),
        ({"tool_choice": {"type": "function"}}, "$.tool_choice.function: required, expected object"),
        ({"response_format": "json"}, "$.response_format: expected object, got str"),
        ({"stream_options": {"include_usage": 1}}, "$.stream_options.include_usage: expected bool, got int"),
    ],
)
def test_errors_name_the_field(fields: JSONObject, error: str) -> None:
    with pytest.raises(WireError) as caught:
        decode(**fields)
    assert str(caught.value) == error


@pytest.mark.parametrize(
    ("said", "biases"),
    [
        pytest.param({"5": 1, "a": False}, {"5": 1, "a": -100}, id="object"),
        pytest.param([[5, 1.5], ["a b", -2], [5, 2], [7, False]], {"5": 3.5, "a b": -2, "7": -100}, id="pairs"),
        pytest.param([["a", 60], ["a", 60], [1, False], [1, False]], {"a": 100, "1": -100}, id="beyond-the-range"),
        pytest.param([], {}, id="no-pairs"),
        pytest.param(None, None, id="null"),
        pytest.param([["5", 1]], None, id="a-text-that-is-a-number"),
    ],
)
def test_findings_f_biases_in_every_form(said: JSON, biases: dict[str, float] | None) -> None:
    """llama-server takes objects and lists of pairs, of tokens and of texts; each goes home as it came."""
    request = decode(logit_bias=said)
    assert request.sampling.logit_bias == biases
    losses = Losses()
    assert CHAT.encode_request(request, losses, Target()).get("logit_bias") == said
    assert [*losses] == []
    changed = replace(request, sampling=replace(request.sampling, logit_bias={"1": 1}))
    assert CHAT.encode_request(changed, losses, Target())["logit_bias"] == ({"1": 1} if biases is not None else said)


def test_the_list_of_models() -> None:
    models = [ModelInfo(id="a", created=7, owned_by="o", display_name="A", max_input_tokens=9), ModelInfo(id="b")]
    assert CHAT.encode_models(models) == {
        "object": "list",
        "data": [
            {
                "id": "a",
                "object": "model",
                "created": 7,
                "owned_by": "o",
                "name": "A",
                "context_length": 9,
                "context_window": 9,
                "max_model_len": 9,
                "top_provider": {"context_length": 9},
            },
            {"id": "b", "object": "model", "created": 0, "owned_by": ""},
        ],
    }


def test_the_window_of_a_model_under_the_names_of_servers() -> None:
    """findings-clients-3: OpenRouter's `context_length`, vLLM's `max_model_len`."""
    listed = {"data": [{"id": "a", "context_length": 9}, {"id": "b", "max_model_len": 8}, {"id": "c"}]}
    assert [model.max_input_tokens for model in CHAT.decode_models(listed)] == [9, 8, None]


def test_the_key_is_a_bearer_token() -> None:
    assert list(CHAT.authorize("k")) == [("authorization", "Bearer k")]
    assert list(CHAT.authorize(None)) == []
