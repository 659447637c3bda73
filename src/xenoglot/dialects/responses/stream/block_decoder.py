"""Decodes one block of a stream, and its end, which may hold more than its deltas did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.model.content import HostedCall, Reasoning, Refusal, Text, ToolCall
from xenoglot.model.events import (
    ArgumentsDelta,
    BlockEnded,
    BlockStarted,
    CitationDelta,
    ReasoningDelta,
    TextDelta,
)
from xenoglot.model.fold import grown_part, unfold_part

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xenoglot.model.content import Part
    from xenoglot.model.events import Event


class BlockDecoder:
    """A block that started as `header`."""

    __slots__ = ("_counted", "_grown", "_length", "_part", "_parted", "header")

    def __init__(self, header: Part) -> None:
        self.header = header
        self._grown: list[Event] = []
        self._length = len(_words(header))
        self._part: Part | None = None  # as it was after so many deltas
        self._parted = 0
        self._counted = 0  # of the deltas, those whose words are in the length

    def begin(self) -> list[Event]:
        """Return the event of the start."""
        return [BlockStarted(part=self.header)]

    def note(self, delta: Event) -> None:
        """Take a delta."""
        self._grown.append(delta)

    def add(self, delta: Event) -> list[Event]:
        """Take a delta, and return it."""
        self._grown.append(delta)
        return [delta]

    def taker(self, delta: Callable[[str], Event]) -> Callable[[str], Event]:
        """Return what takes the text of a `delta`, and returns that."""
        deltas = self._grown

        def take(text: str) -> Event:
            event = delta(text)
            deltas.append(event)
            return event

        return take

    def length(self) -> int:
        """Return how many characters the words, or the arguments of a call, have by now."""
        new = self._grown[self._counted :]
        self._length += sum(len(delta.text) for delta in new if isinstance(delta, (TextDelta, ArgumentsDelta)))
        self._counted = len(self._grown)
        return self._length

    def part(self) -> Part:
        """Return the part as it has grown so far."""
        if self._part is None or self._parted != len(self._grown):
            self._part, self._parted = grown_part(self.header, self._grown), len(self._grown)
        return self._part

    def rest(self, text: str) -> str:
        """Return what `text`, the text or the arguments so far as the wire repeats them, has beyond its deltas.

        The deltas are joined only for a text that is longer: then the work is that of reading it from the wire.
        """
        if len(text) <= self.length():
            return ""
        known = _words(self.part())
        return text[len(known) :] if text.startswith(known) else ""

    def end(self, whole: Part | None = None) -> list[Event]:
        """Return the end of the block, given the `whole` of it that the wire sends.

        Content that no delta had becomes a delta if it only continues the block, for readers look at deltas; content
        that does not continue the block stands after it.
        """
        known = self.part()
        whole = known if whole is None else _kept(known, whole)
        if whole == known:
            return [BlockEnded()]
        if type(whole) is not type(self.header):
            return [BlockEnded(), *unfold_part(whole)]
        late = missing(known, whole)
        for delta in late:
            self.add(delta)
        return [*late, BlockEnded() if late and self.part() == whole else BlockEnded(part=whole)]


def _words(part: Part) -> str:
    """Return the text of a part, or the arguments of a call; other parts have none here."""
    if isinstance(part, ToolCall | HostedCall):
        return part.arguments
    return part.text if isinstance(part, (Text, Refusal)) else ""


def _kept(grown: Part, whole: Part) -> Part:
    """Return `whole`, with what it has grown to where that is left out: a server that sums up may sum up nothing."""
    match grown, whole:
        case Text(), Text(text=""):
            return replace(whole, text=grown.text)
        case Refusal(), Refusal(text=""):
            return replace(whole, text=grown.text)
        case (ToolCall(arguments=known), ToolCall(arguments="")) | (
            HostedCall(arguments=known),
            HostedCall(arguments=""),
        ):
            return replace(whole, arguments=known)
        case Reasoning(), Reasoning():
            text = whole.text or grown.text or whole.text
            summary = grown.summary if grown.summary and not any(whole.summary or ()) else whole.summary
            return replace(whole, text=text, summary=summary, redacted=whole.redacted and not (text or summary))
        case _:
            return whole


def missing(grown: Part, whole: Part) -> list[Event]:
    """Return the deltas that lead from `grown` to `whole`, as far as deltas can."""
    match grown, whole:
        case Text(), Text():
            cited = [CitationDelta(citation=citation) for citation in whole.citations[len(grown.citations) :]]
            return [*_more(grown.text, whole.text, TextDelta), *cited]
        case Refusal(), Refusal():
            return _more(grown.text, whole.text, TextDelta)
        case ToolCall(arguments=before), ToolCall(arguments=after):
            return _more(before, after, ArgumentsDelta)
        case HostedCall(arguments=before), HostedCall(arguments=after):
            return _more(before, after, ArgumentsDelta)
        case Reasoning(), Reasoning():
            thought = _more(grown.text or "", whole.text or "", ReasoningDelta)
            return [*thought, *_more_summaries(grown.summary or (), whole.summary or ())]
        case _:
            return []


def _more(grown: str, whole: str, delta: type[TextDelta | ArgumentsDelta | ReasoningDelta]) -> list[Event]:
    rest = whole[len(grown) :]
    return [delta(text=rest)] if rest and whole.startswith(grown) else []


def _more_summaries(grown: Sequence[str], whole: Sequence[str]) -> list[Event]:
    events: list[Event] = []
    for index, summary in enumerate(whole):
        known = grown[index] if index < len(grown) else ""
        if len(summary) > len(known) and summary.startswith(known):
            events.append(ReasoningDelta(text=summary[len(known) :], summary=index))
    return events
