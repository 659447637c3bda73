"""The version is that of the tag: in a clone with and without tags, in a source archive, and in a copy without git."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
from typing import TYPE_CHECKING

import pytest

import xenoglot
from tests.architecture.tree import ROOT

if TYPE_CHECKING:
    from pathlib import Path

NOBODY = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b.c",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b.c",
}
DEVELOPMENT = re.compile(r"0\.1\.0\.dev\d+|0\.1\.dev\d+")


def git(folder: Path, *arguments: str) -> None:
    """Run git, whatever the user's configuration says."""
    nothing = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run(["git", *arguments], cwd=folder, env=os.environ | NOBODY | nothing, check=True, capture_output=True)


def built(folder: Path, target: str = "wheel") -> Path:
    """Build a wheel or a source archive in a folder, offline; return it."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", "dist"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    [made] = (folder / "dist").iterdir()
    return made.rename(folder.parent / made.name)


def version(folder: Path) -> str:
    """Return the version of the wheel that is built in a folder."""
    return built(folder).name.split("-")[1]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of what a wheel is built from, outside git."""
    folder = tmp_path / "copy"
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "scripts").mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "scripts/wheel_data.py"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def test_a_copy_without_git_has_a_version(copy: Path) -> None:
    assert DEVELOPMENT.fullmatch(version(copy))


def test_the_version_is_that_of_the_tag(copy: Path) -> None:
    git(copy, "init", "--quiet")
    git(copy, "add", ".")
    git(copy, "commit", "--quiet", "--message", "first")
    assert DEVELOPMENT.fullmatch(version(copy))  # no tag yet
    git(copy, "tag", "v1.2.0")
    assert version(copy) == "1.2.0"
    archive = built(copy, "sdist")
    git(copy, "commit", "--quiet", "--allow-empty", "--message", "second")
    assert version(copy) == "1.2.1.dev1"
    git(copy, "tag", "v1.3.0rc1")
    assert version(copy) == "1.3.0rc1"

    with tarfile.open(archive) as members:
        members.extractall(copy.parent, filter="data")
    assert version(copy.parent / archive.name.removesuffix(".tar.gz")) == "1.2.0"


def test_a_build_without_git_can_be_told_the_version(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Dockerfile does it by an argument."""
    monkeypatch.setenv("SETUPTOOLS_SCM_PRETEND_VERSION", "1.2.3")
    assert version(copy) == "1.2.3"


def test_the_package_knows_its_version() -> None:
    assert re.match(r"\d+\.\d+", xenoglot.__version__)
