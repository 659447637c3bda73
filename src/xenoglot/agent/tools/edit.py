"""The tools `edit_file` and `write_file`: change files atomically."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.agent.sandbox.file_names import shown, valid_text
from xenoglot.agent.sandbox.workspace import LARGEST_EDIT, MissingError, Workspace, WorkspaceError
from xenoglot.agent.tools.diffs import diff
from xenoglot.model.content import Text
from xenoglot.tools.tool import ToolOutput

if TYPE_CHECKING:
    from collections.abc import Iterator

_SHOWN_PLACES = 5
"""Places that are named where a text is found more than once."""


class EditTools:
    """Tools over a workspace. `data` of their results is for a screen: `path`, `diff`, `added`, `removed`."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def edit_file(self, path: str, old: str, new: str, replace_all: bool = False) -> ToolOutput:  # noqa: FBT001, FBT002  the model names its arguments
        """Replace a piece of text in a file.

        Args:
            path: The file, relative to the workspace.
            old: The text to replace, exactly as it stands in the file, with enough around it to occur only once.
            new: The text to put in its place.
            replace_all: Replace all occurrences.
        """
        found = self._workspace.read(path)
        text, ending = _decoded(found.data)
        wanted, replacement = _plain(old, ending), _plain(new, ending)
        places = text.count(wanted) if wanted else 0
        _refuse_unclear(text, wanted, replacement, places, many=replace_all)
        _refuse_long(len(text) + places * (len(replacement) - len(wanted)))
        changed = text.replace(wanted, replacement)
        self._workspace.replace(path, _encoded(changed, ending), found)
        return _result(path, text, changed, f"{places} places changed" if places > 1 else "changed")

    def write_file(self, path: str, content: str) -> ToolOutput:
        """Write a whole file: a new one, or in place of what it held.

        Args:
            path: The file, relative to the workspace. Missing folders are made.
            content: All that the file will hold.
        """
        try:
            found = self._workspace.read(path)
        except MissingError:
            found = None
        old, ending = ("", "\n") if found is None else _decoded(found.data)
        _refuse_long(len(content))
        self._workspace.replace(path, _encoded(_plain(content, ending), ending), found)
        return _result(path, old, _plain(content, ending), "written" if found is None else "overwritten")


def _decoded(data: bytes) -> tuple[str, str]:
    """Return a file's text with plain ends of lines, and what they are in the file if all of them are the same."""
    text = data.decode(errors="surrogateescape")  # bytes that are no UTF-8 go back as they came
    if "\r\n" in text and text.count("\r\n") == text.count("\n"):
        return text.replace("\r\n", "\n"), "\r\n"
    return text, "\n"


def _encoded(text: str, ending: str) -> bytes:
    return (text if ending == "\n" else text.replace("\n", ending)).encode(errors="surrogateescape")


def _plain(text: str, ending: str) -> str:
    return text if ending == "\n" else text.replace("\r\n", "\n")


def _refuse_unclear(text: str, old: str, new: str, places: int, *, many: bool) -> None:
    if not old:
        raise WorkspaceError("`old` is empty: give the text to replace, or use `write_file`")
    if old == new:
        raise WorkspaceError("`old` and `new` are the same")
    if not places:
        hint = " It is there with other spaces around its lines." if _normalized(old) in _normalized(text) else ""
        raise WorkspaceError(f"`old` is not in the file: read it again, each space counts.{hint}")
    if places > 1 and not many:
        lines = ", ".join(str(line) for line in _occurrences(text, old))
        raise WorkspaceError(
            f"`old` occurs {places} times (lines {lines}): give more of the text around, or replace_all"
        )


def _refuse_long(length: int) -> None:
    if length > LARGEST_EDIT:
        raise WorkspaceError(f"the file would be longer than {LARGEST_EDIT // 1024 // 1024} MiB: that is not written")


def _normalized(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().split("\n"))


def _occurrences(text: str, wanted: str) -> Iterator[int]:
    """Yield the lines on which the first few begin."""
    place = -1
    for _ in range(_SHOWN_PLACES):
        place = text.find(wanted, place + 1)
        if place < 0:
            return
        yield text.count("\n", 0, place) + 1


def _result(path: str, old: str, new: str, what: str) -> ToolOutput:
    name = shown(path)
    made = diff(old, new, name)
    return ToolOutput(
        content=(Text(text=f"{name}: {what} (+{made.added} -{made.removed} lines)"),),
        data={"path": name, "diff": valid_text(made.text), "added": made.added, "removed": made.removed},
    )
