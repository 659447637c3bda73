"""A stream for callers that block: read ahead as far as is allowed, and ended wherever it is left."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Sequence
from itertools import islice
from typing import Any

import pytest

from tests.client.server_scripts import HELLO_STREAMED, ONCE, chunk, streamed
from xenoglot.backends.backend import EventAnswer
from xenoglot.backends.scripted import Scripted
from xenoglot.client.sync import Client
from xenoglot.client.thread_stream import AHEAD
from xenoglot.errors import IncompleteError
from xenoglot.model.content import Text
from xenoglot.model.events import BlockEnded, BlockStarted, Event, Finished, Started, TextDelta
from xenoglot.model.response import Finish
from xenoglot.testing import SILENT, Upstream

WORDS = 500
ENDLESS = streamed(chunk({"content": "a"}), done=False, then=SILENT)


class Counted(Scripted):
    """Says so many words, each by itself, and counts them."""

    def __init__(self, words: int = WORDS) -> None:
        super().__init__((Started(),))
        self.said = 0
        self.closed = threading.Event()
        self._turn: tuple[Event, ...] = (
            Started(),
            BlockStarted(part=Text(text="")),
            *[TextDelta(text=f"{number} ") for number in range(words)],
            BlockEnded(),
            Finished(finish=Finish(reason="stop")),
        )

    async def answer(self, call: Any) -> EventAnswer:  # noqa: ANN401  what a backend gets
        self.requests.append(call.request)
        batches = self._said()
        return EventAnswer(batches=batches, aclose=batches.aclose)

    async def _said(self) -> AsyncGenerator[Sequence[Event], None]:
        try:
            for event in self._turn:
                self.said += 1
                yield (event,)
        finally:
            self.closed.set()


def test_nothing_is_lost_and_the_order_is_kept_however_far_it_is_read_ahead() -> None:
    with Client(Counted()) as client, client.stream("Hi") as stream:
        assert list(stream.texts()) == [f"{number} " for number in range(WORDS)]
        assert stream.reply().text == "".join(f"{number} " for number in range(WORDS))


def test_an_upstream_waits_for_who_reads_slowly() -> None:
    backend = Counted()

    async def turns() -> int:
        for _ in range(WORDS):
            await asyncio.sleep(0)
        return backend.said

    with Client(backend) as client, client.stream("Hi") as stream:
        next(stream)
        for read in range(1, WORDS, 100):
            assert AHEAD // 2 < client._portal.call(turns) - read <= AHEAD + 2
            assert len(list(islice(stream, 100))) == 100
        assert len(list(stream)) == backend.said - WORDS - 1


def test_what_grows_is_what_was_read() -> None:
    with Client(Counted(5)) as client, client.stream("Hi") as stream:
        grown = [stream.response.candidates[0].content for text in stream.texts() if text]
    assert [part.text for (part,) in grown if isinstance(part, Text)] == [
        "0 ",
        "0 1 ",
        "0 1 2 ",
        "0 1 2 3 ",
        "0 1 2 3 4 ",
    ]


@pytest.mark.parametrize("words", [pytest.param(3, id="that-has-come"), pytest.param(WORDS, id="that-waits")])
def test_a_stream_that_is_left_has_no_reply_although_it_was_read_ahead(words: int) -> None:
    backend = Counted(words)
    with Client(backend) as client:
        with client.stream("Hi") as stream:
            next(stream)
        assert backend.closed.wait(120)
        assert list(stream) == []
        with pytest.raises(RuntimeError, match="left before its end"):
            stream.reply()


def test_a_stream_that_has_failed_is_over_and_has_no_reply() -> None:
    with Upstream(streamed(chunk({"content": "a"}), done=False)) as server, client_of(server) as client:
        stream = client.stream("Hi")
        with pytest.raises(IncompleteError):
            list(stream)
        assert list(stream) == []
        with pytest.raises(RuntimeError, match="left before its end"):
            stream.reply()


def test_an_interrupted_stream_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with Upstream(ENDLESS) as server, client_of(server) as client:
        stream = client.stream("Hi")
        monkeypatch.setattr(stream._pump, "receive", interrupted)
        with pytest.raises(KeyboardInterrupt):
            list(stream)
        server.wait(server.connections[0].lost.is_set)
        assert list(stream) == []


def test_a_stream_of_a_client_that_is_closed_says_so() -> None:
    with Upstream(ENDLESS) as server, client_of(server) as client:
        stream = client.stream("Hi")
        next(stream)
        closer = threading.Thread(target=client.close)
        closer.start()
        with pytest.raises(RuntimeError, match="closed"):
            list(stream)
        closer.join()
        assert list(stream) == []


@pytest.mark.parametrize("begun", [pytest.param(True, id="begun"), pytest.param(False, id="not-begun")])
def test_a_stream_is_left_in_silence_when_its_client_is_closed(begun: bool) -> None:  # noqa: FBT001  a case
    with Upstream(ENDLESS) as server, client_of(server) as client:
        stream = client.stream("Hi")
        if begun:
            next(stream)
        client.close()
        stream.close()


def test_the_error_under_way_is_not_hidden_by_a_client_that_is_closed() -> None:
    def program() -> None:
        with Client(Counted()) as client, client.stream("Hi"):
            client.close()
            raise KeyError("its own")

    with pytest.raises(KeyError, match="its own"):
        program()


def test_a_stream_read_to_its_end_leaves_its_connection_to_the_next() -> None:
    with Upstream(HELLO_STREAMED) as server, client_of(server) as client:
        for _ in range(3):
            assert "".join(client.stream("Hi").texts()) == "Hello."
        assert len(server.connections) == 1


def client_of(server: Upstream) -> Client:
    return Client(server.url, model="m", proxy=None, retry=ONCE)
