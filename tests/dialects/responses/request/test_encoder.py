"""Requests of others, written for servers of this dialect: what is sent, and what is lost."""

import pytest
from msgspec.structs import replace

from xenoglot.codec.loss import Losses
from xenoglot.codec.target import Target
from xenoglot.dialects.responses import RESPONSES
from xenoglot.dialects.responses.request.input_encoder import MISSING_RESULT
from xenoglot.errors import WireError
from xenoglot.model.content import (
    Audio,
    CacheMark,
    Citation,
    Extra,
    File,
    Image,
    Inline,
    Opaque,
    Origin,
    Part,
    Plain,
    Reasoning,
    Refusal,
    Remote,
    Stored,
    Text,
    ToolCall,
    ToolResult,
)
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import Message, OutputFormat, Prompt, Request, Role, Sampling, Thinking, Tool, ToolChoice


def message_of(role: Role, *parts: Part | str) -> Message:
    return Message(role=role, content=tuple(Text(text=part) if isinstance(part, str) else part for part in parts))


def encoded(request: Request, target: Target | None = None) -> tuple[JSONObject, list[str]]:
    """Return what a server is sent, and each loss as a line."""
    losses = Losses()
    body = RESPONSES.encode_request(request, losses, target or Target())
    return body, [str(loss) for loss in losses]


def input_message(role: str, content: JSON) -> JSONObject:
    return {"type": "message", "role": role, "content": content}


HI = message_of("user", "Hi")
HI_ITEM = input_message("user", "Hi")
CALL = ToolCall(id="c1", name="f", arguments="{}")
CALL_ITEM = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
PICTURE = Image(source=Inline(data="AA==", media_type="image/png"))
PICTURE_PART = {"type": "input_image", "image_url": "data:image/png;base64,AA=="}
OURS = Origin(dialect="responses")
TOOL = Tool(name="f", parameters={"type": "object"}, strict=True)
TOOL_ITEM = {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": True}
M0, C0 = "$.messages[0]", "$.messages[0].content[0]"


def result(*parts: Part, is_error: bool | None = None, call_id: str = "c1") -> ToolResult:
    return ToolResult(call_id=call_id, content=parts, is_error=is_error)


def output(content: JSON, call_id: str = "c1") -> JSONObject:
    return {"type": "function_call_output", "call_id": call_id, "output": content}


@pytest.mark.parametrize(
    ("messages", "target", "wire", "losses"),
    [
        pytest.param(
            [message_of("developer", "a"), HI],
            Target(),
            [input_message("system", "a"), HI_ITEM],
            [f"{M0} role approximated (`developer` is written as `system`)"],
            id="pitfall-35-developer",
        ),
        pytest.param(
            [message_of("developer", "a"), message_of("system", "b", "c"), HI],
            Target(developer_role=True),
            [
                input_message("developer", "a"),
                input_message("system", [{"type": "input_text", "text": "b"}, {"type": "input_text", "text": "c"}]),
                HI_ITEM,
            ],
            [],
            id="pitfall-1-35-system-turns-as-they-are",
        ),
        pytest.param(
            [HI, message_of("system", "s"), message_of("assistant", "a"), message_of("user", "u")],
            Target(inline_system=False),
            [
                HI_ITEM,
                input_message("assistant", "a"),
                input_message("user", [{"type": "input_text", "text": "s"}, {"type": "input_text", "text": "u"}]),
            ],
            ["$.messages[1] role approximated (folded into the next user turn)"],
            id="pitfall-3-inline-system-folded",
        ),
        pytest.param(
            [message_of("assistant", CALL), message_of("user", result(Text(text="r")), "more")],
            Target(),
            [CALL_ITEM, output("r"), input_message("user", "more")],
            [],
            id="pitfall-4-results-first",
        ),
        pytest.param(
            [message_of("assistant", CALL), message_of("user", "more", result(Text(text="r")))],
            Target(),
            [CALL_ITEM, output("r"), input_message("user", "more")],
            ["$.messages[1].content[1] order approximated (the results of tools come first)"],
            id="pitfall-4-results-behind-words",
        ),
        pytest.param(
            [
                message_of("assistant", "a", CALL, replace(CALL, id="c2")),
                message_of("user", result(), result(call_id="c2")),
            ],
            Target(),
            [input_message("assistant", "a"), CALL_ITEM, {**CALL_ITEM, "call_id": "c2"}, output(""), output("", "c2")],
            [],
            id="pitfall-5-6-several-empty-results",
        ),
        pytest.param(
            [message_of("assistant", CALL), message_of("user", result(Text(text="no"), is_error=True))],
            Target(),
            [CALL_ITEM, output("[tool error] no")],
            ["$.messages[1].content[0] is_error emulated (the text begins with `[tool error]`)"],
            id="pitfall-9-failed",
        ),
        pytest.param(
            [message_of("assistant", CALL), message_of("user", result(PICTURE, is_error=True))],
            Target(),
            [CALL_ITEM, output([{"type": "input_text", "text": "[tool error] "}, PICTURE_PART])],
            ["$.messages[1].content[0] is_error emulated (the text begins with `[tool error]`)"],
            id="pitfall-7-56-picture-in-a-result",
        ),
        pytest.param(
            [message_of("assistant", replace(CALL, id="x" * 70)), message_of("user", result(call_id="x" * 70))],
            Target(),
            [{**CALL_ITEM, "call_id": "x" * 55 + "_c71bd109"}, output("", "x" * 55 + "_c71bd109")],
            [
                f"{C0} id emulated (fitted to what servers take, alike on call and result)",
                "$.messages[1].content[0] id emulated (fitted to what servers take, alike on call and result)",
            ],
            id="pitfall-42-long-ids",
        ),
        pytest.param(
            [message_of("assistant", CALL), HI],
            Target(),
            [CALL_ITEM, output(MISSING_RESULT), HI_ITEM],
            ["$.messages content emulated (an error stands for the result of a call that is missing)"],
            id="pitfall-44-no-result",
        ),
        pytest.param(
            [
                message_of("assistant", CALL, CALL),
                message_of("tool", result(Text(text="r"))),
                message_of("tool", result()),
            ],
            Target(),
            [CALL_ITEM, CALL_ITEM, output("r"), output("")],
            [],
            id="two-calls-of-one-id",
        ),
        pytest.param(
            [message_of("user", result(Text(text="r")))],
            Target(),
            [input_message("user", "Result of the tool call c1:\nr")],
            ["$.messages content approximated (the result of no call before it is written as text)"],
            id="pitfall-44-no-call",
        ),
        pytest.param(
            [
                message_of("assistant", replace(CALL, kind="custom", arguments="x")),
                message_of("tool", result(Text(text="r"))),
            ],
            Target(),
            [
                {"type": "custom_tool_call", "call_id": "c1", "name": "f", "input": "x"},
                {**output("r"), "type": "custom_tool_call_output"},
            ],
            [],
            id="pitfall-62-the-kind-of-a-result-is-its-calls",
        ),
        pytest.param(
            [message_of("assistant", replace(CALL, arguments="")), message_of("tool", result())],
            Target(),
            [CALL_ITEM, output("")],
            [],
            id="pitfall-94-no-arguments",
        ),
        pytest.param(
            [message_of("assistant", replace(CALL, arguments='{"a": ')), message_of("tool", result())],
            Target(),
            [{**CALL_ITEM, "arguments": '{"a": '}, output("")],
            [],
            id="pitfall-40-arguments-are-text",
        ),
        pytest.param(
            [message_of("assistant", replace(CALL, namespace="n", item_id="item_1")), message_of("tool", result())],
            Target(),
            [{**CALL_ITEM, "namespace": "n"}, output("")],
            [],
            id="pitfall-63-74-no-ids-of-others",
        ),
        pytest.param(
            [
                message_of(
                    "assistant",
                    Reasoning(encrypted="e", redacted=True, origin=OURS, id="rs_1"),
                    Reasoning(summary=("s",), encrypted="f", origin=OURS, id="x"),
                    Reasoning(text="t"),
                    Reasoning(text="t", signature="s", origin=Origin(dialect="messages")),
                    Text(text="a"),
                ),
                HI,
            ],
            Target(),
            [
                {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"},
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "s"}], "encrypted_content": "f"},
                input_message("assistant", "a"),
                HI_ITEM,
            ],
            [
                "$.messages[0].content[2] reasoning dropped (the server accepts only its own reasoning)",
                "$.messages[0].content[3] reasoning dropped (the server accepts only its own reasoning)",
            ],
            id="pitfall-51-58-only-what-it-sealed",
        ),
        pytest.param(
            [message_of("assistant", Reasoning(encrypted="e", origin=replace(OURS, provider="acme"))), HI],
            Target(provider="other"),
            [HI_ITEM],
            [f"{C0} reasoning dropped (the server accepts only its own reasoning)"],
            id="pitfall-58-another-provider",
        ),
        pytest.param(
            [message_of("assistant", "a", Refusal(text="no")), HI],
            Target(),
            [
                input_message(
                    "assistant",
                    [
                        {"type": "output_text", "text": "a", "annotations": []},
                        {"type": "refusal", "refusal": "no"},
                    ],
                ),
                HI_ITEM,
            ],
            [],
            id="pitfall-72-refusal",
        ),
        pytest.param(
            [message_of("assistant", Text(text="abc", citations=(Citation(kind="url_citation", url="u"),))), HI],
            Target(),
            [
                input_message(
                    "assistant",
                    [
                        {
                            "type": "output_text",
                            "text": "abc",
                            "annotations": [
                                {"type": "url_citation", "url": "u", "title": "", "start_index": 0, "end_index": 3}
                            ],
                        }
                    ],
                ),
                HI_ITEM,
            ],
            ["$.messages[0].content[0].citations[0] title approximated (the dialect requires one: it is empty)"],
            id="citations",
        ),
        pytest.param(
            [
                message_of("assistant", PICTURE, Opaque(dialect="x", data={"type": "y"}, text="z")),
                message_of("user", Refusal(text="r")),
            ],
            Target(),
            [input_message("assistant", "z"), input_message("user", "r")],
            [
                f"{C0} image dropped (model output is text only in this dialect)",
                "$.messages[0].content[1] y approximated (written as text)",
                "$.messages[1].content[0] refusal approximated (written as text)",
            ],
            id="parts-out-of-place",
        ),
        pytest.param(
            [
                message_of(
                    "user",
                    PICTURE,
                    Image(source=Stored("i")),
                    Audio(source=Inline(data="UA=="), format="wav"),
                    Audio(id="a", transcript="t"),
                    File(source=Inline(data="AA==", media_type="application/pdf"), name="n", context="c"),
                    File(source=Remote("https://example.com/a.pdf")),
                    File(source=Plain("p"), name="n"),
                    File(source=Stored("f")),
                    Text(text="x", cache=CacheMark()),
                )
            ],
            Target(),
            [
                input_message(
                    "user",
                    [
                        {**PICTURE_PART, "detail": "auto"},
                        {"type": "input_audio", "input_audio": {"data": "UA==", "format": "wav"}},
                        {"type": "input_text", "text": "t"},
                        {"type": "input_file", "file_data": "data:application/pdf;base64,AA==", "filename": "n"},
                        {"type": "input_file", "file_url": "https://example.com/a.pdf"},
                        {"type": "input_text", "text": "n\np"},
                        {"type": "input_text", "text": "x"},
                    ],
                )
            ],
            [
                "$.messages[0].content[1] image dropped (only a URL or inline data can be written)",
                "$.messages[0].content[3] audio approximated (written as its transcript)",
                "$.messages[0].content[4] context dropped (a file has no such field)",
                "$.messages[0].content[6] file approximated (written as its text)",
                "$.messages[0].content[6] name emulated (stands in the line before its text)",
                "$.messages[0].content[7] file dropped (the id of a file means something to its own provider only)",
                "$.messages[0].content[8] cache dropped (the server decides what it caches)",
            ],
            id="pitfall-33-media",
        ),
        pytest.param(
            [message_of("user", Text(text="x", cache=CacheMark(ttl="5m")), Text(text="y", cache=CacheMark(ttl="30m")))],
            Target(cache_marks=True),
            [
                input_message(
                    "user",
                    [
                        {"type": "input_text", "text": "x", "prompt_cache_breakpoint": {"mode": "explicit"}},
                        {
                            "type": "input_text",
                            "text": "y",
                            "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "30m"},
                        },
                    ],
                )
            ],
            [f"{C0} cache.ttl approximated (the server's default lifetime)"],
            id="pitfall-31-cache-marks",
        ),
        pytest.param(
            [HI, message_of("assistant", "a")],
            Target(),
            [HI_ITEM, input_message("assistant", "a")],
            ["$.messages[1] prefill approximated (the server may answer the last turn, not continue it)"],
            id="pitfall-32-prefill",
        ),
    ],
)
def test_input(messages: list[Message], target: Target, wire: JSON, losses: list[str]) -> None:
    body, lost = encoded(Request(model="m", messages=tuple(messages)), target)
    assert body["input"] == wire
    assert lost == losses


@pytest.mark.parametrize(
    ("messages", "instructions"),
    [
        ([message_of("system", "s"), HI], "s"),
        ([message_of("system", "s"), message_of("system", "t"), HI], None),
        ([message_of("system", "s", "t"), HI], None),
        ([message_of("system", Text(text="s", cache=CacheMark())), HI], None),
        ([message_of("developer", "s"), HI], None),
        ([HI, message_of("system", "s")], None),
    ],
)
def test_instructions_are_one_plain_system_turn_in_front(messages: list[Message], instructions: str | None) -> None:
    body, _ = encoded(Request(model="m", messages=tuple(messages)))
    assert body.get("instructions") == instructions
    assert len(body["input"]) == len(messages) - (instructions is not None)


PLAIN = Request(model="m", messages=(HI,))
BARE: JSONObject = {"model": "m", "input": [HI_ITEM], "store": False}


@pytest.mark.parametrize(
    ("fields", "target", "wire", "losses"),
    [
        pytest.param({"store": True}, Target(), {"store": True}, [], id="pitfall-61-stored-only-if-said"),
        pytest.param(
            {"sampling": Sampling(temperature=0.5, top_p=0.9, max_tokens=100, n=1)},
            Target(),
            {"temperature": 0.5, "top_p": 0.9, "max_output_tokens": 100},
            [],
            id="sampling",
        ),
        pytest.param(
            {"sampling": Sampling(max_tokens=1)},
            Target(),
            {"max_output_tokens": 16},
            ["$.sampling max_tokens approximated (raised to 16, the least of the dialect)"],
            id="pitfall-67-least-tokens",
        ),
        pytest.param(
            {"sampling": Sampling(max_tokens=100)},
            Target(max_tokens_limit=50),
            {"max_output_tokens": 50},
            ["$.sampling max_tokens approximated (lowered to 50, the most of the server)"],
            id="most-tokens",
        ),
        pytest.param(
            {
                "sampling": Sampling(
                    top_k=5, seed=1, stop=("x",), logit_bias={"1": 2.0}, frequency_penalty=0, presence_penalty=0.5
                )
            },
            Target(),
            {},
            [
                f"$.sampling {name} dropped (the dialect has no such field)"
                for name in ("top_k", "seed", "presence_penalty", "logit_bias", "stop")
            ],
            id="pitfall-48-foreign-sampling",
        ),
        pytest.param(
            {"sampling": Sampling(top_k=5, frequency_penalty=0.5, seed=1)},
            Target(extended_sampling=True),
            {"top_k": 5, "frequency_penalty": 0.5, "seed": 1},
            [],
            id="pitfall-21-extended-sampling",
        ),
        pytest.param(
            {"sampling": Sampling(logprobs=True, top_logprobs=2)},
            Target(),
            {"top_logprobs": 2, "include": ["message.output_text.logprobs"]},
            [],
            id="pitfall-119-probabilities",
        ),
        pytest.param(
            {"thinking": Thinking(effort="high", mode="adaptive", display="summarized")},
            Target(),
            {"reasoning": {"effort": "high", "summary": "auto"}, "include": ["reasoning.encrypted_content"]},
            [
                "$.thinking mode dropped (the effort stands for it)",
                "$.thinking display emulated (written as the summary `auto`)",
            ],
            id="pitfall-61-thoughts-come-sealed",
        ),
        pytest.param(
            {"thinking": Thinking(mode="enabled", budget_tokens=9000)},
            Target(efforts=("low", "high")),
            {"reasoning": {"effort": "low"}, "include": ["reasoning.encrypted_content"]},
            [
                "$.thinking budget_tokens approximated (written as the effort `medium`)",
                "$.thinking effort approximated (`medium` is written as `low`)",
            ],
            id="pitfall-25-27-a-budget-is-a-word",
        ),
        pytest.param(
            {"thinking": Thinking(mode="disabled")},
            Target(),
            {"reasoning": {"effort": "none"}},
            [],
            id="pitfall-26-no-thinking",
        ),
        pytest.param(
            {"thinking": Thinking(effort="high")},
            Target(thinking="none"),
            {},
            ["$ thinking dropped (the server takes no settings for thinking)"],
            id="thinking-not-told",
        ),
        pytest.param(
            {"output": OutputFormat(kind="json_schema", schema={"type": "object"}), "verbosity": "low"},
            Target(),
            {
                "text": {
                    "format": {
                        "type": "json_schema",
                        "name": "response",
                        "schema": {"type": "object"},
                        "strict": False,
                    },
                    "verbosity": "low",
                }
            },
            ["$.output schema approximated (servers hold strictly to closed schemas alone)"],
            id="pitfall-66-schema",
        ),
        pytest.param(
            {"output": OutputFormat(kind="json")},
            Target(),
            {"text": {"format": {"type": "json_object"}}},
            [],
            id="pitfall-66-json",
        ),
        pytest.param(
            {"user": "u" * 65, "previous": "resp_1", "cache_key": "k", "metadata": {"a": "b"}, "service_tier": "flex"},
            Target(),
            {
                "safety_identifier": "f20e249d15fa4b9f44ba21d154f62e1efa76ddfdce5d25139a33a4787cee5a8b",
                "previous_response_id": "resp_1",
                "prompt_cache_key": "k",
                "metadata": {"a": "b"},
                "service_tier": "flex",
            },
            ["$ user approximated (longer than 64 characters: its SHA-256 is written)"],
            id="pitfall-23-24-the-user",
        ),
        pytest.param(
            {"cache": CacheMark(), "stream": True, "stream_usage": True},
            Target(),
            {"stream": True},
            ["$ cache dropped (the server decides what it caches)"],
            id="pitfall-101-usage-always-comes",
        ),
        pytest.param(
            {"tools": (TOOL,), "tool_choice": ToolChoice(mode="required", names=("f",)), "parallel_tool_calls": False},
            Target(),
            {
                "tools": [TOOL_ITEM],
                "tool_choice": {"type": "function", "name": "f"},
                "parallel_tool_calls": False,
            },
            [],
            id="pitfall-14-65-tools",
        ),
        pytest.param(
            {"tools": (replace(TOOL, strict=None, parameters=None), replace(TOOL, name="g"))},
            Target(strict_tools=False),
            {
                "tools": [
                    {**TOOL_ITEM, "parameters": {"type": "object", "properties": {}}, "strict": False},
                    {**TOOL_ITEM, "name": "g", "strict": False},
                ]
            },
            ["$.tools[1] strict dropped (the server does not hold to schemas)"],
            id="pitfall-65-elsewhere-nobody-is-strict",
        ),
        pytest.param(
            {
                "tools": (
                    Tool(name="a b", kind="custom", format={"type": "grammar", "grammar": {"syntax": "lark"}}),
                    replace(TOOL, cache=CacheMark()),
                    Opaque(dialect="messages", data={"type": "bash"}),
                ),
                "tool_choice": ToolChoice(mode="auto", names=("a b", "f")),
            },
            Target(),
            {
                "tools": [
                    {"type": "custom", "name": "a_b_c8687a08", "format": {"type": "grammar", "syntax": "lark"}},
                    TOOL_ITEM,
                ],
                "tool_choice": {
                    "type": "allowed_tools",
                    "mode": "auto",
                    "tools": [{"type": "custom", "name": "a_b_c8687a08"}, {"type": "function", "name": "f"}],
                },
            },
            [
                "$.tools[0] name emulated (fitted to what the server takes)",
                "$.tools[1] cache dropped (a tool takes no cache mark)",
                "$.tools[2] bash dropped (a tool that only a server of messages runs)",
                "$.tool_choice name emulated (fitted to what the server takes)",
            ],
            id="pitfall-43-62-64-odd-tools",
        ),
        pytest.param(
            {"tool_choice": ToolChoice(mode="auto"), "parallel_tool_calls": True},
            Target(),
            {},
            ["$ tool_choice dropped (there are no tools)", "$ parallel_tool_calls dropped (there are no tools)"],
            id="pitfall-16-choice-of-nothing",
        ),
        pytest.param(
            {"tools": (replace(TOOL, namespace="n"), replace(TOOL, name="g", namespace="n"), replace(TOOL, name="h"))},
            Target(),
            {
                "tools": [
                    {
                        "type": "namespace",
                        "name": "n",
                        "description": "",
                        "tools": [TOOL_ITEM, {**TOOL_ITEM, "name": "g"}],
                    },
                    {**TOOL_ITEM, "name": "h"},
                ]
            },
            [],
            id="pitfall-63-namespaces",
        ),
        pytest.param(
            {"extra": Extra(dialect="chat", fields={"x": 1})},
            Target(),
            {},
            ["$ x dropped (only chat has it)"],
            id="fields-of-others",
        ),
    ],
)
def test_fields(fields: JSONObject, target: Target, wire: JSONObject, losses: list[str]) -> None:
    body, lost = encoded(replace(PLAIN, **fields), target)
    assert body == BARE | wire
    assert lost == losses


def test_a_prompt_is_what_the_user_says() -> None:
    body, lost = encoded(Request(model="m", prompt=Prompt(texts=("Hi",))))
    assert body == BARE
    assert lost == ["$.prompt prompt emulated (written as a turn of the user)"]


def test_several_answers_are_refused() -> None:
    """pitfall-46: one would not be the same request."""
    with pytest.raises(WireError, match="one answer per request"):
        encoded(replace(PLAIN, sampling=Sampling(n=2)))


def test_a_seal_in_the_history_asks_for_more() -> None:
    """pitfall-61: or the next thought would not come back."""
    history = (HI, message_of("assistant", Reasoning(encrypted="e", origin=OURS), "a"), HI)
    body, _ = encoded(Request(model="m", messages=history))
    assert body["include"] == ["reasoning.encrypted_content"]


@pytest.mark.parametrize(
    ("wire", "target", "changed"),
    [
        ({"max_output_tokens": 100}, Target(max_tokens_limit=50), {"max_output_tokens": 50}),
        ({"reasoning": {"effort": "xhigh"}}, Target(efforts=("low", "high")), {"reasoning": {"effort": "high"}}),
        ({"tools": [TOOL_ITEM]}, Target(strict_tools=False), {"tools": [{**TOOL_ITEM, "strict": False}]}),
        (
            {"tools": [{**TOOL_ITEM, "name": "abcdefghijkl"}]},
            Target(tool_name_limit=11),
            {"tools": [{**TOOL_ITEM, "name": "ab_d682ed4c"}]},
        ),
    ],
)
def test_a_request_of_this_dialect_is_changed_only_as_the_server_demands(
    wire: JSONObject, target: Target, changed: JSONObject
) -> None:
    body = {"model": "m", "input": "Hi", **wire}
    sent, lost = encoded(RESPONSES.decode_request(body), target)
    assert sent == body | changed
    assert lost != []


def test_a_thought_of_another_maker_stays_behind_where_the_server_is_known() -> None:
    """pitfall-58: what nobody sealed goes on; what another sealed does not."""
    thoughts = [
        {"type": "reasoning", "summary": [], "encrypted_content": "xenoglot:sealed:WyJtIixudWxsLCJzIixudWxsXQ=="},
        {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "t"}]},
    ]
    request = RESPONSES.decode_request({"model": "m", "input": thoughts})
    assert encoded(request, Target(provider="acme"))[0]["input"] == thoughts[1:]
    assert encoded(request)[0]["input"] == thoughts


def test_a_text_without_words_is_left_out_and_what_stands_beside_it_is_told() -> None:
    """No server takes an `output_text` without a word; a mark on it marks nothing."""
    silent = message_of("assistant", Text(text="", cache=CacheMark()))
    body, losses = encoded(Request(model="m", messages=(HI, silent, HI)))
    assert body["input"] == [input_message("user", "Hi"), input_message("user", "Hi")]
    assert losses == ["$.messages[1].content[0] cache dropped (model output takes no cache mark)"]
