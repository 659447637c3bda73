"""Hooks of an agent: commands that run before and after prompts and calls, and what they stop or add."""

from __future__ import annotations

import json
import os
import sys
import tracemalloc
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import psutil  # type: ignore[import-untyped]  # it has none
import pytest

from tests.agent.scripted_agent import text_answer, tool_call_answer, tool_results
from xenoglot.agent.agent import Agent, AgentSettings
from xenoglot.agent.hooks import MOST_FOLLOW_UPS, MOST_OUTPUT, Hook, Hooks
from xenoglot.agent.permissions import Permissions, tools_for
from xenoglot.agent.policy import checked
from xenoglot.agent.sandbox.workspace import Workspace
from xenoglot.backends.redaction import Redactor
from xenoglot.backends.scripted import Scripted
from xenoglot.client.async_ import AsyncClient
from xenoglot.errors import ConfigurationError
from xenoglot.model.content import Text, ToolCall
from xenoglot.model.request import Tool
from xenoglot.tools.context import ToolContext
from xenoglot.tools.tool import LocalTool, SchemaTool, ToolError

if TYPE_CHECKING:
    from pathlib import Path

    from xenoglot.agent.hooks import HookEvent
    from xenoglot.model.response import Response

READ: tuple[str, dict[str, object]] = ("read_file", {"path": "a.txt"})
PATIENCE = 120.0
SECRET = "sk-a-secret-of-ours"


def hook(on: HookEvent, program: str, tools: tuple[str, ...] = ("*",), seconds: float = 60.0) -> Hook:
    """Return a hook that runs a Python program, which has the event as `event`."""
    start = "import json, sys; event = json.load(sys.stdin); "
    return Hook(on=on, command=(sys.executable, "-c", start + program), tools=tools, seconds=seconds)


def agent(
    folder: Path, *turns: Response, hooks: list[Hook], tools: list[LocalTool] | None = None
) -> tuple[Agent, Scripted]:
    """Return an agent in a folder, and the model behind it."""
    folder /= "project"
    folder.mkdir()
    (folder / "a.txt").write_text("hello\n")
    model = Scripted(*turns)
    made = tools_for(Workspace(folder), Permissions(write="yes", shell="no"), environ={})  # noqa: S604  a permission
    around = Hooks(hooks, str(folder), {"PATH": os.environ["PATH"], "MODE": "test"}, Redactor([SECRET]))
    return Agent(AsyncClient(model), tools or made, AgentSettings(system="Work."), hooks=around), model


def prompts(model: Scripted) -> list[str]:
    """Return the last turn of each request."""
    return ["".join(part.text for part in one.messages[-1].content if isinstance(part, Text)) for one in model.requests]


async def test_c_s7_a_hook_adds_to_a_prompt(tmp_path: Path) -> None:
    program = f"import os; print(event, os.environ['MODE'], '{SECRET}', sorted(os.listdir()))"
    working, model = agent(tmp_path, text_answer("ok"), hooks=[hook("before_prompt", program)])
    await working.work("Look.", lambda _: None)
    expected = "{'event': 'before_prompt', 'prompt': 'Look.'} test [redacted] ['a.txt']"
    assert prompts(model) == [f"Look.\n\n{expected}"]


async def test_c_s7_a_hook_stops_a_prompt(tmp_path: Path) -> None:
    hooks = [hook("before_prompt", "sys.exit('not today')"), hook("before_prompt", "open('second', 'w')")]
    working, model = agent(tmp_path, text_answer("ok"), hooks=hooks)
    with pytest.raises(ConfigurationError, match="a hook stopped the prompt: not today"):
        await working.work("Look.", lambda _: None)
    assert (model.requests, working.messages, (tmp_path / "project" / "second").exists()) == ([], (), False)


async def test_c_s7_a_hook_stops_a_call(tmp_path: Path) -> None:
    seen: list[Any] = []
    program = "open('../seen', 'w').write(json.dumps(event)); sys.exit('read another file')"
    working, _ = agent(
        tmp_path,
        tool_call_answer(READ, ("list_dir", {})),
        text_answer("ok"),
        hooks=[hook("before_tool", program, ("read_*",))],
    )
    result = await working.work("Look.", seen.append)
    assert tool_results(result.messages) == ["!a hook stopped the call: read another file", "a.txt (6)"]
    event = {"event": "before_tool", "tool": "read_file", "arguments": {"path": "a.txt"}}
    assert json.loads((tmp_path / "seen").read_text()) == event


async def test_c_s7_a_hook_after_a_call_adds_to_its_result(tmp_path: Path) -> None:
    hooks = [
        hook("after_tool", "print(event['result'].strip(), event['is_error'])", ("read_file",)),
        hook("after_tool", "sys.exit('not formatted')", ("read_file",)),
    ]
    working, _ = agent(tmp_path, tool_call_answer(READ), text_answer("ok"), hooks=hooks)
    result = await working.work("Look.", lambda _: None)
    assert tool_results(result.messages) == ["!hello\n[hook] hello False\n[hook] not formatted"]


async def test_c_s7_a_hook_after_a_prompt_sends_the_model_back_to_work(tmp_path: Path) -> None:
    program = "sys.exit(None if event['answer'] == 'better' else 'the tests fail')"
    working, model = agent(tmp_path, text_answer("done"), text_answer("better"), hooks=[hook("after_prompt", program)])
    result = await working.work("Mend it.", lambda _: None)
    assert (result.text, prompts(model)) == ("better", ["Mend it.", "the tests fail"])


async def test_a_hook_that_is_never_content_is_not_asked_for_ever(tmp_path: Path) -> None:
    turns = [text_answer("done")] * (MOST_FOLLOW_UPS + 2)
    working, model = agent(tmp_path, *turns, hooks=[hook("after_prompt", "sys.exit('no')")])
    result = await working.work("Mend it.", lambda _: None)
    assert (result.outcome, len(model.requests)) == ("answered", MOST_FOLLOW_UPS + 1)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        pytest.param(("/no/such/program",), "`/no/such/program` could not be started: FileNotFoundError", id="missing"),
        pytest.param(("sh", "-c", "exit 3"), "`sh` ended with exit code 3", id="silent"),
        pytest.param(("sh", "-c", "kill -9 $$"), "`sh` ended with exit code -9", id="killed"),
        pytest.param(
            ("sh", "-c", "head -c 20000 /dev/zero | tr '\\0' x >&2; exit 1"), "x" * MOST_OUTPUT + " ...", id="long"
        ),
    ],
)
def test_what_does_not_succeed_stops_the_work(tmp_path: Path, command: tuple[str, ...], expected: str) -> None:
    hooks = Hooks([Hook(on="before_prompt", command=command)], str(tmp_path), os.environ, Redactor())
    assert hooks.run("before_prompt", {"prompt": "x"}).stopped == expected


def test_a_hook_that_prints_without_end_is_read_in_bounded_memory(tmp_path: Path) -> None:
    """Of 64 MB on each channel its first characters are kept, and no more than a few reads are held."""
    program = "[(sys.stdout.write('o' * 2**20), sys.stderr.write('e' * 2**20)) for _ in range(64)]"
    hooks = Hooks([hook("before_prompt", program)], str(tmp_path), os.environ, Redactor())
    tracemalloc.start()
    try:
        output = hooks.run("before_prompt", {"prompt": "x" * 2**20}).output
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert output == "o" * MOST_OUTPUT + " ..."
    assert most < 16 * 2**20


@pytest.mark.parametrize("size", [MOST_OUTPUT - 1, MOST_OUTPUT, MOST_OUTPUT + 1])
def test_what_a_hook_prints_is_cut_behind_the_most(tmp_path: Path, size: int) -> None:
    hooks = Hooks(
        [hook("before_prompt", f"print(' ' * 70000 + 'é' * {size} + ' ' * 70000)")], str(tmp_path), {}, Redactor()
    )
    output = hooks.run("before_prompt", {"prompt": "x"}).output
    assert output == "é" * min(size, MOST_OUTPUT) + (" ..." if size > MOST_OUTPUT else "")


@pytest.mark.parametrize("before", [MOST_OUTPUT - 5, 65536 - 5])
def test_a_secret_that_is_cut_is_not_shown(tmp_path: Path, before: int) -> None:
    program = f"print('{SECRET} ' * 3000 + 'x' * {before} + '{SECRET}')"
    hooks = Hooks([hook("before_prompt", program)], str(tmp_path), os.environ, Redactor([SECRET]))
    output = hooks.run("before_prompt", {"prompt": "x"}).output
    assert output == ("[redacted] " * 3000)[:MOST_OUTPUT] + " ..."
    exact = f"print('x' * {before} + '{SECRET}')"
    hooks = Hooks([hook("before_prompt", exact)], str(tmp_path), os.environ, Redactor([SECRET]))
    assert "sk-" not in hooks.run("before_prompt", {"prompt": "x"}).output


def test_a_hook_need_not_read_its_input(tmp_path: Path) -> None:
    hooks = Hooks([Hook(on="before_prompt", command=("echo", "yes"))], str(tmp_path), os.environ, Redactor())
    assert hooks.run("before_prompt", {"prompt": "x" * 2**20}).output == "yes"


def test_a_hook_that_hangs_is_ended_with_what_it_started(tmp_path: Path) -> None:
    command = ("sh", "-c", "sleep 600 & echo $! > child; wait")
    hooks = Hooks([Hook(on="before_prompt", command=command, seconds=1.0)], str(tmp_path), os.environ, Redactor())
    assert hooks.run("before_prompt", {"prompt": "x" * 1_000_000}).stopped == "`sh` took longer than 1 seconds"
    written = (tmp_path / "child").read_text() if (tmp_path / "child").exists() else ""
    if written:  # the shell came to it within the second
        with suppress(psutil.NoSuchProcess):
            psutil.Process(int(written)).wait(PATIENCE)


def test_a_blocking_tool_has_its_hooks_too(tmp_path: Path) -> None:
    def fail(_: object, __: ToolContext) -> str:
        raise ToolError("it is broken")

    hooks = Hooks([hook("after_tool", "print(event['is_error'])")], str(tmp_path), os.environ, Redactor())
    (tool,) = hooks.around([SchemaTool(Tool(name="fail"), fail)])
    made = tool.run({}, ToolContext(ToolCall(id="a", name="fail", arguments="{}")))
    assert made.text == "it is broken\n[hook] True"  # type: ignore[attr-defined]  # it is a `ToolOutput`


@pytest.mark.parametrize(
    ("hooks", "expected"),
    [
        pytest.param([{"on": "later", "command": ["x"]}], 'hooks[0].on: found "later"; expected one of', id="moment"),
        pytest.param([{"on": "before_tool"}], "hooks[0].command: required, and not there", id="command"),
        pytest.param(
            [{"on": "before_tool", "command": []}],
            "hooks[0].command: found a list; expected array of length >= 1",
            id="empty",
        ),
        pytest.param(
            [{"on": "before_tool", "command": ["x"], "tools": ["rn"]}], 'hooks[0].tools[0]: found "rn"; did', id="tool"
        ),
        pytest.param(
            [{"on": "before_tool", "command": ["x"], "seconds": 0}], "hooks[0].seconds: found 0", id="seconds"
        ),
    ],
)
def test_mistakes_in_a_policy(hooks: list[dict[str, Any]], expected: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        checked({"hooks": hooks}, {})
    assert expected in str(caught.value)
