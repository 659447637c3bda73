"""One form of calls at work on a text, from its marker on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from xenoglot.text.section import CutError, MismatchError

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from xenoglot.text.section import Reading, Section
    from xenoglot.text.syntax import Calls


_LINE = re.compile(r"[^\n<]+")


class Attempt:
    """One form at work on the text from its marker on."""

    def __init__(self, form: Calls, section: Section) -> None:
        self.section = section
        self.marked = any(len(marker) > 1 for marker in form.markers)
        self.over = False
        self._reading = _read(form, section)

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
        except CutError:
            section.cut()
        except MismatchError:
            section.give_back()
        else:
            return
        self.over = True


def _read(form: Calls, section: Section) -> Reading:
    """Read `begin`, calls and `end`."""
    yield from section.expect(form.begin)
    yield from section.expect(form.open)
    while True:
        yield from _repeated(form.open, section)
        try:
            yield from form.payload.read(section)
        except MismatchError:
            if not form.lines:
                raise
            section.leave()
        section.settle()
        if form.lines and (yield from _rest_of_line(form, section)):
            continue
        if (yield from section.accept(form.close)):
            yield from _repeated([end for end in form.close if not _begins(form.open, end)], section)
        elif form.close and (yield from _crowded(form, section)):
            continue
        if (yield from section.accept(form.end)) or not (yield from _another(form, section)):
            return


def _rest_of_line(form: Calls, section: Section) -> Generator[None, None, bool]:
    """Leave as words what stands on the line behind a call, or is none; return whether another call follows."""
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


def _repeated(markers: Sequence[str], section: Section) -> Reading:
    """Pass over a marker that is written again: models stutter."""
    while (yield from section.accept(markers)):
        pass


def _begins(markers: Sequence[str], beginning: str) -> bool:
    """Return whether one of `markers` begins so: that a code block ends and that one begins is told by the same."""
    return any(marker.startswith(beginning) for marker in markers)


def _crowded(form: Calls, section: Section) -> Generator[None, None, bool]:
    """Return whether another call stands where the closing marker should."""
    starts = form.payload.starts
    return bool(starts) and (yield from section.follows(starts))


def _another(form: Calls, section: Section) -> Generator[None, None, bool]:
    """Return whether another call follows; its opening marker is read."""
    separated = yield from section.accept(form.between)
    if form.open:
        if not form.begin and not separated:
            return False  # a section of its own: it is found as the first was
        return bool((yield from section.accept(form.open)))
    if not form.payload.starts:
        return False
    return (yield from section.follows(form.payload.starts))
