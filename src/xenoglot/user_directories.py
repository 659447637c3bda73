"""Folders of the user's, by the XDG Base Directory Specification.

https://specifications.freedesktop.org/basedir-spec/latest/: a variable names the base directory, and a relative path in
it is ignored. Containers may run as a number that no user has; the home is then `/`, as container runtimes set it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME: Final = "xenoglot"
_DEFAULTS: Final = {
    "XDG_CACHE_HOME": ".cache",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
}


def user_directory(environ: Mapping[str, str], variable: str) -> Path:
    """Return the folder `xenoglot` in the base directory of a variable such as `XDG_STATE_HOME`; it need not exist."""
    named = environ.get(variable) or ""
    return (Path(named) if named.startswith("/") else _home(environ) / _DEFAULTS[variable]) / NAME


def _home(environ: Mapping[str, str]) -> Path:
    try:
        return Path(environ.get("HOME") or "~").expanduser()
    except RuntimeError:
        return Path("/")
