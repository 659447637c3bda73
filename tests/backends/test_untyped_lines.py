"""Streams of JSON lines whose content type does not name them: read as streams, and complete or failed like them."""

import pytest

from tests.faults.wire_responses import HELLO
from xenoglot.backends.backend import Call, EventAnswer
from xenoglot.backends.http.client import Transport
from xenoglot.backends.remote.backend import Remote
from xenoglot.codec.loss import Losses
from xenoglot.dialect_registry import get
from xenoglot.errors import FailureError
from xenoglot.model.content import Text
from xenoglot.model.events import Event, Failed, Finished, TextDelta
from xenoglot.model.fold import Folder
from xenoglot.model.request import Message, Request
from xenoglot.testing import Respond, Upstream

LINED = ("ollama", "ollama_generate")
HI = Request(model="m", messages=(Message(role="user", content=(Text(text="Hi"),)),))


async def events_of(name: str, media_type: str, body: bytes, *, stream: bool = True) -> list[Event]:
    """Return the events of one answer whose body this is; one that failed before it began is a `Failed` alone."""
    request = Request(model=HI.model, messages=HI.messages, stream=stream)
    headers = (("content-type", media_type),) if media_type else ()
    transport = Transport()
    try:
        async with Upstream((Respond(headers=headers, body=body),)) as server:
            remote = Remote("r", get(name), server.url, transport=transport)
            answer = await remote.answer(Call(request=request, losses=Losses()))
            assert isinstance(answer, EventAnswer)
            found = [event async for batch in answer.batches for event in batch]
            await answer.aclose()
            return found
    except FailureError as error:
        return [Failed(failure=error.failure)]
    finally:
        await transport.aclose()


def words(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


@pytest.mark.parametrize("media_type", ["", "application/json", "text/plain; charset=utf-8", "application/jsonl"])
@pytest.mark.parametrize("name", LINED)
async def test_findings_k_a_stream_is_read(name: str, media_type: str) -> None:
    wire = HELLO[name]
    named = await events_of(name, "application/x-ndjson", wire.stream)
    for body in (wire.stream, wire.stream.rstrip(b"\n"), wire.stream.replace(b"\n", b"\r\n\r\n")):
        assert await events_of(name, media_type, body) == named
    assert words(named) == "Hello"


@pytest.mark.parametrize("name", LINED)
async def test_a_whole_answer_stays_one(name: str) -> None:
    whole = HELLO[name].whole
    for body in (whole, whole.replace(b",", b",\n"), b"\n" + whole + b"\n"):
        events = await events_of(name, "application/json", body)
        folder = Folder()
        for event in events:
            folder.feed(event)
        assert folder.response().candidates[0].content == (Text(text="Hello"),)


@pytest.mark.parametrize("name", LINED)
async def test_u13_a_cut_stream_does_not_finish(name: str) -> None:
    """Without a `Finished` no answer is taken for complete, cut behind its first line or within another."""
    wire = HELLO[name]
    ended = len(wire.stream.rstrip(b"\n"))
    for at in range(0, ended, 7):
        events = await events_of(name, "application/json", wire.stream[:at])
        assert not any(type(event) is Finished for event in events), wire.stream[:at]


@pytest.mark.parametrize("name", LINED)
async def test_lines_are_no_answer_to_a_request_for_a_whole_one(name: str) -> None:
    (failed,) = await events_of(name, "application/json", HELLO[name].stream, stream=False)
    assert isinstance(failed, Failed)
    assert failed.failure.cause == "garbled"


async def test_an_error_among_the_lines() -> None:
    wire = HELLO["ollama"]
    events = await events_of("ollama", "application/json", b"".join(wire.first_frames) + wire.error)
    assert words(events) == "Hel"
    assert isinstance(events[-1], Failed)
