"""Ctrl-C in a blocking call: wherever it arrives, the call ends, nothing is left open, and the client can be used."""

from __future__ import annotations

import asyncio
import gc
import signal
import threading
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import pytest

from tests.client.interruption import Interruption
from tests.client.server_scripts import ONCE, chunk, streamed
from xenoglot.backends.backend import EventAnswer
from xenoglot.backends.scripted import Scripted
from xenoglot.client import loop_thread, sync, sync_streams, thread_stream
from xenoglot.client.loop_thread import LoopThread
from xenoglot.client.sync import Client
from xenoglot.client.tool_loop import run_streams
from xenoglot.model.content import Text
from xenoglot.model.events import BlockEnded, BlockStarted, Event, Finished, Started, TextDelta
from xenoglot.model.response import Finish
from xenoglot.testing import SILENT, Upstream

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

FILES = frozenset({module.__file__ for module in (loop_thread, sync, sync_streams, thread_stream, run_streams)})
# A loop that was made and has no name yet can be closed by the garbage collector alone, which warns.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed", "ignore::pytest.PytestUnraisableExceptionWarning")

WORDS = ["0 ", "1 ", "2 "]


class Counted(Scripted):
    """Says a few words, each by itself, and counts the answers that are open."""

    def __init__(self) -> None:
        super().__init__((Started(),))
        self.open = 0

    async def answer(self, call: Any) -> EventAnswer:  # noqa: ANN401  what a backend gets
        self.requests.append(call.request)
        batches = self._said()
        return EventAnswer(batches=batches, aclose=batches.aclose)

    async def _said(self) -> AsyncGenerator[Sequence[Event], None]:
        self.open += 1
        try:
            yield (Started(), BlockStarted(part=Text(text="")))
            for word in WORDS:
                yield (TextDelta(text=word),)
            yield (BlockEnded(), Finished(finish=Finish(reason="stop")))
        finally:
            self.open -= 1


ENDLESS = streamed(chunk({"content": "a"}), done=False, then=SILENT)


def complete(client: Client, said: list[str]) -> None:
    said.append(client.complete("Hi").text)


def stream(client: Client, said: list[str]) -> None:
    with client.stream("Hi") as stream:
        for text in stream.texts():
            said.append(text)  # noqa: PERF402  what came before an interruption counts


def reply(client: Client, said: list[str]) -> None:
    said.append(client.stream("Hi").reply().text)


def run(client: Client, said: list[str]) -> None:
    said.append(client.run("Hi", []).text)


def interrupted(call: Callable[[], object], at: int) -> bool:
    """Interrupt a call; return whether it came to that."""
    interruption = Interruption(FILES, at)
    try:
        with interruption:
            call()
    except KeyboardInterrupt:
        assert interruption.reached
    else:
        assert not interruption.reached
    return interruption.reached


def running() -> int:
    return sum(thread.name == "xenoglot-client" and thread.is_alive() for thread in threading.enumerate())


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.parametrize("begun", [pytest.param(False, id="first-call"), pytest.param(True, id="later-call")])
@pytest.mark.parametrize("call", [complete, stream, reply, run])
def test_a_call_may_be_interrupted_anywhere(
    call: Callable[[Client, list[str]], None],
    begun: bool,  # noqa: FBT001  a case
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop_thread, "CLOSE_TIMEOUT", 3600.0)  # what waits in vain is a test that hangs
    at, came, said = 0, True, list[str]()
    while came:
        at += 1
        said = []
        backend = Counted()
        with Client(backend) as client:
            if begun:
                client.complete("Hi")
            came = interrupted(partial(call, client, said), at)
            gc.collect()
            assert client.complete("Hi").text == "".join(WORDS)
            client._portal.call(settled)
            assert (backend.open, client._portal._tasks) == (0, set())
        assert running() == 0
        assert "".join(WORDS).startswith("".join(said))
    assert "".join(said) == "".join(WORDS)
    assert at > 20


def test_a_stream_that_was_interrupted_has_no_gap() -> None:
    with Client(Counted()) as client:
        whole = list(client.stream("Hi"))
    at, came, events = 0, True, list[Event]()
    while came:
        at += 1
        with Client(Counted()) as client:
            stream = client.stream("Hi")
            events = []
            came = interrupted(partial(_take, stream, 4, events), at)
            events += stream
            assert events == whole[: len(events)]
    assert events == whole
    assert at > 20


def _take(stream: sync_streams.ReplyStream, most: int, events: list[Event]) -> None:
    for event in stream:
        events.append(event)
        if len(events) == most:
            return


@pytest.mark.parametrize("begun", [pytest.param(False, id="unused"), pytest.param(True, id="used")])
def test_the_end_of_a_client_may_be_interrupted_anywhere(begun: bool) -> None:  # noqa: FBT001  a case
    at, came = 0, True
    while came:
        at += 1
        client = Client(Counted())
        if begun:
            client.complete("Hi")
        came = interrupted(client.close, at)
        client.close()
        assert running() == 0
    assert at > 3


class Waits:
    """A call that never ends; `cancelled` is set when it is cancelled."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.cancelled = threading.Event()

    async def __call__(self) -> None:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()


async def nothing() -> None:
    """Close nothing."""


def _interrupt(waited: threading.Event) -> None:
    """Receive SIGINT: Python notes it, and the main thread handles it once it runs."""
    waited.wait()
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)


def test_a_signal_that_another_thread_receives_interrupts_a_call() -> None:
    # It arrives at the process, but does not end the wait of the main thread, as one that arrives just before the wait.
    waits, portal = Waits(), LoopThread(nothing)
    thread = threading.Thread(target=partial(_interrupt, waits.begun))
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        portal.call(waits)
    assert waits.cancelled.is_set()
    thread.join()
    portal.close()


class Watched(SimpleQueue[Any]):
    """A queue that tells when it is waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = threading.Event()

    def get(self, block: bool = True, timeout: float | None = None) -> Any:  # noqa: ANN401, FBT001, FBT002  its parent's
        self.waits.set()
        return super().get(block, timeout)


def test_a_signal_that_another_thread_receives_interrupts_a_stream() -> None:
    with Upstream(ENDLESS) as server, Client(server.url, model="m", proxy=None, retry=ONCE) as client:
        with client.stream("Hi") as stream:
            taken = [next(stream) for _ in range(3)]
            watched = stream._pump._batches = Watched()
            thread = threading.Thread(target=partial(_interrupt, watched.waits))
            thread.start()
            with pytest.raises(KeyboardInterrupt):
                next(stream)
            thread.join()
            assert list(stream) == []
        server.wait(server.connections[0].lost.is_set)
    assert len(taken) == 3
