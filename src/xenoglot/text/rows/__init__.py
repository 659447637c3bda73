"""The rows: one for each family of models, by the kind of their payload."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.text.rows import channels, json_calls, markup, named

if TYPE_CHECKING:
    from xenoglot.text.syntax import Syntax

ROWS: tuple[Syntax, ...] = (*json_calls.ROWS, *named.ROWS, *markup.ROWS, *channels.ROWS)
"""Their order is that in which forms with the same marker are preferred."""
