"""Sanitizes external text for log lines and headers: one line, bounded, no terminal control characters."""

from __future__ import annotations

LONGEST = 200
"""Characters of a name that a log line keeps."""

LONGEST_HEADER = 4000
"""Characters of a header's value: most clients give up on a head of 8 KiB."""

REPLACEMENT = "?"


def for_log(text: str, limit: int = LONGEST) -> str:
    """Return `text` with what is not printable replaced (control, escape, bidirectional), cut at `limit` characters."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return cut if cut.isprintable() else "".join(c if c.isprintable() else REPLACEMENT for c in cut)


def for_header(text: str, limit: int = LONGEST_HEADER) -> str:
    """Return `text` as visible ASCII and spaces (RFC 9110 section 5.5), cut at `limit` characters."""
    cut = text if len(text) <= limit else text[: limit - 3] + "..."
    if cut.isascii() and cut.isprintable():
        return cut
    return "".join(c if c.isascii() and c.isprintable() else REPLACEMENT for c in cut)
