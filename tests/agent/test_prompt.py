"""What a model is told before it begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xenoglot.agent.prompt import LONGEST_NOTES, AgentEnvironment, project_notes, system_prompt
from xenoglot.agent.sandbox.workspace import Workspace

if TYPE_CHECKING:
    from pathlib import Path

HERE = AgentEnvironment(folder="project", system="Linux", today="2026-11-22")


def test_it_is_short_and_names_no_path_of_the_machine() -> None:
    prompt = system_prompt(HERE, {"read_file"}, None)
    assert len(prompt) < 1500
    assert prompt.endswith("# Where you are\nWorkspace: project\nSystem: Linux\nToday: 2026-11-22")


@pytest.mark.parametrize(
    ("tools", "told", "untold"),
    [
        pytest.param({"read_file"}, ["You cannot change files", "You cannot run commands"], ["edit_file"], id="looks"),
        pytest.param({"edit_file"}, ["Change files with `edit_file`", "cannot run"], ["cannot change"], id="writes"),
        pytest.param({"edit_file", "run"}, ["Commands have no terminal"], ["You cannot"], id="does-all"),
    ],
)
def test_it_tells_what_the_model_can_do(tools: set[str], told: list[str], untold: list[str]) -> None:
    prompt = system_prompt(HERE, tools, None)
    assert [words for words in told if words not in prompt] == []
    assert [words for words in untold if words in prompt] == []


def test_notes_and_wishes_come_last() -> None:
    assert system_prompt(HERE, (), "Use tabs.", "Be kind.").endswith(
        "# Notes of the project\nUse tabs.\n\n# From the user\nBe kind."
    )


def test_the_notes_of_a_project_are_read_as_far_as_they_fit(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    assert project_notes(workspace) is None
    (tmp_path / "CLAUDE.md").write_text("second choice")
    assert project_notes(workspace) == "second choice"
    (tmp_path / "AGENTS.md").write_text("x" * (LONGEST_NOTES + 1))
    assert project_notes(workspace) == "x" * LONGEST_NOTES + "\n[cut: the rest is in `AGENTS.md`]"
    (tmp_path / "AGENTS.md").unlink()
    (tmp_path / "AGENTS.md").symlink_to("/etc/passwd")
    assert project_notes(workspace) == "second choice"
