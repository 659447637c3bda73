"""Removes secrets and control characters from text for logs, headers and error messages."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from xenoglot.model.json import JSON


SHORTEST = 8
"""A secret shorter than this is not looked for: it would turn up in innocent words."""

MASK = "[redacted]"

MOST_REMEMBERED = 16
"""Secrets that are remembered in addition to the first ones: tokens that are replaced every hour."""


class Redactor:
    """Replaces the secrets it was given, as they are and as JSON, Python and URLs write them."""

    __slots__ = ("_fixed", "_recent", "_secrets")

    def __init__(self, secrets: Iterable[str | None] = ()) -> None:
        self._fixed = _all_spellings(secrets)
        self._recent: tuple[str, ...] = ()
        self._secrets = sorted(self._fixed, key=len, reverse=True)  # the longer first: one may contain another

    def remember(self, *secrets: str) -> None:
        """Replace these secrets too, which change: the last `MOST_REMEMBERED` of them."""
        self._recent = tuple(dict.fromkeys((*self._recent, *secrets)))[-MOST_REMEMBERED:]
        self._secrets = sorted(self._fixed | _all_spellings(self._recent), key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """Return `text` without any of the secrets."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text

    def partial_length(self, text: str) -> int:
        """Return how many characters at the end of `text` may be the beginning of a secret."""
        longest = 0
        for secret in self._secrets:
            place = text.find(secret[0], max(0, len(text) - len(secret) + 1))
            while place >= 0 and not secret.startswith(text[place:]):
                place = text.find(secret[0], place + 1)
            if place >= 0:
                longest = max(longest, len(text) - place)
        return longest

    def json(self, value: JSON) -> JSON:
        """Return a JSON value without any of the secrets, in keys and texts alike."""
        if isinstance(value, str):
            return self(value)
        if isinstance(value, list):
            return [self.json(item) for item in value]
        if isinstance(value, dict):
            return {self(key): self.json(item) for key, item in value.items()}
        return value


def _all_spellings(secrets: Iterable[str | None]) -> set[str]:
    long = (secret for secret in secrets if secret is not None and len(secret) >= SHORTEST)
    return {spelled for secret in long for spelled in _spellings(secret)}


def _spellings(secret: str) -> Iterator[str]:
    """Yield the forms of a secret in quoted text."""
    import json  # noqa: PLC0415  msgspec has no form without letters beyond ASCII, and few processes have secrets

    yield secret
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield json.dumps(secret)[1:-1]
    yield repr(secret)[1:-1]
    yield quote(secret, safe="", errors="surrogateescape")


LONGEST = 200
"""Characters of a name that a log line keeps."""

LONGEST_HEADER = 4000
"""Characters of a header's value: most clients give up on a head of 8 KiB."""

REPLACEMENT = "?"


def for_log(text: str, limit: int = LONGEST) -> str:
    """Return `text` with what is not printable replaced (control, escape, bidirectional), cut at `limit` characters."""
    if len(text) <= limit and text.isprintable():  # nearly all
        return text
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return cut if cut.isprintable() else "".join(c if c.isprintable() else REPLACEMENT for c in cut)


def for_header(text: str, limit: int = LONGEST_HEADER) -> str:
    """Return `text` as visible ASCII and spaces (RFC 9110 section 5.5), cut at `limit` characters."""
    cut = text if len(text) <= limit else text[: limit - 3] + "..."
    if cut.isascii() and cut.isprintable():
        return cut
    return "".join(c if c.isascii() and c.isprintable() else REPLACEMENT for c in cut)
