"""One candidate of a stream while it grows: which parts go on with the one before, and which stand by themselves.

Every chunk holds whole parts. Words go on with words and thoughts with thoughts, as long as nothing is said of them but
their text: a part with a signature is complete, and is not to be joined with others
(https://ai.google.dev/gemini-api/docs/thought-signatures). Anything else comes whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.dialects.gemini.calls import CallIds
from xenoglot.dialects.gemini.candidate import take_content, take_logprobs
from xenoglot.dialects.gemini.citations import GROUNDING, citations_of
from xenoglot.dialects.gemini.fields import NAME
from xenoglot.dialects.gemini.finish import take_finish
from xenoglot.model.content import Audio, Extra, Inline, Reasoning, Text, ToolCall
from xenoglot.model.events import (
    AudioDelta,
    BlockEnded,
    BlockStarted,
    CitationDelta,
    Event,
    Finished,
    ReasoningDelta,
    TextDelta,
)
from xenoglot.model.fold import unfold_part

if TYPE_CHECKING:
    from xenoglot.codec.reader import Reader
    from xenoglot.model.content import Logprob, Part
    from xenoglot.model.json import JSONObject
    from xenoglot.model.response import Finish

_WORDS = Text(text="")
_THOUGHT = Reasoning(text="")


class GrowingCandidate:
    """The events of one candidate, from its pieces in the chunks."""

    __slots__ = ("_calls", "_ids", "_index", "_late", "_open", "_pieces", "finish")

    def __init__(self, index: int, answer_id: str | None) -> None:
        self._index = index
        self._ids = CallIds(f"{answer_id or ''}:{index}")
        self._open: type[Part] | None = None
        self._pieces: list[str] = []  # of the open block
        self._calls = False
        self._late: JSONObject = {}  # what the chunks said beside the parts
        self.finish: Finish | None = None

    def feed(self, reader: Reader) -> list[Event]:
        """Take what a chunk says of the candidate.

        Raises:
            WireError: it is malformed.
        """
        form: JSONObject = {}
        parts = take_content(reader, self._ids, form)
        logprobs = take_logprobs(reader, parts, form)
        self._calls = self._calls or any(isinstance(part, ToolCall) for part in parts)
        self.finish = take_finish(reader, calls=self._calls) or self.finish
        self._late |= reader.rest()
        return [event for part in parts for event in self._part(part, logprobs)]

    def block(self, finish: Finish) -> None:
        """Take why there is no answer at all."""
        self.finish = self.finish or finish

    def end(self) -> list[Event]:
        """Return the end of the candidate, which its `finish` tells; what it cites is known by now."""
        text = "".join(self._pieces) if self._open is Text else ""
        cited = citations_of(self._late.get(GROUNDING), text) if text else ()
        events: list[Event] = [CitationDelta(citation=citation, candidate=self._index) for citation in cited]
        events += self._close()
        if self.finish is not None:
            extra = Extra(dialect=NAME, fields=self._late) if self._late else None
            events.append(Finished(finish=self.finish, candidate=self._index, extra=extra))
        return events

    def _part(self, part: Part, logprobs: tuple[Logprob, ...]) -> list[Event]:
        match part:
            case Text(extra=None):
                return self._words(part.text, logprobs) if part.text or logprobs else []
            case Reasoning(text=str(text), extra=None, encrypted=None, signature=None):
                return self._thought(text)
            case Reasoning(text=str(text), redacted=False) if self._open is Reasoning:
                return self._sealed(part, text)
            case Audio(source=Inline(data=data)):
                return self._sound(part, data)
            case _:
                return [*self._close(), *unfold_part(part, self._index)]

    def _words(self, text: str, logprobs: tuple[Logprob, ...]) -> list[Event]:
        events = self._begin(Text, _WORDS)
        self._pieces.append(text)
        events.append(TextDelta(text=text, logprobs=logprobs, candidate=self._index))
        return events

    def _thought(self, text: str) -> list[Event]:
        events = self._begin(Reasoning, _THOUGHT)
        self._pieces.append(text)
        events.append(ReasoningDelta(text=text, candidate=self._index))
        return events

    def _sealed(self, part: Reasoning, text: str) -> list[Event]:
        """Take the last piece of a thought, with the seal of the whole."""
        grown = self._thought(text)
        whole = replace(part, text="".join(self._pieces))
        self._open, self._pieces = None, []
        return [*grown, BlockEnded(part=whole, candidate=self._index)]

    def _sound(self, part: Audio, data: str) -> list[Event]:
        """Take a sound; its bytes are told as other streams tell them."""
        started = BlockStarted(part=replace(part, source=None), candidate=self._index)
        grown = AudioDelta(data=data, candidate=self._index)
        return [*self._close(), started, grown, BlockEnded(candidate=self._index)]

    def _begin(self, kind: type[Part], header: Part) -> list[Event]:
        if self._open is kind:
            return []
        events = self._close()
        self._open = kind
        return [*events, BlockStarted(part=header, candidate=self._index)]

    def _close(self) -> list[Event]:
        was, self._open, self._pieces = self._open, None, []
        return [] if was is None else [BlockEnded(candidate=self._index)]
