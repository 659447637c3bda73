"""Placeholders in place of what a model is not to see, and the way back, also across the pieces of a stream.

A value gets the same placeholder in all places, numbered by its first appearance. So a conversation that grows at
its end keeps its placeholders from request to request: caches find its beginning, and signed reasoning still fits.
"""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from xenoglot.hooks.texts import map_part
from xenoglot.model.content import ToolCall
from xenoglot.model.events import ArgumentsDelta, BlockEnded, BlockStarted, ReasoningDelta, TextDelta

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.content import Part
    from xenoglot.model.events import Event


class Placeholders(Struct):
    """The values of one request by their placeholders. `taken` are texts like placeholders that the request has."""

    taken: frozenset[str] = frozenset()
    values: dict[str, str] = field(default_factory=dict)
    names: dict[tuple[str, str], str] = field(default_factory=dict)
    """The placeholder of each kind and value."""
    numbers: dict[str, int] = field(default_factory=dict)

    def name(self, kind: str, value: str) -> str:
        """Return the placeholder of a value of a `kind`, in capital letters and underscores."""
        known = self.names.get((kind, value))
        if known is not None:
            return known
        while True:
            number = self.numbers[kind] = self.numbers.get(kind, 0) + 1
            made = f"<{kind}_{number}>"
            if made not in self.taken:
                break
        self.names[kind, value] = made
        self.values[made] = value
        return made

    def restore(self, text: str, *, quoted: bool = False) -> str:
        """Return `text` with the values; `quoted` if it is JSON."""
        if "<" not in text:
            return text
        for name, value in self.values.items():
            if name in text:
                text = text.replace(name, json.dumps(value)[1:-1] if quoted else value)
        return text

    def held(self, text: str) -> int:
        """Return how many characters at the end of `text` may be the beginning of a placeholder."""
        at = text.rfind("<")
        if at < 0:
            return 0
        tail = text[at:]
        return len(tail) if any(len(name) > len(tail) and name.startswith(tail) for name in self.values) else 0


LIKE = re.compile(r"<[A-Z][A-Z0-9_]*_[0-9]+>")
"""What looks like a placeholder."""

_Delta = TextDelta | ReasoningDelta | ArgumentsDelta


class Restorer:
    """Restores the values in the events of one answer; what may be the beginning of a placeholder is held back."""

    def __init__(self, placeholders: Placeholders) -> None:
        self._placeholders = placeholders
        self._pending: dict[int, _Delta] = {}
        """What is held back, by candidate: a delta with the text."""

    def feed(self, event: Event) -> Sequence[Event] | None:
        """Return the events in place of `event`; `None` if it stays."""
        if isinstance(event, _Delta):
            return self._delta(event)
        if isinstance(event, BlockStarted):
            part = self._part(event.part)
            return None if part is event.part else (replace(event, part=part),)
        if isinstance(event, BlockEnded):
            rest = self._flush(event.candidate)
            if event.part is not None:
                event = replace(event, part=self._part(event.part))
            return (*rest, event)
        return None

    def _part(self, part: Part) -> Part:
        """Return a part with the values."""
        return map_part(part, partial(self._placeholders.restore, quoted=isinstance(part, ToolCall)))

    def _delta(self, event: _Delta) -> Sequence[Event] | None:
        before = self._pending.pop(event.candidate, None)
        flushed: Sequence[Event] = ()
        if before is None:
            text = event.text
        elif type(before) is type(event) and getattr(before, "summary", None) == getattr(event, "summary", None):
            text = before.text + event.text
        else:
            flushed, text = (before,), event.text
        if "<" not in text:
            return None
        text = self._placeholders.restore(text, quoted=isinstance(event, ArgumentsDelta))
        held = self._placeholders.held(text)
        if held:
            self._pending[event.candidate] = replace(event, text=text[-held:])
            text = text[:-held]
        return (*flushed, replace(event, text=text)) if text else flushed

    def _flush(self, candidate: int) -> Sequence[Event]:
        pending = self._pending.pop(candidate, None)
        return () if pending is None else (pending,)
