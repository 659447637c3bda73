"""The tool `delegate`: parts of the work that others do, in order, within limits; what they spend is the agent's."""

from __future__ import annotations

import asyncio
import io
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from tests.agent.scripted_agent import ALL, assert_valid, text_answer, tool_call_answer, tool_results
from xenoglot import cli
from xenoglot.agent.agent import Agent, AgentSettings
from xenoglot.agent.delegate import MOST_PARALLEL, MOST_ROUNDS, Delegation
from xenoglot.agent.permissions import Permissions, tools_for
from xenoglot.agent.sandbox.workspace import Workspace
from xenoglot.agent.session.session_files import Sessions
from xenoglot.backends.redaction import Redactor
from xenoglot.backends.scripted import Scripted
from xenoglot.client.async_ import AsyncClient
from xenoglot.gateway.process import gateway_backend
from xenoglot.model.content import Text
from xenoglot.model.failure import Failure
from xenoglot.tools.budget import Budget
from xenoglot.tools.events import CallProgress, RunEvent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from xenoglot.agent.session.session_files import SessionFile
    from xenoglot.backends.backend import Answer, Call
    from xenoglot.gateway.config.load import Config
    from xenoglot.model.request import Request
    from xenoglot.model.response import Response

REFUSED = Failure(kind="invalid_request", message="no")


def ignore(_: RunEvent) -> None:
    pass


class Parts(Scripted):
    """Plays one script for the agent, and one for each task, by the first word of its prompt.

    `most` is how many answers were under way at once; where `held`, a task answers when all of them have asked.
    """

    def __init__(self, *turns: Response, parts: dict[str, list[Response | Failure]], held: int = 0) -> None:
        super().__init__(*turns)
        self._parts = {name: Scripted(*script) for name, script in parts.items()}
        self._held = held
        self._all = asyncio.Event()
        self.asked: list[str] = []
        self.begun: dict[str, Request] = {}
        self.now = self.most = 0

    async def answer(self, call: Call) -> Answer:
        """Answer with the next turn of the script it is about."""
        name = prompt_of(call.request).split()[0]
        if name not in self._parts:
            return await super().answer(call)
        self.asked.append(name)
        self.begun.setdefault(name, call.request)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            if self._held:
                if self.now >= self._held:
                    self._all.set()
                await self._all.wait()
            await asyncio.sleep(0)
            return await self._parts[name].answer(call)
        finally:
            self.now -= 1


def prompt_of(request: Request) -> str:
    message = next(message for message in request.messages if message.role == "user")
    return "".join(part.text for part in message.content if isinstance(part, Text))


def tools_of(request: Request) -> set[str]:
    return {str(getattr(tool, "name", "")) for tool in request.tools}


def delegated(*tasks: tuple[str, list[str]]) -> Response:
    """Return an answer that delegates tasks; the prompt of each begins with its name."""
    return tool_call_answer(
        ("delegate", {"tasks": [{"name": name, "prompt": f"{name} it", "after": after} for name, after in tasks]})
    )


def delegating(  # noqa: PLR0913  each is a setting, and named
    folder: Path,
    model: Scripted,
    *,
    permissions: Permissions = ALL,
    budget: Budget | None = None,
    most: int = 16,
    session: SessionFile | None = None,
) -> Agent:
    """Return an agent that may delegate."""
    tools = tools_for(Workspace(folder), permissions, environ={})
    client, manner = AsyncClient(model), AgentSettings(system="Work.", budget=budget)
    agent = Agent(client, tools, manner, session)
    agent.tools = [*tools, Delegation(client, agent, most).tool]
    return agent


async def test_tasks_are_told_the_results_of_what_they_come_after(tmp_path: Path) -> None:  # c-s9
    model = Parts(
        delegated(("join", ["left", "right"]), ("left", []), ("right", [])),
        text_answer("All done."),
        parts={
            "left": [text_answer("Left is 1.")],
            "right": [text_answer("Right is 2.")],
            "join": [text_answer("It is 3.")],
        },
    )
    agent = delegating(tmp_path, model)
    result = await agent.work("sum", ignore)
    assert (result.outcome, result.text) == ("answered", "All done.")
    assert tool_results(agent.messages) == [
        "## join: answered\nIt is 3.\n\n## left: answered\nLeft is 1.\n\n## right: answered\nRight is 2."
    ]
    assert (set(model.asked[:2]), model.asked[2:]) == ({"left", "right"}, ["join"])
    told = prompt_of(model.begun["join"])
    assert "## left: answered\nLeft is 1." in told
    assert "## right: answered\nRight is 2." in told
    assert "Left" not in prompt_of(model.begun["right"])
    assert_valid(agent.messages)


async def test_no_more_than_four_run_beside_each_other(tmp_path: Path) -> None:  # c-s9
    names = [f"t{number}" for number in range(6)]
    model = Parts(
        delegated(*((name, []) for name in names)),
        text_answer("ok"),
        parts={name: [text_answer(name)] for name in names},
        held=MOST_PARALLEL,
    )
    result = await delegating(tmp_path, model).work("go", ignore)
    assert (result.text, model.most, sorted(model.asked)) == ("ok", MOST_PARALLEL, names)


@pytest.mark.parametrize(
    ("tasks", "told"),
    [
        pytest.param([], "expected 1 to 8", id="c-s9-none"),
        pytest.param([(str(number), []) for number in range(9)], "expected 1 to 8", id="c-s9-too-many"),
        pytest.param([("a", ["b"])], "there is no task b", id="c-s9-unknown"),
        pytest.param([("a", ["b"]), ("b", ["a"])], "these wait for each other", id="c-s9-circle"),
        pytest.param([("a", ["a"])], "these wait for each other", id="c-s9-itself"),
        pytest.param([("a", []), ("a", [])], "two tasks are called `a`", id="c-s9-twice"),
        pytest.param([("a\x1b", [])], "`name`", id="c-s9-odd-name"),
        pytest.param([("a", []), ("b", []), ("c", []), ("d", [])], "3 more may be delegated", id="c-s9-most"),
    ],
)
async def test_what_is_wrong_is_told_to_the_model_and_nothing_is_begun(
    tmp_path: Path, tasks: list[tuple[str, list[str]]], told: str
) -> None:
    model = Parts(delegated(*tasks), text_answer("I see."), parts={name: [text_answer("no")] for name in "abcd"})
    agent = delegating(tmp_path, model, most=3)
    assert (await agent.work("go", ignore)).text == "I see."
    (result,) = tool_results(agent.messages)
    assert result.startswith("!")
    assert told in result
    assert model.asked == []


async def test_what_comes_after_a_failure_is_not_run(tmp_path: Path) -> None:  # c-s9
    model = Parts(
        delegated(("a", []), ("b", ["a"]), ("c", ["b"]), ("d", [])),
        text_answer("ok"),
        parts={"a": [REFUSED], "b": [text_answer("b")], "c": [text_answer("c")], "d": [text_answer("D.")]},
    )
    agent = delegating(tmp_path, model)
    await agent.work("go", ignore)
    (result,) = tool_results(agent.messages)
    assert [part.splitlines()[0] for part in result.split("\n\n")] == [
        "## a: failed",
        "## b: not run",
        "## c: not run",
        "## d: answered",
    ]
    assert "`a`, which it comes after, was not done" in result
    assert sorted(model.asked) == ["a", "d"]


async def test_no_other_is_begun_when_three_have_failed(tmp_path: Path) -> None:  # c-s9
    names = [f"t{number}" for number in range(8)]
    model = Parts(
        delegated(*((name, []) for name in names)),
        text_answer("ok"),
        parts={name: [REFUSED] for name in names},
        held=MOST_PARALLEL,
    )
    agent = delegating(tmp_path, model)
    await agent.work("go", ignore)
    (result,) = tool_results(agent.messages)
    assert result.startswith("!")  # not one was done
    assert len(model.asked) < len(names)
    assert "not run\n3 other tasks have failed" in result


@pytest.mark.parametrize(
    ("permissions", "more"),
    [
        pytest.param(ALL, {"edit_file", "write_file", "run"}, id="c-s9-allowed"),
        pytest.param(Permissions(write="ask", shell="ask"), set(), id="c-s9-asked"),  # noqa: S604  a permission
        pytest.param(Permissions(write="yes", shell="ask"), {"edit_file", "write_file"}, id="c-s9-some"),  # noqa: S604  as above
    ],
)
async def test_a_task_has_the_tools_nobody_is_asked_for(
    tmp_path: Path, permissions: Permissions, more: set[str]
) -> None:
    nested: dict[str, object] = {"tasks": [{"name": "b", "prompt": "b"}]}
    write: dict[str, object] = {"path": "x", "content": "x"}
    model = Parts(
        delegated(("a", [])),
        text_answer("ok"),
        parts={
            "a": [tool_call_answer(("delegate", nested), ("write_file", write)), text_answer("done")],
            "b": [text_answer("no")],
        },
    )
    agent = delegating(tmp_path, model, permissions=permissions)
    await agent.work("go", ignore, lambda _: True)
    assert tools_of(model.begun["a"]) == {"list_dir", "read_file", "find", "search", "plan"} | more
    assert "delegate" in tools_of(model.requests[0])
    assert model.asked == ["a", "a"]
    assert (tmp_path / "x").exists() is ("write_file" in more)


async def test_a_task_has_six_answers_at_most(tmp_path: Path) -> None:  # c-s9
    model = Parts(delegated(("a", [])), text_answer("ok"), parts={"a": [tool_call_answer(("list_dir", {}))]})
    agent = delegating(tmp_path, model)
    await agent.work("go", ignore)
    assert len(model.asked) == MOST_ROUNDS
    assert tool_results(agent.messages)[0].startswith("!## a: limit\n")


async def test_what_tasks_spend_the_agent_has_spent(tmp_path: Path) -> None:  # c-s9
    folder = Sessions(tmp_path / "sessions", Redactor())
    file = folder.begin("20261122-120000-abcdef", created=1.0, workspace=str(tmp_path), model=None)
    model = Parts(
        delegated(("a", []), ("b", [])),
        text_answer("ok"),
        parts={"a": [tool_call_answer(("list_dir", {})), text_answer("a")], "b": [text_answer("b")]},
    )
    agent = delegating(tmp_path, model, session=file)
    result = await agent.work("go", ignore)
    file.close()
    assert (result.spent.model_calls, result.spent.calls) == (5, 2)
    assert (result.spent.input_tokens, result.spent.output_tokens) == (50, 25)
    assert agent.spent == result.spent
    assert folder.resume("20261122-120000-abcdef").session.spent == result.spent


@pytest.mark.parametrize(
    ("budget", "asked", "outcome"),
    [
        pytest.param(Budget(model_calls=8), 4, "answered", id="c-s9-shares"),  # 7 left: 2, 2; the agent has the rest
        pytest.param(Budget(model_calls=2), 0, "answered", id="c-s9-nothing-to-share"),
        pytest.param(Budget(total_tokens=20), 0, "budget", id="c-s9-tokens"),
        pytest.param(Budget(calls=1), 2, "answered", id="c-s9-calls"),
    ],
)
async def test_a_budget_is_looked_at_before_each_task(tmp_path: Path, budget: Budget, asked: int, outcome: str) -> None:
    script = [tool_call_answer(("list_dir", {})), tool_call_answer(("find", {"pattern": "*"})), text_answer("done")]
    model = Parts(delegated(("a", []), ("b", [])), text_answer("ok"), parts={"a": [*script], "b": [*script]})
    agent = delegating(tmp_path, model, budget=budget)
    result = await agent.work("go", ignore)
    assert (len(model.asked), result.outcome) == (asked, outcome)
    assert budget.model_calls is None or result.spent.model_calls <= budget.model_calls
    assert budget.calls is None or result.spent.calls <= budget.calls
    assert_valid(agent.messages)


async def test_progress_tells_what_each_does(tmp_path: Path) -> None:  # c-s9
    model = Parts(
        delegated(("a", [])), text_answer("ok"), parts={"a": [tool_call_answer(("list_dir", {})), text_answer("done")]}
    )
    seen: list[RunEvent] = []
    await delegating(tmp_path, model).work("go", seen.append)
    told = "".join(event.text for event in seen if isinstance(event, CallProgress))
    assert told == "a: begins\na: list_dir {}\na: answered\n"


async def test_cancelled_it_cancels_its_tasks(tmp_path: Path) -> None:  # c-s9
    running = asyncio.Event()

    def feed(event: RunEvent) -> None:
        if isinstance(event, CallProgress) and "a: run" in event.text:
            running.set()

    script: list[Response | Failure] = [tool_call_answer(("run", {"command": "sleep 1000"})), text_answer("never")]
    model = Parts(delegated(("a", []), ("b", ["a"])), text_answer("fine"), parts={"a": script, "b": script})
    agent = delegating(tmp_path, model)
    task = asyncio.ensure_future(agent.work("go", feed))
    await running.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert_valid(agent.messages)
    assert (model.asked, agent.spent.model_calls) == (["a"], 2)
    assert (await agent.work("go on", ignore)).text == "fine"


@pytest.mark.parametrize(
    ("flags", "denied", "given"),
    [
        pytest.param([], "", False, id="c-s9-off"),
        pytest.param(["--delegate"], "", True, id="c-s9-flag"),
        pytest.param(["--delegate", "--read-only"], "", True, id="c-s9-read-only"),
        pytest.param(["--delegate"], "delegate", False, id="c-s9-denied-by-policy"),
    ],
)
def test_a_flag_gives_the_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str], denied: str, *, given: bool
) -> None:
    model = Scripted(text_answer("ok"))

    @asynccontextmanager
    async def opening(_: Config, **_others: object) -> AsyncGenerator[Scripted]:
        yield model

    monkeypatch.setattr(gateway_backend, "open_gateway_backend", opening)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    (folder := tmp_path / "project").mkdir()
    (policy := tmp_path / "policy.toml").write_text(f'deny = ["{denied}"]\n' if denied else "")
    whose = ["--folder", str(folder), "--policy", str(policy), "--no-session"]
    assert cli.main(["agent", "go", *whose, *flags]) == 0
    assert ("delegate" in tools_of(model.requests[0])) is given


async def test_no_more_tasks_are_taken_on_than_allowed(tmp_path: Path) -> None:  # c-s9
    model = Parts(
        delegated(("a", []), ("b", [])),
        delegated(("c", []), ("d", [])),
        delegated(("c", [])),
        text_answer("ok"),
        parts={name: [text_answer(name)] for name in "abcd"},
    )
    agent = delegating(tmp_path, model, most=3)
    await agent.work("go", ignore)
    assert [result.startswith("!") for result in tool_results(agent.messages)] == [False, True, False]
    assert sorted(model.asked) == ["a", "b", "c"]
