"""URLs of stores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from xenoglot.errors import ConfigurationError
from xenoglot.store.sqlite import Memory, SQLite
from xenoglot.user_directories import user_directory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.store.store import Store

OFF = "off"
KINDS = ("sqlite", "sqlite:///PATH", "postgresql://...", "memory", OFF)
"""Forms of URLs."""

_POSTGRES = ("postgresql", "postgres")


def location_problem(url: str) -> str | None:
    """Return the problem of a store's URL, without quoting it, because it may contain a password."""
    if url in ("sqlite", "memory", OFF):
        return None
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  raises for what is no port
    except ValueError:
        return "not a URL"
    if parts.scheme == "sqlite":
        return None if not parts.netloc and len(parts.path) > 1 else "expected sqlite:///PATH"
    return None if parts.scheme in _POSTGRES else f"expected one of {', '.join(KINDS)}"


def open_store(url: str, environ: Mapping[str, str]) -> Store | None:
    """Return the store at `url`, not opened yet; `None` if the store is disabled.

    Raises:
        ConfigurationError: invalid URL, or a missing package.
    """
    if problem := location_problem(url):
        raise ConfigurationError(f"the store's URL: {problem}")
    if url == OFF:
        return None
    if url == "memory":
        return Memory()
    if url == "sqlite":
        return SQLite(default_path(environ))
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        return SQLite(Path(unquote(parts.path)))
    from xenoglot.store.postgres import Postgres  # noqa: PLC0415  an extra

    return Postgres(url)


def default_path(environ: Mapping[str, str]) -> Path:
    """Return the default path of the file (XDG Base Directory Specification)."""
    return user_directory(environ, "XDG_DATA_HOME") / "state.db"
