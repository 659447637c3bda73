"""The workspace: what is inside is opened, and by no name and no trick is anything else."""

from __future__ import annotations

import os
import socket
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xenoglot.agent.sandbox.workspace import LARGEST_EDIT, MissingError, Workspace, WorkspaceError
from xenoglot.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OUTSIDE = "what is outside"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace with a file in it and one beside it."""
    (tmp_path / "outside.txt").write_text(OUTSIDE)
    (tmp_path / "workspace-too").mkdir()
    (tmp_path / "workspace-too" / "near.txt").write_text(OUTSIDE)
    root = tmp_path / "workspace"
    (root / "inner").mkdir(parents=True)
    (root / "inner" / "file.txt").write_text("inside")
    return root


def read(root: Path, path: str) -> bytes:
    with Workspace(root).open(path) as file:
        return file.read()


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("inner/file.txt", id="relative"),
        pytest.param("./inner/../inner//file.txt", id="detour"),
        pytest.param("{root}/inner/file.txt", id="absolute-inside"),
        pytest.param("link-inside", id="link-that-stays-inside"),
        pytest.param("folder-link/file.txt", id="folder-link-that-stays-inside"),
    ],
)
def test_what_is_inside_is_read(root: Path, path: str) -> None:
    (root / "link-inside").symlink_to("inner/file.txt")
    (root / "folder-link").symlink_to(root / "inner")
    assert read(root, path.format(root=root)) == b"inside"


def link(name: str, target: str) -> Callable[[Path], None]:
    return lambda root: (root / name).symlink_to(target.format(root=root))


def nothing(_: Path) -> None:
    pass


def bound(root: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.open(".", os.O_RDONLY)
        os.chdir(root)  # the path of a socket is short
        listener.bind("socket")
        os.fchdir(here)
        os.close(here)


ATTACKS = [
    pytest.param(nothing, "../outside.txt", "outside of the workspace", id="dots"),
    pytest.param(nothing, "inner/../../outside.txt", "outside of the workspace", id="dots-after-a-folder"),
    pytest.param(nothing, "../workspace-too/near.txt", "outside of the workspace", id="folder-of-a-like-name"),
    pytest.param(nothing, "/etc/passwd", "outside of the workspace", id="absolute"),
    pytest.param(nothing, "/proc/self/environ", "outside of the workspace", id="own-environment"),
    pytest.param(nothing, "/proc/self/root/etc/passwd", "outside of the workspace", id="proc-root"),
    pytest.param(nothing, "~/.ssh/id_rsa", "secrets", id="tilde-is-a-name"),
    pytest.param(link("out", "../outside.txt"), "out", "outside of the workspace", id="link"),
    pytest.param(link("out", "/proc/self/environ"), "out", "outside of the workspace", id="link-to-the-environment"),
    pytest.param(link("up", ".."), "up/outside.txt", "outside of the workspace", id="folder-link"),
    pytest.param(link("up", "/"), "up/etc/passwd", "outside of the workspace", id="link-to-the-root"),
    pytest.param(link("self", "self"), "self", "no regular file", id="link-to-itself"),
    pytest.param(nothing, "in\0ner", "no path", id="zero-byte"),
    pytest.param(nothing, "\ud800", "no path", id="half-a-character"),
    pytest.param(nothing, "a" * 5000, "name too long", id="endless-name"),
    pytest.param(nothing, "inner/../" * 1_000_000, "name too long", id="endlessly-many-names"),
    pytest.param(nothing, "inner", "directory", id="folder"),
    pytest.param(nothing, ".", "directory", id="workspace-itself"),
    pytest.param(nothing, "inner/file.txt/x", "Not a directory", id="below-a-file"),
    pytest.param(lambda root: os.mkfifo(root / "pipe"), "pipe", "no regular file", id="fifo"),
    pytest.param(bound, "socket", "no regular file", id="socket"),
    pytest.param(link("null", "/dev/zero"), "null", "outside of the workspace", id="device"),
    pytest.param(nothing, ".git/config", "version control", id="git"),
    pytest.param(nothing, ".GIT/hooks/pre-commit", "version control", id="git-in-capitals"),
    pytest.param(nothing, ".g\u200cit/config", "version control", id="git-with-a-character-that-does-not-show"),
    pytest.param(nothing, "GIT~1/config", "version control", id="git-as-windows-calls-it"),
    pytest.param(link("history", ".git"), "history/config", "version control", id="link-to-git"),
    pytest.param(nothing, ".env", "secrets", id="env"),
    pytest.param(nothing, "deep/.env.production", "secrets", id="env-of-production"),
    pytest.param(nothing, "server.PEM", "secrets", id="key-in-capitals"),
    pytest.param(link("plain.txt", ".env"), "plain.txt", "secrets", id="link-to-a-secret"),
    pytest.param(nothing, ".aws/config", "secrets", id="folder-of-secrets"),
]


@pytest.mark.parametrize(("prepare", "path", "why"), ATTACKS)
@pytest.mark.parametrize("write", [False, True], ids=["read", "write"])
def test_what_is_outside_or_odd_is_not_opened(
    root: Path,
    prepare: Callable[[Path], None],
    path: str,
    why: str,
    write: bool,  # noqa: FBT001  a case
) -> None:
    prepare(root)
    workspace = Workspace(root)
    with pytest.raises(WorkspaceError) as caught:
        workspace.read(path) if not write else workspace.replace(path, b"new", None)
    assert why.casefold() in str(caught.value).casefold()
    assert str(root.parent) not in str(caught.value)
    assert (root.parent / "outside.txt").read_text() == OUTSIDE


@pytest.mark.parametrize("make", [False, True], ids=["there", "made"])
def test_a_folder_swapped_for_a_link_in_between_is_not_followed(root: Path, make: bool) -> None:  # noqa: FBT001  a case
    workspace = Workspace(root)
    parts = workspace.parts("inner/file.txt")
    (root / "inner").rename(root / "was")
    (root / "inner").symlink_to("..")
    with pytest.raises(OSError, match="Not a directory"), workspace.folder(parts[:-1], make=make):
        pass


def test_a_file_swapped_for_a_link_in_between_is_not_followed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = Workspace(root)
    parts = workspace.parts("inner/file.txt")
    (root / "inner" / "file.txt").unlink()
    (root / "inner" / "file.txt").symlink_to("../../outside.txt")
    monkeypatch.setattr(workspace, "parts", lambda _: parts)
    with pytest.raises(WorkspaceError, match="no regular file"):
        workspace.read("inner/file.txt")


PIECES = (
    "..",
    ".",
    "inner",
    "file.txt",
    "out",
    "up",
    "in",
    "self",
    "/",
    "//",
    "~",
    ".git",
    "\0",
    "\n",
    " ",
    "proc",
    "etc",
)


@given(st.lists(st.sampled_from(PIECES), max_size=8), st.booleans())
def test_no_path_leads_outside(pieces: list[str], absolute: bool) -> None:  # noqa: FBT001  a case
    with TemporaryDirectory() as folder:
        root = Path(folder, "root")
        (root / "inner").mkdir(parents=True)
        (root / "inner" / "file.txt").write_text("inside")
        Path(folder, "file.txt").write_text(OUTSIDE)
        for name, target in {"out": "../file.txt", "up": "..", "in": "inner", "self": "self"}.items():
            (root / name).symlink_to(target)
            (root / "inner" / name).symlink_to(Path("..", target))
        path = ("/" if absolute else "") + "/".join(pieces)
        with suppress(WorkspaceError):
            assert read(root, path) == b"inside"


def test_a_secret_is_opened_where_that_is_allowed(root: Path) -> None:
    (root / ".env").write_text("A=1")
    (root / ".env.example").write_text("A=")
    assert read(root, ".env.example") == b"A="
    with Workspace(root, allow_secrets=True).open(".env") as file:
        assert file.read() == b"A=1"


def test_the_root_of_the_machine_is_no_workspace(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="root of the machine"):
        Workspace(tmp_path / tmp_path.root)
    with pytest.raises(ConfigurationError, match="no such folder"):
        Workspace(tmp_path / "missing")


@pytest.mark.parametrize(
    ("data", "why"),
    [pytest.param(b"\0" * 10, "no text", id="binary"), pytest.param(b"a" * (LARGEST_EDIT + 1), "MiB", id="huge")],
)
def test_what_cannot_be_edited_is_not_read_whole(root: Path, data: bytes, why: str) -> None:
    (root / "big").write_bytes(data)
    with pytest.raises(WorkspaceError, match=why):
        Workspace(root).read("big")


@contextmanager
def failing_rename(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", fail)
        yield


def test_a_write_happens_whole_or_not_at_all(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = Workspace(root)
    path = root / "inner" / "file.txt"
    path.chmod(0o751)
    found = workspace.read("inner/file.txt")
    with failing_rename(monkeypatch), pytest.raises(WorkspaceError, match="No space left"):
        workspace.replace("inner/file.txt", b"new", found)
    assert (path.read_text(), os.listdir(root / "inner")) == ("inside", ["file.txt"])  # noqa: PTH208  names alone
    workspace.replace("inner/file.txt", b"new", found)
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o751)


def test_what_somebody_else_changed_meanwhile_is_not_overwritten(root: Path) -> None:
    workspace = Workspace(root)
    found = workspace.read("inner/file.txt")
    (root / "inner" / "file.txt").write_text("theirs")
    with pytest.raises(WorkspaceError, match="read it again"):
        workspace.replace("inner/file.txt", b"ours", found)
    (root / "made.txt").write_text("theirs")
    with pytest.raises(WorkspaceError, match="read it again"):
        workspace.replace("made.txt", b"ours", None)


def test_what_is_not_there_is_told_apart(root: Path) -> None:
    with pytest.raises(MissingError, match="`none` does not exist"):
        read(root, "none")


def test_a_name_as_long_as_the_system_takes_can_be_written(root: Path) -> None:
    name = "\N{SNOWMAN}" * 85
    Workspace(root).replace(name, b"new", None)
    assert (root / name).read_bytes() == b"new"
