"""findings-11: JSON of the user that is nested without end is an error that names it, not a traceback."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from xenoglot.agent.screen import call_lines
from xenoglot.agent.session.session_records import decode
from xenoglot.cli import main
from xenoglot.errors import ConfigurationError
from xenoglot.model.content import ToolCall
from xenoglot.terminal.display.history import History

if TYPE_CHECKING:
    from pathlib import Path

DEEP = "[" * 100_000 + "]" * 100_000
TOO_DEEP = "the JSON is nested too deeply"
HERE = ("--upstream", "http://127.0.0.1:9/v1", "--model", "m")
LINE = '{"custom_id": "%d", "url": "/v1/chat/completions", "body": {"model": "m", "messages": %s}}\n'
LINES = LINE % (1, "[]") + LINE % (2, DEEP)


@pytest.mark.parametrize(
    ("command", "text", "told"),
    [
        pytest.param(("batch", "FILE", "OUT", *HERE), LINES, "FILE`: line 2: $: ", id="batch"),
        pytest.param(("parse", "--tools", "FILE", "--model", "kimi-k2"), DEEP, "FILE`: $: ", id="tools"),
        pytest.param(("chat", *HERE, "--plain", "--mcp", "FILE"), DEEP, "FILE`: $: ", id="mcp"),
        pytest.param(("agent", *HERE, "--schema", "FILE", "Hi"), DEEP, "FILE`: it is no JSON Schema: $: ", id="schema"),
    ],
)
def test_a_deep_file_is_an_error_that_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...], text: str, told: str
) -> None:
    names = {"FILE": str(tmp_path / "deep.json"), "OUT": str(tmp_path / "out.jsonl")}
    (tmp_path / "deep.json").write_text(text)
    assert main([names.get(word, word) for word in command])
    assert told.replace("FILE", names["FILE"]) + TOO_DEEP in capsys.readouterr().err


def test_deep_standard_input_is_an_error_that_names_it() -> None:
    command = [sys.executable, "-m", "xenoglot", "translate", "--from", "chat", "--to", "messages"]
    done = subprocess.run(command, input=DEEP.encode(), capture_output=True, check=False)
    assert done.returncode
    assert done.stderr.decode() == f"xenoglot: standard input: $: {TOO_DEEP}\n"


def test_a_deep_archive_is_an_error_that_names_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "saved.json"
    path.write_text('{"model": "m", "messages": ' + DEEP + "}")
    assert main(["chat", *HERE, "--plain", "--load", str(path)])
    assert f"`{path}` is no conversation that was saved as JSON" in capsys.readouterr().err


def test_deep_lines_of_a_session_are_passed_over() -> None:
    with pytest.raises(ConfigurationError):
        decode([DEEP.encode()])


def test_deep_lines_of_a_history_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_text(f'"one"\n{DEEP}\n"two"\n')
    assert History(path, {}).lines() == ["one", "two"]


def test_deep_arguments_are_shown_to_whoever_allows_the_call() -> None:
    assert any("[[[" in line for line in call_lines(ToolCall(id="a", name="look", arguments=DEEP)))
