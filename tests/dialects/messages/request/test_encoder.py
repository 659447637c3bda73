"""Requests from elsewhere, made lawful for a server of the dialect: exact bodies, exact losses."""

import pytest

from tests.dialects.messages.wire import encoded, message_of
from xenoglot.codec.loss import Losses
from xenoglot.codec.target import Target
from xenoglot.dialects.messages import MESSAGES
from xenoglot.errors import WireError
from xenoglot.model.content import (
    Audio,
    CacheMark,
    File,
    Image,
    Inline,
    Opaque,
    Origin,
    Part,
    Reasoning,
    Refusal,
    Remote,
    Stored,
    Text,
    ToolCall,
    ToolResult,
)
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import Message, OutputFormat, Request, Sampling, Thinking, Tool, ToolChoice

SEARCHING: JSONObject = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}

LIMITED = Sampling(max_tokens=100)
TOOL = Tool(name="f", parameters={"type": "object"})
WIRE_TOOL = {"name": "f", "input_schema": {"type": "object"}}
CALL = ToolCall(id="c1", name="f", arguments='{"a":1}')
RESULT = message_of("tool", ToolResult(call_id="c1", content=(Text(text="ok"),)))
WIRE_CALL = {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}
WIRE_RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "ok"}


def history(call_id: str) -> tuple[Message, Message]:
    """A call and its result."""
    answered = ToolResult(call_id=call_id, content=(Text(text="ok"),))
    return message_of("assistant", ToolCall(id=call_id, name="f", arguments='{"a":1}')), message_of("tool", answered)


def user(*content: JSONObject | str) -> JSONObject:
    return {"role": "user", "content": content[0] if isinstance(content[0], str) else list(content)}


def assistant(*content: JSONObject | str) -> JSONObject:
    return {"role": "assistant", "content": content[0] if isinstance(content[0], str) else list(content)}


FIRST = user("(The conversation begins.)")


@pytest.mark.parametrize(
    ("messages", "target", "system", "wire", "losses"),
    [
        pytest.param(
            [message_of("system", "A"), message_of("developer", "B"), message_of("user", "Hi")],
            {},
            [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}],
            [user("Hi")],
            ["$.messages[1] role approximated (`developer` is written as `system`)"],
            id="pitfall-35-hoisted",
        ),
        pytest.param(
            [
                message_of("system", "A"),
                message_of("user", "Hi"),
                message_of("system", "B"),
                message_of("assistant", "C"),
                message_of("user", "D"),
            ],
            {},
            "A",
            [user("Hi"), {"role": "system", "content": "B"}, assistant("C"), user("D")],
            [],
            id="pitfall-3-in-place",
        ),
        pytest.param(
            [
                message_of("user", "Hi"),
                message_of("assistant", "A", CALL),
                message_of("system", "B"),
                RESULT,
                message_of("user", "D"),
            ],
            {"inline_system": False},
            None,
            [
                user("Hi"),
                assistant({"type": "text", "text": "A"}, WIRE_CALL),
                user(WIRE_RESULT, {"type": "text", "text": "B"}, {"type": "text", "text": "D"}),
            ],
            ["$.messages[2] role approximated (a system turn is folded into the next user turn)"],
            id="pitfall-3-folded",
        ),
        pytest.param(
            [
                message_of("user", "a"),
                message_of("user", "b"),
                message_of("assistant", "c"),
                message_of("assistant", "d"),
                message_of("user", "e"),
            ],
            {},
            None,
            [
                user({"type": "text", "text": "a"}, {"type": "text", "text": "b"}),
                assistant({"type": "text", "text": "c"}, {"type": "text", "text": "d"}),
                user("e"),
            ],
            [],
            id="pitfall-36-merged",
        ),
        pytest.param(
            [
                message_of("user", "Q"),
                message_of("assistant", CALL, ToolCall(id="c2", name="f")),
                RESULT,
                message_of("tool", ToolResult(call_id="c2", is_error=True)),
                message_of("user", "more"),
            ],
            {},
            None,
            [
                user("Q"),
                assistant(WIRE_CALL, {"type": "tool_use", "id": "c2", "name": "f", "input": {}}),
                user(
                    WIRE_RESULT,
                    {"type": "tool_result", "tool_use_id": "c2", "is_error": True},
                    {"type": "text", "text": "more"},
                ),
            ],
            [],
            id="pitfall-36-38-results-in-one-turn",
        ),
        pytest.param(
            [message_of("assistant", "A"), message_of("user", "B")],
            {},
            None,
            [FIRST, assistant("A"), user("B")],
            ["$.messages role emulated (the conversation must begin with the user: a turn is put in front)"],
            id="pitfall-37-assistant-first",
        ),
        pytest.param(
            [message_of("system", "A")],
            {},
            "A",
            [FIRST],
            ["$.messages role emulated (the conversation must begin with the user: a turn is put in front)"],
            id="pitfall-37-system-only",
        ),
        pytest.param(
            [message_of("user", "Q"), message_of("assistant", CALL), message_of("user", "never mind")],
            {},
            None,
            [
                user("Q"),
                assistant(WIRE_CALL),
                user(
                    {
                        "type": "tool_result",
                        "tool_use_id": "c1",
                        "content": "The tool gave no result.",
                        "is_error": True,
                    },
                    {"type": "text", "text": "never mind"},
                ),
            ],
            ["$.messages[1] tool_result emulated (a call without a result gets a placeholder)"],
            id="pitfall-44-call-without-result",
        ),
        pytest.param(
            [message_of("user", "Q"), RESULT],
            {},
            None,
            [user({"type": "text", "text": "Q"}, {"type": "text", "text": "Result of the tool call c1:\nok"})],
            ["$.messages tool_result approximated (no call of the turn before matches it; written as text)"],
            id="pitfall-44-result-without-call",
        ),
        pytest.param(
            [message_of("user", "Q"), message_of("assistant", CALL), RESULT, message_of("assistant", CALL), RESULT],
            {},
            None,
            [
                user("Q"),
                assistant(WIRE_CALL),
                user(WIRE_RESULT),
                assistant({**WIRE_CALL, "id": "c1-2"}),
                user({**WIRE_RESULT, "tool_use_id": "c1-2"}),
            ],
            ["$.messages id emulated (ids of calls must be unique: used ones get a number)"],
            id="pitfall-41-id-used-twice",
        ),
        pytest.param(
            [
                message_of("user", "Q"),
                *(part for name in ("c1", "c1-2", "c1", "c1") for part in history(name)),
            ],
            {},
            None,
            [
                user("Q"),
                *(
                    turn
                    for name in ("c1", "c1-2", "c1-3", "c1-4")
                    for turn in (assistant({**WIRE_CALL, "id": name}), user({**WIRE_RESULT, "tool_use_id": name}))
                ),
            ],
            ["$.messages id emulated (ids of calls must be unique: used ones get a number)"],
            id="findings-1-id-used-often",
        ),
        pytest.param(
            [
                message_of("user", "Q"),
                message_of("assistant", ToolCall(id="functions.f:0", name="my tool", arguments="no json")),
                message_of("tool", ToolResult(call_id="functions.f:0", content=(Text(text="ok"),))),
            ],
            {},
            None,
            [
                user("Q"),
                assistant(
                    {
                        "type": "tool_use",
                        "id": "functions_f_0_d6bdd4de",
                        "name": "my_tool_ba077b42",
                        "input": {"_raw": "no json"},
                    }
                ),
                user({"type": "tool_result", "tool_use_id": "functions_f_0_d6bdd4de", "content": "ok"}),
            ],
            [
                "$.messages[1].content[0] name emulated (shortened to what the server allows; the answer has it back)",
                "$.messages[1].content[0] arguments approximated (no JSON object; written as `_raw`)",
            ],
            id="pitfall-40-41-42-43",
        ),
        pytest.param(
            [message_of("user", "Q"), message_of("assistant", "The answer is ")],
            {"prefill": "native"},
            None,
            [user("Q"), assistant("The answer is")],
            ["$.messages[1] text approximated (whitespace at the end of a turn to be continued is cut)"],
            id="pitfall-32-prefill",
        ),
        pytest.param(
            [message_of("user", "Q"), message_of("assistant", "The answer is")],
            {},
            None,
            [user("Q"), assistant("The answer is"), user("Continue.")],
            ["$.messages[1] prefill emulated (the server continues no turn: a user turn is added)"],
            id="pitfall-32-no-prefill",
        ),
        pytest.param(
            [message_of("user", "Q"), Message(role="assistant", content=(Opaque(dialect="messages", data=SEARCHING),))],
            {},
            None,
            [user("Q"), {"role": "assistant", "content": [SEARCHING]}],
            [],
            id="pitfall-32-paused-in-a-tool-of-the-server",
        ),
        pytest.param(
            [message_of("user", "", "Q", " \n"), message_of("assistant", ""), message_of("user", "R")],
            {},
            None,
            [user({"type": "text", "text": "Q"}, {"type": "text", "text": "R"})],
            [
                "$.messages[0].content[2] text dropped (a text block must contain more than whitespace)",
                "$.messages[1] message dropped (no content is left)",
            ],
            id="pitfall-34-39-empty",
        ),
        pytest.param(
            [
                Message(role="user", content=(Text(text="Q"),), name="Ann"),
                message_of(
                    "assistant",
                    Reasoning(text="hm", signature="s", origin=Origin(dialect="chat")),
                    Reasoning(text="own", signature="s", origin=Origin(dialect="messages")),
                    Refusal(text="No."),
                ),
                message_of("user", "R"),
            ],
            {},
            None,
            [
                user("Q"),
                assistant({"type": "thinking", "thinking": "own", "signature": "s"}, {"type": "text", "text": "No."}),
                user("R"),
            ],
            [
                "$.messages[0] name dropped (a message of the dialect has none)",
                "$.messages[1].content[0] reasoning dropped (the server accepts only its own reasoning)",
                "$.messages[1].content[2] refusal approximated (written as text)",
            ],
            id="pitfall-50-51-seals",
        ),
        pytest.param(
            [
                message_of("user", "Q"),
                message_of(
                    "assistant",
                    Reasoning(text="o", signature="s", origin=Origin(dialect="messages", provider="a")),
                    "A",
                ),
                message_of("user", "R"),
            ],
            {"provider": "b"},
            None,
            [user("Q"), assistant("A"), user("R")],
            ["$.messages[1].content[0] reasoning dropped (the server accepts only its own reasoning)"],
            id="pitfall-51-another-provider",
        ),
    ],
)
def test_turns(
    messages: list[Message], target: JSONObject, system: JSON, wire: list[JSONObject], losses: list[str]
) -> None:
    body, lost = encoded(Request(model="m", messages=tuple(messages), sampling=LIMITED), **target)
    head = {"model": "m", "max_tokens": 100}
    assert body == {**head, "messages": wire, **({} if system is None else {"system": system})}
    assert lost == losses


ASK = (message_of("user", "Q"),)
HEAD = {"model": "m", "max_tokens": 100, "messages": [user("Q")]}


@pytest.mark.parametrize(
    ("request_", "target", "fields", "losses"),
    [
        pytest.param(
            Request(model="m", messages=ASK),
            {"default_max_tokens": 77},
            {"max_tokens": 77},
            ["$.sampling max_tokens approximated (the dialect requires it; 77 is written)"],
            id="pitfall-19-default",
        ),
        pytest.param(
            Request(model="m", messages=ASK, sampling=LIMITED),
            {"max_tokens_limit": 50},
            {"max_tokens": 50},
            ["$.sampling max_tokens approximated (lowered to 50, the most of the server)"],
            id="pitfall-19-limit",
        ),
        pytest.param(
            Request(
                model="m",
                messages=ASK,
                sampling=Sampling(max_tokens=100, temperature=1.7, top_p=0.5, seed=1, stop=("\n", "END"), n=1),
            ),
            {},
            {"top_p": 0.5, "stop_sequences": ["END"]},
            [
                "$.sampling temperature approximated (the dialect's highest is 1)",
                "$.sampling stop dropped (a stop sequence must contain more than whitespace)",
                "$.sampling seed dropped (the dialect has no such field)",
            ],
            id="pitfall-22-48-sampling",
        ),
        pytest.param(
            Request(model="m", messages=ASK, sampling=Sampling(max_tokens=100, temperature=0.2, top_p=0.9)),
            {},
            {"temperature": 0.2},
            ["$.sampling top_p dropped (not allowed with `temperature`)"],
            id="pitfall-22-temperature-and-top-p",
        ),
        pytest.param(
            Request(
                model="m",
                messages=ASK,
                sampling=Sampling(
                    max_tokens=100,
                    temperature=0.7,
                    top_p=1,
                    top_k=-1,
                    min_p=0,
                    repetition_penalty=1.0,
                    frequency_penalty=0,
                    presence_penalty=0.0,
                    logit_bias={},
                    logprobs=False,
                    top_logprobs=0,
                    stop=(),
                    n=1,
                ),
                metadata={},
                cache_key="",
            ),
            {},
            {"temperature": 0.7},
            [],
            id="pitfall-48-defaults-ask-for-nothing",
        ),
        pytest.param(
            Request(
                model="m", messages=ASK, sampling=Sampling(max_tokens=100, top_p=0.9), thinking=Thinking(effort="high")
            ),
            {},
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}},
            ["$.sampling top_p dropped (with thinking 0.95 is the lowest)"],
            id="pitfall-22-top-p-beside-thinking",
        ),
        pytest.param(
            Request(model="m", messages=ASK, sampling=LIMITED, thinking=Thinking(effort="minimal")),
            {},
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}},
            ["$.thinking effort approximated (`minimal` is written as `low`)"],
            id="pitfall-49-effort",
        ),
        pytest.param(
            Request(model="m", messages=ASK, sampling=LIMITED, thinking=Thinking(effort="max")),
            {"efforts": ("low", "medium", "high")},
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}},
            ["$.thinking effort approximated (`max` is written as `high`)"],
            id="pitfall-27-a-word-the-server-lacks",
        ),
        pytest.param(
            Request(model="m", messages=ASK, sampling=LIMITED, thinking=Thinking(effort="none")),
            {"thinking": "budget"},
            {"thinking": {"type": "disabled"}},
            [],
            id="pitfall-26-none",
        ),
        pytest.param(
            Request(model="m", messages=ASK, sampling=LIMITED, thinking=Thinking(effort="high")),
            {"thinking": "budget"},
            {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 1124},
            [
                "$.thinking effort approximated (written as a budget of 1024 tokens)",
                "$.sampling max_tokens approximated (raised to 1124: the budget for thinking must be less)",
            ],
            id="pitfall-49-room-is-made",
        ),
        pytest.param(
            Request(model="m", messages=ASK, sampling=LIMITED, thinking=Thinking(effort="high")),
            {"thinking": "budget", "max_tokens_limit": 512},
            {},
            [
                "$.thinking effort approximated (written as a budget of 1024 tokens)",
                "$.thinking thinking dropped (the server generates at most 512 tokens, less than any budget)",
            ],
            id="pitfall-49-no-room",
        ),
        pytest.param(
            Request(
                model="m",
                messages=ASK,
                sampling=LIMITED,
                tools=(TOOL,),
                tool_choice=ToolChoice(mode="required"),
                thinking=Thinking(effort="high"),
            ),
            {},
            {"tools": [WIRE_TOOL], "tool_choice": {"type": "any"}, "output_config": {"effort": "high"}},
            ["$.thinking thinking dropped (the dialect allows no thinking if a tool is forced)"],
            id="pitfall-17-forced-tool",
        ),
        pytest.param(
            Request(
                model="m",
                messages=(*ASK, message_of("assistant", CALL), RESULT),
                sampling=Sampling(max_tokens=9000),
                thinking=Thinking(mode="enabled", budget_tokens=2048),
            ),
            {"thinking": "budget"},
            {"max_tokens": 9000, "messages": [user("Q"), assistant(WIRE_CALL), user(WIRE_RESULT)]},
            ["$.thinking thinking dropped (the last turn calls tools without signed thinking before them)"],
            id="pitfall-17-loop-without-thinking",
        ),
        pytest.param(
            Request(model="m", messages=ASK, sampling=LIMITED, tool_choice=ToolChoice(mode="auto")),
            {},
            {},
            ["$ tool_choice dropped (there are no tools to call)"],
            id="pitfall-16-no-tools",
        ),
        pytest.param(
            Request(model="m", messages=ASK, sampling=LIMITED, tools=(TOOL,), parallel_tool_calls=False),
            {},
            {"tools": [WIRE_TOOL], "tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
            [],
            id="pitfall-15-one-call-at-a-time",
        ),
        pytest.param(
            Request(
                model="m",
                messages=ASK,
                sampling=LIMITED,
                tools=(TOOL, Tool(name="g")),
                tool_choice=ToolChoice(mode="required", names=("f", "h")),
            ),
            {},
            {"tools": [WIRE_TOOL], "tool_choice": {"type": "any"}},
            [
                "$ tools emulated (only those allowed by `tool_choice` are sent)",
                "$.tool_choice names emulated (only the tools allowed are sent)",
            ],
            id="pitfall-14-allowed-tools",
        ),
        pytest.param(
            Request(model="m", messages=ASK, sampling=LIMITED, tools=(Tool(name="f", parameters={"properties": {}}),)),
            {},
            {"tools": [{"name": "f", "input_schema": {"type": "object", "properties": {}}}]},
            ["$.tools[0] parameters approximated (`type: object` is added)"],
            id="pitfall-29-schema-without-type",
        ),
        pytest.param(
            Request(
                model="m",
                messages=ASK,
                sampling=LIMITED,
                output=OutputFormat(kind="json_schema", schema={"type": "object"}, name="n", strict=True),
            ),
            {},
            {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}},
            [
                "$.output name dropped (the dialect gives a schema none)",
                "$.output strict approximated (the dialect holds to every schema strictly)",
            ],
            id="pitfall-47-structured-output",
        ),
        pytest.param(
            Request(
                model="m",
                messages=ASK,
                sampling=LIMITED,
                output=OutputFormat(
                    kind="json_schema",
                    schema={"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}},
                ),
            ),
            {},
            {
                "output_config": {
                    "format": {
                        "type": "json_schema",
                        "schema": {
                            "type": "object",
                            "properties": {"n": {"type": "integer", "description": '{"minimum":1}'}},
                            "additionalProperties": False,
                        },
                    }
                }
            },
            ["$.output schema approximated (its objects are closed, its bounds are in descriptions)"],
            id="pitfall-47-schema-as-the-server-takes-it",
        ),
        pytest.param(
            Request(model="m", messages=ASK, sampling=LIMITED, output=OutputFormat(kind="json_schema", name="n")),
            {},
            {"system": "Answer with JSON alone."},
            ["$.output kind approximated (requested at the end of the system prompt, not enforced)"],
            id="pitfall-47-no-schema",
        ),
        pytest.param(
            Request(
                model="m",
                messages=(message_of("system", Text(text="Be brief.")), *ASK),
                sampling=LIMITED,
                output=OutputFormat(kind="json"),
            ),
            {},
            {"system": "Be brief.\n\nAnswer with JSON alone."},
            ["$.output kind approximated (requested at the end of the system prompt, not enforced)"],
            id="findings-clients-6-json-mode",
        ),
        pytest.param(
            Request(
                model="m",
                messages=(message_of("system", Text(text="Be brief.", cache=CacheMark())), *ASK),
                sampling=LIMITED,
                output=OutputFormat(kind="json"),
            ),
            {},
            {
                "system": [
                    {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}},
                    {"type": "text", "text": "Answer with JSON alone."},
                ]
            },
            ["$.output kind approximated (requested at the end of the system prompt, not enforced)"],
            id="findings-clients-6-behind-the-cache-mark",
        ),
        pytest.param(
            Request(
                model="m", messages=ASK, sampling=LIMITED, user="u", service_tier="flex", store=False, cache_key="k"
            ),
            {},
            {"metadata": {"user_id": "u"}, "service_tier": "standard_only"},
            [
                "$ service_tier approximated (`flex` is written as `standard_only`)",
                "$ cache_key dropped (the dialect has no such field)",
            ],
            id="pitfall-23-24-rest",
        ),
        pytest.param(
            Request(
                model="m",
                messages=(message_of("user", *(Text(text=str(n), cache=CacheMark(ttl="24h")) for n in range(5))),),
                sampling=LIMITED,
            ),
            {},
            {
                "messages": [
                    user(
                        {"type": "text", "text": "0"},
                        *(
                            {"type": "text", "text": str(n), "cache_control": {"type": "ephemeral", "ttl": "1h"}}
                            for n in range(1, 5)
                        ),
                    )
                ]
            },
            [
                *(f"$.messages[0].content[{n}] cache.ttl approximated (written as 1h)" for n in range(5)),
                "$.messages cache dropped (the dialect allows 4 marks)",
            ],
            id="pitfall-31-marks",
        ),
    ],
)
def test_fields(request_: Request, target: JSONObject, fields: JSONObject, losses: list[str]) -> None:
    body, lost = encoded(request_, **target)
    assert body == {**HEAD, **fields}
    assert lost == losses


@pytest.mark.parametrize(
    ("part", "block", "losses"),
    [
        pytest.param(
            Image(source=Inline(data="/9j/4AAQ"), detail="low"),
            {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "/9j/4AAQ"}},
            [
                "$.messages[0].content[0] media_type approximated (by its bytes it is `image/jpeg`)",
                "$.messages[0].content[0] detail dropped (the dialect has no such wish)",
            ],
            id="pitfall-33-type-by-its-bytes",
        ),
        pytest.param(
            Image(source=Inline(data="/9j/4AAQ", media_type="image/jpg")),
            {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "/9j/4AAQ"}},
            ["$.messages[0].content[0] media_type approximated (by its bytes it is `image/jpeg`)"],
            id="pitfall-33-wrong-type",
        ),
        pytest.param(
            File(source=Inline(data="JVBERi0xLjc="), name="a.pdf"),
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjc="},
                "title": "a.pdf",
            },
            ["$.messages[0].content[0] media_type approximated (by its bytes it is `application/pdf`)"],
            id="pdf-by-its-bytes",
        ),
        pytest.param(
            Image(source=Remote(url="https://example.org/a")),
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a"}},
            [],
            id="pitfall-33-url",
        ),
        pytest.param(
            File(source=Inline(data="SGk=", media_type="text/csv"), name="a.csv"),
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "Hi"},
                "title": "a.csv",
            },
            ["$.messages[0].content[0] source emulated (the text of the file is written as text)"],
            id="text-file",
        ),
        pytest.param(
            Audio(source=Inline(data="AA=="), transcript="Hi"),
            {"type": "text", "text": "Hi"},
            ["$.messages[0].content[0] audio approximated (only its transcript is written)"],
            id="audio",
        ),
    ],
)
def test_media(part: Part, block: JSONObject, losses: list[str]) -> None:
    body, lost = encoded(Request(model="m", messages=(message_of("user", part, "x"),), sampling=LIMITED))
    assert body["messages"] == [user(block, {"type": "text", "text": "x"})]
    assert lost == losses


@pytest.mark.parametrize(
    ("part", "loss"),
    [
        pytest.param(
            Image(source=Inline(data="PHN2Zz4=", media_type="image/svg+xml")),
            "image dropped (the dialect takes PNG, JPEG, GIF and WebP, inline or by URL)",
            id="pitfall-33-picture-of-another-type",
        ),
        pytest.param(
            Image(source=Stored(id="file-1")),
            "image dropped (the dialect takes PNG, JPEG, GIF and WebP, inline or by URL)",
            id="pitfall-33-picture-stored-elsewhere",
        ),
        pytest.param(
            File(source=Stored(id="file-1")),
            "file dropped (the dialect takes documents as PDF or text, inline or by URL)",
            id="pitfall-33-file-stored-elsewhere",
        ),
    ],
)
def test_media_that_the_server_would_refuse(part: Part, loss: str) -> None:
    body, lost = encoded(Request(model="m", messages=(message_of("user", part, "x"),), sampling=LIMITED))
    assert body["messages"] == [user("x")]
    assert lost == [f"$.messages[0].content[0] {loss}"]


@pytest.mark.parametrize(
    ("request_", "path"),
    [
        pytest.param(Request(model="m", messages=ASK, sampling=Sampling(n=2)), "$.n", id="pitfall-46"),
        pytest.param(Request(model="m", messages=ASK, previous="resp_1"), "$.previous", id="stored-conversation"),
    ],
)
def test_what_would_be_another_request_is_refused(request_: Request, path: str) -> None:
    with pytest.raises(WireError) as caught:
        encoded(request_)
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("change", "target", "expected", "losses"),
    [
        pytest.param(
            {"max_tokens": 64000, "thinking": {"type": "enabled", "budget_tokens": 60000}},
            {"max_tokens_limit": 8192},
            {"max_tokens": 8192, "thinking": {"type": "enabled", "budget_tokens": 4096}},
            [
                "$.sampling max_tokens approximated (lowered to 8192, the most of the server)",
                "$.thinking budget_tokens approximated (lowered: the server generates at most 8192 tokens)",
            ],
            id="pitfall-25-limit",
        ),
        pytest.param(
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}, "max_tokens": 9000},
            {"thinking": "budget"},
            {"thinking": {"type": "enabled", "budget_tokens": 2048}, "max_tokens": 9000},
            [
                "$.thinking mode approximated (written as `enabled`)",
                "$.thinking effort approximated (written as a budget of 2048 tokens)",
            ],
            id="pitfall-26-budget",
        ),
        pytest.param(
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "xhigh"}},
            {"efforts": ("low", "high", "max")},
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}},
            ["$.thinking effort approximated (`xhigh` is written as `high`)"],
            id="pitfall-27-a-word-the-server-lacks",
        ),
        pytest.param(
            {"thinking": {"type": "adaptive"}},
            {"thinking": "none"},
            {},
            ["$.thinking thinking dropped (the server takes no settings for thinking)"],
            id="pitfall-26-none",
        ),
        pytest.param(
            {"messages": [user("Q"), {"role": "system", "content": "S", "clear_at": "never"}, user("R")]},
            {"inline_system": False},
            {"messages": [user("Q"), user({"type": "text", "text": "S"}, {"type": "text", "text": "R"})]},
            [
                "$.messages[1] role approximated (a system turn is folded into the next user turn)",
                "$.messages[1] fields dropped (a user turn has none of its fields)",
            ],
            id="pitfall-3-folded",
        ),
        pytest.param(
            {
                "messages": [
                    user("Q"),
                    assistant({"type": "thinking", "thinking": "t", "signature": "xenoglot:unsigned"}),
                    user("R"),
                ]
            },
            {"provider": "anthropic"},
            {"messages": [user("Q"), user("R")]},
            [
                "$.messages[1].content[0] reasoning dropped (the server accepts only its own reasoning)",
                "$.messages[1] message dropped (no content is left)",
            ],
            id="pitfall-77-unsigned",
        ),
    ],
)
def test_at_home_only_the_target_changes_anything(
    change: JSONObject, target: JSONObject, expected: JSONObject, losses: list[str]
) -> None:
    body, lost = encoded(MESSAGES.decode_request({**HEAD, **change}), **target)
    assert body == {**HEAD, **expected}
    assert lost == losses


def test_a_result_without_a_call_keeps_its_images() -> None:
    image = Image(source=Inline(data="AAAA", media_type="image/png"))
    result = ToolResult(call_id="t", content=(Text(text="seen"), image, Text(text="twice")))
    body = MESSAGES.encode_request(Request(model="m", messages=(message_of("tool", result),)), Losses(), Target())
    assert body["messages"] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Result of the tool call t:\nseen\ntwice"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
            ],
        }
    ]
