"""The tools that change files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from xenoglot.agent.sandbox.workspace import Workspace, WorkspaceError
from xenoglot.agent.tools.diffs import LONGEST, diff
from xenoglot.agent.tools.edit import EditTools

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def editing(tmp_path: Path) -> EditTools:
    return EditTools(Workspace(tmp_path))


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        pytest.param(b"a = 1\n", "1", "2", b"a = 2\n", id="plain"),
        pytest.param(b"a\r\nb\r\n", "a\nb", "a\nx\nb", b"a\r\nx\r\nb\r\n", id="windows-endings-are-kept"),
        pytest.param(b"a\r\nb\n", "a\r\nb", "c", b"c\n", id="mixed-endings-are-left-alone"),
        pytest.param(b"a\r\nb\r\n", "a\r\n", "c\r\n", b"c\r\nb\r\n", id="endings-as-the-file-has-them"),
        pytest.param(b"caf\xe9 = 1", "1", "2", b"caf\xe9 = 2", id="other-encodings-survive"),
        pytest.param(b"\xef\xbb\xbfa = 1\n", "1", "2", b"\xef\xbb\xbfa = 2\n", id="mark-at-the-beginning-survives"),
        pytest.param(b"a\nb\n", "b\n", "", b"a\n", id="deleted"),
    ],
)
def test_a_piece_is_replaced_and_the_rest_stays(
    tmp_path: Path, before: bytes, old: str, new: str, after: bytes
) -> None:
    (tmp_path / "file").write_bytes(before)
    EditTools(Workspace(tmp_path)).edit_file("file", old, new)
    assert (tmp_path / "file").read_bytes() == after


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        pytest.param("missing", "x", "not in the file", id="missing"),
        pytest.param("two", "x", r"occurs 2 times \(lines 2, 4\)", id="twice"),
        pytest.param("", "x", "`old` is empty", id="empty"),
        pytest.param("one", "one", "the same", id="same"),
        pytest.param("  one\ntwo", "x", "with other spaces", id="other-spaces"),
    ],
)
def test_an_unclear_edit_changes_nothing(tmp_path: Path, editing: EditTools, old: str, new: str, why: str) -> None:
    text = "one\ntwo\nthree\ntwo\n"
    (tmp_path / "file").write_text(text)
    with pytest.raises(WorkspaceError, match=why):
        editing.edit_file("file", old, new)
    assert (tmp_path / "file").read_text() == text


def test_every_place_is_replaced_where_that_is_asked_for(tmp_path: Path, editing: EditTools) -> None:
    (tmp_path / "file").write_text("two one two\n")
    output = editing.edit_file("file", "two", "2", replace_all=True)
    assert (tmp_path / "file").read_text() == "2 one 2\n"
    assert output.text == "file: 2 places changed (+1 -1 lines)"
    assert output.data == {
        "path": "file",
        "diff": "--- file\n+++ file\n@@ -1,1 +1,1 @@\n-two one two\n+2 one 2",
        "added": 1,
        "removed": 1,
    }


def test_a_file_does_not_grow_without_bounds(tmp_path: Path, editing: EditTools) -> None:
    (tmp_path / "file").write_text("a" * 1_000_000)
    with pytest.raises(WorkspaceError, match="longer than 4 MiB"):
        editing.edit_file("file", "a", "b" * 1_000_000, replace_all=True)
    with pytest.raises(WorkspaceError, match="longer than 4 MiB"):
        editing.write_file("new", "a" * 5_000_000)


def test_a_link_inside_is_written_through_and_a_hard_link_is_not(tmp_path: Path, editing: EditTools) -> None:
    (tmp_path / "file").write_text("a")
    (tmp_path / "soft").symlink_to("file")
    os.link(tmp_path / "file", tmp_path / "hard")
    editing.edit_file("soft", "a", "b")
    assert ((tmp_path / "file").read_text(), (tmp_path / "soft").is_symlink()) == ("b", True)
    assert (tmp_path / "hard").read_text() == "a"


def test_a_file_is_written_with_its_folders_and_overwritten_with_its_mode(tmp_path: Path, editing: EditTools) -> None:
    assert editing.write_file("a/b/c.sh", "one\n").text == "a/b/c.sh: written (+1 -0 lines)"
    (tmp_path / "a/b/c.sh").chmod(0o755)
    assert editing.write_file("a/b/c.sh", "two\n").text == "a/b/c.sh: overwritten (+1 -1 lines)"
    assert (tmp_path / "a/b/c.sh").read_text() == "two\n"
    assert (tmp_path / "a/b/c.sh").stat().st_mode & 0o777 == 0o755
    assert [path.name for path in (tmp_path / "a/b").iterdir()] == ["c.sh"]


def test_what_is_no_text_is_not_overwritten(tmp_path: Path, editing: EditTools) -> None:
    (tmp_path / "a.bin").write_bytes(b"\0\1")
    with pytest.raises(WorkspaceError, match="no text"):
        editing.write_file("a.bin", "x")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param("a\nb\nc", "a\nx\nc", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c", id="changed"),
        pytest.param("", "a\n", "@@ -1,0 +1,1 @@\n+a", id="made"),
        pytest.param("1\n2\n3\n4\n5\n6", "1\n2\n3\n4\n6", "@@ -2,5 +2,4 @@\n 2\n 3\n 4\n-5\n 6", id="around"),
    ],
)
def test_a_difference_is_told_as_a_hunk(old: str, new: str, expected: str) -> None:
    assert diff(old, new, "f").text == f"--- f\n+++ f\n{expected}"


def test_a_large_difference_is_told_quickly_and_cut() -> None:
    made = diff("\n".join("a" * 5000), "\n".join("ba" * 5000), "f")
    assert (made.text.count("\n"), made.added, made.removed) == (LONGEST, 9999, 4999)
    assert diff("same", "same", "f").text == ""
