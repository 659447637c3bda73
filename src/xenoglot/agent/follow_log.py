"""Prints the log of a background run in the form of a terminal run."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

import msgspec

from xenoglot.agent.screen import PlainScreen
from xenoglot.agent.session.lock import holder
from xenoglot.errors import ConfigurationError
from xenoglot.model.events import BlockEnded, TextDelta
from xenoglot.tools.events import ApprovalReceived, CallEnded, CallStarted, Compacted, ModelEvent, RoundStarted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from xenoglot.tools.events import RunEvent

ENDING = ".log"
_TICK = 0.2
_PIECE = 1 << 16

_EVENTS: dict[str, type[RoundStarted | CallStarted | CallEnded | ApprovalReceived | Compacted]] = {
    "round_started": RoundStarted,
    "call_started": CallStarted,
    "call_ended": CallEnded,
    "approval_received": ApprovalReceived,
    "approval_given": ApprovalReceived,  # in logs of the last release
    "compacted": Compacted,
}
_OF_MODELS: dict[str, type[TextDelta | BlockEnded]] = {"text_delta": TextDelta, "block_ended": BlockEnded}
"""The kinds of events that lines are made of, as `event_json` names them."""


def print_log(session: Path, *, follow: bool) -> None:
    """Print the log that belongs to the file of a session, with `follow` until its run has ended.

    Raises:
        ConfigurationError: there is none.
    """
    screen = PlainScreen(sys.stdout, sys.stdout)
    for line in _lines(session, follow=follow):
        _show(screen, line)
    screen.flush()


def _lines(session: Path, *, follow: bool) -> Iterator[bytes]:
    """Yield the complete lines of a log."""
    try:
        descriptor = os.open(session.with_suffix(ENDING), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        raise ConfigurationError(f"`{session.stem}` has no log: it never ran in the background") from None
    held = b""
    with os.fdopen(descriptor, "rb", buffering=0) as log:
        while True:
            goes_on = follow and holder(session) is not None  # asked before: what it writes at its end is read below
            while piece := log.read(_PIECE):
                *lines, held = (held + piece).split(b"\n")
                yield from lines
            if not goes_on:
                return
            time.sleep(_TICK)


def _show(screen: PlainScreen, line: bytes) -> None:
    """Print a line of a log; a line that is not an event is printed as is."""
    try:
        told = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        told = line.decode(errors="replace")
    match told:
        case {"event": "note", "text": str(text)}:
            screen.note(text)
        case {"event": "problem", "text": str(text)}:
            screen.problem(text)
        case {"event": str()}:
            if (event := _event(told)) is not None:
                screen.feed(event)
        case _:
            screen.note(str(told))


def _event(told: dict[str, object]) -> RunEvent | None:
    """Return the event that `event_json` made this of, if lines are made of such."""
    try:
        if told["event"] == "model_event":
            of_model = _OF_MODELS.get(str(told.get("kind")))
            return None if of_model is None else ModelEvent(event=msgspec.convert(told, of_model))
        kind = _EVENTS.get(str(told["event"]))
        return None if kind is None else msgspec.convert(told, kind)
    except msgspec.ValidationError:
        return None
