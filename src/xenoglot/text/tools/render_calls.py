"""Renders tool calls in the text form of a model family: the inverse of parsing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.text.syntax import CallSyntax, Syntax


def written(syntax: Syntax, calls: Sequence[tuple[str, str]]) -> str:
    """Return `calls` (name, arguments as JSON) as a model of `syntax` writes them, in the first form of its row."""
    if syntax.write is not None:
        return syntax.write(calls)
    return in_form(syntax.calls[0], calls)


def in_form(form: CallSyntax, calls: Sequence[tuple[str, str]]) -> str:
    """Return `calls` in `form`."""
    begin, end, opened, closed = (
        spelled[0] if spelled else "" for spelled in (form.begin, form.end, form.open, form.close)
    )
    between = form.between[0] if form.between else form.joint
    if form.open or form.close:
        opened, closed = f"{opened}{form.padding}", f"{form.padding}{closed}"
    else:
        begin, end = f"{begin}{form.padding}", f"{form.padding}{end}"
    return begin + between.join(f"{opened}{said}{closed}" for said in form.payload.write(calls)) + end
