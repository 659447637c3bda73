"""Finds the text syntax that parses the tool calls and reasoning a server leaves in its text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.loss import Losses
from xenoglot.model.content import Reasoning, Text, ToolCall
from xenoglot.providers.probe.findings import Finding, ProbeExchange
from xenoglot.providers.probe.probe_table import WEATHER
from xenoglot.text.parse_api import parse
from xenoglot.text.registry import AUTO, names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.content import Part

_LONGEST = 120


def syntax_of(texts: Sequence[ProbeExchange], model: str) -> tuple[str, ProbeExchange] | None:
    """Return the row that reads the calls in a text, or else the reasoning, and where; `None` without either."""
    for kind in (ToolCall, Reasoning):
        for text in texts:
            row = _reading(text.answered, model, kind)
            if row is not None:
                return row, text
    return None


def find_syntax(face: str, texts: Sequence[ProbeExchange], model: str) -> tuple[Finding, str | None]:
    """Return what is found in the texts of a model, and the syntax that is suggested."""
    found = syntax_of(texts, model)
    if found is None:
        return Finding(face=face, what="text_syntax", verdict="not seen", scope="model"), None
    row, text = found
    evidence = ProbeExchange(asked=text.asked, answered=_short(text.answered))
    detail = f"the text is to be read as `{row}`"
    finding = Finding(
        face=face,
        what="text_syntax",
        verdict="yes",
        confidence="likely",
        detail=detail,
        evidence=(evidence,),
        scope="model",
    )
    return finding, row


def _reading(text: str, model: str, kind: type[Part]) -> str | None:
    """Return the row that finds a part of `kind`: the family's own, else that which leaves the fewest words."""
    usual, left = _parsed(text, model, kind, AUTO)
    if left is None:
        return None
    if usual != AUTO:
        return usual
    best = min(
        (
            (left, number, row)
            for number, row in enumerate(names())
            if (left := _parsed(text, model, kind, row)[1]) is not None
        ),
        default=None,
    )
    return AUTO if best is None else best[2]


def _parsed(text: str, model: str, kind: type[Part], syntax: str) -> tuple[str, int | None]:
    """Return the row that was taken, and how many characters it left as words; `None` where it found no such part."""
    made = parse(text, Losses(), syntax=syntax, model=model, tools=(WEATHER,))
    content = made.candidate.content
    if not any(isinstance(part, kind) for part in content):
        return made.syntax, None
    return made.syntax, sum(len(part.text) for part in content if isinstance(part, Text))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
