"""What chat templates and their models take: the text of each kind of part, and the arguments of calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xenoglot.codec.loss import Loss, Losses
from xenoglot.model.content import (
    Audio,
    Extra,
    File,
    Image,
    Inline,
    Nested,
    Opaque,
    Plain,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
)
from xenoglot.text.chat_template import TextReader, arguments_object, call_message

if TYPE_CHECKING:
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSONObject

WHERE = "$.messages[0].content[0]"
PICTURE = Image(source=Inline(media_type="image/png", data="AAAA"))


@pytest.mark.parametrize(
    ("part", "text", "loss"),
    [
        pytest.param(Text(text="a"), "a", None, id="text"),
        pytest.param(
            Text(text="a", extra=Extra(dialect="d", fields={"odd": 1})),
            "a",
            Loss(WHERE, "odd", "dropped", "only d has it"),
            id="unknown-field",
        ),
        pytest.param(
            Refusal(text="no", extra=Extra(dialect="mine", fields={"odd": 1})), "no", None, id="a-field-of-its-own"
        ),
        pytest.param(ToolCall(id="1", name="look", arguments="{}"), f"look at {WHERE}", None, id="call"),
        pytest.param(File(source=Plain(text="words")), "words", None, id="file-of-text"),
        pytest.param(
            File(source=Nested(parts=(Text(text="a"), PICTURE, Text(text="b")))),
            "a\nb",
            Loss(WHERE, "image", "dropped", "the model reads text only"),
            id="file-of-parts",
        ),
        pytest.param(
            Audio(id="a", transcript="words"),
            "words",
            Loss(WHERE, "audio", "approximated", "the model reads its transcript"),
            id="transcript",
        ),
        pytest.param(
            Opaque(dialect="x", data={}, text="words"),
            "words",
            Loss(WHERE, "part", "approximated", "the model reads it as text"),
            id="opaque-with-text",
        ),
        pytest.param(
            Opaque(dialect="x", data={}), "", Loss(WHERE, "part", "dropped", "the model reads text only"), id="opaque"
        ),
        pytest.param(
            Reasoning(text="hm"),
            "",
            Loss(WHERE, "reasoning", "dropped", "the model reads text only"),
            id="reasoning",
        ),
    ],
)
def test_the_text_of_a_part(part: Part, text: str, loss: Loss | None) -> None:
    losses = Losses()
    reader = TextReader("mine", "the model", losses, lambda call, where: f"{call.name} at {where}")
    assert reader.text(part, WHERE) == text
    assert list(losses) == ([] if loss is None else [loss])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", {}),
        ('{"a": [1]}', {"a": [1]}),
        ('{"a":', {"arguments": '{"a":'}),
        ("[1]", {"arguments": [1]}),
        ("null", {"arguments": None}),
    ],
)
def test_arguments_are_an_object(arguments: str, expected: JSONObject) -> None:
    assert arguments_object(arguments) == expected


def test_a_call() -> None:
    assert call_message("1", "look", {"at": "sky"}) == {
        "id": "1",
        "type": "function",
        "function": {"name": "look", "arguments": {"at": "sky"}},
    }
