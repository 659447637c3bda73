"""How a run drives the world: threads, time limits, order, callbacks and options."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.tools.scripted_runs import answer, call, results, run, run_blocking
from xenoglot.backends.scripted import Scripted
from xenoglot.client.async_ import AsyncClient
from xenoglot.client.sync import Client
from xenoglot.client.tool_loop.tool_calls import Execution
from xenoglot.errors import ConfigurationError, InvalidRequestError
from xenoglot.model.request import Tool
from xenoglot.tools.budget import Budget
from xenoglot.tools.compaction import Compaction
from xenoglot.tools.events import CallEnded, CallProgress, CallStarted
from xenoglot.tools.tool import SchemaTool, ToolContext, ToolError, tool

if TYPE_CHECKING:
    from xenoglot.tools.tool_output import ToolOutput

CITIES: dict[str, str] = {}
PATIENCE = 120.0
"""Seconds after which a test is stuck."""


async def test_k20_calls_of_one_answer_run_beside_each_other() -> None:
    barrier = asyncio.Barrier(2)

    @tool
    async def meet(name: str) -> str:
        async with asyncio.timeout(PATIENCE):
            await barrier.wait()
        return name

    turns = [answer(call("meet", '{"name": "a"}', "a"), call("meet", '{"name": "b"}', "b")), answer(".")]
    result, _ = await run(turns, [meet])
    assert results(result.messages) == [("a", "a"), ("b", "b")]


@pytest.mark.parametrize("blocking", [False, True], ids=["async", "sync"])
async def test_calls_that_block_run_in_threads(blocking: bool) -> None:  # noqa: FBT001  a case
    barrier = threading.Barrier(2)

    @tool
    def meet(name: str) -> str:
        barrier.wait(PATIENCE)
        return name

    turns = [answer(call("meet", '{"name": "a"}', "a"), call("meet", '{"name": "b"}', "b")), answer(".")]
    result, _ = run_blocking(turns, [meet]) if blocking else await run(turns, [meet])
    assert results(result.messages) == [("a", "a"), ("b", "b")]


@pytest.mark.parametrize(("order", "expected"), [("call", ["slow", "fast"]), ("result", ["fast", "slow"])])
async def test_ends_are_told_in_the_order_asked_for(order: str, expected: list[str]) -> None:
    over = asyncio.Event()

    @tool
    async def slow() -> str:
        await over.wait()
        return "slow"

    @tool
    async def fast() -> str:
        over.set()
        return "fast"

    turns = [answer(call("slow"), call("fast")), answer(".")]
    result, events = await run(turns, [slow, fast], order=order)
    assert [event.output.text for event in events if isinstance(event, CallEnded)] == expected
    assert results(result.messages) == [("call_slow", "slow"), ("call_fast", "fast")]


@pytest.mark.parametrize("options", [{"parallel": False}, {}], ids=["not-parallel", "exclusive"])
async def test_one_after_the_other(options: dict[str, Any]) -> None:
    running: list[str] = []

    @tool(exclusive="parallel" not in options)
    async def alone(name: str) -> int:
        running.append(name)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        beside = len(running)
        running.remove(name)
        return beside

    calls = [call("alone", f'{{"name": "{name}"}}', name) for name in "abc"]
    result, events = await run([answer(*calls), answer(".")], [alone], **options)
    assert results(result.messages) == [("a", "1"), ("b", "1"), ("c", "1")]
    assert [type(event).__name__ for event in events if isinstance(event, CallStarted | CallEnded)] == [
        "CallStarted",
        "CallEnded",
    ] * 3


async def test_a_call_has_a_time_limit_when_it_waits() -> None:
    cancelled = asyncio.Event()

    @tool(time_limit=0.01)
    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    result, _ = await run([answer(call("hang")), answer(".")], [hang])
    assert results(result.messages) == [("call_hang", "the tool was stopped: it took longer than 0.01 seconds")]
    assert cancelled.is_set()


@pytest.mark.parametrize("blocking", [False, True], ids=["async", "sync"])
async def test_k20_a_call_that_hangs_in_a_thread_is_left_to_itself(
    blocking: bool,  # noqa: FBT001  a case
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    began, stopped = threading.Event(), threading.Event()

    @tool
    def hang(context: ToolContext) -> str:
        context.on_stop(stopped.set)
        began.set()
        stopped.wait(PATIENCE)
        return "too late"

    async def expired(
        tasks: set[asyncio.Task[ToolOutput]], seconds: float
    ) -> tuple[set[asyncio.Task[ToolOutput]], set[asyncio.Task[ToolOutput]]]:
        assert (seconds, await asyncio.to_thread(began.wait, PATIENCE)) == (0.01, True)
        return set(), tasks

    # The limit passes when the tool has begun: by the clock it could pass before the thread has.
    monkeypatch.setattr(Execution, "wait", staticmethod(expired))
    turns = [answer(call("hang")), answer("on")]
    options = {"time_limit": 0.01}
    result, _ = run_blocking(turns, [hang], **options) if blocking else await run(turns, [hang], **options)
    assert stopped.is_set()
    assert (result.outcome, result.text) == ("answered", "on")
    assert results(result.messages) == [("call_hang", "the tool was stopped: it took longer than 0.01 seconds")]


def test_a_lone_tool_runs_in_the_callers_thread() -> None:
    threads: list[int] = []

    @tool
    def where() -> None:
        threads.append(threading.get_ident())

    run_blocking([answer(call("where")), answer(".")], [where])
    assert threads == [threading.get_ident()]


@pytest.mark.parametrize("blocking", [False, True], ids=["async", "sync"])
async def test_progress_is_told(blocking: bool) -> None:  # noqa: FBT001  a case
    @tool
    def work(context: ToolContext) -> str:
        context.progress("half")
        return "done"

    turns = [answer(call("work")), answer(".")]
    _, events = run_blocking(turns, [work]) if blocking else await run(turns, [work])
    told = [event for event in events if isinstance(event, CallProgress)]
    assert told == [CallProgress(call_id="call_work", text="half")]


async def test_k20_progress_without_end_is_not_listened_to() -> None:
    @tool
    def work(context: ToolContext) -> str:
        for _ in range(30):
            context.progress("x" * 100_000)
        return "done"

    _, events = await run([answer(call("work")), answer(".")], [work])
    assert sum(len(event.text) for event in events if isinstance(event, CallProgress)) == 1_000_000


async def test_a_given_tool_runs() -> None:
    def function(arguments: dict[str, Any], context: ToolContext) -> object:
        return {"arguments": arguments, "round": context.round}

    given = SchemaTool(Tool(name="note", kind="custom"), function)
    asked = call("note", "free text")
    result, _ = await run([answer(_custom(asked)), answer(".")], [given])
    assert results(result.messages) == [("call_note", '{"arguments": {"input": "free text"}, "round": 1}')]


def _custom(asked: Any) -> Any:  # noqa: ANN401  a call
    from msgspec.structs import replace  # noqa: PLC0415  here alone

    return replace(asked, kind="custom")


@pytest.mark.parametrize("calls", [1, 9], ids=["in-many-answers", "in-one-answer"])
async def test_k20_the_same_call_again_and_again_does_not_run(calls: int) -> None:
    runs: list[int] = []

    @tool
    def poll() -> str:
        runs.append(1)
        return "nothing new"

    result, _ = await run([answer(*[call("poll")] * calls)], [poll], max_rounds=9)
    assert len(runs) == 5
    assert results(result.messages)[5][1].startswith("not run: this very call was made 5 times in a row")


def test_a_tool_may_ask_the_very_client_that_runs_it() -> None:
    place = contextvars.ContextVar("place", default="nowhere")

    @tool
    def inner() -> str:
        return f"{client.complete('?').text} {place.get()}"

    turns = [
        answer(call("inner")),
        answer("one"),
        answer(call("inner"), call("inner")),
        *[answer("two")] * 2,
        answer("."),
    ]
    place.set("here")
    with Client(Scripted(*turns)) as client:
        result = client.run("Go.", [inner])
    assert [words for _, words in results(result.messages)] == ["one here", "two here", "two here"]


def _fail(_: object) -> bool:
    raise LookupError("mine")


@tool(needs_approval=True)
def risky() -> str:
    """Do it."""
    return "done"


@pytest.mark.parametrize("callback", ["approve", "on_event"])
async def test_what_a_callback_raises_comes_out(callback: str) -> None:
    turns = [answer(call("risky")), answer(".")]
    options: dict[str, Any] = {callback: _fail}
    with Client(Scripted(*turns)) as client, pytest.raises(LookupError, match="mine"):
        client.run("Go.", [risky], **options)
    async with AsyncClient(Scripted(*turns)) as client:
        with pytest.raises(LookupError, match="mine"):
            await client.run("Go.", [risky], **options)


@pytest.mark.parametrize("said", [True, "no", None], ids=["yes", "no", "nothing"])
async def test_approval_may_take_its_time(said: object) -> None:
    async def approve(_: object) -> object:
        await asyncio.sleep(0)
        return said

    turns = [answer(call("risky")), answer(".")]
    if said is None:
        with pytest.raises(TypeError, match="`approve` returned a `NoneType`"):
            await run(turns, [risky], approve=approve)
        return
    result, _ = await run(turns, [risky], approve=approve)
    assert results(result.messages)[0][1] == (
        "done" if said is True else "not run: the user did not allow this call: no"
    )


def plain(x: int) -> int:
    """Give it back."""
    return x


@pytest.mark.parametrize(
    ("tools", "options", "expected"),
    [
        pytest.param([plain, plain], {}, "two tools are called `plain`", id="one-name-twice"),
        pytest.param([Tool(name="x")], {}, "the tool `x` has no function here", id="nothing-that-runs-it"),
        pytest.param([plain], {"n": 2}, "a tool loop needs `messages` and one answer", id="two-answers"),
        pytest.param([plain], {"max_rounds": 0}, "`max_rounds`: found 0", id="no-rounds"),
        pytest.param([plain], {"on_limit": "x"}, "`on_limit`: found `x`", id="on-limit"),
        pytest.param([plain], {"order": "x"}, "`order`: found `x`", id="order"),
        pytest.param([plain], {"time_limit": 0}, "`time_limit`: found 0", id="time-limit"),
        pytest.param([plain], {"result_limit": 0}, "`result_limit`: found 0", id="result-limit"),
        pytest.param(
            [plain], {"max_rounds": "3"}, "`max_rounds`: found a `str`; expected a `int`", id="rounds-in-words"
        ),
        pytest.param(
            [plain], {"time_limit": "3"}, "`time_limit`: found a `str`; expected a `float`", id="time-in-words"
        ),
        pytest.param([plain], {"approve": True}, "`approve`: found a `bool`; expected a function", id="approve"),
        pytest.param([plain], {"budget": 3}, "`budget`: found a `int`; expected a `Budget`", id="budget"),
        pytest.param("plain", {}, "`tools`: found a `str`; expected a list", id="tools"),
        pytest.param([lambda x: x], {}, "the name of a tool: found `<lambda>`", id="no-name"),
    ],
)
async def test_mistakes_are_told(tools: Any, options: dict[str, Any], expected: str) -> None:  # noqa: ANN401
    async with AsyncClient(Scripted(answer("."))) as client:
        with pytest.raises(ConfigurationError, match=expected):
            await client.run("Go.", tools, **options)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        pytest.param(lambda: Budget(calls=-1), "`budget.calls`: found -1", id="negative"),
        pytest.param(lambda: Budget(cost=float("nan")), "`budget.cost`: found nan", id="nan"),
        pytest.param(lambda: Budget(cost=float("inf")), "`budget.cost`: found inf", id="endless"),
        pytest.param(lambda: Budget(calls="3"), "`budget.calls`: found 3", id="words"),  # type: ignore[arg-type]  # that
        pytest.param(lambda: Compaction(window=0), "`compaction.window`: found 0", id="window"),
        pytest.param(lambda: Compaction(above=0.2), "expected 0 < `target` <= `above` <= 1", id="target"),
        pytest.param(lambda: Compaction(keep_turns=0), "`compaction.keep_turns`: found 0", id="keep"),
        pytest.param(lambda: tool(time_limit=-1)(plain), "`time_limit`: found -1", id="tool"),
    ],
)
def test_settings_have_ranges(make: Any, expected: str) -> None:  # noqa: ANN401
    with pytest.raises(ConfigurationError, match=expected):
        make()


async def test_an_option_that_there_is_not() -> None:
    async with AsyncClient(Scripted(answer("."))) as client:
        with pytest.raises(TypeError, match="there is no option `max_round`; did you mean `max_rounds`"):
            await client.run("Go.", [], max_round=1)  # type: ignore[call-arg]  # as the type checker says, too
        with pytest.raises(InvalidRequestError, match="temperature"):
            await client.run("Go.", [], temperature="warm")  # type: ignore[arg-type]  # as above


async def test_what_led_to_a_question_is_read_before_it_is_asked() -> None:
    seen: list[str] = []

    def approve(_: object) -> bool:
        seen.append("asked")
        return True

    model = Scripted(answer("I will.", call("risky")), answer("."))
    async with AsyncClient(model) as client, client.run_stream("Go.", [risky], approve=approve) as stream:
        async for event in stream:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            seen.append(type(event).__name__)
    assert seen[seen.index("asked") - 1 : seen.index("asked") + 2] == ["ApprovalRequested", "asked", "ApprovalReceived"]


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_tool_that_raises_is_logged_with_its_traceback(
    caplog: pytest.LogCaptureFixture,
    asynchronous: bool,  # noqa: FBT001  a case
) -> None:
    @tool
    def weather() -> str:
        return CITIES["Paris"]

    @tool(name="weather")
    async def slow_weather() -> str:
        return CITIES["Paris"]

    turns = [answer(call("weather", "{}", "a")), answer(".")]
    result, _ = await run(turns, [slow_weather if asynchronous else weather])
    assert results(result.messages) == [("a", "KeyError: 'Paris'")]
    [record] = [record for record in caplog.records if record.name == "xenoglot.user_code"]
    head, *lines = record.getMessage().split("\n")
    assert (record.levelname, head, lines[-1]) == ("WARNING", "the tool `weather` failed:", "KeyError: 'Paris'")
    assert [line for line in lines if line.startswith("  File ")][-1].startswith(f'  File "{__file__}"')


async def test_an_error_for_the_model_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    @tool
    def weather() -> str:
        raise ToolError("no such city")

    await run([answer(call("weather", "{}", "a")), answer(".")], [weather])
    assert caplog.records == []
