"""Texts in the content of an answer that servers write otherwise than as text parts."""

import pytest

from tests.dialects.chat.wire import chunk, read
from xenoglot.codec.loss import Losses
from xenoglot.codec.responses.answer_repair import note_finishes, with_finish
from xenoglot.dialect_registry import get
from xenoglot.model.content import Part, Text
from xenoglot.model.fold import fold
from xenoglot.model.json import JSON
from xenoglot.model.response import Response

LOSS = "$.candidates[0] content approximated (texts that the server did not write as text parts are read as text)"
ODD = [
    pytest.param(["b"], id="findings-C2-odd-strings"),
    pytest.param([{"text": "b"}], id="findings-C2-odd-untyped"),
    pytest.param([{"type": "output_text", "text": "b"}], id="findings-C2-odd-output-text"),
    pytest.param([{"type": "text", "text": "b"}], id="text"),
]


def test_each_such_text_is_one_loss_whole_and_streamed() -> None:
    """Once for each candidate, wherever the answer is read."""
    odd: list[JSON] = ["b", {"text": "c"}]
    lawful: list[JSON] = [{"type": "text", "text": "b"}]
    for content, told in ((odd, [LOSS]), (lawful, [])):
        message = {"role": "assistant", "content": content}
        body: JSON = {"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        whole, streamed = Losses(), Losses()
        with_finish(get("chat").decode_response(body), whole)
        note_finishes(read(chunk({"content": content}), chunk({}, "stop")), streamed)
        assert [str(loss) for loss in whole] == [str(loss) for loss in streamed] == told


def words(parts: tuple[Part, ...]) -> list[str]:
    return [part.text for part in parts if isinstance(part, Text)]


@pytest.mark.parametrize("content", ODD)
def test_a_whole_answer(content: list[JSON]) -> None:
    message = {"role": "assistant", "content": content}
    body: JSON = {"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    assert words(get("chat").decode_response(body).candidates[0].content) == ["b"]


@pytest.mark.parametrize("content", ODD)
def test_a_stream(content: list[JSON]) -> None:
    answer = fold(read(chunk({"content": content}), chunk({}, "stop")))
    assert isinstance(answer, Response)
    assert words(answer.candidates[0].content) == ["b"]
