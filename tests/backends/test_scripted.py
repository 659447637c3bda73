"""The scripted backend says what it was given, in turn."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from xenoglot.backends.backend import Answer, Call, EventAnswer
from xenoglot.backends.scripted import Scripted
from xenoglot.codec.loss import Losses
from xenoglot.dialect_registry import get
from xenoglot.errors import ConfigurationError, FailureError
from xenoglot.model.catalog import ModelInfo
from xenoglot.model.content import Text
from xenoglot.model.events import Event, Failed, Started
from xenoglot.model.failure import Failure
from xenoglot.model.fold import unfold
from xenoglot.model.request import Request
from xenoglot.model.response import Candidate, Finish, Response

if TYPE_CHECKING:
    from pathlib import Path

HELLO = Response(candidates=(Candidate(content=(Text(text="Hello"),), finish=Finish(reason="stop")),))
BROKEN = (Started(), Failed(failure=Failure(kind="upstream", message="gone")))
REFUSED = Failure(kind="rate_limit", message="later")


def call(model: str) -> Call:
    return Call(request=Request(model=model), losses=Losses())


async def events(answer: Answer) -> list[Event]:
    assert isinstance(answer, EventAnswer)
    async with aclosing(answer):
        return [event async for batch in answer.batches for event in batch]


async def test_turns_come_in_order_and_again() -> None:
    backend = Scripted(HELLO, REFUSED, BROKEN)
    assert await events(await backend.answer(call("a"))) == list(unfold(HELLO))
    with pytest.raises(FailureError) as refusal:
        await backend.answer(call("b"))
    assert refusal.value.failure == REFUSED
    assert await events(await backend.answer(call("c"))) == list(BROKEN)
    assert await events(await backend.answer(call("d"))) == list(unfold(HELLO))
    assert [request.model for request in backend.requests] == ["a", "b", "c", "d"]


async def test_it_knows_itself_and_no_counts() -> None:
    backend = Scripted(HELLO, name="demo")
    assert await backend.models() == (ModelInfo(id="demo", owned_by="xenoglot"),)
    assert await backend.count(call("a")) is None
    await backend.aclose()


def test_nothing_to_say_is_a_mistake() -> None:
    with pytest.raises(ConfigurationError, match="needs at least one turn"):
        Scripted()


MESSAGE = (
    '{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hello"}],'
    '"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}'
)
STREAM = """event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],\
"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":1}}

event: message_stop
data: {"type":"message_stop"}

"""


@pytest.mark.parametrize(("name", "text"), [("answer.json", MESSAGE), ("answer.sse", STREAM)])
async def test_from_file(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    said = await events(await Scripted.from_file(path, get("messages")).answer(call("a")))
    parts = [event.text for event in said if hasattr(event, "text")]
    assert (parts, [event.finish.raw for event in said if hasattr(event, "finish")]) == (["Hello"], ["end_turn"])


@pytest.mark.parametrize("text", [None, "", "{", '{"choices": 1}'])
def test_a_file_that_is_no_answer_is_refused(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "answer.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"answer\.json` is no chat answer: "):
        Scripted.from_file(path, get("chat"))
