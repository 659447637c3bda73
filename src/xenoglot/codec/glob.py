"""Glob patterns of names, as operators and provider rows write them: `*` is any number of characters."""

from __future__ import annotations


def matches(pattern: str, name: str) -> bool:
    """Return whether `name` fits `pattern`, in which `*` is any number of characters. Linear in the name."""
    if "*" not in pattern:
        return name == pattern
    first, *middle, last = pattern.split("*")
    end = len(name) - len(last)
    at = len(first)
    if at > end or not name.startswith(first) or not name.endswith(last):
        return False
    for piece in middle:
        found = name.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True
