"""What is drawn of a run of the tool loop, and how leave is asked for."""

from __future__ import annotations

import asyncio

import pytest

from tests.terminal.drawn import Clock, Drawn
from xenoglot.model.content import Text, ToolCall
from xenoglot.model.events import TextDelta
from xenoglot.model.response import Usage
from xenoglot.terminal.agent_view import AgentScreen
from xenoglot.terminal.display.run_view import NOBODY, QUESTION, REFUSED, RunView, call_line
from xenoglot.tools.budget import RunSpend
from xenoglot.tools.events import (
    ApprovalRequested,
    CallEnded,
    CallProgress,
    CallStarted,
    Compacted,
    Continued,
    ModelEvent,
    RoundStarted,
    RunEnded,
)
from xenoglot.tools.result import RunResult
from xenoglot.tools.tool_output import ToolOutput

CALL = ToolCall(id="1", name="edit", arguments='{"path": "a.py", "new": "x\\ny"}')


def output(text: str, *, data: object = None, error: bool = False) -> ToolOutput:
    return ToolOutput(content=(Text(text=text),), data=data, is_error=error)


def lines(*events: object) -> list[tuple[str, str]]:
    drawn = Drawn()
    run = RunView(drawn, Clock())
    for event in events:
        run.feed(event)  # type: ignore[arg-type]
    run.flush()
    return drawn.lines


RESULTS = [
    pytest.param(output("one"), 0, [("quiet", "  └ one")], id="line"),
    pytest.param(output(""), 0, [("quiet", "  └ done")], id="nothing"),
    pytest.param(output("\x1b[2J"), 0, [("quiet", "  └ �[2J")], id="harmless"),
    pytest.param(output("no", error=True), 0, [("problem", "  └ no")], id="error"),
    pytest.param(
        output("a\n\nb\nc\nd\ne"), 2.1, [("quiet", "  └ a\n    b\n    c\n    … 2 more lines, 2 s")], id="folded"
    ),
    pytest.param(
        output("a\nb\nc\nd", data={"exit_code": 3}),
        0,
        [("quiet", "  └ b\n    c\n    d\n    … 1 more line, exit code 3")],
        id="exit-code",
    ),
    pytest.param(
        output("changed", data={"diff": "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n z\n"}),
        0,
        [
            ("place", "  --- a"),
            ("place", "  +++ b"),
            ("place", "  @@ -1 +1 @@"),
            ("removed", "  -x"),
            ("added", "  +y"),
            ("quiet", "   z"),
        ],
        id="diff",
    ),
]


@pytest.mark.parametrize(("result", "seconds", "drawn"), RESULTS)
def test_a_call_is_drawn(result: ToolOutput, seconds: float, drawn: list[tuple[str, str]]) -> None:
    started = CallStarted(call=CALL, round=1)
    ended = CallEnded(call=CALL, output=result, seconds=seconds)
    assert lines(started, ended) == [("call", '● edit(path="a.py", new="x\\ny")'), *drawn]


@pytest.mark.parametrize(
    ("call", "line"),
    [
        pytest.param(ToolCall(id="1", name="f", arguments=""), "● f()", id="no-arguments"),
        pytest.param(ToolCall(id="1", name="f", arguments='{"a": [1, "é"]}'), '● f(a=[1, "é"])', id="values"),
        pytest.param(ToolCall(id="1", name="f", arguments='{"a": '), '● f({"a":)', id="no-json"),
        pytest.param(ToolCall(id="1", name="f", arguments="ls\n-l", kind="custom"), "● f(ls -l)", id="free-text"),
        pytest.param(ToolCall(id="1", name="f\x1b", arguments='{"a":"\x1b[1m"}'), '● f�({"a":"�[1m"})', id="harmless"),
    ],
)
def test_a_call_is_one_line(call: ToolCall, line: str) -> None:
    assert call_line(call) == line


def test_a_run_is_drawn() -> None:
    result = RunResult(
        outcome="limit", reason="16 rounds", response=None, messages=(), rounds=16, calls=3, usage=Usage()
    )
    found = lines(
        RoundStarted(round=1),
        ModelEvent(event=TextDelta(text="Let me see.")),
        Continued(round=2, reason="length"),
        Compacted(before=900, after=300, messages=()),
        RunEnded(result=result),
    )
    assert found == [
        ("words", "Let me see."),
        ("quiet", "goes on (length)"),
        ("quiet", "the conversation was shortened: 900 tokens to 300"),
        ("problem", "limit: 16 rounds"),
    ]


def test_a_command_is_shown_while_it_runs() -> None:
    drawn = Drawn()
    run = RunView(drawn, Clock())
    for text in ("one\ntw", "o\n", *(f"{number}\n" for number in range(20))):
        run.feed(CallProgress(call_id="1", text=text))
    assert drawn.passed[1] == "  │ one\n  │ two"
    assert drawn.passed[-1] == "\n".join(f"  │ {number}" for number in range(12, 20))


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        pytest.param("y", True, id="yes"),
        pytest.param(" YES ", True, id="spelled-otherwise"),
        pytest.param("n", REFUSED, id="no"),
        pytest.param("", REFUSED, id="nothing"),
        pytest.param("Use the other file.", "Use the other file.", id="reason"),
    ],
)
async def test_leave_is_asked_for(answer: str, verdict: bool | str) -> None:  # noqa: FBT001  a case
    drawn, asked = Drawn(), []

    async def ask(question: str) -> str:
        asked.append((question, list(drawn.lines)))
        return answer

    assert await RunView(drawn, ask=ask).approve(CALL) == verdict
    whole = [("call", "edit wants to run:"), ("said", "  path: a.py"), ("said", "  new:\n    x\n    y")]
    assert asked == [(QUESTION, whole)]


async def test_what_led_to_a_call_is_drawn_before_it_and_the_rest_behind() -> None:
    drawn, reached, answers = Drawn(), asyncio.Event(), asyncio.Queue[str]()

    async def ask(_: str) -> str:
        reached.set()
        return await answers.get()

    run = RunView(drawn, ask=ask)
    run.feed(RoundStarted(round=1))
    asked = asyncio.create_task(run.approve(CALL))
    await asyncio.sleep(0)
    for event in (ModelEvent(event=TextDelta(text="So:")), ApprovalRequested(call=CALL)):
        run.feed(event)
    await reached.wait()
    run.feed(CallProgress(call_id="2", text="of another call"))
    assert drawn.lines[:2] == [("words", "So:"), ("call", "edit wants to run:")]
    assert "  │ of another call" not in drawn.passed
    await answers.put("y")
    assert await asked is True
    assert drawn.passed[-1] == "  │ of another call"


async def test_always_holds_for_a_tool() -> None:
    answers = iter(["a", "n"])

    async def ask(_: str) -> str:
        return next(answers)

    run = RunView(Drawn(), ask=ask)
    other = ToolCall(id="2", name="run", arguments="{}")
    verdicts: list[bool | str] = await asyncio.gather(*map(run.approve, (CALL, CALL, other)))
    assert verdicts == [True, True, REFUSED]


def test_what_a_run_of_an_agent_took() -> None:
    class Nobody:
        renderer = Drawn()
        interactive = False

    usage = Usage(input_tokens=7, output_tokens=3, cache_read=0, reasoning=2)
    result = RunResult(
        outcome="limit", reason="", response=None, messages=(), rounds=1, calls=2, usage=usage, spent=RunSpend(cost=0.5)
    )
    AgentScreen(Nobody()).feed(RunEnded(result=result))  # type: ignore[arg-type]
    assert Nobody.renderer.lines == [("quiet", "1 answer · 2 calls · 7 in, 3 out, 2 thought · $0.5000")]


async def test_where_nobody_is_nothing_is_allowed() -> None:
    assert await RunView(Drawn()).approve(CALL) == NOBODY
