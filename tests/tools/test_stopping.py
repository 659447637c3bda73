"""Every way to stop a run, and what tools raise that would stop one: what is left is whole."""

from __future__ import annotations

import asyncio
import itertools
import signal
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.tools.scripted_runs import answer, call, results, run_blocking, steps, unpaired
from xenoglot.backends.backend import EventAnswer
from xenoglot.backends.scripted import Scripted
from xenoglot.client.async_ import AsyncClient
from xenoglot.client.sync import Client
from xenoglot.client.tool_loop import run_streams
from xenoglot.model.content import Text
from xenoglot.model.events import BlockStarted, Started, TextDelta
from xenoglot.model.request import Tool
from xenoglot.testing import Interrupted, interrupt
from xenoglot.tools.events import CallEnded, ModelEvent, RunEnded
from xenoglot.tools.tool import SchemaTool, ToolContext, tool

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Sequence

    from xenoglot.backends.backend import Answer, Call
    from xenoglot.model.events import Event


class Stuck(Scripted):
    """A model that says its turns, and then half a sentence, and no more."""

    def __init__(self, *turns: Any) -> None:  # noqa: ANN401  see `Scripted`
        super().__init__(*(turns or (answer("never"),)))
        self._left = len(turns)
        self.closed = False

    async def answer(self, call: Call) -> Answer:
        if self._left:
            self._left -= 1
            return await super().answer(call)
        batches = self._half()
        return EventAnswer(batches=batches, aclose=batches.aclose)

    async def _half(self) -> AsyncGenerator[Sequence[Event], None]:
        try:
            yield (Started(), BlockStarted(part=Text(text="")), TextDelta("Once upon"))
            await asyncio.Event().wait()
        finally:
            self.closed = True


@tool(needs_approval=True)
def risky() -> str:
    """Do it."""
    return "done"


async def test_k20_cancelled_while_a_tool_runs() -> None:
    begun = asyncio.Event()

    @tool
    async def hang() -> None:
        begun.set()
        await asyncio.Event().wait()

    @tool
    async def quick() -> str:
        return "quick"

    async with AsyncClient(Scripted(answer(call("quick"), call("hang")), answer("."))) as client:
        events = []
        async with client.run_stream("Go.", [hang, quick]) as stream:
            async for event in stream:
                events.append(event)
                if isinstance(event, CallEnded) and event.call.name == "quick":
                    await begun.wait()
                    stream.cancel()
    assert stream.result is not None
    assert stream.result.outcome == "cancelled"
    assert results(stream.result.messages) == [
        ("call_quick", "quick"),
        ("call_hang", "cancelled: the run was stopped before there was a result"),
    ]
    assert steps(events)[-3:] == ["CallEnded", "MessagesAdded", "RunEnded"]


async def test_cancelled_while_the_model_speaks() -> None:
    model = Stuck()
    async with AsyncClient(model) as client, client.run_stream("Go.", []) as stream:
        async for event in stream:
            if isinstance(event, ModelEvent) and isinstance(event.event, TextDelta):
                stream.cancel()
    assert stream.result is not None
    assert (stream.result.outcome, stream.result.messages[-1].content) == ("cancelled", (Text(text="Once upon"),))
    assert model.closed


async def test_left_early() -> None:
    model = Stuck()
    async with AsyncClient(model) as client:
        async with client.run_stream("Go.", []) as stream:
            async for event in stream:
                if isinstance(event, ModelEvent):
                    break
        assert stream.result is not None
        assert (stream.result.outcome, model.closed) == ("cancelled", True)


async def test_a_task_that_is_cancelled_ends_as_one_and_tells_the_result() -> None:
    begun = asyncio.Event()
    events: list[Any] = []

    @tool
    async def hang() -> None:
        begun.set()
        await asyncio.Event().wait()

    async with AsyncClient(Scripted(answer(call("hang")))) as client:
        task = asyncio.create_task(client.run("Go.", [hang], on_event=events.append))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert isinstance(events[-1], RunEnded)
    assert (events[-1].result.outcome, unpaired(events[-1].result.messages)) == ("cancelled", [])


def _raise(error: BaseException) -> Any:  # noqa: ANN401  never
    raise error


async def _raise_later(error: BaseException) -> None:
    raise error


WILD: dict[str, SchemaTool] = {
    "interrupt": SchemaTool(Tool(name="t"), lambda *_: _raise(KeyboardInterrupt())),
    "interrupt-in-the-check": SchemaTool(Tool(name="t"), lambda *_: "ran", check=lambda _: _raise(KeyboardInterrupt())),
    "interrupt-before-it-waits": SchemaTool(Tool(name="t"), lambda *_: _raise(KeyboardInterrupt()), asynchronous=True),
    "interrupt-while-it-waits": SchemaTool(
        Tool(name="t"), lambda *_: _raise_later(KeyboardInterrupt()), asynchronous=True
    ),
    "exit-of-a-generator": SchemaTool(Tool(name="t"), lambda *_: _raise_later(GeneratorExit()), asynchronous=True),
    "cancelled": SchemaTool(Tool(name="t"), lambda *_: _raise_later(asyncio.CancelledError()), asynchronous=True),
    "out-of-memory": SchemaTool(Tool(name="t"), lambda *_: _raise(MemoryError())),
}


@pytest.mark.parametrize("kind", WILD)
def test_c_w16_nothing_that_a_tool_raises_in_another_thread_stops_the_run(kind: str) -> None:
    """No signal comes there: an interrupt is one of the tool's own."""
    turns = [answer(call("t", id="a"), call("t", id="b")), answer("on")]
    result, _ = run_blocking(turns, [WILD[kind]])
    assert (result.outcome, result.text) == ("answered", "on")
    told = [words for _, words in results(result.messages)]
    assert told[0] == told[1] != ""


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("whose", ["caller", "driver"])
async def test_k20_a_run_may_be_interrupted_at_every_wait(
    whose: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A caller that is cancelled ends as such; a driver that is, nobody else, ends the run with a result."""
    open_tools: list[str] = []
    driven = run_streams._driven
    at = 0
    within: list[Interrupted[None]] = []

    async def interrupted(*given: Any) -> None:  # noqa: ANN401  those of the driver
        within.append(Interrupted(driven(*given), at, times=times))
        await within[-1]

    if whose == "driver":
        monkeypatch.setattr(run_streams, "_driven", interrupted)

    @tool
    async def wait() -> str:
        open_tools.append("begun")
        try:
            await asyncio.sleep(0)
        finally:
            open_tools.pop()
        return "ok"

    @tool
    def block(context: ToolContext) -> str:
        context.progress("half")
        return "ok"

    turns = [answer("So", call("wait"), call("block")), answer(call("risky")), answer(".")]
    ended: list[Any] = []
    for at in itertools.count(1):
        events: list[Any] = []
        async with AsyncClient(Scripted(*turns)) as client:
            run = client.run("Go.", [wait, block, risky], approve=lambda _: True, on_event=events.append)
            if whose == "caller":
                reached = await interrupt(run, at, times=times)
            else:
                await run
                reached = within[-1].waits >= at
        assert open_tools == []
        ended = [event.result for event in events if isinstance(event, RunEnded)]
        assert [result.outcome for result in ended if reached] in ([], ["cancelled"], ["answered"])
        assert [unpaired(result.messages) for result in ended] == [[]] * len(ended)
        if not reached:
            break
    assert ended[0].outcome == "answered"


def test_an_interrupt_in_a_tool_comes_out_and_leaves_a_transcript() -> None:
    events: list[Any] = []

    @tool
    def interrupted() -> None:
        raise KeyboardInterrupt

    with Client(Scripted(answer(call("interrupted")))) as client, pytest.raises(KeyboardInterrupt):
        client.run("Go.", [interrupted], on_event=events.append)
    assert isinstance(events[-1], RunEnded)
    assert events[-1].result.outcome == "cancelled"
    assert unpaired(events[-1].result.messages) == []


@pytest.fixture
def interruptible() -> Generator[None]:
    """Have Ctrl-C mean what it means: a shell that runs tests in the background has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_while_the_model_speaks_stops_it() -> None:
    model = Stuck()
    soon = threading.Timer(0.05, signal.pthread_kill, (threading.get_ident(), signal.SIGINT))

    def begin(event: object) -> None:
        if isinstance(event, ModelEvent) and isinstance(event.event, TextDelta):
            soon.start()

    with Client(model) as client, pytest.raises(KeyboardInterrupt):
        client.run("Go.", [], on_event=begin)
    soon.join()
    assert model.closed


def test_cancelled_from_another_thread() -> None:
    model = Stuck()
    with Client(model) as client, client.run_stream("Go.", []) as stream:
        for event in stream:
            if isinstance(event, ModelEvent) and isinstance(event.event, TextDelta):
                threading.Thread(target=stream.cancel).start()
    assert stream.result is not None
    assert (stream.result.outcome, model.closed) == ("cancelled", True)


def test_a_blocking_run_that_is_left_lying_about_is_ended() -> None:
    model = Stuck()
    with Client(model) as client:
        for event in client.run_stream("Go.", []):
            if isinstance(event, ModelEvent):
                break
        client._portal.call(_settled)
    assert model.closed


async def _settled() -> None:
    for _ in range(100):
        await asyncio.sleep(0)
