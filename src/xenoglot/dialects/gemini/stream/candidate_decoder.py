"""Decodes one candidate of a stream: which parts continue the one before, and which stand alone.

Every chunk holds whole parts. Text continues words, and `thought` parts continue reasoning. The signature of words
comes with their last piece, or in an empty text after it, and is part of the event that ends the block: the words are
one text, and no block of reasoning begins after them (https://ai.google.dev/gemini-api/docs/thought-signatures).
Reasoning with a signature is complete. Anything else comes whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.dialects.gemini.candidate import is_words, take_content, take_logprobs
from xenoglot.dialects.gemini.citations import citations_of
from xenoglot.dialects.gemini.extras import NAME
from xenoglot.dialects.gemini.finish import take_finish
from xenoglot.dialects.gemini.parts.partial_call import CALL, PartialCall, is_partial
from xenoglot.dialects.gemini.signatures import is_seal_alone, signature_of_words, signed
from xenoglot.dialects.gemini.tool_calls import CallIds
from xenoglot.model.content import Audio, Extra, Inline, Opaque, Reasoning, Text, ToolCall
from xenoglot.model.events import (
    ArgumentsDelta,
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
    from xenoglot.model.content import Citation, Logprob, Part
    from xenoglot.model.json import JSONObject
    from xenoglot.model.response import Finish

_WORDS = Text(text="")
_THOUGHT = Reasoning(text="")


class CandidateDecoder:
    """Decodes the chunks of one candidate to events."""

    __slots__ = ("_calls", "_ids", "_index", "_late", "_logprobs", "_open", "_partial", "_pieces", "_seal", "finish")

    def __init__(self, index: int, answer_id: str | None) -> None:
        self._index = index
        self._ids = CallIds(f"{answer_id or ''}:{index}")
        self._open: type[Part] | None = None
        self._pieces: list[str] = []  # of the open block
        self._logprobs: list[Logprob] = []  # of the open text
        self._seal: str | None = None  # the signature of the open text
        self._partial: PartialCall | None = None  # the open call
        self._calls = False
        self._late: JSONObject = {}  # what the chunks said beside the parts
        self.finish: Finish | None = None

    def feed(self, reader: Reader) -> list[Event]:
        """Take what a chunk holds of the candidate.

        Raises:
            WireError: it is malformed.
        """
        form: JSONObject = {}
        parts = take_content(reader, self._ids, form)
        logprobs = take_logprobs(reader, parts, form)
        self._calls = self._calls or any(isinstance(part, ToolCall) or _piece_of(part) is not None for part in parts)
        self.finish = take_finish(reader, calls=self._calls) or self.finish
        self._late |= reader.rest()
        return [event for part in parts for event in self._part(part, logprobs)]

    def block(self, finish: Finish) -> None:
        """Take why there is no answer at all."""
        self.finish = self.finish or finish

    def end(self) -> list[Event]:
        """Return the end of the candidate with its `finish`; what it cites is known by now."""
        text = "".join(self._pieces) if self._open is Text else ""
        cited = citations_of(self._late, text) if text else ()
        events: list[Event] = [CitationDelta(citation=citation, candidate=self._index) for citation in cited]
        events += self._close(cited)
        if self.finish is not None:
            extra = Extra(dialect=NAME, fields=self._late) if self._late else None
            events.append(Finished(finish=self.finish, candidate=self._index, extra=extra))
        return events

    def _part(self, part: Part, logprobs: tuple[Logprob, ...]) -> list[Event]:
        match part:
            case Text() if is_words(part):
                return self._words(part, logprobs)
            case Reasoning() if self._open is Text and is_seal_alone(part):
                self._seal = part.signature
                return []
            case Reasoning(text=str(text), extra=None, encrypted=None, signature=None):
                return self._thought(text)
            case Reasoning(text=str(text), redacted=False) if self._open is Reasoning:
                return self._sealed(part, text)
            case _:
                return self._thing(part)

    def _words(self, part: Text, logprobs: tuple[Logprob, ...]) -> list[Event]:
        if not part.text and not logprobs:
            return []
        events = self._begin(Text, _WORDS)
        self._pieces.append(part.text)
        self._logprobs += logprobs
        self._seal = signature_of_words(part) or self._seal
        events.append(TextDelta(text=part.text, logprobs=logprobs, candidate=self._index))
        return events

    def _thought(self, text: str) -> list[Event]:
        events = self._begin(Reasoning, _THOUGHT)
        self._pieces.append(text)
        events.append(ReasoningDelta(text=text, candidate=self._index))
        return events

    def _sealed(self, part: Reasoning, text: str) -> list[Event]:
        """Take the last piece of reasoning, with the signature of the whole."""
        grown = self._thought(text)
        whole = replace(part, text="".join(self._pieces))
        self._open, self._pieces = None, []
        return [*grown, BlockEnded(part=whole, candidate=self._index)]

    def _thing(self, part: Part) -> list[Event]:
        if isinstance(part, Audio) and isinstance(part.source, Inline):
            return self._sound(part, part.source.data)
        piece = _piece_of(part)
        return [*self._close(), *unfold_part(part, self._index)] if piece is None else self._piece(piece)

    def _sound(self, part: Audio, data: str) -> list[Event]:
        """Take audio; its bytes become an event as in other streams."""
        started = BlockStarted(part=replace(part, source=None), candidate=self._index)
        grown = AudioDelta(data=data, candidate=self._index)
        return [*self._close(), started, grown, BlockEnded(candidate=self._index)]

    def _piece(self, part: JSONObject) -> list[Event]:
        """Take a piece of a call: one with another name begins another call, the last ends it."""
        events: list[Event] = []
        call = self._partial
        if call is None or not call.is_continued_by(part):
            if not part[CALL]:  # the end of a call that has ended
                return events
            events += self._close()
            self._open, call = ToolCall, PartialCall(part, "$", self._ids)
            self._partial = call
            events.append(BlockStarted(part=call.header, candidate=self._index))
        if not call.feed(part, "$"):
            events += self._end_call(call, complete=True)
        return events

    def _end_call(self, call: PartialCall, *, complete: bool) -> list[Event]:
        self._partial = self._open = None
        whole = call.whole(complete=complete)
        grown = ArgumentsDelta(text=whole.arguments, candidate=self._index)
        return [grown, BlockEnded(part=whole, candidate=self._index)]

    def _begin(self, kind: type[Part], header: Part) -> list[Event]:
        if self._open is kind:
            return []
        events = self._close()
        self._open = kind
        return [*events, BlockStarted(part=header, candidate=self._index)]

    def _close(self, cited: tuple[Citation, ...] = ()) -> list[Event]:
        was, text, seal = self._open, self._pieces, self._seal
        logprobs, self._open, self._pieces, self._logprobs, self._seal = self._logprobs, None, [], [], None
        if was is None:
            return []
        if self._partial is not None:  # an answer that was cut in the middle of a call has arguments that are no JSON
            cut = self.finish is not None and self.finish.reason not in ("stop", "tool_calls")
            return self._end_call(self._partial, complete=not cut)
        if seal is None:
            return [BlockEnded(candidate=self._index)]
        extra = signed(None, seal)
        whole = Text(text="".join(text), logprobs=tuple(logprobs), citations=cited, extra=extra)
        return [BlockEnded(part=whole, candidate=self._index)]


def _piece_of(part: Part) -> JSONObject | None:
    """Return the wire's part where it is a piece of a call."""
    data = part.data if isinstance(part, Opaque) and part.dialect == NAME else None
    return data if is_partial(data) else None
