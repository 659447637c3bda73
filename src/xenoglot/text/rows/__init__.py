"""Syntax rows: one for each model family, grouped by payload."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.text.rows import channels, json_calls, markup, named
from xenoglot.text.syntax import without_openings

if TYPE_CHECKING:
    from xenoglot.text.syntax import Syntax

_TOKEN = re.compile(r"<[|\uff5c][^<>]+[|\uff5c]>")
"""What only a tokenizer writes; tags without bars may be HTML."""


def _with_strays(row: Syntax) -> Syntax:
    """Return `row` with the tokens that end its calls among its strays."""
    forms = (*row.calls, *row.slips)
    ends = (marker for form in forms for marker in (*form.close, *form.end) if _TOKEN.fullmatch(marker))
    strays = without_openings(tuple(dict.fromkeys((*row.strays, *ends))), forms)
    return replace(row, strays=tuple(token for token in strays if token not in row.dropped))


ROWS: tuple[Syntax, ...] = tuple(
    _with_strays(row) for row in (*json_calls.ROWS, *named.ROWS, *markup.ROWS, *channels.ROWS)
)
"""Their order is that in which forms with the same marker are preferred."""
