"""Byte templates of repetitive stream events: the constant bytes, and the slots that vary.

Nearly all events of a stream differ in one piece of text, and perhaps in a number or a padding without meaning. Where
all bytes around these are as they were, and in each hole stands one JSON string (or count) as before, the event is the
same JSON but for those values: only they need be decoded. What is not exactly so is for the general way to read.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import DecodeError
from msgspec.json import Decoder

from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xenoglot.model.events import Event
    from xenoglot.model.json import JSON

_decode_text = Decoder(str).decode
_decode_count = Decoder(int).decode

_MANY_BYTES = 1024
"""A read of more is split at once."""

_MOST_AT_ONCE = 512
"""Events that are split off at once: what follows them is copied."""

_STRING = rb'"(?:[^"\\]|\\.)*"'
_COUNT = rb"\d+"


class TemplateHint(NamedTuple):
    """A decoder's description of an event that carries one text delta and nothing else.

    `path` leads to the text in the event's JSON; `silent` are top-level fields that hold a string or a count and may
    differ without meaning; `take` makes another text into the event it is.
    """

    path: Sequence[str | int]
    take: Callable[[str], Event]
    silent: Sequence[str] = ()


class EventTemplate:
    """The constant bytes of an event and its frame, with slots for the parts that vary."""

    __slots__ = (
        "_alone",
        "_before",
        "_behind",
        "_between",
        "_end",
        "_first",
        "_last",
        "_literal",
        "_quoted",
        "_take",
        "used",
    )

    def __init__(self, literals: Sequence[bytes], holes: Sequence[_Slot], take: Callable[[str], Event]) -> None:
        self.used = False
        """Whether any event matched."""
        followed = [(hole.kind == "count", literal) for hole, literal in zip(holes, literals[1:], strict=True)]
        text = [hole.kind for hole in holes].index("text")
        self._first = literals[0]
        self._before, self._literal, self._behind = followed[:text], followed[text][1], followed[text + 1 :]
        self._take = take
        self._last = self._literal.rstrip(b"\r\n")
        self._end = b"" if self._before or self._behind else self._literal[len(self._last) :]
        """What ends a frame where only its text varies, else nothing."""
        self._between = self._literal[1:] + self._first[:-1]
        """What stands between the texts of two events, with their quotes."""
        self._quoted = slice(len(self._first) - 1, 1 - len(self._last) or None)
        self._alone = slice(len(self._first) - 1, 1 - len(self._literal) or None)
        """Where the text of a frame is, with its quotes: without the line breaks of its end, and with them."""

    def read(self, chunk: bytes, at: int, events: list[Event]) -> int:
        """Append to `events` those that match from `at` on; return where they end."""
        first, before, literal, behind = self._first, self._before, self._literal, self._behind
        size = len(chunk)
        if self._end and size - at > _MANY_BYTES:
            at = self._read_runs(chunk, at, events)
        try:
            while at < size and chunk.startswith(first, at):
                start = at + len(first)
                if before:
                    start = self._pass(chunk, start, before)
                end = chunk.index(literal, start)
                text = _decode_text(chunk[start - 1 : end + 1])  # a quote on either side
                end += len(literal)
                if behind:
                    end = self._pass(chunk, end, behind)
                if not text:
                    break
                events.append(self._take(text))
                at = end
                self.used = True
        except (DecodeError, ValueError):  # a value is another one, no UTF-8, or cut
            pass
        return at

    def _read_runs(self, chunk: bytes, at: int, events: list[Event]) -> int:
        """Do the same for many events at once; what is not exactly so is left to the caller.

        A frame ends with line breaks, and none is within a JSON string: what is between two ends is one frame.
        """
        found = _MOST_AT_ONCE
        while found == _MOST_AT_ONCE:
            frames = chunk[at:].split(self._end, _MOST_AT_ONCE)
            frames.pop()  # it has no end, or is for the next turn
            while frames and not (frames[-1].startswith(self._first) and frames[-1].endswith(self._last)):
                frames.pop()
            quoted = [frame[self._quoted] for frame in frames]
            run = self._first[:-1] + self._between.join(quoted) + self._literal[1:]
            try:
                texts = [*map(_decode_text, quoted)]
            except (DecodeError, ValueError):  # as above
                return at
            if not texts or not all(texts) or not chunk.startswith(run, at):
                return at
            events += map(self._take, texts)
            self.used = True
            found = len(frames)
            at += len(run)
        return at

    def match(self, chunk: bytes) -> Event | None:
        """Return the event that `chunk` is, if it matches and nothing follows."""
        if not chunk.startswith(self._first):
            return None
        if not self._end:  # more than its text varies
            events: list[Event] = []
            return events[0] if self.read(chunk, 0, events) == len(chunk) and len(events) == 1 else None
        if not chunk.endswith(self._literal):
            return None
        try:
            text = _decode_text(chunk[self._alone])
        except (DecodeError, ValueError):  # as above
            return None
        if not text:
            return None
        self.used = True
        return self._take(text)

    @staticmethod
    def _pass(chunk: bytes, start: int, holes: Sequence[tuple[bool, bytes]]) -> int:
        """Return where the literal ends that follows the last of the silent `holes`.

        Each hole is given as whether it holds a count, and the literal that follows it.

        Raises:
            DecodeError: a value is not of its kind.
            ValueError: the chunk ends before a literal.
        """
        for is_count, literal in holes:
            end = chunk.index(literal, start)  # not `find`, whose -1 is a position, too
            if is_count:
                _decode_count(chunk[start:end] if chunk[start:end].isdigit() else b"")
            else:
                _decode_text(chunk[start - 1 : end + 1])
            start = end + len(literal)
        return start


class _Slot(NamedTuple):
    kind: str  # text, padding or count
    path: Sequence[str | int]
    start: int
    end: int

    def probe(self, value: JSON) -> JSON:
        """Return another value of the kind of `value`."""
        return value + 1 if self.kind == "count" else f"{value}?"


def derive_template(
    before: bytes, data: bytes, after: bytes, lesson: TemplateHint
) -> tuple[EventTemplate, bytes] | None:
    """Return what events are likely to be after one whose JSON was `data`, between the `before` and `after` of a frame.

    The second value is the JSON of another such event. `None` if it is not certain: the template is tried on other
    values, which must be read at the expected place.
    """
    try:
        value = decode_json(data)
        holes = _holes(data, value, lesson)
        if holes is None:
            return None
        probes = [hole.probe(_at(value, hole.path)) for hole in holes]
        parts = _around(data, holes)
        tried = (
            b"".join(literal + encode_json(probe) for literal, probe in zip(parts, probes, strict=False)) + parts[-1]
        )
        read = decode_json(tried)
    except WireError:
        return None
    if [_at(read, hole.path) for hole in holes] != probes:
        return None
    parts = [before + parts[0], *parts[1:-1], parts[-1] + after]
    return EventTemplate(_quoted(parts, holes), holes, lesson.take), tried


def _holes(data: bytes, value: JSON, lesson: TemplateHint) -> list[_Slot] | None:
    """Return the holes in `data`, in order; `None` if one is not found, or not only once."""
    silent = {name: "count" if type(value[name]) is int else "padding" for name in lesson.silent if name in value}
    sought = [_hole("text", lesson.path, data), *(_hole(kind, (name,), data) for name, kind in silent.items())]
    found = [hole for hole in sought if hole is not None]
    return sorted(found, key=lambda hole: hole.start) if len(found) == len(sought) else None


def _hole(kind: str, path: Sequence[str | int], data: bytes) -> _Slot | None:
    pattern = _field(str(path[-1]), _COUNT if kind == "count" else _STRING)
    found = pattern.search(data)
    if found is None or pattern.search(data, found.end()) is not None:
        return None
    return _Slot(kind, path, *found.span(1))


@lru_cache(maxsize=64)
def _field(name: str, value: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"%b: ?(%b)" % (re.escape(encode_json(name)), value))


def _around(data: bytes, holes: Sequence[_Slot]) -> list[bytes]:
    """Return what precedes, separates and follows the slots."""
    starts, ends = [0, *(hole.end for hole in holes)], [*(hole.start for hole in holes), len(data)]
    return [data[start:end] for start, end in zip(starts, ends, strict=True)]


def _quoted(parts: list[bytes], holes: Sequence[_Slot]) -> list[bytes]:
    """Return the parts with the quotes of the strings between them: so no space can be inserted next to a string."""
    for place, hole in enumerate(holes):
        if hole.kind != "count":
            parts[place] += b'"'
            parts[place + 1] = b'"' + parts[place + 1]
    return parts


def _at(value: JSON, path: Sequence[str | int]) -> Any:  # noqa: ANN401  JSON of any kind
    """Return what stands at `path`; `None` if nothing does."""
    for step in path:
        try:
            value = value[step]
        except (IndexError, KeyError, TypeError):
            return None
    return value
