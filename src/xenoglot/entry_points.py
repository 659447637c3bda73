"""What other packages bring: the entry points of a group, found without `importlib.metadata` where that can be.

Theory of operation. An installed package has a folder of metadata, with `entry_points.txt`
(https://packaging.python.org/en/latest/specifications/recording-installed-packages/). Where all of `sys.path` are
folders, these files are all there is, and a few lines read them; `importlib.metadata` would bring thirty modules for
it, as much as half of asyncio. Where something else may hold metadata, an archive, an egg or a custom finder,
`importlib.metadata` is used.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from importlib import import_module
from importlib.machinery import PathFinder
from os import scandir
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_FOLDERS = (".dist-info", ".egg-info")
_SEPARATORS = re.compile(r"[-_.]+")


class PluginEntry(Struct, frozen=True):
    """A thing that a `package` brings under a `name`: `value` is `module:attribute`."""

    name: str
    value: str
    package: str | None = None

    def load(self) -> object:
        """Import the module and return the thing; raises whatever that raises."""
        module, _, attributes = self.value.partition("[")[0].partition(":")
        thing: object = import_module(module.strip())
        for attribute in filter(None, attributes.strip().split(".")):
            thing = getattr(thing, attribute)
        return thing


def entries(group: str) -> dict[str, PluginEntry]:
    """Return the entry points of `group` by their names."""
    found = _in_folders(group) if _are_folders() else _entries(group)
    return {entry.name: entry for entry in found}


def _are_folders() -> bool:
    """Whether all that can hold metadata are folders."""
    finders = [finder for finder in sys.meta_path if hasattr(finder, "find_distributions")]
    return finders == [PathFinder] and not any(place.endswith(".egg") or Path(place).is_file() for place in sys.path)


def _in_folders(group: str) -> Iterator[PluginEntry]:
    """Yield the entry points of all folders."""
    for package, text in _texts(tuple(sys.path)):
        for name, value in _section(text, group):
            yield PluginEntry(name, value, package)


@lru_cache(maxsize=4)
def _texts(places: Sequence[str]) -> Sequence[tuple[str, str]]:
    """Return the names of packages and their entry points; of two packages of one name the first counts."""
    texts: dict[str, tuple[str, str]] = {}
    for place in places:
        for name in _names(place or "."):
            package = name.rpartition(".")[0].partition("-")[0]
            spelled = _SEPARATORS.sub("-", package).lower()
            if spelled not in texts:
                texts[spelled] = (package, _text(f"{place}/{name}/entry_points.txt"))
    return [(package, text) for package, text in texts.values() if text]


def _names(place: str) -> list[str]:
    try:
        with scandir(place) as found:  # a `Path` for each of hundreds takes longer than all the rest
            return [one.name for one in found if one.name.endswith(_FOLDERS)]
    except OSError:
        return []


def _text(file: str) -> str:
    try:
        with open(file, encoding="utf-8") as text:  # noqa: PTH123  as above
            return text.read()
    except OSError:  # most packages have none
        return ""


def _section(text: str, group: str) -> Iterator[tuple[str, str]]:
    """Yield what stands under `[group]`."""
    within = False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            within = line[1:-1] == group
        elif within and line and not line.startswith("#"):
            name, _, value = line.partition("=")
            yield name.strip(), value.strip()


def _entries(group: str) -> Iterator[PluginEntry]:
    from importlib.metadata import entry_points  # noqa: PLC0415  what this module is there to leave out

    for entry in entry_points(group=group):
        yield PluginEntry(entry.name, entry.value, None if entry.dist is None else entry.dist.name)
