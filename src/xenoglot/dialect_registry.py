"""The registry of dialects: those of installed packages, by their names."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, cast

from xenoglot.entry_points import PluginEntry, entries
from xenoglot.errors import ConfigurationError

if TYPE_CHECKING:
    from xenoglot.codec.dialect import Dialect

GROUP = "xenoglot.dialects"
"""The entry-point group under which dialects are found."""


@cache
def _entries() -> dict[str, PluginEntry]:
    return entries(GROUP)


@cache
def names() -> tuple[str, ...]:
    """Return the names of all dialects installed, sorted."""
    return tuple(sorted(_entries()))


@cache
def get(name: str) -> Dialect:
    """Return the dialect `name`.

    Raises:
        ConfigurationError: there is none of that name.
    """
    entry = _entries().get(name)
    if entry is None:
        raise ConfigurationError(f"there is no dialect `{name}`; installed: {', '.join(names()) or 'none'}")
    return cast("Dialect", entry.load())
