"""Requests of others, written for chat servers: what is sent, and what is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.dialects.chat.wire import encoded, message_of
from xenoglot.codec.loss import Losses
from xenoglot.codec.requests.custom_tools import PARAMETERS
from xenoglot.codec.target import Target
from xenoglot.dialects.chat import CHAT
from xenoglot.dialects.chat.request import message_encoder
from xenoglot.dialects.chat.request.message_encoder import MISSING_RESULT
from xenoglot.errors import WireError
from xenoglot.model.content import (
    CacheMark,
    Extra,
    File,
    Image,
    Inline,
    Opaque,
    Origin,
    Plain,
    Reasoning,
    Remote,
    Stored,
    Text,
    ToolCall,
    ToolResult,
)
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import Message, OutputFormat, Request, Sampling, Thinking, Tool, ToolChoice

HI = message_of("user", "Hi")
CALL = ToolCall(id="c1", name="f", arguments="{}")
CALLED: JSONObject = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}
LISTED = Reasoning(
    encrypted="x",
    origin=Origin(dialect="responses"),
    extra=Extra(
        dialect="chat",
        form={"list": "reasoning_details", "type": "reasoning.encrypted", "format": "openai-responses-v1"},
    ),
)
PICTURE = Image(source=Inline(data="AA==", media_type="image/png"))
PICTURE_PART = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
M0 = "$.messages[0]"


def result(*parts: Text | Image | Opaque, is_error: bool | None = None, call_id: str = "c1") -> ToolResult:
    return ToolResult(call_id=call_id, content=parts, is_error=is_error)


@pytest.mark.parametrize(
    ("messages", "target", "wire", "losses"),
    [
        pytest.param(
            [message_of("system", "a", "b")],
            Target(),
            [{"role": "system", "content": "a\n\nb"}],
            [f"{M0} content approximated (its texts are joined)"],
            id="pitfall-1-system-blocks",
        ),
        pytest.param(
            [message_of("user", "a", "b"), message_of("user", "c", PICTURE)],
            Target(text_parts=False),
            [
                {"role": "user", "content": "a\n\nb"},
                {"role": "user", "content": [{"type": "text", "text": "c"}, PICTURE_PART]},
            ],
            [f"{M0} content approximated (its texts are joined)"],
            id="texts-joined-for-deepseek",
        ),
        pytest.param(
            [message_of("developer", "a")],
            Target(),
            [{"role": "system", "content": "a"}],
            [f"{M0} role approximated (`developer` is written as `system`)"],
            id="pitfall-35-developer",
        ),
        pytest.param(
            [message_of("developer", "a")],
            Target(developer_role=True),
            [{"role": "developer", "content": "a"}],
            [],
            id="pitfall-35-developer-kept",
        ),
        pytest.param(
            [HI, message_of("system", "s"), message_of("assistant", "a"), message_of("user", "u")],
            Target(inline_system=False),
            [
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": "a"},
                {"role": "user", "content": [{"type": "text", "text": "s"}, {"type": "text", "text": "u"}]},
            ],
            ["$.messages[1] role approximated (folded into the next user turn)"],
            id="pitfall-3-inline-system-folded",
        ),
        pytest.param(
            [HI, message_of("system", "s")],
            Target(),
            [{"role": "user", "content": "Hi"}, {"role": "system", "content": "s"}],
            [],
            id="pitfall-3-inline-system",
        ),
        pytest.param(
            [message_of("assistant", CALL), message_of("user", result(Text(text="r")), "more")],
            Target(),
            [CALLED, {"role": "tool", "tool_call_id": "c1", "content": "r"}, {"role": "user", "content": "more"}],
            [],
            id="pitfall-4-results-first",
        ),
        pytest.param(
            [message_of("assistant", CALL, replace(CALL, id="c2")), message_of("user", result(), result(call_id="c2"))],
            Target(),
            [
                {**CALLED, "tool_calls": [CALLED["tool_calls"][0], {**CALLED["tool_calls"][0], "id": "c2"}]},
                {"role": "tool", "tool_call_id": "c1", "content": ""},
                {"role": "tool", "tool_call_id": "c2", "content": ""},
            ],
            [],
            id="pitfall-5-6-several-empty-results",
        ),
        pytest.param(
            [message_of("assistant", CALL), message_of("user", result(Text(text="no"), is_error=True))],
            Target(),
            [CALLED, {"role": "tool", "tool_call_id": "c1", "content": "[tool error] no"}],
            ["$.messages[1].content[0] is_error emulated (the text begins with `[tool error]`)"],
            id="pitfall-9-error",
        ),
        pytest.param(
            [message_of("assistant", CALL), message_of("user", result(PICTURE), "see")],
            Target(),
            [
                CALLED,
                {"role": "tool", "tool_call_id": "c1", "content": "[image: in the next user message]"},
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "[image from the result of c1]"},
                        PICTURE_PART,
                        {"type": "text", "text": "see"},
                    ],
                },
            ],
            ["$.messages[1].content[0].content[0] image emulated (moved to the user turn after the results of tools)"],
            id="pitfall-7-picture-in-result",
        ),
        pytest.param(
            [message_of("assistant", CALL), message_of("user", result(PICTURE))],
            Target(tool_result_media=True),
            [CALLED, {"role": "tool", "tool_call_id": "c1", "content": [PICTURE_PART]}],
            [],
            id="pitfall-7-picture-kept",
        ),
        pytest.param(
            [
                message_of("assistant", CALL),
                message_of("tool", result(Opaque(dialect="messages", data={"type": "search_result"}, text="Found"))),
            ],
            Target(),
            [CALLED, {"role": "tool", "tool_call_id": "c1", "content": "Found"}],
            ["$.messages[1].content[0].content[0] search_result approximated (written as text)"],
            id="pitfall-8-search-result",
        ),
        pytest.param(
            [message_of("assistant", Reasoning(text="t"), "a"), HI],
            Target(),
            [{"role": "assistant", "reasoning_content": "t", "content": "a"}, {"role": "user", "content": "Hi"}],
            [],
            id="pitfall-10-53-reasoning",
        ),
        pytest.param(
            [message_of("assistant", Reasoning(text="t"), "a"), HI],
            Target(reasoning_field="none"),
            [{"role": "assistant", "content": "a"}, {"role": "user", "content": "Hi"}],
            [f"{M0}.content[0] reasoning dropped (the server takes none back)"],
            id="pitfall-10-no-reasoning",
        ),
        pytest.param(
            [
                message_of(
                    "assistant", Reasoning(encrypted="x", redacted=True, origin=Origin(dialect="messages")), "a"
                ),
                HI,
            ],
            Target(),
            [{"role": "assistant", "content": "a"}, {"role": "user", "content": "Hi"}],
            [f"{M0}.content[0] encrypted dropped (only its maker can open it)"],
            id="pitfall-11-redacted",
        ),
        pytest.param(
            [message_of("assistant", Reasoning(text="t", signature="s", origin=Origin(dialect="messages")), "a"), HI],
            Target(reasoning_field="reasoning"),
            [{"role": "assistant", "reasoning": "t", "content": "a"}, {"role": "user", "content": "Hi"}],
            [f"{M0}.content[0] signature dropped (only its maker can open it)"],
            id="pitfall-51-foreign-seal",
        ),
        pytest.param(
            [message_of("assistant", Reasoning(text="t", signature="s", origin=Origin(dialect="messages")), "a"), HI],
            Target(reasoning_field="reasoning_details"),
            [
                {
                    "role": "assistant",
                    "reasoning_details": [
                        {
                            "type": "reasoning.text",
                            "text": "t",
                            "signature": "s",
                            "format": "anthropic-claude-v1",
                            "index": 0,
                        }
                    ],
                    "content": "a",
                },
                {"role": "user", "content": "Hi"},
            ],
            [],
            id="pitfall-50-labelled-seal",
        ),
        pytest.param(
            [message_of("assistant", LISTED, "a"), HI],
            Target(),
            [
                {
                    "role": "assistant",
                    "reasoning_details": [
                        {"type": "reasoning.encrypted", "data": "x", "format": "openai-responses-v1"}
                    ],
                    "content": "a",
                },
                {"role": "user", "content": "Hi"},
            ],
            [],
            id="findings-clients-5-read-from-a-list",
        ),
        pytest.param(
            [message_of("assistant", CALL, "late"), message_of("tool", result())],
            Target(),
            [{**CALLED, "content": "late"}, {"role": "tool", "tool_call_id": "c1", "content": ""}],
            [f"{M0} order approximated (reasoning comes first, calls last)"],
            id="pitfall-12-order",
        ),
        pytest.param(
            [message_of("assistant", replace(CALL, arguments="")), message_of("tool", result())],
            Target(),
            [CALLED, {"role": "tool", "tool_call_id": "c1", "content": ""}],
            [],
            id="pitfall-94-no-arguments",
        ),
        pytest.param(
            [message_of("assistant", replace(CALL, arguments="{oops")), message_of("tool", result())],
            Target(),
            [
                {
                    **CALLED,
                    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{oops"}}],
                },
                {"role": "tool", "tool_call_id": "c1", "content": ""},
            ],
            [],
            id="pitfall-40-128-raw-arguments",
        ),
        pytest.param(
            [message_of("assistant", CALL), HI],
            Target(),
            [
                CALLED,
                {"role": "tool", "tool_call_id": "c1", "content": MISSING_RESULT},
                {"role": "user", "content": "Hi"},
            ],
            ["$.messages tool result emulated (an error stands for a result that is missing)"],
            id="pitfall-44-missing-result",
        ),
        pytest.param(
            [
                message_of("assistant", CALL),
                message_of("user", result(Text(text="who?"), call_id="c9"), result(), "more"),
            ],
            Target(),
            [
                CALLED,
                {"role": "tool", "tool_call_id": "c1", "content": ""},
                {"role": "user", "content": "Result of the tool call c9:\nwho?"},
                {"role": "user", "content": "more"},
            ],
            ["$.messages tool result approximated (no call before it has its id; written as text)"],
            id="pitfall-44-result-of-no-call",
        ),
        pytest.param(
            [message_of("assistant", replace(CALL, id="toolu 1")), message_of("tool", result(call_id="toolu 1"))],
            Target(),
            [
                {**CALLED, "tool_calls": [{**CALLED["tool_calls"][0], "id": "toolu_1_d0898d08"}]},
                {"role": "tool", "tool_call_id": "toolu_1_d0898d08", "content": ""},
            ],
            [
                f"{M0}.content[0] id emulated (fitted to what servers take, alike on call and result)",
                "$.messages[1].content[0] id emulated (fitted to what servers take, alike on call and result)",
            ],
            id="pitfall-41-42-ids",
        ),
        pytest.param(
            [HI, message_of("assistant", "Sure,")],
            Target(),
            [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Sure,"}],
            ["$.messages[1] prefill approximated (the server may answer the last turn, not continue it)"],
            id="pitfall-32-prefill",
        ),
        pytest.param(
            [HI, message_of("assistant", "Sure,")],
            Target(prefill="native"),
            [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Sure,"}],
            [],
            id="pitfall-32-prefill-native",
        ),
        pytest.param(
            [
                message_of(
                    "user",
                    "a",
                    Image(source=Remote(url="https://e.org/a.png")),
                    Image(source=Stored(id="f1")),
                    File(source=Stored(id="f2")),
                    File(source=Plain(text="T"), name="n"),
                )
            ],
            Target(),
            [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "a"},
                        {"type": "image_url", "image_url": {"url": "https://e.org/a.png"}},
                        {"type": "text", "text": "n\nT"},
                    ],
                }
            ],
            [
                f"{M0}.content[2] image dropped (only a URL or inline data can be written)",
                f"{M0}.content[3] file dropped (the id of a file means something to its own provider only)",
                f"{M0}.content[4] file approximated (written as its text)",
                f"{M0}.content[4] name emulated (stands in the line before its text)",
            ],
            id="pitfall-33-sources",
        ),
        pytest.param(
            [message_of("user", Text(text="a", cache=CacheMark(ttl="5m")))],
            Target(),
            [{"role": "user", "content": "a"}],
            [f"{M0}.content[0] cache dropped (the server decides what it caches)"],
            id="pitfall-31-no-marks",
        ),
        pytest.param(
            [message_of("user", Text(text="a", cache=CacheMark(ttl="5m")))],
            Target(cache_marks=True),
            [
                {
                    "role": "user",
                    "content": [{"type": "text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit"}}],
                }
            ],
            [f"{M0}.content[0] cache.ttl approximated (the server's default lifetime)"],
            id="pitfall-31-breakpoint",
        ),
        pytest.param(
            [
                message_of("user", Opaque(dialect="messages", data={"type": "container_upload"})),
                message_of("user", "", "Hi"),
            ],
            Target(),
            [{"role": "user", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "Hi"}]}],
            [
                f"{M0}.content[0] container_upload dropped (only messages has it)",
                f"{M0} message dropped (no content is left)",
            ],
            id="a-turn-of-the-user-of-which-nothing-is-left",
        ),
        pytest.param(
            [
                message_of("user", ""),
                message_of("assistant", Opaque(dialect="messages", data={"type": "server_tool_use"})),
                message_of("system", Opaque(dialect="messages", data={"type": "x"})),
            ],
            Target(),
            [{"role": "user", "content": ""}],
            [
                "$.messages[1].content[0] server_tool_use dropped (only messages has it)",
                "$.messages[1] message dropped (no content is left)",
                "$.messages[2].content[0] x dropped (only messages has it)",
                "$.messages[2] message dropped (no content is left)",
            ],
            id="other-turns-of-which-nothing-is-left",
        ),
        pytest.param(
            [
                message_of("assistant", CALL),
                message_of("tool", result(Text(text="ok")), Opaque(dialect="messages", data={})),
            ],
            Target(),
            [CALLED, {"role": "tool", "tool_call_id": "c1", "content": "ok"}],
            ["$.messages[1].content[1] part dropped (only messages has it)"],
            id="beside-a-result-nothing-is-left",
        ),
    ],
)
def test_messages(messages: list[Message], target: Target, wire: list[JSON], losses: list[str]) -> None:
    assert encoded(Request(model="m", messages=tuple(messages)), target) == ({"model": "m", "messages": wire}, losses)


TOOL = Tool(name="f", parameters={"type": "object"})
TOOL_WIRE = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
PATCH = Tool(name="p", kind="custom", format={"type": "text"})


@pytest.mark.parametrize(
    ("target", "call", "losses"),
    [
        pytest.param(
            Target(),
            {"id": "c1", "type": "function", "function": {"name": "p", "arguments": r'{"input":"a\n\"b\""}'}},
            [f"{M0}.content[0] kind emulated (the free text of a custom tool is written as `input`)"],
            id="pitfall-62-wrapped",
        ),
        pytest.param(
            Target(custom_tools=True),
            {"id": "c1", "type": "custom", "custom": {"name": "p", "input": 'a\n"b"'}},
            [],
            id="pitfall-62-taken",
        ),
    ],
)
def test_free_text_in_the_history(target: Target, call: JSONObject, losses: list[str]) -> None:
    spoken = message_of("assistant", ToolCall(id="c1", name="p", arguments='a\n"b"', kind="custom"))
    answer = message_of("tool", ToolResult(call_id="c1", content=(Text(text="ok"),), kind="custom"))
    body, found = encoded(Request(model="m", messages=(spoken, answer)), target)
    assert (body["messages"], found) == (
        [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "ok"},
        ],
        losses,
    )


def test_a_custom_tool_goes_home_as_it_came() -> None:
    """pitfall-62: a client of the dialect knows what its server takes."""
    tools = [{"type": "custom", "custom": {"name": "p"}}]
    body: JSONObject = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "tools": tools}
    assert encoded(CHAT.decode_request(body), Target(provider="x")) == (body, [])


@pytest.mark.parametrize(
    ("request_", "target", "wire", "losses"),
    [
        pytest.param(
            Request(model="m", sampling=Sampling(max_tokens=5)),
            Target(max_tokens_field="max_completion_tokens"),
            {"max_completion_tokens": 5},
            [],
            id="pitfall-19-limit-field",
        ),
        pytest.param(
            Request(model="m", sampling=Sampling(max_tokens=500)),
            Target(max_tokens_limit=100),
            {"max_tokens": 100},
            ["$.sampling max_tokens approximated (lowered to 100, the most of the server)"],
            id="pitfall-19-limit-lowered",
        ),
        pytest.param(
            Request(model="m", sampling=Sampling(top_k=5, temperature=1.0)),
            Target(),
            {"temperature": 1.0},
            ["$.sampling top_k dropped (the dialect has no such field)"],
            id="pitfall-21-top-k",
        ),
        pytest.param(
            Request(model="m", sampling=Sampling(top_k=5, min_p=0.1)),
            Target(extended_sampling=True),
            {"top_k": 5, "min_p": 0.1},
            [],
            id="pitfall-21-top-k-taken",
        ),
        pytest.param(
            Request(model="m", user="x" * 65),
            Target(),
            {"user": "9537c5fdf120482f7d58d25e9ed583f52c02b4e304ea814db1633ad565aed7e9"},
            ["$ user approximated (longer than 64 characters: its SHA-256 is written)"],
            id="pitfall-23-user",
        ),
        pytest.param(
            Request(model="m", service_tier="flex"), Target(), {"service_tier": "flex"}, [], id="pitfall-24-tier"
        ),
        pytest.param(
            Request(model="m", thinking=Thinking(mode="enabled", budget_tokens=9000)),
            Target(),
            {"reasoning_effort": "medium"},
            ["$.thinking budget_tokens approximated (written as the effort `medium`)"],
            id="pitfall-25-budget",
        ),
        pytest.param(
            Request(model="m", thinking=Thinking(mode="disabled")),
            Target(),
            {"reasoning_effort": "none"},
            [],
            id="pitfall-26-disabled",
        ),
        pytest.param(
            Request(model="m", thinking=Thinking(mode="adaptive", effort="high")),
            Target(),
            {"reasoning_effort": "high"},
            ["$.thinking mode dropped (the effort stands for it)"],
            id="pitfall-26-27-adaptive",
        ),
        pytest.param(
            Request(model="m", thinking=Thinking(effort="max")),
            Target(efforts=("low", "medium", "high")),
            {"reasoning_effort": "high"},
            ["$.thinking effort approximated (`max` is written as `high`)"],
            id="pitfall-27-a-word-the-server-lacks",
        ),
        pytest.param(
            Request(model="m", thinking=Thinking(mode="disabled")),
            Target(efforts=("minimal", "low")),
            {"reasoning_effort": "minimal"},
            ["$.thinking effort approximated (`none` is written as `minimal`)"],
            id="pitfall-26-disabled-where-none-is-unknown",
        ),
        pytest.param(
            Request(model="m", thinking=Thinking(effort="low")),
            Target(thinking="budget"),
            {"thinking": {"type": "enabled", "budget_tokens": 2048}},
            ["$.thinking effort approximated (written as a budget of 2048 tokens)"],
            id="pitfall-49-effort-as-budget",
        ),
        pytest.param(
            Request(model="m", thinking=Thinking(effort="low")),
            Target(thinking="none"),
            {},
            ["$ thinking dropped (the server takes no settings for thinking)"],
            id="pitfall-26-not-told",
        ),
        pytest.param(
            Request(model="m", output=OutputFormat(kind="json_schema", schema={"type": "object"})),
            Target(),
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "response", "schema": {"type": "object"}, "strict": False},
                }
            },
            ["$.output schema approximated (servers hold strictly to closed schemas alone)"],
            id="pitfall-28-29-schema-that-is-not-strict",
        ),
        pytest.param(
            Request(
                model="m",
                output=OutputFormat(kind="json_schema", schema={"type": "object", "additionalProperties": False}),
            ),
            Target(),
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {
                        "name": "response",
                        "schema": {"type": "object", "additionalProperties": False},
                        "strict": True,
                    },
                }
            },
            [],
            id="pitfall-28-schema",
        ),
        pytest.param(
            Request(model="m", tools=(Tool(name="f", parameters={"properties": {}}),)),
            Target(),
            {
                "tools": [
                    {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
                ]
            },
            ["$.tools[0] parameters approximated (the type `object` is added)"],
            id="pitfall-29-schema-type",
        ),
        pytest.param(
            Request(model="m", tools=(Opaque(dialect="messages", data={"type": "web_search_20250305"}), TOOL)),
            Target(),
            {"tools": [TOOL_WIRE]},
            ["$.tools[0] web_search_20250305 dropped (a tool that only a server of messages runs)"],
            id="pitfall-30-127-server-tool",
        ),
        pytest.param(
            Request(model="m", tool_choice=ToolChoice(mode="auto"), parallel_tool_calls=True),
            Target(),
            {},
            ["$ tool_choice dropped (there are no tools)", "$ parallel_tool_calls dropped (there are no tools)"],
            id="pitfall-16-no-tools",
        ),
        pytest.param(
            Request(
                model="m",
                tools=(TOOL,),
                tool_choice=ToolChoice(mode="required", names=("f",)),
                parallel_tool_calls=False,
            ),
            Target(),
            {
                "tools": [TOOL_WIRE],
                "tool_choice": {"type": "function", "function": {"name": "f"}},
                "parallel_tool_calls": False,
            },
            [],
            id="pitfall-14-15-named",
        ),
        pytest.param(
            Request(model="m", tools=(TOOL,), tool_choice=ToolChoice(mode="auto", names=("f",))),
            Target(),
            {
                "tools": [TOOL_WIRE],
                "tool_choice": {
                    "type": "allowed_tools",
                    "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]},
                },
            },
            [],
            id="pitfall-14-allowed",
        ),
        pytest.param(
            Request(
                model="m",
                tools=(replace(TOOL, namespace="ns"),),
                tool_choice=ToolChoice(mode="required", names=("f",)),
            ),
            Target(),
            {
                "tools": [{"type": "function", "function": {"name": "ns__f", "parameters": {"type": "object"}}}],
                "tool_choice": {"type": "function", "function": {"name": "ns__f"}},
            },
            [
                "$.tools[0] name emulated (fitted to what the server takes)",
                "$.tool_choice name emulated (fitted to what the server takes)",
            ],
            id="pitfall-63-chosen-in-a-namespace",
        ),
        pytest.param(
            Request(model="m", tools=(PATCH,), tool_choice=ToolChoice(mode="required", names=("p",), kind="custom")),
            Target(),
            {
                "tools": [{"type": "function", "function": {"name": "p", "parameters": PARAMETERS}}],
                "tool_choice": {"type": "function", "function": {"name": "p"}},
            },
            [
                "$.tools[0] kind emulated (a custom tool is written as a function of one string)",
                "$.tools[0] format dropped (a function is restricted by no grammar)",
                "$.tool_choice kind emulated (a custom tool is written as a function of one string)",
            ],
            id="pitfall-62-custom-tool",
        ),
        pytest.param(
            Request(model="m", tools=(PATCH,), tool_choice=ToolChoice(mode="required", names=("p",), kind="custom")),
            Target(custom_tools=True),
            {
                "tools": [{"type": "custom", "custom": {"name": "p", "format": {"type": "text"}}}],
                "tool_choice": {"type": "custom", "custom": {"name": "p"}},
            },
            [],
            id="pitfall-62-custom-tool-taken",
        ),
        pytest.param(
            Request(model="m", tools=(replace(TOOL, name="n" * 65, strict=True),)),
            Target(strict_tools=False),
            {
                "tools": [
                    {"type": "function", "function": {"name": "n" * 55 + "_1e3fb6d5", "parameters": {"type": "object"}}}
                ]
            },
            [
                "$.tools[0] name emulated (fitted to what the server takes)",
                "$.tools[0] strict dropped (the server does not take it)",
            ],
            id="pitfall-43-long-name",
        ),
        pytest.param(
            Request(model="m", tools=(replace(TOOL, namespace="ns"),)),
            Target(),
            {"tools": [{"type": "function", "function": {"name": "ns__f", "parameters": {"type": "object"}}}]},
            ["$.tools[0] name emulated (fitted to what the server takes)"],
            id="pitfall-43-namespace",
        ),
        pytest.param(
            Request(model="m", stream=True),
            Target(),
            {"stream": True, "stream_options": {"include_usage": True}},
            [],
            id="pitfall-101-usage-is-asked-for",
        ),
        pytest.param(
            Request(
                model="m",
                cache=CacheMark(),
                extra=Extra(dialect="messages", fields={"container": "x", "y": None}),
            ),
            Target(),
            {},
            [
                "$ container dropped (a container means something to its own provider only)",
                "$ cache dropped (the server decides what it caches)",
            ],
            id="foreign-fields",
        ),
    ],
)
def test_fields(request_: Request, target: Target, wire: JSONObject, losses: list[str]) -> None:
    assert encoded(request_, target) == ({"model": "m", "messages": [], **wire}, losses)


def test_a_kept_conversation_is_refused() -> None:
    """pitfall-59: without what came before it is another request."""
    with pytest.raises(WireError, match=r"^\$\.previous: this model keeps no conversation; send the whole history$"):
        encoded(Request(model="m", previous="resp_1"))


def test_too_many_stop_strings_are_refused() -> None:
    """pitfall-20: cutting the list would change what is asked."""
    request = Request(model="m", sampling=Sampling(stop=("a", "b", "c", "d", "e")))
    with pytest.raises(WireError, match=r"^\$\.stop: the server takes at most 4 stop strings$"):
        encoded(request)
    assert encoded(request, Target(stop_limit=None))[0]["stop"] == ["a", "b", "c", "d", "e"]


HOME: JSONObject = {
    "model": "m",
    "messages": [
        {"role": "developer", "content": "d"},
        {"role": "user", "content": "u"},
        {"role": "system", "content": "s"},
    ],
    "max_tokens": 500,
    "reasoning_effort": "low",
    "tools": [{"type": "function", "function": {"name": "f", "strict": True}}],
}


@pytest.mark.parametrize(
    ("target", "changed"),
    [
        pytest.param(Target(), {}, id="as-it-came"),
        pytest.param(
            Target(max_tokens_field="max_completion_tokens", max_tokens_limit=100),
            {"max_tokens": None, "max_completion_tokens": 100},
            id="pitfall-19-limit",
        ),
        pytest.param(Target(thinking="none"), {"reasoning_effort": None}, id="pitfall-26-thinking"),
        pytest.param(
            Target(strict_tools=False),
            {"tools": [{"type": "function", "function": {"name": "f"}}]},
            id="pitfall-29-strict",
        ),
        pytest.param(
            Target(inline_system=False),
            {"messages": [*HOME["messages"][:2], {"role": "user", "content": "s"}]},
            id="pitfall-3-inline-system",
        ),
    ],
)
def test_a_target_changes_what_it_must_at_home(target: Target, changed: JSONObject) -> None:
    body = CHAT.encode_request(CHAT.decode_request(HOME), Losses(), target)
    assert body == {key: value for key, value in (HOME | changed).items() if value is not None}


def test_lists_of_texts_are_joined_at_home_for_a_server_that_takes_none() -> None:
    """C2: DeepSeek refuses them."""
    listed = [{"role": role, "content": [{"type": "text", "text": "a"}]} for role in ("system", "user", "assistant")]
    request = CHAT.decode_request({"model": "m", "messages": listed})
    assert encoded(request) == ({"model": "m", "messages": listed}, [])
    joined = [{**message, "content": "a"} for message in listed]
    assert encoded(request, Target(text_parts=False)) == ({"model": "m", "messages": joined}, [])


def test_whoever_wants_usage_at_home_says_so() -> None:
    """pitfall-101: a request of this dialect goes home as it came, unless `stream_usage` is set on it."""
    body = {"model": "m", "messages": [], "stream": True}
    request = CHAT.decode_request(body)
    assert encoded(request) == (body, [])
    asked = body | {"stream_options": {"include_usage": True}}
    assert encoded(replace(request, stream_usage=True)) == (asked, [])


@pytest.mark.parametrize("call", [{"type": "x"}, {"id": ["c"], "type": "x"}])
def test_calls_of_a_kind_to_come_may_have_no_id(call: JSONObject) -> None:
    turns = (message_of("user", Text(text="Hi")), message_of("assistant", Opaque(dialect="chat", data=call)))
    assert CHAT.encode_request(Request(model="m", messages=turns), Losses(), Target())["messages"]


IDS = st.sampled_from(["a", "b", "c"])
TURNS = st.one_of(
    st.builds(
        lambda ids: message_of("assistant", *(ToolCall(id=one, name="f", arguments="{}") for one in ids)),
        st.lists(IDS, min_size=1, max_size=3),
    ),
    st.builds(lambda one: message_of("tool", ToolResult(call_id=one, content=(Text(text="done"),))), IDS),
    st.sampled_from([message_of("user", "Hi"), message_of("assistant", "Hello"), message_of("system", "Be brief")]),
)


@given(st.lists(TURNS, max_size=8))
def test_a_history_whose_calls_have_their_results_is_not_changed(turns: list[Message]) -> None:
    """The look that most histories get finds no other messages than the pairing of calls and results does."""
    request = Request(model="m", messages=tuple(turns))
    found = encoded(request)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message_encoder, "_is_paired", lambda _: False)
        assert encoded(request) == found
