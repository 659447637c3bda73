"""Policies: what a file of the user's denies, asks, allows and limits, and what it is refused for."""

from __future__ import annotations

import argparse
import io
import os
import sys
import tomllib
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.agent.scripted_agent import ALL, text_answer, tool_call_answer, tool_results
from xenoglot import cli
from xenoglot.agent.permissions import Permissions, tools_for
from xenoglot.agent.policy import BUILT_IN, Policy, checked, policy_of
from xenoglot.agent.sandbox.workspace import Workspace
from xenoglot.backends.scripted import Scripted
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.process import gateway_backend
from xenoglot.model.request import Tool
from xenoglot.tools.tool import LocalTool, SchemaTool

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from xenoglot.gateway.config.load import Config
    from xenoglot.model.response import Response

SECRET = "sk-0123456789-secret"
LOOKING = {"list_dir", "read_file", "find", "search", "plan"}


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, Scripted]]:
    """Run the command in a folder under a policy, with a script for a model and nobody to ask."""
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))

    def work(policy: str, *flags: str, turns: tuple[Response, ...] = (text_answer("ok"),)) -> tuple[int, Scripted]:
        (tmp_path / "policy.toml").write_text(policy)
        model = Scripted(*turns)

        @asynccontextmanager
        async def opening(_: Config, **_others: object) -> AsyncGenerator[Scripted]:
            yield model

        monkeypatch.setattr(gateway_backend, "open_gateway_backend", opening)
        code = cli.main(["agent", "go", "--plain", "--no-session", "--policy", "../policy.toml", *flags])
        return code, model

    return work


def given(model: Scripted) -> set[str]:
    return {str(getattr(tool, "name", "")) for tool in model.requests[0].tools}


@pytest.mark.parametrize(
    ("policy", "flags", "tools"),
    [
        pytest.param("", ["--allow-shell"], LOOKING | {"run"}, id="nothing"),
        pytest.param('deny = ["run"]', ["--allow-shell"], LOOKING, id="c-s7-deny-over-a-flag"),
        pytest.param('deny = ["*_file"]', ["--allow-write"], LOOKING - {"read_file"}, id="c-s7-a-pattern"),
        pytest.param('allow = ["write_file"]', [], LOOKING | {"write_file"}, id="c-s7-one-of-two"),
        pytest.param('allow = ["*"]', ["--read-only"], LOOKING, id="c-s7-no-wider-than-read-only"),
        pytest.param('allow = ["run"]\ndeny = ["r*"]', [], LOOKING - {"read_file"}, id="c-s7-deny-over-allow"),
        pytest.param('ask = ["run"]', ["--allow-shell"], LOOKING, id="c-s7-ask-and-nobody-there"),
        pytest.param('allow = ["run"]\nask = ["run"]', [], LOOKING, id="c-s7-ask-over-allow"),
    ],
)
def test_a_policy_says_which_tools_are_given(
    work: Callable[..., tuple[int, Scripted]], policy: str, flags: list[str], tools: set[str]
) -> None:
    code, model = work(policy, *flags)
    assert code == 0
    assert given(model) == tools


def test_where_a_person_is_a_policy_says_what_is_asked(tmp_path: Path) -> None:
    policy = Policy(ask=("read_*",), allow=("run",))
    made = tools_for(Workspace(tmp_path), policy.widened(Permissions(write="ask")), environ={})
    asked = {tool.spec.name for tool in policy.applied(made, can_ask=True) if tool.needs_approval}
    assert asked == {"read_file", "edit_file", "write_file"}


@pytest.mark.parametrize("pattern", ["my__add", "my__*", "mcp_*", "mcp_my__add"])
def test_tools_from_outside_are_meant_by_their_names_and_by_where_they_are_from(pattern: str) -> None:
    tool: LocalTool = SchemaTool(Tool(name="my__add"), lambda _, __: None)
    assert Policy(deny=(pattern,)).applied([tool], can_ask=True, outside=True) == []
    assert Policy(deny=("mcp_*",)).applied([tool], can_ask=True) == [tool]


def test_the_names_that_patterns_are_compared_with_are_those_of_the_tools(tmp_path: Path) -> None:
    assert tuple(tool.spec.name for tool in tools_for(Workspace(tmp_path), ALL, environ={})) == BUILT_IN


def test_a_message_is_told_before_what_a_flag_adds(work: Callable[..., tuple[int, Scripted]]) -> None:
    _, model = work('message = "Write no comments."', "--system", "Be brief.")
    assert "# From the user\nWrite no comments.\n\nBe brief." in instructions(model)


def instructions(model: Scripted) -> str:
    return "".join(getattr(part, "text", "") for part in model.requests[0].messages[0].content)


def test_variables_are_set_for_commands_and_secrets_are_not_shown(
    work: Callable[..., tuple[int, Scripted]], monkeypatch: pytest.MonkeyPatch
) -> None:  # c-s7
    monkeypatch.setenv("OURS", SECRET)
    _, model = work(
        '[env]\nMODE = "test"\nDEPLOY_TOKEN = { from = "OURS" }',
        "--allow-shell",
        turns=(tool_call_answer(("run", {"command": "echo $MODE ${#DEPLOY_TOKEN} $DEPLOY_TOKEN"})), text_answer("ok")),
    )
    assert tool_results(model.requests[1].messages) == [f"test {len(SECRET)} [redacted]"]


@pytest.mark.parametrize(
    ("policy", "flags", "limits"),
    [
        pytest.param("calls = 3", [], (50, None, None, 3, None), id="c-s7-the-file-alone"),
        pytest.param("calls = 3", ["--max-calls", "2"], (50, None, None, 2, None), id="c-s7-the-flag-is-stricter"),
        pytest.param("calls = 3", ["--max-calls", "9"], (50, None, None, 3, None), id="c-s7-the-file-is-stricter"),
        pytest.param(
            "rounds = 5\ntokens = 10\ncost = 0\nseconds = 1.5",
            ["--max-cost", "1"],
            (5, 10, 0, None, 1.5),
            id="c-s7-all",
        ),
    ],
)
def test_the_stricter_limit_holds(policy: str, flags: list[str], limits: tuple[float | None, ...]) -> None:
    parser = argparse.ArgumentParser()
    for flag, default in (("rounds", 50), ("tokens-total", None), ("cost", None), ("calls", None), ("seconds", None)):
        parser.add_argument(f"--max-{flag}", type=float, default=default)
    parser.set_defaults(system=None)
    narrowed = checked(tomllib.loads(f"[limits]\n{policy}"), {}).narrowed(parser.parse_args(flags))
    assert (
        narrowed.max_rounds,
        narrowed.max_tokens_total,
        narrowed.max_cost,
        narrowed.max_calls,
        narrowed.max_seconds,
    ) == limits


def test_a_limit_of_the_file_ends_the_work(
    work: Callable[..., tuple[int, Scripted]], capsys: pytest.CaptureFixture[str]
) -> None:
    code, _ = work("[limits]\nseconds = 0", "--max-seconds", "100")
    assert code == 5
    assert "budget" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("plain", "told"),
    [
        pytest.param({"denny": []}, "denny: unknown; did you mean `deny`?", id="unknown-key"),
        pytest.param({"limits": {"cals": 1}}, "limits.cals: unknown; did you mean `calls`?", id="unknown-limit"),
        pytest.param({"deny": "run"}, 'deny: found "run"; expected array', id="no-list"),
        pytest.param({"deny": ["Runn"]}, 'deny[0]: found "Runn"; did you mean `run`?', id="nearly-a-tool"),
        pytest.param({"allow": ["EDIT_FILE"]}, "did you mean `edit_file`?", id="capitals"),
        pytest.param({"limits": {"calls": 0}}, "limits.calls: found 0", id="no-calls"),
        pytest.param({"limits": {"calls": True}}, "limits.calls: found true", id="no-number"),
        pytest.param({"limits": {"cost": float("nan")}}, "limits.cost: found nan", id="no-number-at-all"),
        pytest.param({"limits": {"cost": float("inf")}}, "limits.cost: found inf", id="endless"),
        pytest.param({"limits": 3}, "limits: found 3; expected a table", id="no-table"),
        pytest.param({"env": {"A_TOKEN": "x"}}, "env.A_TOKEN: it may be a secret", id="secret-by-name"),
        pytest.param({"env": {"A": "ghp_0123456789abcdef"}}, "env.A: it may be a secret", id="secret-by-value"),
        pytest.param({"env": {"A": "https://me:pw@example.com"}}, "env.A: it may be a secret", id="secret-in-a-url"),
        pytest.param({"env": {"A": 3}}, "env.A: expected a text", id="variable-of-a-number"),
        pytest.param({"env": {"A": "a\0b"}}, "env.A: expected a text", id="variable-with-a-nul"),
        pytest.param({"env": {"A=B": "x"}}, 'env."A=B": no name', id="no-name"),
        pytest.param({"env": {"A": {"from": "B", "x": "C"}}}, "env.A: expected a text", id="more-than-from"),
        pytest.param({"env": {"A": {"from": "GONE"}}}, 'env.A: there is no variable "GONE"', id="not-there"),
        pytest.param({"env": "x"}, 'env: found "x"', id="variables-of-no-table"),
    ],
)
def test_what_is_wrong_is_told_by_its_path(plain: dict[str, Any], told: str) -> None:  # c-s7
    with pytest.raises(ConfigurationError) as caught:
        checked(plain, {"B": "x"})
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "ghp_" not in str(caught.value)


def lone(path: Path) -> None:
    path.write_text("")


@pytest.mark.parametrize(
    ("name", "make", "told"),
    [
        pytest.param("gone.toml", lambda _: None, "No such file", id="missing"),
        pytest.param("odd.toml", lambda path: path.write_bytes(b"\xff"), "not TOML", id="no-text"),
        pytest.param("odd.toml", lambda path: path.write_text("deny = "), "not TOML", id="no-toml"),
        pytest.param("deep.toml", lambda path: path.write_text("a = " + "[" * 9999), "not TOML", id="too-deep"),
        pytest.param("loop", lambda path: path.symlink_to(path), "cannot be read", id="a-link-to-itself"),
        pytest.param("project/policy.toml", lone, "in the workspace", id="in-the-workspace"),
        pytest.param("project/link", lambda path: path.symlink_to(os.devnull), "in the workspace", id="a-link-there"),
    ],
)
def test_a_file_that_cannot_be_trusted_is_refused(
    tmp_path: Path, name: str, make: Callable[[Path], object], told: str
) -> None:
    (tmp_path / "project").mkdir()
    make(tmp_path / name)
    flags = argparse.Namespace(policy=str(tmp_path / name), folder=str(tmp_path / "project"), read_only=False)
    with pytest.raises(ConfigurationError, match=told) as caught:
        policy_of(flags, {})
    assert str(tmp_path) not in str(caught.value)


def test_a_mistake_in_it_ends_the_command_with_a_line(
    work: Callable[..., tuple[int, Scripted]], capsys: pytest.CaptureFixture[str]
) -> None:
    code, model = work('hooks = ["make"]')
    assert (code, model.requests) == (2, [])
    assert capsys.readouterr().err.count("\n") == 1
