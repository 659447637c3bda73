"""Runs one call syntax on a text, from its marker on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from xenoglot.text.parser.parser_input import IncompleteInputError, MismatchError
from xenoglot.text.parser.scanner import is_token

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from xenoglot.text.parser.parser_input import ParserInput, Reading
    from xenoglot.text.syntax import CallSyntax


_LINE = re.compile(r"[^\n<]+")


_EMPTY: Final = ("[]", "[ ]")
"""A list of calls with none in it."""


class FormatRun:
    """One form at work on the text from its marker on.

    `alone`: the marker stands at the start of a line, so that markers with no call between them are no words either.
    """

    def __init__(self, form: CallSyntax, section: ParserInput, *, alone: bool) -> None:
        self.section = section
        self.marked = any(len(marker) > 1 for marker in form.markers)
        self.over = False
        self.spoken: bool | None = None  # whether it began with words; `None`: nothing was made yet
        tagged = all(marker[0] in "<[" for marker in form.markers)  # and no fence, whose end may begin another
        alone = (alone and tagged) or all(is_token(marker) for marker in form.markers)
        self._reading = _read(form, section, alone=alone)

    def advance(self, *, ended: bool) -> None:
        """Read on, as far as the text goes."""
        if self.over:
            return
        section = self.section
        section.ended = ended
        try:
            next(self._reading)
        except StopIteration:
            section.close()
        except IncompleteInputError:
            section.cut()
        except MismatchError:
            if not section.drop_cut():
                section.give_back()
        else:
            return
        self.over = True


def _read(form: CallSyntax, section: ParserInput, *, alone: bool) -> Reading:
    """Read `begin`, calls and `end`."""
    if (yield from _opened(form, section, alone=alone)):
        return
    if form.echoed:
        section.record()
    while True:
        yield from _call(form, section)
        if form.lines and (yield from _rest_of_line(form, section)):
            continue
        if (yield from section.accept(form.close)):
            yield from _repeated([end for end in form.close if not _begins(form.open, end)], section)
            section.settle()
        elif section.drop_cut():
            return
        elif form.close and (yield from _crowded(form, section)):
            continue
        if (yield from _finished(form, section)):
            section.drop_cut()
            return


def _finished(form: CallSyntax, section: ParserInput) -> Generator[None, None, bool]:
    """Read the end of the calls, or the opening marker of another; return whether there is no other."""
    if (yield from section.accept(form.end)):
        yield from section.echo()
        return True
    return not (yield from _another(form, section))


def _call(form: CallSyntax, section: ParserInput) -> Reading:
    """Read the markers of one call and its payload; in a form of lines, what is no call is left as text."""
    yield from _repeated(form.open, section)
    try:
        yield from form.payload.read(section)
    except MismatchError:
        if not form.lines:
            raise
        section.leave()
    section.settle()


def _opened(form: CallSyntax, section: ParserInput, *, alone: bool) -> Generator[None, None, bool]:
    """Read the markers before the first call; return whether there is none."""
    for markers in (form.begin, form.open):
        yield from section.expect(markers)
        if alone and markers and (yield from _is_empty(form, section)):
            return True
    return False


def _is_empty(form: CallSyntax, section: ParserInput) -> Generator[None, None, bool]:
    """Read the end of a form that has no call in it, where it stands here; return whether it does."""
    listed = form.markers and "[" in form.payload.starts and (yield from section.accept(_EMPTY))
    closed = yield from section.accept(form.close)
    ended = yield from section.accept(form.end)
    if listed and not (closed or ended) and (form.close or form.end):
        raise MismatchError
    if not (listed or closed or ended):
        return False
    section.void()
    return True


def _rest_of_line(form: CallSyntax, section: ParserInput) -> Generator[None, None, bool]:
    """Leave as words what stands on the line after a call, or is none; return whether another call follows."""
    if (yield from section.follows("".join({end[0] for end in form.end} | {form.payload.starts}))):
        return False
    section.leave()
    while (yield from section.peek()) != "\n":
        if (yield from section.at_stop()):
            return False
        section.run(_LINE)
        if section.rest[:1] not in ("", "\n") and not (yield from section.at_stop()):
            section.take(1)
    return (yield from section.follows(form.payload.starts))


def _repeated(markers: Sequence[str], section: ParserInput) -> Reading:
    """Pass over a marker that is written again: models stutter."""
    while (yield from section.accept(markers)):
        pass


def _begins(markers: Sequence[str], beginning: str) -> bool:
    """Return whether one of `markers` begins so: the same marker ends a code block and begins one."""
    return any(marker.startswith(beginning) for marker in markers)


def _crowded(form: CallSyntax, section: ParserInput) -> Generator[None, None, bool]:
    """Return whether another call stands where the closing marker should."""
    starts = form.payload.starts
    return bool(starts) and (yield from section.follows(starts))


def _another(form: CallSyntax, section: ParserInput) -> Generator[None, None, bool]:
    """Return whether another call follows; its opening marker is read."""
    separated = yield from section.accept(form.between)
    if form.open:
        if not form.begin and not separated:
            return False  # a section of its own: it is found as the first was
        section.reopen()
        return bool((yield from section.accept(form.open)))
    if not form.payload.starts:
        return False
    return (yield from section.follows(form.payload.starts))
