"""Difference between two texts, as one hunk of a unified diff, in linear time."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

AROUND = 3
"""Unchanged lines that are shown on each side."""

FINEST = 400
"""With more changed lines than that, they are not compared among themselves."""

LONGEST = 400
"""Lines of a diff that are shown."""


class Diff(Struct, frozen=True, kw_only=True):
    """The hunk as text (empty if nothing changed), and the numbers of added and removed lines."""

    text: str
    added: int
    removed: int


def diff(old: str, new: str, path: str) -> Diff:
    """Return what leads from `old` to `new`."""
    before, after = old.splitlines(), new.splitlines()
    start = _same(before, after)
    end = _same(before[start:][::-1], after[start:][::-1])
    removed, added = before[start : len(before) - end], after[start : len(after) - end]
    if not removed and not added:
        return Diff(text="", added=0, removed=0)
    first = max(0, start - AROUND)
    behind = before[len(before) - end :][:AROUND]
    changed = list(_changed(removed, added))
    body = [*(f" {line}" for line in before[first:start]), *changed, *(f" {line}" for line in behind)]
    context = start - first + len(behind)
    head = f"@@ -{first + 1},{context + len(removed)} +{first + 1},{context + len(added)} @@"
    lines = [f"--- {path}", f"+++ {path}", head, *body]
    if len(lines) > LONGEST:
        lines = [*lines[:LONGEST], f"... {len(lines) - LONGEST} more lines"]
    signs = [line[0] for line in changed]
    return Diff(text="\n".join(lines), added=signs.count("+"), removed=signs.count("-"))


def _same(before: Sequence[str], after: Sequence[str]) -> int:
    """How many lines are the same from the beginning on."""
    count = 0
    for one, other in zip(before, after, strict=False):
        if one != other:
            break
        count += 1
    return count


def _changed(removed: Sequence[str], added: Sequence[str]) -> Iterator[str]:
    if len(removed) + len(added) > FINEST:
        yield from (f"-{line}" for line in removed)
        yield from (f"+{line}" for line in added)
        return
    for tag, i, j, k, m in SequenceMatcher(None, removed, added, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from (f" {line}" for line in removed[i:j])
        else:
            yield from (f"-{line}" for line in removed[i:j])
            yield from (f"+{line}" for line in added[k:m])
