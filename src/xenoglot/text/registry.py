"""The registry of text syntaxes: lookup of a row by its name, or by the name of a model."""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import cache, partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.glob import matches
from xenoglot.errors import ConfigurationError
from xenoglot.text.syntax import CallSyntax, ReasoningSyntax, Syntax, without_openings

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAKER = re.compile(r"[a-z-]+[._]")
"""A maker's name before the model's (`openai.gpt-oss-120b`, `qwen_qwen3-8b`)."""

AUTO = "auto"
OFF = "off"


@cache
def _rows() -> Mapping[str, Syntax]:
    from xenoglot.text.rows import ROWS  # noqa: PLC0415  loaded at the first lookup: most programs need none

    return {row.name: row for row in ROWS}


def names() -> tuple[str, ...]:
    """Return the names of all rows."""
    return tuple(_rows())


@cache
def get(name: str) -> Syntax:
    """Return the row `name`; `auto` is all of them together.

    Raises:
        ConfigurationError: there is none of that name.
    """
    if name == AUTO:
        return _detecting(_usual())
    found = _rows().get(name)
    if found is None:
        known = (AUTO, OFF, *names())
        near = get_close_matches(name, known, n=1)
        advice = f"did you mean `{near[0]}`?" if near else f"there are: {', '.join(known)}"
        raise ConfigurationError(f"there is no text syntax `{name}`; {advice}")
    return found


def for_model(model: str) -> Syntax | None:
    """Return the row of the family that `model` is of by its name; `None` where the name shows no family.

    Of several patterns that fit, the one with the most characters counts.
    """
    name = model.lower().rsplit("/", 1)[-1]
    maker = _MAKER.match(name)
    return _row_of(name) or (_row_of(name[maker.end() :]) if maker is not None else None)


def _row_of(name: str) -> Syntax | None:
    best: tuple[int, Syntax] | None = None
    for row in _rows().values():
        for pattern in row.models:
            if matches(pattern, name) and (best is None or len(pattern) > best[0]):
                best = len(pattern), row
    return None if best is None else best[1]


def chosen(name: str, model: str) -> Syntax | None:
    """Return the syntax that the policy `name` means for `model`: a row, the one that fits its name, or all together.

    `None` is for `off`.
    """
    if name == OFF:
        return None
    return (for_model(model) or get(AUTO)) if name == AUTO else get(name)


@cache
def marked(syntax: Syntax) -> Syntax:
    """Return `syntax` without the forms that have no marker."""
    if syntax.name == AUTO:
        return _detecting(_marked(_usual()))
    return _marked(syntax)


def _marked(syntax: Syntax) -> Syntax:
    calls, slips = (tuple(form for form in forms if form.markers) for forms in (syntax.calls, syntax.slips))
    return replace(syntax, calls=calls, slips=slips)


def _detecting(usual: Syntax) -> Syntax:
    """Return the syntax of a model of which nothing is known: `usual`, or what only one family begins with."""
    from xenoglot.text.parser.autodetect import Autodetect  # noqa: PLC0415  the same: it loads the parser

    openings = tuple((opening, row.own) for row in _rows().values() if row.own for opening in row.opens)
    return replace(usual, own=partial(Autodetect, usual, openings))


def _usual() -> Syntax:
    """Return the forms of all rows that have markers, and every reasoning syntax."""
    calls: dict[CallSyntax, None] = {}
    thoughts: list[ReasoningSyntax] = []
    strays: dict[str, None] = {}
    for row in _rows().values():
        strays |= dict.fromkeys(row.strays)
        calls |= dict.fromkeys(form for form in (*row.calls, *row.slips) if form.auto)
        known = {marker for one in thoughts for marker in one.open}
        for one in row.thoughts:
            opens = tuple(marker for marker in one.open if marker not in known)
            if opens and one.auto:
                thoughts.append(ReasoningSyntax(open=opens, close=one.close, calls=one.calls, line=one.line))
    return Syntax(
        name=AUTO,
        title="any",
        source="",
        note="by the first marker seen",
        calls=tuple(calls),
        thoughts=tuple(thoughts),
        strays=without_openings(tuple(strays), tuple(calls)),
    )
