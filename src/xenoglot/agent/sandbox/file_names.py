"""File names: display form for a model, and detection of files with secrets or version history."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING
from unicodedata import category

if TYPE_CHECKING:
    from collections.abc import Sequence

HISTORIES = frozenset({".git", "git~1", ".hg", ".svn"})
"""Folders of version control: a hook or setting written there is a command run later, and addresses hold passwords.

`git~1` is what Windows calls the first of them, too: WSL shows such disks."""

SECRETS = (
    ".env",
    ".env.*",
    ".envrc",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".htpasswd",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "credentials",
    "credentials.json",
    "credentials.toml",
    "secrets.json",
    "secrets.toml",
    "secrets.y*ml",
    "service-account*.json",
)
"""Names of files that usually hold secrets, in small letters."""

SECRET_FOLDERS = frozenset({".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker"})

INNOCENT = (".env.example", ".env.sample", ".env.template", ".env.dist")
"""Names that look like those and hold none: they show what is to be filled in."""


def is_history(parts: Sequence[str]) -> bool:
    """Return whether a path leads into version control's own folder, on any file system."""
    return any(_folded(part) in HISTORIES for part in parts)


def is_secret(parts: Sequence[str]) -> bool:
    """Return whether a path, by its name, leads to a file of secrets."""
    if not parts:
        return False
    folded = [_folded(part) for part in parts]
    if not SECRET_FOLDERS.isdisjoint(folded):
        return True
    name = folded[-1]
    return name not in INNOCENT and any(fnmatchcase(name, pattern) for pattern in SECRETS)


def _folded(name: str) -> str:
    """Return a name as a file system may compare it: without regard to capitals, or to characters that do not show."""
    return "".join(character for character in name if category(character) != "Cf").casefold()


def valid_text(text: str) -> str:
    """Return text that can be written as JSON: stray bytes, as names and terminals may have them, are spelled out."""
    return text.encode(errors="backslashreplace").decode()


def shown(name: str) -> str:
    """Return a name as one line of text: as it is, or as a JSON string if something in it does not show."""
    return name if name.isprintable() else json.dumps(name)
