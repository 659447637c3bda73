"""JSON for people: the values of a document as rows, with what is not printable as escapes; bounded.

A document of which only the beginning was captured is shown as far as it goes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.codec.loss import Loss
from xenoglot.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xenoglot.gateway.console.inspection.alignment import Node, Path
    from xenoglot.model.json import JSON

MOST_ROWS: Final = 2000
"""Rows of one document; the whole text is a link away."""
MOST_CHARACTERS: Final = 2000
"""The beginning that is shown of a value."""
DEEPEST: Final = 12
"""Rows deeper than that are indented as this."""

UNPRINTABLE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)
"""Controls, invisible characters and those that change the direction of a text
(https://www.unicode.org/reports/tr36/#Bidirectional_Text_Spoofing); not the joiners that emoji are made with."""

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)|[\[\]{},]', re.DOTALL)


class TreeRow(Struct, frozen=True, kw_only=True):
    """A value of a document: its name or index, and its text; a container has the number of its values.

    `group` is the name of the values that mean the same on other sides, empty without any. `id` is its place in the
    page, if losses are marked at it.
    """

    depth: int
    key: str
    text: str
    kind: str
    group: str = ""
    id: str = ""
    losses: tuple[Loss, ...] = ()


def visible(text: str, most: int = MOST_CHARACTERS) -> str:
    """Return a text with escapes for what is not printable, and cut at `most` characters."""
    cut = text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} more characters)"
    return escaped(cut)


def escaped(text: str) -> str:
    """Return a text with escapes of JSON for what is not printable; JSON keeps its meaning."""
    return UNPRINTABLE.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


def tree_rows(
    found: Sequence[Node], groups: Mapping[Path, str], losses: Mapping[Path, tuple[str, tuple[Loss, ...]]]
) -> list[TreeRow]:
    """Return the first rows of a document: `losses` are those at a path, with the id of the place."""
    rows = []
    for node in found[:MOST_ROWS]:
        place, lost = losses.get(node.path, ("", ()))
        rows.append(
            TreeRow(
                depth=min(len(node.path) - 1, DEEPEST),
                key=visible(str(node.path[-1]), 200),
                text=_text(node.value),
                kind=_kind(node.value),
                group=groups.get(node.path, ""),
                id=place,
                losses=lost,
            )
        )
    return rows


def parsed(text: str, *, truncated: bool) -> JSON:
    """Return the JSON of a body; if it is cut, as much as is whole.

    Raises:
        WireError: it is not JSON.
    """
    try:
        return decode_json(text)
    except WireError:
        if not truncated:
            raise
        return decode_json(completed(text))


def completed(text: str) -> str:
    """Return the beginning of a JSON document as a whole one: what is open is closed, what is begun is left out."""
    closers: list[str] = []
    end = 0
    for token in _TOKEN.finditer(text):
        sign = token[0]
        if sign in ("{", "["):
            closers.append("}" if sign == "{" else "]")
        elif sign in ("}", "]"):
            del closers[-1:]
        elif sign != ",":
            continue
        end = token.start() if sign == "," else token.end()
    return text[:end] + "".join(reversed(closers))


def _kind(value: JSON) -> str:
    if isinstance(value, dict | list):
        return "container"
    return "text" if isinstance(value, str) else "value"


def _text(value: JSON) -> str:
    if isinstance(value, dict):
        return f"{{{len(value)}}}"
    if isinstance(value, list):
        return f"[{len(value)}]"
    return visible(value) if isinstance(value, str) else encode_json(value).decode()
