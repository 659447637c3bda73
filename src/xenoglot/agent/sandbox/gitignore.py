"""Parses and matches `.gitignore` files (gitignore(5)): the last match decides, inner files come after outer ones."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from msgspec import Struct

from xenoglot.agent.sandbox.globs import Glob, compiled, matches

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

LONGEST_FILE = 256 * 1024
"""Bytes of a `.gitignore` that are read."""

MOST_RULES = 2000
"""Rules that hold in a folder; further ones, which nobody writes by hand, are passed over."""

USUAL = frozenset({"node_modules", "__pycache__", ".venv"})
"""Folders that are not searched even where no file says so: they are made, and large."""


class IgnorePattern(Struct, frozen=True, kw_only=True):
    """A line: its pattern below its file's folder, whether it matches folders only, and whether it negates others."""

    glob: Glob
    folders_only: bool
    negated: bool


class Ignored(Struct, frozen=True, kw_only=True):
    """The patterns that apply in a folder: those of each file above it, with the file's depth in the workspace."""

    rules: tuple[tuple[int, IgnorePattern], ...] = ()

    def below(self, depth: int, text: str) -> Ignored:
        """Return the rules where a file of `text` lies in a folder so deep."""
        room = MOST_RULES - len(self.rules)
        return Ignored(rules=self.rules + tuple((depth, rule) for rule in islice(rules(text.splitlines()), room)))

    def ignores(self, parts: Sequence[str], *, is_folder: bool) -> bool:
        """Return whether a path is left out; one inside of a folder that is left out is not asked for."""
        if is_folder and parts[-1] in USUAL:
            return True
        for depth, rule in reversed(self.rules):
            if (is_folder or not rule.folders_only) and matches(rule.glob, parts[depth:]):
                return not rule.negated
        return False


def rules(lines: Iterable[str]) -> Iterator[IgnorePattern]:
    """Yield the rules of a file's lines."""
    for line in lines:
        text = line.rstrip() if not line.endswith("\\ ") else line
        if not text or text.startswith("#"):
            continue
        negated = text.startswith("!")
        pattern = text[1:] if negated else text.removeprefix("\\")
        if glob := compiled(pattern):
            yield IgnorePattern(glob=glob, folders_only=pattern.endswith("/"), negated=negated)
