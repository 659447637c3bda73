"""The blocking client: the same calls, from wherever, and nothing left behind."""

import asyncio
import gc
import inspect
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.architecture.tree import ROOT
from tests.client.server_scripts import HELLO, HELLO_STREAMED, ONCE, chunk, streamed
from xenoglot.backends.scripted import Scripted
from xenoglot.client.async_ import AsyncClient
from xenoglot.client.call.answer_stream import AsyncItems, AsyncReplyStream
from xenoglot.client.loop_thread import LoopThread
from xenoglot.client.sync import Client
from xenoglot.client.sync_streams import Items, ReplyStream
from xenoglot.errors import IncompleteError, InvalidRequestError
from xenoglot.model.content import Text
from xenoglot.model.events import Started
from xenoglot.model.response import Candidate, Finish, Response
from xenoglot.testing import SILENT, ScriptRule, Steps, Upstream

SAID = Response(id="r1", candidates=(Candidate(content=(Text(text="Hello."),), finish=Finish(reason="stop")),))


@contextmanager
def scripted_client(*rules: ScriptRule | Steps, **settings: Any) -> Generator[tuple[Client, Upstream]]:  # noqa: ANN401  those of a client
    """A client and the scripted server that it asks."""
    with Upstream(*rules) as server:
        told: dict[str, Any] = {"model": "m", "proxy": None, "retry": ONCE} | settings
        with Client(server.url, **told) as client:
            yield client, server


def public(kind: type) -> dict[str, list[tuple[str, object, object]]]:
    """The names of a class, with the names, kinds and defaults of their parameters."""
    named = {name: getattr(kind, name) for name in dir(kind) if not name.startswith("_")}
    return {
        name.removeprefix("a") if name == "aclose" else name: [
            (one.name, one.kind, one.default) for one in inspect.signature(value).parameters.values()
        ]
        for name, value in named.items()
        if callable(value)
    }


@pytest.mark.parametrize(
    ("blocking", "asynchronous"),
    [
        pytest.param(Client, AsyncClient, id="client"),
        pytest.param(ReplyStream, AsyncReplyStream, id="stream-of-a-reply"),
        pytest.param(Items, AsyncItems, id="raw-stream"),
    ],
)
def test_both_clients_have_the_same_calls(blocking: type, asynchronous: type) -> None:
    assert public(blocking) == public(asynchronous)


def test_both_clients_are_made_alike() -> None:
    assert inspect.signature(Client).parameters == inspect.signature(AsyncClient).parameters


def test_calls() -> None:
    with scripted_client(HELLO) as (client, _):
        assert client.complete("Hi").text == "Hello."
        assert client.raw({"messages": [{"role": "user", "content": "Hi"}]})["id"] == "chatcmpl-1"
        with pytest.raises(InvalidRequestError, match="temperature"):
            client.complete("Hi", temperature="hot")  # type: ignore[arg-type]


def test_streams() -> None:
    with scripted_client(HELLO_STREAMED) as (client, _):
        with client.stream("Hi") as stream:
            grown = [(text, len(stream.response.candidates)) for text in stream.texts()]
            assert stream.reply().text == "Hello."
        assert grown == [("Hel", 1), ("lo.", 1)]
        assert client.stream("Hi").reply().text == "Hello."
        with client.raw_stream({"messages": [{"role": "user", "content": "Hi"}]}) as events:
            assert len(list(events)) == 3


def test_a_stream_that_breaks_off_raises() -> None:
    with scripted_client(streamed(chunk({"content": "a"}), done=False)) as (client, _), pytest.raises(IncompleteError):
        client.stream("Hi").reply()


ENDLESS = streamed(chunk({"content": "a"}), done=False, then=SILENT)


def test_a_stream_left_early_closes_the_connection_at_once() -> None:
    with scripted_client(ENDLESS) as (client, server):
        with client.stream("Hi") as stream:
            for _ in stream.texts():
                break
        server.wait(server.connections[0].lost.is_set)
        assert list(stream) == []


def test_a_stream_may_be_stopped_by_another_thread() -> None:
    with scripted_client(ENDLESS) as (client, server):
        stream = client.stream("Hi")
        first = next(stream)
        stopper = threading.Thread(target=stream.close)
        stopper.start()
        rest = list(stream)
        stopper.join()
        assert isinstance(first, Started)
        assert len(rest) < 4
        server.wait(server.connections[0].lost.is_set)


def test_a_stream_left_lying_about_closes_the_connection() -> None:
    with scripted_client(ENDLESS) as (client, server):
        stream = client.stream("Hi")
        next(stream)
        del stream
        gc.collect()
        server.wait(server.connections[0].lost.is_set)


def test_several_threads_may_call() -> None:
    found: list[str] = []
    with scripted_client(HELLO) as (client, _):
        threads = [threading.Thread(target=lambda: found.append(client.complete("Hi").text)) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == ["Hello."] * 5


async def test_it_may_be_called_where_a_loop_runs() -> None:
    with Client(Scripted(SAID)) as client:
        assert client.complete("Hi").text == "Hello."


def test_nothing_runs_before_the_first_call_and_after_the_end() -> None:
    before = threading.active_count()
    client = Client(Scripted(SAID))
    assert threading.active_count() == before
    client.complete("Hi")
    assert threading.active_count() == before + 1
    client.close()
    client.close()
    assert threading.active_count() == before
    with pytest.raises(RuntimeError, match="closed"):
        client.complete("Hi")


def test_a_client_left_lying_about_ends() -> None:
    client = Client(Scripted(SAID))
    client.complete("Hi")
    thread = client._portal._thread
    assert thread is not None
    del client
    gc.collect()
    thread.join(120)
    assert not thread.is_alive()


def test_what_waits_when_it_is_closed_is_told() -> None:
    with scripted_client(SILENT) as (client, server):
        told: list[str] = []

        def wait() -> None:
            try:
                client.complete("Hi")
            except RuntimeError as error:
                told.append(str(error))

        thread = threading.Thread(target=wait)
        thread.start()
        server.wait(lambda: len(server.requests) == 1)
        client.close()
        thread.join(120)
        assert told == ["the client was closed"]


def test_an_interrupted_call_closes_the_connection() -> None:
    with scripted_client(SILENT) as (client, server):
        main = threading.get_ident()

        def interrupted() -> None:
            server.wait(lambda: len(server.requests) == 1)
            signal.pthread_kill(main, signal.SIGINT)

        thread = threading.Thread(target=interrupted)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            client.complete("Hi")
        thread.join()
        server.wait(server.connections[0].lost.is_set)


@pytest.mark.parametrize("begun", [True, False])
def test_an_interrupt_before_the_call_waits_cancels_it(begun: bool) -> None:  # noqa: FBT001  a case
    told = []

    async def works() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            told.append("cancelled")

    async def nothing() -> None:
        pass

    portal = LoopThread(nothing)
    portal.call(nothing)
    loop = portal._loop
    assert loop is not None
    schedule = loop.call_soon_threadsafe

    def interrupted(callback: Any, *arguments: Any) -> None:  # noqa: ANN401  the loop's own
        loop.call_soon_threadsafe = schedule  # type: ignore[method-assign]
        if begun:
            schedule(callback, *arguments)
        raise KeyboardInterrupt

    loop.call_soon_threadsafe = interrupted  # type: ignore[method-assign, assignment]
    with pytest.raises(KeyboardInterrupt):
        portal.call(works)
    assert (portal._tasks, told) in ((set(), []), (set(), ["cancelled"]))
    portal.close()


def test_it_may_not_be_called_from_its_own_loop() -> None:
    client: Client

    class Nested(Scripted):
        async def answer(self, call: Any) -> Any:  # noqa: ANN401  what a backend gets and gives
            client.complete("again")
            return await super().answer(call)

    with Client(Nested(SAID)) as client, pytest.raises(RuntimeError, match="AsyncClient"):
        client.complete("Hi")


FORKED = """
    import os, sys, warnings
    from xenoglot import Client
    warnings.simplefilter("error")
    client = Client(sys.argv[1], model="m", proxy=None)
    print(client.complete("Hi").text, flush=True)
    child = os.fork()
    if child == 0:
        print(client.complete("Hi").text, flush=True)
        client.close()
        sys.exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), client.complete("Hi").text, flush=True)
"""
FORKED_IN_A_STREAM = """
    import os, sys, warnings
    from xenoglot import Client
    warnings.simplefilter("error")
    client = Client(sys.argv[1], model="m", proxy=None)
    stream = client.stream("Hi")
    begun = next(stream)
    other = client.stream("Hi")
    child = os.fork()
    if child == 0:
        for left in (lambda: list(stream), lambda: list(other), stream.reply, other.__enter__):
            try:
                left()
            except RuntimeError as error:
                print(error, flush=True)
        stream.close()
        del stream, other
        print(client.stream("Hi").reply().text, flush=True)
        sys.exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), stream.reply().text, other.reply().text, flush=True)
"""
LEFT = """
    import sys
    from xenoglot import Client
    stream = Client(sys.argv[1], model="m", proxy=None).stream("Hi")
    print(next(stream) is not None, flush=True)
"""


UNTIMED = """
import logging
logging.getLogger("asyncio").addFilter(lambda record: " took " not in record.getMessage())
"""
"""In development mode asyncio reports each callback that takes a tenth of a second, as any does on a busy machine."""


def run_program(script: str, url: str) -> subprocess.CompletedProcess[str]:
    """A program run to its end, every warning shown but those about its time."""
    command = [sys.executable, "-X", "dev", "-c", UNTIMED + textwrap.dedent(script), url]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)


def test_a_forked_process_connects_anew() -> None:
    with Upstream(HELLO) as server:
        done = run_program(FORKED, server.url)
        assert (done.returncode, done.stdout, done.stderr) == (0, "Hello.\nHello.\n0 Hello.\n", "")
        assert len(server.connections) == 2


def test_a_stream_belongs_to_the_process_that_began_it() -> None:
    with Upstream(HELLO_STREAMED) as server:
        done = run_program(FORKED_IN_A_STREAM, server.url)
        told = "this stream belongs to another process\n" * 4
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == f"{told}Hello.\n0 Hello. Hello.\n"


def test_a_program_that_ends_in_the_middle_leaves_nothing() -> None:
    with Upstream(ENDLESS) as server:
        done = run_program(LEFT, server.url)
        assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
        server.wait(server.connections[0].lost.is_set)
