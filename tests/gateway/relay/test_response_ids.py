"""Answers that begin before their model has said anything, for clients that see no comment (pitfall-108)."""

from __future__ import annotations

from http.client import HTTPResponse
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from tests.gateway.running_gateway import TIMEOUT, RunningGateway, config_for, read_until
from tests.gateway.scripted_backends import HELLO, BlockingBackend
from tests.gateway.test_faults import post
from xenoglot import dialect_registry as dialects
from xenoglot.backends.backend import ByteAnswer, EventAnswer, monitored
from xenoglot.backends.stream_guard import PassthroughMonitor
from xenoglot.codec.framing.formats import EVENT_STREAM
from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import Pipeline, through
from xenoglot.gateway.config.settings import ServerSettings, UpstreamSettings
from xenoglot.gateway.relay.envelope import ResponseIds
from xenoglot.model.events import Failed, Ping, Started
from xenoglot.model.failure import Failure
from xenoglot.model.fold import unfold
from xenoglot.model.request import Request

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from xenoglot.backends.backend import Answer, Call
    from xenoglot.model.events import Event
    from xenoglot.model.json import JSONObject

PATH = "/v1/responses"
ASKED: JSONObject = {"model": "m", "input": "Hi", "store": False, "stream": True}
QUICK = config_for("scripted", server=ServerSettings(ping_interval=0.01))
LIVES = b"event: response.in_progress\n"


def written() -> bytes:
    """Return an answer as a server of the dialect writes it."""
    encoder = dialects.get("responses").stream_encoder(Request(model="m"), Losses())
    return b"".join(through(unfold(HELLO), Pipeline(encoder, EVENT_STREAM.encoder())))


class Slow(BlockingBackend):
    """Is silent until it is told to go on; then it says all there is, as events or as bytes."""

    def __init__(self, *, as_bytes: bool) -> None:
        super().__init__()
        self._as_bytes = as_bytes

    async def answer(self, call: Call) -> Answer:
        """Be slow."""
        await self._hang()
        if not self._as_bytes:
            batches = self._told()
            return EventAnswer(batches=batches, aclose=batches.aclose)
        dialect = dialects.get(call.dialect)
        chunks = self._said()
        watch = PassthroughMonitor(dialect, lambda failure: failure)
        return ByteAnswer(pieces=monitored(chunks, watch), aclose=chunks.aclose, media_type=dialect.framing.media_type)

    async def _told(self) -> AsyncGenerator[Sequence[Event], None]:
        yield list(unfold(HELLO))

    async def _said(self) -> AsyncGenerator[bytes, None]:
        yield written()


def events_of(body: bytes) -> list[JSONObject]:
    """Return the events of a stream."""
    return [decode_json(event.data) for event in through([body], EVENT_STREAM.decoder()) if event.data]


@pytest.mark.parametrize("store", [False, True], ids=["not-kept", "kept"])
@pytest.mark.parametrize("as_bytes", [False, True], ids=["events", "bytes"])
def test_an_answer_that_is_long_in_coming_begins(
    gateway_server: Callable[..., RunningGateway], *, as_bytes: bool, store: bool
) -> None:
    backend = Slow(as_bytes=as_bytes)
    running = gateway_server({"scripted": backend}, QUICK)
    with running.connect() as connection:
        connection.sendall(post(PATH, ASKED | {"store": store}))
        assert backend.called.wait(TIMEOUT)
        response = HTTPResponse(connection)
        response.begin()
        heard = b""
        while LIVES not in heard:
            heard += response.read1()
        backend.resume()
        events = events_of(heard + response.read())
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    names = [event["type"].removeprefix("response.") for event in events]
    assert [name for name in names if name != "in_progress"] == [
        "created",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert events[-1]["response"]["id"] == events[0]["response"]["id"] != HELLO.id
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "Hello"


def test_an_answer_that_another_keeps_waits_for_its_name(gateway_server: Callable[..., RunningGateway]) -> None:
    backend = Slow(as_bytes=True)
    native = UpstreamSettings(dialect="responses", base_url="http://upstream.invalid/v1", state="native")
    running = gateway_server({"scripted": backend}, replace(QUICK, upstreams={"scripted": native}))
    with running.connect() as connection:
        connection.sendall(post(PATH, ASKED | {"store": True}))
        assert backend.called.wait(TIMEOUT)
        assert b"response.created" not in read_until(connection, b": ping\n\n")


def test_a_beginning_is_told_once() -> None:
    losses = Losses()
    identify = ResponseIds("ours", "m", "req_1", kept=False, early=losses)
    begun, live = identify.feed(Ping())
    assert isinstance(begun, Started)
    assert (begun.id, begun.model, live) == ("ours", "m", Ping())
    assert [*identify.feed(Started(id="theirs")), *identify.feed(Ping())] == [Ping()]
    assert [str(loss) for loss in losses] == [
        "$ id approximated (the answer was long in coming and began under our own id)"
    ]


def test_what_begins_by_itself_keeps_its_name() -> None:
    identify = ResponseIds("ours", "m", "req_1", kept=False, early=Losses())
    theirs = Started(id="theirs", model="x", created=1)
    assert [*identify.feed(theirs), *identify.feed(Ping())] == [theirs, Ping()]


def test_a_failure_gets_the_id_of_its_request() -> None:
    identify = ResponseIds("ours", "m", "req_1", kept=False, early=None)
    (failed,) = identify.feed(Failed(failure=Failure(kind="internal", message="x")))
    assert isinstance(failed, Failed)
    assert failed.failure.request_id == "req_1"
    assert identify.feed(Ping()) == (Ping(),)
