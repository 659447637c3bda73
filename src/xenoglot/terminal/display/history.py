"""Input history: a file of the user, without lines that contain secrets."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from xenoglot.user_directories import user_directory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

MOST = 1000
"""Lines that are offered again."""
LONGEST = 10_000
"""Characters of a line that is kept: what is longer was pasted."""
LARGEST = 2_000_000
"""Bytes of the file beyond which its older half is forgotten."""
SHORTEST_SECRET = 8

_SECRET_NAMES = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
_SECRET_TEXTS = re.compile(
    r"\b(?:sk|pk|rk|ghp|gho|xox[abp]|AKIA|AIza|hf|gsk)[-_A-Za-z0-9]{16,}|-----BEGIN [A-Z ]*PRIVATE KEY"
)


def state_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """`xenoglot` in `$XDG_STATE_HOME`, or in `~/.local/state`."""
    return user_directory(environ, "XDG_STATE_HOME")


def contains_secret(text: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether `text` contains something in the form of a key, or the value of a variable that holds one."""
    return _has_secret(text, _secrets(environ))


def _has_secret(text: str, secrets: Sequence[str]) -> bool:
    return bool(_SECRET_TEXTS.search(text)) or any(secret in text for secret in secrets)


def _secrets(environ: Mapping[str, str]) -> list[str]:
    return [value for name, value in environ.items() if _SECRET_NAMES.search(name) and len(value) >= SHORTEST_SECRET]


class History:
    """The lines of one file, oldest first. A file that cannot be read or written is ignored."""

    def __init__(self, path: Path, environ: Mapping[str, str] = os.environ) -> None:
        self._path = path
        self._secrets = _secrets(environ)

    def lines(self) -> list[str]:
        """Return the stored lines; a truncated line is skipped."""
        found: list[str] = []
        with suppress(OSError):
            for line in self._path.read_bytes()[-LARGEST:].split(b"\n"):
                with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                    found.append(msgspec.json.decode(line, type=str))
        return found[-MOST:]

    def add(self, line: str) -> None:
        """Store a line, unless it contains a secret."""
        if not line.strip() or len(line) > LONGEST or self._is_secret(line):
            return
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._shorten()
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(descriptor, "wb", buffering=0) as file:
                file.write(msgspec.json.encode(line) + b"\n")

    def _is_secret(self, line: str) -> bool:
        return _has_secret(line, self._secrets)

    def _shorten(self) -> None:
        with suppress(FileNotFoundError):
            if self._path.stat().st_size > LARGEST:
                kept = b"".join(msgspec.json.encode(line) + b"\n" for line in self.lines()[-MOST // 2 :])
                work = self._path.with_name(f"{self._path.name}.{os.getpid()}.new")
                descriptor = os.open(work, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(kept)
                work.replace(self._path)
