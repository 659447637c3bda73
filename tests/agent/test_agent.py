"""The agent at work: a scripted model drives real files and commands."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.agent.scripted_agent import agent_in, assert_valid, text_answer, tool_call_answer, tool_results
from tests.exact import exact
from xenoglot.agent.agent import Agent, AgentSettings
from xenoglot.agent.permissions import Permissions, tools_for
from xenoglot.agent.sandbox.workspace import Workspace
from xenoglot.agent.session.session_files import Sessions
from xenoglot.backends.redaction import Redactor
from xenoglot.backends.scripted import Scripted
from xenoglot.client.async_ import AsyncClient
from xenoglot.model.failure import Failure
from xenoglot.tools.budget import Budget, RunSpend
from xenoglot.tools.compaction import Compaction
from xenoglot.tools.events import CallStarted, Compacted, RunEvent

if TYPE_CHECKING:
    from pathlib import Path

    from xenoglot.agent.session.session_files import SessionFile
    from xenoglot.engine.backend import Engine
    from xenoglot.model.content import ToolCall

NAME = "20261122-120000-abcdef"


def ignore(_: RunEvent) -> None:
    pass


def sessions(folder: Path) -> Sessions:
    return Sessions(folder.parent / f"{folder.name}-sessions", Redactor())


def started_session(folder: Path) -> SessionFile:
    return sessions(folder).begin(NAME, created=1.0, workspace=str(folder), model=None)


async def test_it_reads_edits_and_checks(tmp_path: Path) -> None:
    (tmp_path / "sum.py").write_text("def add(a, b):\n    return a - b\n")
    model = Scripted(
        tool_call_answer(
            ("search", {"pattern": "def add"}), ("plan", {"steps": [{"step": "mend add", "status": "doing"}]})
        ),
        tool_call_answer(("read_file", {"path": "sum.py"}), first=3),
        tool_call_answer(("edit_file", {"path": "sum.py", "old": "a - b", "new": "a + b"}), first=4),
        tool_call_answer(("run", {"command": "python3 -c 'import sum; print(sum.add(2, 3))'"}), first=5),
        text_answer("It adds now."),
    )
    agent = agent_in(tmp_path, model)
    result = await agent.work("mend the sum", ignore)
    assert (result.outcome, result.text, result.calls) == ("answered", "It adds now.", 5)
    assert tool_results(agent.messages) == [
        "sum.py:1: def add(a, b):",
        "[>] mend add",
        "def add(a, b):\n    return a - b",
        "sum.py: changed (+1 -1 lines)",
        "5",
    ]
    assert (tmp_path / "sum.py").read_text() == "def add(a, b):\n    return a + b\n"
    assert_valid(agent.messages)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        pytest.param(("search", {"pattern": "("}), "`pattern`", id="bad-pattern"),
        pytest.param(("find", {"pattern": "/etc/*"}), "[no file matches]", id="absolute-glob"),
        pytest.param(("read_file", {"path": "/etc/passwd"}), "outside of the workspace", id="outside"),
        pytest.param(("read_file", {"path": []}), "path", id="no-path"),
        pytest.param(("read_file", {}), "path", id="nothing-given"),
        pytest.param(("run", {"command": "exit 7"}), "![exit code 7]", id="exit-code"),
        pytest.param(("run", {"command": "printf '\\377'"}), "\N{REPLACEMENT CHARACTER}", id="no-text"),
        pytest.param(("no_such_tool", {}), "no_such_tool", id="no-such-tool"),
    ],
)
async def test_what_goes_wrong_in_a_tool_is_told_to_the_model(
    tmp_path: Path, call: tuple[str, dict[str, object]], told: str
) -> None:  # c-w16
    agent = agent_in(tmp_path, Scripted(tool_call_answer(call), text_answer("I see.")))
    result = await agent.work("go", ignore)
    assert result.outcome == "answered"
    assert told in tool_results(agent.messages)[0]


@pytest.mark.parametrize(
    ("permissions", "names"),
    [
        pytest.param(Permissions(), [], id="looks"),
        pytest.param(Permissions(write="yes"), ["edit_file", "write_file"], id="writes"),
        pytest.param(Permissions(shell="ask"), ["run"], id="asks"),  # noqa: S604  a permission
    ],
)
async def test_a_model_is_given_the_tools_that_it_may_use(
    tmp_path: Path, permissions: Permissions, names: list[str]
) -> None:
    model = Scripted(text_answer("ok"))
    await agent_in(tmp_path, model, permissions).work("go", ignore)
    looking = ["list_dir", "read_file", "find", "search", "plan"]
    assert [getattr(tool, "name", None) for tool in model.requests[0].tools] == looking + names


@pytest.mark.parametrize(
    ("answer", "expected", "written"),
    [
        pytest.param(True, "a: written (+1 -0 lines)", True, id="allowed"),
        pytest.param(False, "!", False, id="denied"),
        pytest.param("use b instead", "!use b instead", False, id="denied-with-a-reason"),
    ],
)
async def test_a_person_is_asked_first(tmp_path: Path, answer: bool | str, expected: str, written: bool) -> None:  # noqa: FBT001  a case
    model = Scripted(tool_call_answer(("write_file", {"path": "a", "content": "x\n"})), text_answer("ok"))
    asked: list[ToolCall] = []

    def approve(call: ToolCall) -> bool | str:
        asked.append(call)
        return answer

    agent = agent_in(tmp_path, model, Permissions(write="ask"))
    await agent.work("go", ignore, approve)
    assert [call.name for call in asked] == ["write_file"]
    assert tool_results(agent.messages)[0].startswith(expected[0])
    assert expected.strip("!") in tool_results(agent.messages)[0]
    assert (tmp_path / "a").exists() is written


async def test_without_anybody_to_ask_nothing_is_written(tmp_path: Path) -> None:
    model = Scripted(tool_call_answer(("write_file", {"path": "a", "content": "x"})), text_answer("ok"))
    await agent_in(tmp_path, model, Permissions(write="ask")).work("go", ignore)
    assert not (tmp_path / "a").exists()


async def test_a_session_is_gone_on_with(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("text")
    file = started_session(tmp_path)
    first = agent_in(
        tmp_path, Scripted(tool_call_answer(("read_file", {"path": "a"})), text_answer("Read.")), session=file
    )
    await first.work("read a", ignore)
    file.close()

    model = Scripted(text_answer("It was `text`."))
    file = sessions(tmp_path).resume(NAME)
    second = agent_in(tmp_path, model, session=file)
    assert second.messages == first.messages
    await second.work("what was in it?", ignore)
    file.close()
    assert [message.role for message in model.requests[0].messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert second.spent == RunSpend(
        input_tokens=30, output_tokens=15, model_calls=3, calls=1, seconds=second.spent.seconds, cost=None
    )
    assert sessions(tmp_path).resume(NAME).session.messages == second.messages


async def test_a_budget_holds_over_a_resume(tmp_path: Path) -> None:
    manner = AgentSettings(system="Work.", budget=Budget(model_calls=2))
    file = started_session(tmp_path)
    assert (
        await agent_in(tmp_path, Scripted(text_answer("1")), session=file, manner=manner).work("a", ignore)
    ).outcome == "answered"
    file.close()
    file = sessions(tmp_path).resume(NAME)
    agent = agent_in(tmp_path, Scripted(text_answer("2")), session=file, manner=manner)
    assert (await agent.work("b", ignore)).outcome == "answered"
    model = Scripted(text_answer("3"))
    file.close()
    file = sessions(tmp_path).resume(NAME)
    result = await agent_in(tmp_path, model, session=file, manner=manner).work("c", ignore)
    file.close()
    assert (result.outcome, model.requests) == ("budget", [])


@pytest.mark.parametrize(
    ("budget", "rounds", "outcome"),
    [
        pytest.param(Budget(calls=1), 9, "budget", id="calls"),
        pytest.param(Budget(total_tokens=40), 9, "budget", id="tokens"),
        pytest.param(None, 2, "limit", id="rounds"),
    ],
)
async def test_work_ends_at_its_limits(tmp_path: Path, budget: Budget | None, rounds: int, outcome: str) -> None:
    model = Scripted(tool_call_answer(("list_dir", {})))
    agent = agent_in(tmp_path, model, manner=AgentSettings(system="Work.", budget=budget, max_rounds=rounds))
    result = await agent.work("go", ignore)
    assert (result.outcome, result.rounds <= 3) == (outcome, True)
    assert_valid_counts(agent.messages)


def assert_valid_counts(messages: object) -> None:
    """The script gives the same id again and again: only the numbers can be compared."""
    text = exact(messages)
    assert text.count("ToolCall(") == text.count("ToolResult(")


async def test_a_failure_leaves_a_conversation_that_can_be_gone_on_with(tmp_path: Path) -> None:
    file = started_session(tmp_path)
    model = Scripted(
        tool_call_answer(("list_dir", {})), Failure(kind="invalid_request", message="no"), text_answer("better")
    )
    agent = agent_in(tmp_path, model, session=file)
    assert (await agent.work("go", ignore)).outcome == "failed"
    assert (await agent.work("again", ignore)).outcome == "answered"
    file.close()
    assert_valid(agent.messages)
    assert sessions(tmp_path).resume(NAME).session.messages == agent.messages


async def test_work_that_is_cancelled_can_be_gone_on_with(tmp_path: Path) -> None:
    file = started_session(tmp_path)
    running = asyncio.Event()

    def feed(event: RunEvent) -> None:
        if isinstance(event, CallStarted):
            running.set()

    agent = agent_in(
        tmp_path, Scripted(tool_call_answer(("run", {"command": "sleep 1000"})), text_answer("fine")), session=file
    )
    task = asyncio.ensure_future(agent.work("go", feed))
    await running.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert_valid(agent.messages)
    assert (await agent.work("go on", ignore)).text == "fine"
    file.close()
    session = sessions(tmp_path).resume(NAME).session
    assert (session.messages, session.outcome) == (agent.messages, "answered")


async def test_a_conversation_that_grows_too_long_is_shortened_and_kept_so(tmp_path: Path) -> None:  # c-w14
    (tmp_path / "long.txt").write_text("word\n" * 2000)
    turns = [tool_call_answer(("read_file", {"path": "long.txt"}), first=number) for number in range(8)]
    manner = AgentSettings(system="Work.", compaction=Compaction(window=6000, keep_turns=2))
    file = started_session(tmp_path)
    seen: list[RunEvent] = []
    agent = agent_in(tmp_path, Scripted(*turns, text_answer("done")), session=file, manner=manner)
    assert (await agent.work("read it often", seen.append)).outcome == "answered"
    file.close()
    assert any(isinstance(event, Compacted) for event in seen)
    assert_valid(agent.messages)
    assert sessions(tmp_path).resume(NAME).session.messages == agent.messages


async def test_the_embedded_model_works_with_its_tools(tmp_path: Path, engine: Engine) -> None:
    (tmp_path / "a.txt").write_text("text")
    tools = tools_for(Workspace(tmp_path), Permissions(), environ={})
    manner = AgentSettings(system="Work.", max_rounds=2, options={"tool_choice": "list_dir", "max_tokens": 48})
    file = started_session(tmp_path)
    agent = Agent(AsyncClient(engine), tools, manner, file)
    result = await agent.work("List the folder.", ignore)
    file.close()
    assert result.calls >= 1
    assert 'name="list_dir"' in exact(agent.messages).replace("'", '"')
    assert_valid(agent.messages)
    assert sessions(tmp_path).resume(NAME).session.messages == agent.messages


async def test_what_a_terminal_cannot_have_meant_is_taken_all_the_same(tmp_path: Path) -> None:
    file = started_session(tmp_path)
    agent = agent_in(tmp_path, Scripted(text_answer("ok")), session=file)
    await agent.work("caf\udce9", ignore)
    file.close()
    assert sessions(tmp_path).resume(NAME).session.title == r"caf\udce9"
