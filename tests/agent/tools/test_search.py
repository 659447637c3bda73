"""The tool that looks into files: no pattern stops it, or takes for ever."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from xenoglot.agent.sandbox.walk import Walk
from xenoglot.agent.sandbox.workspace import Workspace, WorkspaceError
from xenoglot.agent.tools import search as module
from xenoglot.agent.tools.search import LARGEST, SearchTool

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def searching(tmp_path: Path) -> SearchTool:
    for name, text in {
        "src/a.py": "import os\nprint(1)\n",
        "src/b.txt": "print(2)\n",
        "build/c.py": "print(3)\n",
        ".env": "print=4\n",
        "data.bin": "print\0",
        ".gitignore": "build\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "away").symlink_to("/etc")
    return SearchTool(Workspace(tmp_path))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param({"pattern": r"^print\(\d"}, "src/a.py:2: print(1)\nsrc/b.txt:1: print(2)", id="expression"),
        pytest.param({"pattern": "t(1", "literal": True}, "src/a.py:2: print(1)", id="literal"),
        pytest.param({"pattern": "PRINT", "ignore_case": True, "glob": "*.py"}, "src/a.py:2: print(1)", id="glob"),
        pytest.param({"pattern": "print", "path": "src/b.txt"}, "src/b.txt:1: print(2)", id="one-file"),
        pytest.param({"pattern": "print", "path": "src", "glob": "a.*"}, "src/a.py:2: print(1)", id="folder"),
        pytest.param({"pattern": "nowhere"}, "[nothing matches]", id="nothing"),
        pytest.param({"pattern": "print", "glob": "/etc/*"}, "[nothing matches]", id="c-w16-absolute-glob"),
        pytest.param(
            {"pattern": "print", "max_matches": 1},
            "src/a.py:2: print(1)\n[more than 1 lines match: the rest is left out]",
            id="many",
        ),
    ],
)
async def test_lines_are_found(searching: SearchTool, arguments: dict[str, object], expected: str) -> None:
    assert await searching.search(**arguments) == expected  # type: ignore[arg-type]  # as a model gives them


@pytest.mark.parametrize("pattern", ["(", "[", "(?P<a>", "*", "\\", "a{99999999999999}", "(" * 5000])
async def test_a_pattern_that_is_none_is_a_mistake(searching: SearchTool, pattern: str) -> None:  # c-w16
    with pytest.raises(WorkspaceError, match="`literal` takes it as plain text"):
        await searching.search(pattern)


async def test_a_pattern_that_takes_for_ever_is_stopped(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x" * 60)
    said = await SearchTool(Workspace(tmp_path), seconds=0.3).search("(x+x+)+y")
    assert said == "[stopped after 0.3 s: use a simpler pattern, or fewer files]"


async def test_long_lines_and_large_files_are_searched_in_part(tmp_path: Path) -> None:
    (tmp_path / "large.txt").write_bytes(b"found\n" + b"x" * LARGEST + b"\nfound\n")
    (tmp_path / "wide.txt").write_bytes(b"found" + b"\xff" * 1_000_000)
    said = (await SearchTool(Workspace(tmp_path)).search("found")).split("\n")
    assert said[0] == "large.txt:1: found"
    assert said[1].startswith("wide.txt:1: found")
    assert (len(said), len(said[1])) == (2, 312)


async def test_what_was_not_searched_is_told(searching: SearchTool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Walk", partial(Walk, most=1))
    assert await searching.search("nowhere") == "[the workspace is too large: not all of it was searched]"
