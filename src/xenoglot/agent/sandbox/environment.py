"""Environment variables for commands: those of the agent, without secrets, set for non-interactive use."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

_SECRET_NAME = re.compile(
    r"(key|token|secret|password|passwd|passphrase|credential|connection_?string|dsn)s?[0-9]*(_|$)"
    r"|(^|_)(pat|auth|pass|pw|pwd)(_|$)",
    re.IGNORECASE,
)
_SECRET_VALUE = re.compile(r"\w+://([^/\s@]*:[^/\s@]+|[^/\s@:]{20,})@")
"""A URL with a password in it, or with a token in the place of a user."""

_INNOCENT = frozenset({"PWD", "OLDPWD", "SSH_AUTH_SOCK", "XAUTHORITY"})

_UNATTENDED = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "EDITOR": "true",
    "DEBIAN_FRONTEND": "noninteractive",
}


def is_secret(name: str, value: str) -> bool:
    """Return whether a variable, by its name or the look of its value, holds a secret."""
    if name in _INNOCENT:
        return False
    return _SECRET_NAME.search(name) is not None or _SECRET_VALUE.search(value) is not None


def secrets(environ: Mapping[str, str], known: Container[str] = ()) -> Iterator[str]:
    """Yield the values of the variables that hold secrets; those in `known` are secrets."""
    return (value for name, value in environ.items() if value in known or is_secret(name, value))


def for_command(environ: Mapping[str, str], known: Container[str] = ()) -> dict[str, str]:
    """Return the variables of a command; the values in `known` are left out, and those that look secret."""
    kept = {name: value for name, value in environ.items() if value not in known and not is_secret(name, value)}
    return kept | _UNATTENDED
