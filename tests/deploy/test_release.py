"""The release workflow: in form, without weaknesses that a linter knows, and its build executed on a tagged copy."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.architecture.tree import ROOT
from tests.deploy.test_version import git
from tests.deploy.tools import tool, yaml

if TYPE_CHECKING:
    from pathlib import Path

FILE = ROOT / ".github" / "workflows" / "release.yml"
TEXT = FILE.read_text(encoding="utf-8")
NEEDED = ("src", "requirements", "scripts", "pyproject.toml", "README.md", "LICENSE")
"""What the build reads."""


@pytest.fixture(scope="module")
def jobs() -> dict[str, Any]:
    """The jobs by name."""
    documents: list[Any] = yaml(TEXT)
    found: dict[str, Any] = documents[0]["jobs"]
    return found


def test_the_workflow_has_the_form_of_workflows() -> None:
    tool("check-jsonschema", "--builtin-schema", "vendor.github-workflows", FILE)
    tool("yamllint", "--strict", "--config-file", "deploy/yamllint.yml", FILE)


def test_zizmor_finds_nothing() -> None:
    tool("zizmor", "--offline", "--no-progress", "--quiet", FILE)


def test_every_action_is_pinned_by_its_commit() -> None:
    used = re.findall(r"uses: (.*)", TEXT)
    assert len(used) > 10
    assert [line for line in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", line)] == []


def test_only_what_publishes_may_write(jobs: dict[str, Any]) -> None:
    writing = {name for name, job in jobs.items() if {"contents", "packages"} & writes(job)}
    assert writing == {"image", "notes"}
    assert {name for name, job in jobs.items() if job.get("environment") == "release"} == {"pypi", "image"}


def writes(job: dict[str, Any]) -> set[str]:
    """Return what a job may write."""
    return {name for name, access in job["permissions"].items() if access == "write"}


@pytest.mark.parametrize(
    ("changelog", "code"), [("## [Unreleased]\n\n## [1.2.0] - 2026-12-01\n\n- New.\n", 0), ("", 1)]
)
def test_the_build_makes_what_is_published(tmp_path: Path, jobs: dict[str, Any], changelog: str, code: int) -> None:
    """The step's own script, on a copy with a tag; without a section of the changelog there is no release."""
    for name in NEEDED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "CHANGELOG.md").write_text(changelog, encoding="utf-8")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "1.2.0")
    git(tmp_path, "tag", "v1.2.0")
    [script] = [step["run"] for step in jobs["build"]["steps"] if step.get("id") == "build"]
    outside = tmp_path.parent / f"{tmp_path.name}-runner"
    outside.mkdir()
    given = {"RUNNER_TEMP": str(outside), "GITHUB_REF_NAME": "v1.2.0", "GITHUB_OUTPUT": str(outside / "output")}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    done = subprocess.run(command, cwd=tmp_path, env=os.environ | given, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    if code:
        assert "CHANGELOG.md has no section `## [1.2.0]`" in done.stderr
        return
    assert (outside / "output").read_text() == "version=1.2.0\n"
    assert (tmp_path / "notes.md").read_text() == "- New.\n"
    made = {path.name for path in (tmp_path / "dist").iterdir()}
    assert made == {"xenoglot-1.2.0-py3-none-any.whl", "xenoglot-1.2.0.tar.gz", "xenoglot-1.2.0.cdx.json"}
    bill = json.loads((tmp_path / "dist" / "xenoglot-1.2.0.cdx.json").read_text())
    assert bill["metadata"]["component"]["version"] == "1.2.0"
