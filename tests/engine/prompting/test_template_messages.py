"""A conversation as the messages of a chat template that knows tools."""

import pytest

from tests.engine.shared_engine import call_of, message_of
from xenoglot.codec.loss import Loss
from xenoglot.engine.prompting.template_messages import functions, messages
from xenoglot.engine.prompting.text_turns import DEFAULT_SYSTEM
from xenoglot.errors import FailureError
from xenoglot.model.content import Image, Reasoning, Remote, Text, ToolCall, ToolResult
from xenoglot.model.json import JSONObject
from xenoglot.model.request import Message, Tool

SYSTEM = {"role": "system", "content": DEFAULT_SYSTEM}


def call(identifier: str, arguments: str = '{"city": "Paris"}') -> ToolCall:
    return ToolCall(id=identifier, name="weather", arguments=arguments)


def result(identifier: str, text: str, *, is_error: bool | None = None) -> ToolResult:
    return ToolResult(call_id=identifier, content=(Text(text=text),), is_error=is_error)


def called(identifier: str, arguments: object) -> JSONObject:
    return {"id": identifier, "type": "function", "function": {"name": "weather", "arguments": arguments}}


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        pytest.param([message_of("user", "Hi")], [SYSTEM, {"role": "user", "content": "Hi"}], id="system-supplied"),
        pytest.param(
            [
                message_of("system", "A."),
                message_of("developer", "B."),
                message_of("user", "Hi"),
                message_of("user", "there", "!"),
            ],
            [{"role": "system", "content": "A.\n\nB."}, {"role": "user", "content": "Hi\n\nthere\n\n!"}],
            id="neighbours-joined",
        ),
        pytest.param(
            [
                message_of("user", "Weather?"),
                message_of("assistant", "Let me see.", call("a"), call("b", "{}")),
                message_of("tool", result("b", "no such city", is_error=True), result("a", "21 C")),
                message_of("user", "Well?"),
            ],
            [
                SYSTEM,
                {"role": "user", "content": "Weather?"},
                {
                    "role": "assistant",
                    "content": "Let me see.",
                    "tool_calls": [called("000000000", {"city": "Paris"}), called("000000001", {})],
                },
                {"role": "tool", "content": "[tool error] no such city", "tool_call_id": "000000001"},
                {"role": "tool", "content": "21 C", "tool_call_id": "000000000"},
                {"role": "user", "content": "Well?"},
            ],
            id="calls-and-results",
        ),
        pytest.param(
            [
                message_of("user", "A?"),
                message_of("assistant", call("a", "Paris")),
                message_of("tool", result("a", "b")),
            ],
            [
                SYSTEM,
                {"role": "user", "content": "A?"},
                {"role": "assistant", "content": "", "tool_calls": [called("000000000", {"arguments": "Paris"})]},
                {"role": "tool", "content": "b", "tool_call_id": "000000000"},
            ],
            id="arguments-that-are-no-object",
        ),
        pytest.param(
            [
                message_of("user", "A?"),
                message_of("assistant", ToolCall(id="a", name="sh", arguments='l"s', kind="custom")),
                message_of("tool", result("a", "b")),
            ],
            [
                SYSTEM,
                {"role": "user", "content": "A?"},
                {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [
                        {
                            "id": "000000000",
                            "type": "function",
                            "function": {"name": "sh", "arguments": {"input": 'l"s'}},
                        }
                    ],
                },
                {"role": "tool", "content": "b", "tool_call_id": "000000000"},
            ],
            id="custom",
        ),
        pytest.param(
            [
                message_of("user", "A?"),
                message_of("assistant", "B."),
                message_of("assistant", "C", call("a")),
                message_of("tool", result("a", "b")),
            ],
            [
                SYSTEM,
                {"role": "user", "content": "A?"},
                {
                    "role": "assistant",
                    "content": "B.\n\nC",
                    "tool_calls": [called("000000000", {"city": "Paris"})],
                },
                {"role": "tool", "content": "b", "tool_call_id": "000000000"},
            ],
            id="words-and-words-with-a-call",
        ),
    ],
)
def test_messages(turns: list[Message], expected: list[JSONObject]) -> None:
    asking = call_of(*turns)
    assert [
        message for message in messages(asking.request, "", asking.losses) if message["role"] != "skipped"
    ] == expected


def test_instructions_stand_behind_what_the_system_says() -> None:
    asking = call_of(message_of("system", "Be brief."), "Hi")
    assert messages(asking.request, "Reply in JSON.", asking.losses)[0]["content"] == "Be brief.\n\nReply in JSON."


def test_what_is_no_text_is_lost_and_told() -> None:
    picture = Image(source=Remote(url="https://example.org/a.png"))
    asking = call_of(message_of("user", "Hi", picture), message_of("assistant", Reasoning(text="Hm."), "Yes?"), "Well?")
    found = messages(asking.request, "", asking.losses)
    assert [message["content"] for message in found[1:]] == ["Hi", "Yes?", "Well?"]
    why = "the embedded model reads text only"
    assert list(asking.losses) == [
        Loss("$.messages[0].content[1]", "image", "dropped", why),
        Loss("$.messages[1].content[0]", "reasoning", "dropped", why),
    ]


def test_nothing_to_read_is_refused() -> None:
    asking = call_of(message_of("user"))
    with pytest.raises(FailureError) as raised:
        messages(asking.request, "", asking.losses)
    assert raised.value.failure.param == "$.messages"


def test_tools_are_told_as_functions() -> None:
    tools = (
        Tool(name="f", description="D", parameters={"type": "object"}),
        Tool(name="g", namespace="n", kind="custom"),
    )
    wrapped = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
    assert functions(tools) == [
        {"type": "function", "function": {"name": "f", "description": "D", "parameters": {"type": "object"}}},
        {"type": "function", "function": {"name": "n__g", "parameters": wrapped}},
    ]
