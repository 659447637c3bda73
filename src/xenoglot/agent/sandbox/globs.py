"""Glob patterns of paths: `*`, `?` and `[...]` within a name, `**` across folders; matched in linear time."""

from __future__ import annotations

import re
from fnmatch import translate
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
    """Return whether the names that make up a path are as the pattern says."""
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
    """Add the places behind each `**`: it may stand for no folder at all."""
    for place in sorted(places):
        behind = place
        while behind < len(glob) and glob[behind] is None:
            behind += 1
            places.add(behind)
    return places
