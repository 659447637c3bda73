"""The tools that look: what a model is shown of a folder and of a file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from xenoglot.agent.sandbox.workspace import Workspace, WorkspaceError
from xenoglot.agent.tools import read as module
from xenoglot.agent.tools.read import LONGEST, LONGEST_LINE, ReadTools

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def looking(tmp_path: Path) -> ReadTools:
    return ReadTools(Workspace(tmp_path))


def test_a_folder_is_listed(tmp_path: Path, looking: ReadTools) -> None:
    (tmp_path / "b.txt").write_text("12345")
    (tmp_path / "inner").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "away").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "two\nlines").touch()
    (tmp_path / os.fsdecode(b"stray\xff")).touch()
    assert looking.list_dir().split("\n") == [
        '"stray\\udcff" (0)',
        '"two\\nlines" (0)',
        "away (link)",
        "b.txt (5)",
        "inner/",
        "pipe (special)",
    ]
    assert looking.list_dir("inner") == "[empty]"


def test_a_folder_of_many_entries_is_cut(tmp_path: Path, looking: ReadTools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ENTRIES", 3)
    for number in range(5):
        (tmp_path / f"{number}.txt").touch()
    assert looking.list_dir().split("\n")[3:] == ["[more than 3 entries: the rest is left out, use `find`]"]
    assert looking.find("*").split("\n")[3:] == ["[more than 3 files: the rest is left out]"]


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        pytest.param(1, None, "one\ntwo\nthree", id="all"),
        pytest.param(2, 2, "two", id="one-line"),
        pytest.param(2, 99, "two\nthree", id="beyond-the-end"),
        pytest.param(9, None, "[the file has 3 lines]", id="behind-the-end"),
    ],
)
def test_lines_of_a_file_are_read(
    tmp_path: Path, looking: ReadTools, start: int, end: int | None, expected: str
) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\r\ntwo\nthree\n")
    assert looking.read_file("a.txt", start, end) == expected


@pytest.mark.parametrize(("start", "end"), [(0, None), (-1, None), (3, 2)])
def test_lines_that_cannot_be_are_a_mistake(tmp_path: Path, looking: ReadTools, start: int, end: int | None) -> None:
    (tmp_path / "a.txt").write_text("one")
    with pytest.raises(WorkspaceError, match="start_line"):
        looking.read_file("a.txt", start, end)


def test_a_long_file_is_cut_between_lines_and_says_where_to_go_on(tmp_path: Path, looking: ReadTools) -> None:
    (tmp_path / "long.txt").write_text("".join(f"{number:05}\n" for number in range(1, 10_000)))
    text = looking.read_file("long.txt")
    last, note = text.split("\n")[-2:]
    assert len(text) <= LONGEST + len(note) + 1
    assert note == f"[cut before line {int(last) + 1}: read on with start_line={int(last) + 1}]"
    assert looking.read_file("long.txt", int(last) + 1).startswith(f"{int(last) + 1:05}\n")


def test_a_long_line_is_cut(tmp_path: Path, looking: ReadTools) -> None:
    (tmp_path / "wide.txt").write_text("x" * 1_000_000 + "\nnext\n")
    assert looking.read_file("wide.txt") == f"{'x' * LONGEST_LINE} [... 1000000 characters]\nnext"


@pytest.mark.parametrize("start", [131_073, 10**9])
def test_a_file_too_long_to_pass_over_ends_with_a_note(
    tmp_path: Path, looking: ReadTools, monkeypatch: pytest.MonkeyPatch, start: int
) -> None:
    monkeypatch.setattr(module, "MOST_SCANNED", 1024 * 1024)
    (tmp_path / "endless.txt").write_bytes(b"0123456\n" * (2 * 1024 * 1024 // 8))
    assert looking.read_file("endless.txt", start) == "[the file is too long to be read further than 1 MiB]"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"", "[the file is empty]", id="empty"),
        pytest.param(b"caf\xe9\n", "caf\N{REPLACEMENT CHARACTER}", id="no-utf-8"),
        pytest.param(b"\n\n", "\n", id="empty-lines"),
    ],
)
def test_odd_files_are_read(tmp_path: Path, looking: ReadTools, data: bytes, expected: str) -> None:
    (tmp_path / "odd.txt").write_bytes(data)
    assert looking.read_file("odd.txt") == expected


def test_a_binary_file_is_named_and_not_shown(tmp_path: Path, looking: ReadTools) -> None:
    (tmp_path / "a.bin").write_bytes(b"\x7fELF\0\0")
    with pytest.raises(WorkspaceError, match=r"`a\.bin` is no text: it has 6 bytes"):
        looking.read_file("a.bin")


def test_files_are_found_without_what_is_ignored_or_secret_or_behind_a_link(tmp_path: Path, looking: ReadTools) -> None:
    for name in ("src/a.py", "src/deep/b.py", "build/c.py", ".git/d.py", "node_modules/e.py", "top.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / ".gitignore").write_text("build/\n")
    (tmp_path / "loop").symlink_to(".")
    (tmp_path / "src" / "id_rsa").touch()
    assert looking.find("*.py").split("\n") == ["top.py", "src/a.py", "src/deep/b.py"]
    assert looking.find("*.py", "src/deep") == "src/deep/b.py"
    assert looking.find("src/*.py") == "src/a.py"
    assert looking.find("id_*") == "[no file matches]"
    assert looking.find("/etc/*") == "[no file matches]"
