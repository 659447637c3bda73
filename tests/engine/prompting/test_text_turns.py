"""A conversation in words that a model without tools understands."""

import pytest

from tests.engine.shared_engine import call_of, message_of
from xenoglot.codec.loss import Loss, Losses
from xenoglot.engine.prompting.text_turns import DEFAULT_SYSTEM, TemplateTurn, ends_in_results, turns
from xenoglot.errors import FailureError
from xenoglot.model.content import (
    Audio,
    Extra,
    File,
    Image,
    Nested,
    Opaque,
    Part,
    Plain,
    Reasoning,
    Refusal,
    Remote,
    Text,
    ToolCall,
    ToolResult,
)
from xenoglot.model.request import Message

SYSTEM = TemplateTurn("system", DEFAULT_SYSTEM)
PICTURE = Image(source=Remote(url="https://example.org/a.png"))


def call(identifier: str, arguments: str = '{"city": "Paris"}') -> ToolCall:
    return ToolCall(id=identifier, name="weather", arguments=arguments)


def result(identifier: str, text: str, *, is_error: bool | None = None) -> ToolResult:
    return ToolResult(call_id=identifier, content=(Text(text=text),), is_error=is_error)


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        pytest.param([message_of("user", "Hi")], [SYSTEM, TemplateTurn("user", "Hi")], id="system-supplied"),
        pytest.param(
            [message_of("system", "Be brief."), message_of("developer", "Be kind."), message_of("user", "Hi", "there")],
            [TemplateTurn("system", "Be brief.\n\nBe kind."), TemplateTurn("user", "Hi\nthere")],
            id="neighbours-joined",
        ),
        pytest.param(
            [
                message_of("user", "Hi"),
                message_of("assistant", "Yes?"),
                message_of("system", "Now be rude."),
                message_of("user", "Well?"),
            ],
            [
                SYSTEM,
                TemplateTurn("user", "Hi"),
                TemplateTurn("assistant", "Yes?"),
                TemplateTurn("system", "Now be rude."),
                TemplateTurn("user", "Well?"),
            ],
            id="system-in-the-middle",
        ),
        pytest.param(
            [
                message_of("user", "Weather?"),
                message_of("assistant", call("1")),
                message_of("tool", result("1", "21 C")),
            ],
            [
                SYSTEM,
                TemplateTurn(
                    "user",
                    "Weather?\nThe function weather returned: 21 C\n"
                    "Answer the question with this result in one sentence.",
                ),
            ],
            id="result",
        ),
        pytest.param(
            [
                message_of("user", "Weather?"),
                message_of("assistant", "Let me see.", call("1"), call("2", "{}")),
                message_of("user", result("1", "21 C"), result("2", "no such city", is_error=True), "In one word."),
            ],
            [
                SYSTEM,
                TemplateTurn("user", "Weather?"),
                TemplateTurn("assistant", "Let me see."),
                TemplateTurn(
                    "user",
                    'The function weather({"city": "Paris"}) returned: 21 C\n'
                    "The function weather({}) failed: no such city\nIn one word.",
                ),
            ],
            id="results-and-words",
        ),
        pytest.param(
            [
                message_of("user", "A?"),
                message_of("assistant", call("1")),
                message_of("tool", result("1", "b")),
                message_of("assistant", "B."),
                message_of("user", "C?"),
            ],
            [
                SYSTEM,
                TemplateTurn(
                    "user",
                    "A?\nThe function weather returned: b\nAnswer the question with this result in one sentence.",
                ),
                TemplateTurn("assistant", "B."),
                TemplateTurn("user", "C?"),
            ],
            id="result-long-ago",
        ),
        pytest.param(
            [
                message_of("user", "A?"),
                message_of("assistant", call("1"), ToolCall(id="2", name="sh", arguments='l"s', kind="custom")),
            ],
            [
                SYSTEM,
                TemplateTurn("user", "A?"),
                TemplateTurn(
                    "assistant",
                    '{"name": "weather", "arguments": {"city": "Paris"}}\n{"name": "sh", "arguments": "l\\"s"}',
                ),
            ],
            id="call-without-result",
        ),
        pytest.param(
            [message_of("tool", ToolResult(call_id="gone", content=(Text(text="5"),)))],
            [
                SYSTEM,
                TemplateTurn("user", "The function returned: 5\nAnswer the question with this result in one sentence."),
            ],
            id="result-without-call",
        ),
        pytest.param(
            [
                message_of("user", File(source=Plain(text="a page")), File(source=Nested(parts=(Text(text="b"),)))),
                message_of("user"),
            ],
            [SYSTEM, TemplateTurn("user", "a page\nb")],
            id="documents-that-are-text",
        ),
        pytest.param(
            [message_of("user", "A?"), message_of("assistant", Refusal(text="No."))],
            [SYSTEM, TemplateTurn("user", "A?"), TemplateTurn("assistant", "No.")],
            id="refusal-and-prefill",
        ),
    ],
)
def test_turns(messages: list[Message], expected: list[TemplateTurn]) -> None:
    losses = Losses()
    assert turns(call_of(*messages).request, "", losses) == expected
    assert list(losses) == []


def test_instructions_follow_what_the_system_says() -> None:
    request = call_of(message_of("system", "Be brief."), "Hi").request
    assert turns(request, "Call f.", Losses())[0] == TemplateTurn("system", "Be brief.\n\nCall f.")


@pytest.mark.parametrize(
    ("part", "loss"),
    [
        pytest.param(
            PICTURE, Loss(".content[1]", "image", "dropped", "the embedded model reads text only"), id="image"
        ),
        pytest.param(
            Reasoning(text="hm"),
            Loss(".content[1]", "reasoning", "dropped", "the embedded model reads text only"),
            id="reasoning",
        ),
        pytest.param(
            File(source=Remote(url="https://example.org")),
            Loss(".content[1]", "file", "dropped", "the embedded model reads text only"),
            id="file",
        ),
        pytest.param(
            Opaque(dialect="x", data={}),
            Loss(".content[1]", "part", "dropped", "the embedded model reads text only"),
            id="opaque",
        ),
        pytest.param(
            ToolResult(call_id="1", content=(PICTURE,)),
            Loss(".content[1]", "image", "dropped", "the embedded model reads text only"),
            id="image-in-result",
        ),
        pytest.param(
            Text(text="x", extra=Extra(dialect="d", fields={"odd": 1})),
            Loss(".content[1]", "odd", "dropped", "only d has it"),
            id="extra",
        ),
        pytest.param(
            Audio(id="a", transcript="words"),
            Loss(".content[1]", "audio", "approximated", "the embedded model reads its transcript"),
            id="transcript",
        ),
        pytest.param(
            Opaque(dialect="x", data={}, text="words"),
            Loss(".content[1]", "part", "approximated", "the embedded model reads it as text"),
            id="opaque-with-words",
        ),
    ],
)
def test_what_the_model_cannot_read_is_told(part: Part, loss: Loss) -> None:
    losses = Losses()
    turns(call_of(message_of("user", "Look:", part)).request, "", losses)
    assert list(losses) == [Loss(f"$.messages[0]{loss.where}", loss.what, loss.how, loss.why)]


def test_names_of_people_are_told() -> None:
    losses = Losses()
    message = Message(role="user", name="Ann", content=(Text(text="Hi"),), extra=Extra(dialect="d", fields={"odd": 1}))
    turns(call_of(message).request, "", losses)
    assert list(losses) == [
        Loss("$.messages[0]", "odd", "dropped", "only d has it"),
        Loss("$.messages[0]", "name", "dropped", "the embedded model knows roles, not names"),
    ]


@pytest.mark.parametrize(
    "messages", [[], [message_of("user")], [message_of("user", PICTURE)]], ids=["none", "empty", "picture"]
)
def test_nothing_to_read_is_refused(messages: list[Message]) -> None:
    with pytest.raises(FailureError) as raised:
        turns(call_of(*messages).request, "", Losses())
    assert raised.value.failure.param == "$.messages"
    assert raised.value.failure.kind == "invalid_request"


def test_whether_results_come_last() -> None:
    one = message_of("tool", result("1", "x"))
    assert [ends_in_results(call_of(*messages).request) for messages in ([], ["a"], ["a", one], [one, "a"])] == [
        False,
        False,
        True,
        False,
    ]
