"""Answers that call nobody stay as they are, whoever wrote them; and they leave as they come."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from tests.text.test_laws import ROWS, markers
from tests.text.vectors import declared
from xenoglot.text import registry
from xenoglot.text.output_pieces import TextPiece
from xenoglot.text.parser.text_parser import parser

ROOT: Final = Path(__file__).parent.parent
PROSE: Final[dict[str, str]] = json.loads((ROOT / "vectors" / "prose.json").read_text(encoding="utf-8"))
DOCS: Final = sorted((ROOT.parent / "docs").rglob("*.md"))

FENCES: Final = frozenset({"object-behind-words"})
"""A code block behind words that holds a call of a declared tool; some families are known to write so."""
FENCING: Final = frozenset({"json", "xlam", "qwen25_coder", "gemma3", "rwkv"})

LONGEST_HELD: Final = 24
"""Characters beyond the longest marker: a code block of JSON waits for the first key that is none of a call."""


def read(row: str, *chunks: str) -> str | None:
    """Return the words that `row` makes of `chunks`; nothing where it makes anything else."""
    stage = parser(registry.get(row), declared(), thinking=False)
    pieces = [piece for chunk in chunks for piece in stage.feed(chunk)] + list(stage.close(stopped=True))
    words = [piece.text for piece in pieces if isinstance(piece, TextPiece)]
    return "".join(words) if len(words) == len(pieces) else None


@pytest.mark.parametrize("row", ROWS)
def test_prose_stays_as_it_is(row: str) -> None:
    texts = {name: text for name, text in PROSE.items() if name not in FENCES or row not in FENCING}
    for name, text in texts.items():
        assert [read(row, text), read(row, *text)] == [text, text], name


@pytest.mark.parametrize("row", ROWS)
def test_prose_leaves_as_it_comes(row: str) -> None:
    longest = max((len(marker) for marker in markers(registry.get(row))), default=0)
    held = 0
    for path in DOCS[:8]:
        stage, given = parser(registry.get(row), declared(), thinking=False), 0
        for fed, character in enumerate(path.read_text(encoding="utf-8")[:3000], 1):
            given += sum(len(piece.text) for piece in stage.feed(character) if isinstance(piece, TextPiece))
            held = max(held, fed - given)
    assert held <= longest + LONGEST_HELD
