"""An agent's files never make a folder a Git repository: Git would run what its configuration says."""

from __future__ import annotations

import subprocess
from itertools import permutations
from typing import TYPE_CHECKING

import pytest

from xenoglot.agent.sandbox.workspace import Workspace, WorkspaceError
from xenoglot.agent.tools.edit import EditTools

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "ref: refs/heads/main\n"


def files(mark: Path) -> dict[str, str]:
    """Return a repository whose configuration runs a command at `git status`."""
    config = (
        f'[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = "touch {mark}; false"\n'
    )
    return {"HEAD": HEAD, "config": config, "objects/x": "", "refs/x": ""}


def status(folder: Path) -> int:
    """Ask a real Git, which looks no further up."""
    limits = {
        "PATH": "/usr/bin:/bin:/usr/local/bin",
        "GIT_CEILING_DIRECTORIES": str(folder.parent),
        "HOME": str(folder),
    }
    return subprocess.run(["git", "status"], cwd=folder, env=limits, capture_output=True, check=False).returncode


def written(root: Path, made: dict[str, str], order: tuple[str, ...]) -> list[str]:
    """Write files in that order; return those that were refused."""
    editing, refused = EditTools(Workspace(root)), []
    for name in order:
        try:
            editing.write_file(f"docs/{name}", made[name])
        except WorkspaceError:
            refused.append(name)
    return refused


def test_git_runs_what_such_a_folder_says(tmp_path: Path) -> None:
    """The test can see what it is there to prevent."""
    for name, text in files(tmp_path / "mark").items():
        (tmp_path / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "docs" / name).write_text(text)
    status(tmp_path / "docs")
    assert (tmp_path / "mark").exists()


@pytest.mark.parametrize("order", [*permutations(["HEAD", "config", "objects/x", "refs/x"])], ids="-".join)
def test_findings_9_no_order_of_files_makes_a_repository(tmp_path: Path, order: tuple[str, ...]) -> None:
    refused = written(tmp_path, files(tmp_path / "mark"), order)
    assert refused
    assert not {"HEAD", "objects/x", "refs/x"}.isdisjoint(refused)
    assert status(tmp_path / "docs") == 128
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    "order",
    [
        pytest.param(("commondir", "HEAD"), id="commondir"),
        pytest.param(("HEAD", "commondir"), id="commondir-last"),
        pytest.param(("head", "Objects/x", "REFS/x"), id="other-case"),
    ],
)
def test_findings_9_other_spellings(tmp_path: Path, order: tuple[str, ...]) -> None:
    made = dict.fromkeys(order, HEAD)
    assert written(tmp_path, made, order) == [order[-1]]


@pytest.mark.parametrize("name", ["config", "hooks/post-checkout", "info/attributes", "new"])
def test_findings_9_a_repository_of_the_user_is_left_alone(tmp_path: Path, name: str) -> None:
    subprocess.run(["git", "init", "--bare", "-q", str(tmp_path / "docs")], check=True)
    with pytest.raises(WorkspaceError, match="Git runs the commands that a repository names: use another name"):
        EditTools(Workspace(tmp_path)).write_file(f"docs/{name}", "x")


def test_findings_9_an_edit_of_its_configuration_is_refused(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--bare", "-q", str(tmp_path)], check=True)
    with pytest.raises(WorkspaceError, match=r"`\.` is a Git repository"):
        EditTools(Workspace(tmp_path)).edit_file("config", "bare = true", "bare = false")


def test_files_of_these_names_alone_are_like_others(tmp_path: Path) -> None:
    made = {"config": "x", "HEAD": "x", "objects/a.py": "x", "refs.py": "x", "head/x": "x"}
    assert written(tmp_path, made, tuple(made)) == []
