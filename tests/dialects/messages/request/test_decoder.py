"""Requests of the wire: what they become, and what is refused in which words."""

import anthropic
import httpx2
import pytest
from anthropic.types import ThreadUnsupportedRequestErrorDetails

from xenoglot.codec.json.json_io import encode_json
from xenoglot.dialects.messages import MESSAGES
from xenoglot.errors import FailureError, WireError
from xenoglot.model.content import (
    CacheMark,
    Extra,
    File,
    Image,
    Inline,
    Nested,
    Opaque,
    Origin,
    Part,
    Reasoning,
    Remote,
    Text,
    ToolCall,
    ToolResult,
)
from xenoglot.model.failure import Failure
from xenoglot.model.hosted import HostedTool
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import Message, OutputFormat, Request, Sampling, Thinking, Tool, ToolChoice

LEAST: JSONObject = {"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "Hi"}]}

STRING = Extra(dialect="messages", form={"content": "string"})


def test_a_request_in_canonical_values() -> None:
    billing = {"type": "text", "text": "x-anthropic-billing-header: cc_version=2; cch=0"}
    request = MESSAGES.decode_request(
        {
            "model": "m",
            "max_tokens": 4096,
            "system": [billing, {"type": "text", "text": "S", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
            "messages": [
                {"role": "user", "content": "Hi"},
                {"role": "system", "content": "Plan.", "output_config": {"effort": "low"}},
            ],
            "tools": [
                {"name": "f", "input_schema": {"type": "object"}, "defer_loading": True},
                {"type": "web_search_20250305", "name": "web_search"},
            ],
            "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": True},
            "thinking": {"type": "enabled", "budget_tokens": 2048, "display": "omitted"},
            "output_config": {"effort": "high", "format": {"type": "json_schema", "schema": {}}, "task_budget": 1},
            "temperature": 1,
            "top_k": 5,
            "stop_sequences": ["END"],
            "metadata": {"user_id": "u"},
            "service_tier": "standard_only",
            "cache_control": {"type": "ephemeral"},
            "context_management": {"edits": []},
            "stream": True,
        }
    )
    assert request == Request(
        model="m",
        messages=(
            Message(
                role="system",
                content=(Opaque(dialect="messages", data=billing), Text(text="S", cache=CacheMark(ttl="1h"))),
            ),
            Message(role="user", content=(Text(text="Hi"),), extra=STRING),
            Message(
                role="system",
                content=(Text(text="Plan."),),
                extra=Extra(
                    dialect="messages",
                    fields={"output_config": {"effort": "low"}},
                    form={"inline": True, "content": "string"},
                ),
            ),
        ),
        tools=(
            Tool(name="f", parameters={"type": "object"}, defer_loading=True),
            HostedTool(kind="web_search", extra=Extra(dialect="messages", form={"type": "web_search_20250305"})),
        ),
        tool_choice=ToolChoice(mode="required", names=("f",)),
        parallel_tool_calls=False,
        sampling=Sampling(max_tokens=4096, temperature=1, top_k=5, stop=("END",)),
        output=OutputFormat(kind="json_schema", schema={}),
        thinking=Thinking(mode="enabled", budget_tokens=2048, effort="high", display="omitted"),
        stream=True,
        user="u",
        service_tier="default",
        cache=CacheMark(),
        extra=Extra(
            dialect="messages", fields={"output_config": {"task_budget": 1}, "context_management": {"edits": []}}
        ),
    )


@pytest.mark.parametrize(
    ("block", "part"),
    [
        pytest.param(
            {"type": "thinking", "thinking": "t", "signature": "s"},
            Reasoning(text="t", signature="s", origin=Origin(dialect="messages")),
            id="pitfall-10-sealed",
        ),
        pytest.param(
            {"type": "thinking", "thinking": "t", "signature": "xenoglot:unsigned"},
            Reasoning(text="t"),
            id="pitfall-77-our-tag",
        ),
        pytest.param(
            {"type": "thinking", "thinking": "t", "signature": "xenoglot:sealed:WyJyIiwicCIsInMiLG51bGxd"},
            Reasoning(
                text="t",
                signature="s",
                origin=Origin(dialect="r", provider="p"),
                extra=Extra(dialect="messages", form={"signature": "xenoglot:sealed:WyJyIiwicCIsInMiLG51bGxd"}),
            ),
            id="pitfall-51-anothers-seal",
        ),
        pytest.param(
            {"type": "thinking", "thinking": "t", "signature": "xenoglot:sealed:!"},
            Reasoning(text="t", signature="xenoglot:sealed:!", origin=Origin(dialect="messages")),
            id="pitfall-51-no-seal-of-ours",
        ),
        pytest.param(
            {"type": "redacted_thinking", "data": "d"},
            Reasoning(encrypted="d", redacted=True, origin=Origin(dialect="messages")),
            id="pitfall-11-redacted",
        ),
        pytest.param(
            {"type": "tool_use", "id": "i", "name": "n", "input": {}}, ToolCall(id="i", name="n"), id="pitfall-94-empty"
        ),
        pytest.param(
            {"type": "tool_use", "id": "i", "name": "n", "input": {"b": 1.0, "a": 1152921504606846977, "ü": None}},
            ToolCall(id="i", name="n", arguments='{"b":1.0,"a":1152921504606846977,"ü":null}'),
            id="pitfall-13-order-and-numbers",
        ),
        pytest.param(
            {"type": "tool_use", "id": "i", "name": "n", "input": {"_raw": '{"a":'}},
            ToolCall(id="i", name="n", arguments='{"a":'),
            id="pitfall-40-text-comes-back",
        ),
        pytest.param({"type": "tool_result", "tool_use_id": "i"}, ToolResult(call_id="i"), id="pitfall-6-missing"),
        pytest.param(
            {"type": "tool_result", "tool_use_id": "i", "content": "", "is_error": True},
            ToolResult(call_id="i", content=(Text(text=""),), is_error=True, extra=STRING),
            id="pitfall-6-empty-string",
        ),
        pytest.param(
            {"type": "tool_result", "tool_use_id": "i", "content": [{"type": "tool_reference", "tool_name": "t"}]},
            ToolResult(
                call_id="i",
                content=(
                    Opaque(
                        dialect="messages",
                        data={"type": "tool_reference", "tool_name": "t"},
                        text="The tool `t` can be called.",
                    ),
                ),
            ),
            id="pitfall-8-tool-reference",
        ),
        pytest.param(
            {"type": "search_result", "title": "T", "source": "s", "content": [{"type": "text", "text": "x"}]},
            Opaque(
                dialect="messages",
                data={"type": "search_result", "title": "T", "source": "s", "content": [{"type": "text", "text": "x"}]},
                text="T\ns\nx",
            ),
            id="pitfall-8-search-result",
        ),
        pytest.param(
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO", "dpi": 1}},
            Image(
                source=Inline(data="iVBO", media_type="image/png"),
                extra=Extra(dialect="messages", fields={"source": {"dpi": 1}}),
            ),
            id="pitfall-33-base64",
        ),
        pytest.param(
            {"type": "document", "source": {"type": "url", "url": "u"}, "title": "T", "citations": {"enabled": True}},
            File(source=Remote(url="u"), name="T", citable=True),
            id="pitfall-33-url",
        ),
        pytest.param(
            {"type": "document", "source": {"type": "content", "content": "x"}},
            File(source=Nested(parts=(Text(text="x"),), form="string")),
            id="pitfall-33-content",
        ),
        pytest.param({"type": "new", "x": [1]}, Opaque(dialect="messages", data={"type": "new", "x": [1]}), id="U34"),
    ],
)
def test_a_block_in_canonical_values(block: JSONObject, part: Part) -> None:
    request = MESSAGES.decode_request({**LEAST, "messages": [{"role": "user", "content": [block]}]})
    assert request.messages == (Message(role="user", content=(part,)),)


@pytest.mark.parametrize(
    ("change", "path", "problem"),
    [
        pytest.param({"max_tokens": None}, "$.max_tokens", "required, expected int", id="pitfall-19"),
        pytest.param({"max_tokens": -1}, "$.max_tokens", "Input should be greater than or equal to 0", id="negative"),
        pytest.param({"model": 5}, "$.model", "expected str, got int", id="model"),
        pytest.param({"messages": []}, "$.messages", "at least one message is required", id="no-message"),
        pytest.param(
            {"messages": [{"role": "tool", "content": "x"}]},
            "$.messages[0].role",
            "Input should be 'user', 'assistant' or 'system'",
            id="role",
        ),
        pytest.param({"messages": [{"role": "user"}]}, "$.messages[0].content", "Field required", id="no-content"),
        pytest.param(
            {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
            "$.messages[0].content[0].text",
            "required, expected str",
            id="no-text",
        ),
        pytest.param(
            {"messages": [{"role": "user", "content": [{"type": "tool_use", "id": "i", "name": "n", "input": "{}"}]}]},
            "$.messages[0].content[0].input",
            "expected object, got str",
            id="input-as-text",
        ),
        pytest.param({"temperature": 1.5}, "$.temperature", "Input should be between 0 and 1", id="pitfall-22"),
        pytest.param({"top_p": -0.1}, "$.top_p", "Input should be between 0 and 1", id="top-p"),
        pytest.param({"top_k": -1}, "$.top_k", "Input should be greater than or equal to 0", id="pitfall-21"),
        pytest.param({"tools": [{"name": "f"}]}, "$.tools[0].input_schema", "required, expected object", id="schema"),
        pytest.param({"tool_choice": {"type": "tool"}}, "$.tool_choice.name", "required, expected str", id="choice"),
        pytest.param(
            {"thinking": {"type": "enabled", "budget_tokens": 1000}},
            "$.thinking.budget_tokens",
            "Input should be greater than or equal to 1024",
            id="pitfall-25-least",
        ),
        pytest.param(
            {"thinking": {"type": "enabled", "budget_tokens": 1024}},
            "$.max_tokens",
            "`max_tokens` must be greater than `thinking.budget_tokens`",
            id="pitfall-25-most",
        ),
        pytest.param({"thread": "create"}, "$.thread", "expected object, got str", id="thread"),
    ],
)
def test_what_is_wrong_is_named(change: JSONObject, path: str, problem: str) -> None:
    with pytest.raises(WireError) as caught:
        MESSAGES.decode_request({**LEAST, **change})
    assert (caught.value.path, caught.value.problem) == (path, problem)


def test_deep_nesting_is_refused() -> None:
    content: JSON = "x"
    for _ in range(200):
        content = [{"type": "tool_result", "tool_use_id": "i", "content": content}]
    with pytest.raises(WireError, match="content is nested too deeply"):
        MESSAGES.decode_request({**LEAST, "messages": [{"role": "user", "content": content}]})


def test_counting_needs_no_limit() -> None:
    """pitfall-124: the request to be counted is whole, tools and all."""
    assert MESSAGES.decode_count is not None
    value = {"model": "m", "messages": LEAST["messages"], "tools": [{"name": "f", "input_schema": {}}]}
    assert MESSAGES.decode_count(value) == Request(
        model="m",
        messages=(Message(role="user", content=(Text(text="Hi"),), extra=STRING),),
        tools=(Tool(name="f", parameters={}),),
        extra=Extra(dialect="messages"),
    )


@pytest.mark.parametrize(
    "thread", [{"type": "create"}, {"type": "continue", "previous_message_id": "msg_1"}], ids=["create", "continue"]
)
def test_threads_are_refused_as_the_sdk_understands(thread: JSONObject) -> None:
    with pytest.raises(FailureError) as caught:
        MESSAGES.decode_request({**LEAST, "thread": thread})
    details = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
    assert caught.value.failure == Failure(
        kind="unsupported",
        message="thread: message threads are not kept here; send the full conversation without `thread`",
        dialect="messages",
        raw_type="invalid_request_error",
        param="$.thread",
        details=details,
    )
    status, body = MESSAGES.encode_error(caught.value.failure)
    answer = httpx2.Response(status, content=encode_json(body), headers={"content-type": "application/json"})
    transport = httpx2.MockTransport(lambda _: answer)
    with httpx2.Client(transport=transport) as http, pytest.raises(anthropic.BadRequestError) as read:
        anthropic.Anthropic(
            api_key="k", base_url="http://oracle.test", http_client=http, max_retries=0
        ).messages.create(model="m", max_tokens=1, messages=[])
    assert isinstance(read.value.details, ThreadUnsupportedRequestErrorDetails)
    assert read.value.details.to_dict() == details
