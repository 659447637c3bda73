"""Glob patterns of paths: `*`, `?` and `[...]` within a name, `**` across folders; matched in linear time.

Parses and matches `.gitignore` files (gitignore(5)): the last match decides, inner files come after outer ones.
"""

from __future__ import annotations

import re
from fnmatch import translate
from functools import lru_cache
from itertools import islice, pairwise
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


LONGEST = 1000
"""Characters of a pattern."""

Glob: TypeAlias = tuple["re.Pattern[str] | None", ...]
"""A pattern: one expression for each name, `None` for any number of folders."""


@lru_cache(maxsize=4096)
def _name(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern.replace("[^", "[!")))


def compiled(pattern: str) -> Glob:
    """Return the pattern for `matches`. One without a slash means a name in any folder."""
    parts = [part for part in pattern[:LONGEST].split("/") if part not in ("", ".")]
    if parts[-1:] == ["**"]:
        parts.append("*")  # all below a folder, not the folder itself
    several = (part == before == "**" for before, part in pairwise(["", *parts]))
    glob = tuple(None if part == "**" else _name(part) for part, twice in zip(parts, several, strict=True) if not twice)
    return (None, *glob) if glob and "/" not in pattern.rstrip("/") else glob


def matches(glob: Glob, parts: Sequence[str]) -> bool:
    """Return whether the names that make up a path match the pattern."""
    if len(glob) == 2 and glob[0] is None and glob[1] is not None:  # noqa: PLR2004  most are: a name in any folder
        return bool(parts) and glob[1].match(parts[-1]) is not None
    places = _reached(glob, {0})
    for part in parts:
        places = _reached(glob, _stepped(glob, places, part))
        if not places:
            return False
    return len(glob) in places


def _stepped(glob: Glob, places: Iterable[int], part: str) -> set[int]:
    after = set[int]()
    for place in places:
        if place == len(glob):
            continue
        name = glob[place]
        if name is None:
            after.add(place)
        elif name.match(part):
            after.add(place + 1)
    return after


def _reached(glob: Glob, places: set[int]) -> set[int]:
    """Add the places after each `**`: it also matches no folder."""
    for place in sorted(places):
        behind = place
        while behind < len(glob) and glob[behind] is None:
            behind += 1
            places.add(behind)
    return places


LONGEST_FILE = 256 * 1024
"""Bytes of a `.gitignore` that are read."""

MOST_RULES = 2000
"""Most rules of a folder; further ones are ignored."""

USUAL = frozenset({"node_modules", "__pycache__", ".venv"})
"""Folders that are not searched even without a rule, because they are generated and large."""


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
        """Return whether a path is left out; paths inside an ignored folder are not passed here."""
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
