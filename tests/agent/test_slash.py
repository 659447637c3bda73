"""The commands between two prompts: what each tells or changes, and that none asks the model."""

from __future__ import annotations

import io
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from tests.agent.scripted_agent import agent_in, assert_valid, text_answer, tool_call_answer
from xenoglot import cli
from xenoglot.agent import slash
from xenoglot.agent.agent import AgentSettings
from xenoglot.agent.permissions import Permissions
from xenoglot.agent.session.session_files import Sessions
from xenoglot.backends.redaction import Redactor
from xenoglot.backends.scripted import Scripted
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.process import gateway_backend
from xenoglot.model.content import Text, ToolCall
from xenoglot.model.request import Message
from xenoglot.model.request import Tool as Spec
from xenoglot.tools.budget import Budget, RunSpend
from xenoglot.tools.tool import SchemaTool

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from xenoglot.agent.session.session_files import SessionFile
    from xenoglot.gateway.config.load import Config

ID = "20261122-150000-abcdef"
MANNER = AgentSettings(
    system="Work.\n" + "x" * 500, budget=Budget(total_tokens=100, calls=7, cost=1.0), options={"model": "small"}
)
ASKED = Permissions(write="ask")
PLAN = '{"steps": [{"step": "look", "status": "done"}, {"step": "mend"}]}'


def here_in(folder: Path, session: SessionFile | None = None) -> slash.SlashContext:
    agent = agent_in(folder, Scripted(text_answer("never")), ASKED, session, MANNER)
    return slash.SlashContext(agent=agent, folder="project", window={"small": 4096}.get)


def typed(here: slash.SlashContext, text: str) -> list[str]:
    lines = slash.run_command(here, text)
    assert lines is not None
    return list(lines)


def user(text: str) -> Message:
    return Message(role="user", content=(Text(text=text),))


def planned(arguments: str) -> Message:
    return Message(role="assistant", content=(ToolCall(id="c", name="plan", arguments=arguments),))


@pytest.mark.parametrize(
    ("command", "told"),
    [
        pytest.param("/help", "/model [NAME]  which model answers", id="c-s10-help"),
        pytest.param("/status", "model small, folder project", id="c-s10-status"),
        pytest.param("/status", "tokens left: 85 of 100", id="c-s10-status-tokens"),
        pytest.param("/status", "cost left: not known", id="c-s10-status-cost"),
        pytest.param("/status", "calls left: 7 of 7", id="c-s10-status-calls"),
        pytest.param("/usage", "10 tokens in, 5 out, 1 answers, 0 calls", id="c-s10-usage"),
        pytest.param("/context", "2 turns, about ", id="c-s10-context"),
        pytest.param("/context", "the model holds 4096", id="c-s10-window"),
        pytest.param("/prompt", "Work.", id="c-s10-prompt"),
        pytest.param("/memory", "no notes", id="c-s10-memory"),
        pytest.param("/model", "the model is small", id="c-s10-model"),
        pytest.param("/plan", "[x] look\n[ ] mend", id="c-s10-plan"),
        pytest.param("/tools", "plan, edit_file (asks)", id="c-s10-tools"),
        pytest.param("/mcp", "no tools of MCP servers", id="c-s10-mcp"),
        pytest.param(
            "/permissions", "allowed: list_dir, read_file, find, search, plan\nasks: edit_file", id="c-s10-may"
        ),
        pytest.param("/permissions", "not given: run", id="c-s10-may-not"),
        pytest.param("/session", "nothing is kept", id="c-s10-session"),
    ],
)
def test_a_command_tells(tmp_path: Path, command: str, told: str) -> None:
    here = here_in(tmp_path)
    here.agent.messages = (user("go"), planned(PLAN))
    here.agent.spent = RunSpend(input_tokens=10, output_tokens=5, model_calls=1, cost=None)
    lines = typed(here, command)
    assert told in "\n".join(lines)
    assert all(len(line) <= 400 and "\n" not in line for line in lines)


def test_the_whole_prompt_is_shown(tmp_path: Path) -> None:
    assert "".join(typed(here_in(tmp_path), "/prompt")) == "Work." + "x" * 500


@pytest.mark.parametrize(
    "odd",
    ["", "{", "[]", '{"steps": 3}', '{"steps": [{"status": "odd"}]}', '{"steps": [' + '{"step":"x"},' * 60 + "]}"],
)
def test_a_plan_that_was_refused_is_passed_over(tmp_path: Path, odd: str) -> None:
    here = here_in(tmp_path)
    here.agent.messages = (planned(odd),)
    assert typed(here, "/plan") == ["there is no plan"]
    here.agent.messages = (planned(PLAN), planned(odd))
    assert typed(here, "/plan") == ["[x] look", "[ ] mend"]


def test_what_is_there_is_told(tmp_path: Path) -> None:
    tool = SchemaTool(Spec(name="my__add"), lambda _, __: None, needs_approval=True)
    here = slash.SlashContext(
        agent=here_in(tmp_path).agent,
        folder="project",
        window=lambda _: None,
        notes="AGENTS.md",
        session=ID,
        outside=[tool],
    )
    told = [line for command in ("/mcp", "/memory", "/session", "/context") for line in typed(here, command)]
    assert told[:3] == ["my__add (asks)", "AGENTS.md was read", f"{ID}: go on with --resume {ID}"]
    assert told[-1] == "how many tokens the model holds is not known"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("/stats", "did you mean `/status`?", id="c-s10-nearly"),
        pytest.param("/modell large", "did you mean `/model`?", id="c-s10-nearly-and-more"),
        pytest.param("/zzz", "there is no command `/zzz`; /help", id="c-s10-far-off"),
        pytest.param("/", "there is no command `/`", id="c-s10-nothing"),
        pytest.param("/clear all of it", "takes no argument", id="c-s10-too-much"),
    ],
)
def test_what_is_no_command_is_told_with_the_nearest(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        slash.run_command(here_in(tmp_path), text)
    assert told in str(caught.value)


@pytest.mark.parametrize("text", ["go", "/etc/hosts", "/var is full: why?", "a /help", "/Help me", "//"])
def test_anything_else_is_a_prompt(tmp_path: Path, text: str) -> None:
    assert slash.run_command(here_in(tmp_path), text) is None


async def test_a_model_is_changed_for_what_follows(tmp_path: Path) -> None:
    model = Scripted(text_answer("one"), text_answer("two"))
    agent = agent_in(tmp_path, model, manner=AgentSettings(system="Work.", options={"model": "small", "max_tokens": 9}))
    here = slash.SlashContext(agent=agent, folder="project", window=lambda _: None)
    await agent.work("first", lambda _: None)
    assert typed(here, "/model  large ") == ["the model is large"]
    await agent.work("second", lambda _: None)
    assert [(request.model, request.sampling.max_tokens) for request in model.requests] == [("small", 9), ("large", 9)]


def stored_sessions(tmp_path: Path) -> Sessions:
    return Sessions(tmp_path / "state", Redactor())


async def test_a_conversation_is_shortened_and_kept_so(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("word " * 900)
    session = stored_sessions(tmp_path).begin(ID, created=0, workspace="w", model=None)
    calls = [tool_call_answer(("read_file", {"path": "a.txt"}), first=number) for number in range(8)]
    model = Scripted(*calls, text_answer("done"))
    agent = agent_in(tmp_path, model, session=session)
    here = slash.SlashContext(agent=agent, folder="project", window=lambda _: None)
    assert typed(here, "/compact") == ["there is nothing to shorten"]
    await agent.work("go", lambda _: None)
    before = len(model.requests)
    (line,) = typed(here, "/compact")
    assert line.startswith("the conversation was shortened: about ")
    session.close()
    again = stored_sessions(tmp_path).resume(ID)
    assert again.session.messages == agent.messages
    again.close()
    assert_valid(agent.messages)
    assert len(model.requests) == before


async def test_a_new_conversation_is_the_same_session(tmp_path: Path) -> None:
    session = stored_sessions(tmp_path).begin(ID, created=0, workspace="w", model=None)
    agent = agent_in(tmp_path, Scripted(text_answer("done")), session=session)
    here = slash.SlashContext(agent=agent, folder="project", window=lambda _: None)
    await agent.work("go", lambda _: None)
    spent = agent.spent
    typed(here, "/clear")
    session.close()
    again = stored_sessions(tmp_path).resume(ID)
    again.close()
    assert (again.session.messages, again.session.spent) == ((), spent)
    assert agent.messages == ()


def test_commands_stand_between_prompts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # c-s10
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    model = Scripted(text_answer("one"), text_answer("two"))

    @asynccontextmanager
    async def opening(_: Config, **_others: object) -> AsyncGenerator[Scripted]:
        yield model

    lines = ["/memory", "/modle", "first", "/model large", "/clear", "second", "/session", "/help", "/exit"]
    (tmp_path / "AGENTS.md").write_text("Be brief.\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(gateway_backend, "open_gateway_backend", opening)
    monkeypatch.setattr(sys, "stdin", Terminal("".join(f"{line}\n" for line in lines)))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    flags = ["--upstream", "http://127.0.0.1:9", "--model", "small"]
    assert cli.main(["agent", "--plain", *flags]) == 0
    out, err = capsys.readouterr()
    assert out == "one\ntwo\n"
    assert [request.model for request in model.requests] == ["small", "large"]
    assert len(model.requests[1].messages) == 2
    for told in ("AGENTS.md was read", "did you mean `/model`?", ": go on with --resume 2", "/compact "):
        assert told in err
