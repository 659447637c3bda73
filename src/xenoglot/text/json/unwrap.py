"""Stage that turns the arguments of a forced tool call into the text of the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.model.content import Text, ToolCall
from xenoglot.model.events import (
    ArgumentsDelta,
    BlockEnded,
    BlockStarted,
    Event,
    Failed,
    Finished,
    Ping,
    Started,
    TextDelta,
    UsageReported,
)
from xenoglot.text.json.envelope import Envelope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses


MOST_HELD: Final = 1_048_576
"""The most that is held back before a call, in characters and what stands around them; then none is waited for."""

_PER_EVENT: Final = 64


class UnwrapToolCall:
    """Make of the call of the tool `name` the text of the answer, as it comes.

    Words before the call are held back until it is known whether it comes: an answer is JSON alone. Where it does not
    come, or a tool of the client is called, they are passed on. What is dropped stands in `losses`.
    """

    __slots__ = ("_candidates", "_envelope", "_losses", "_name")

    def __init__(self, name: str, losses: Losses, *, envelope: bool) -> None:
        self._name = name
        self._losses = losses
        self._envelope = envelope
        self._candidates: dict[int, _Candidate] = {}

    def feed(self, event: Event, /) -> Sequence[Event]:
        """Take one event; return what can be passed on."""
        match event:
            case Started() | UsageReported() | Ping():
                return (event,)
            case Failed():
                return (*self.close(), event)
            case _:
                return self._candidate(event.candidate).feed(event)

    def close(self) -> Sequence[Event]:
        """Return what answers that did not finish still held back."""
        return [held for candidate in self._candidates.values() for held in candidate.release()]

    def _candidate(self, index: int) -> _Candidate:
        if index not in self._candidates:
            self._candidates[index] = _Candidate(self._name, index, self._losses, enveloped=self._envelope)
        return self._candidates[index]


class _Candidate:
    def __init__(self, name: str, index: int, losses: Losses, *, enveloped: bool) -> None:
        self._name = name
        self._index = index
        self._losses = losses
        self._enveloped = enveloped
        self._held: list[Event] = []
        self._size = 0
        self._holding = False  # words came, and no call yet
        self._answered = False
        self._called = False  # a tool of the client's
        self._call: _Answer | None = None  # the answer that is open
        self._dropping = False  # the block that is open is not passed on

    def feed(self, event: Event) -> Sequence[Event]:
        if isinstance(event, BlockStarted):
            return self._start(event)
        if self._dropping:
            self._dropping = not isinstance(event, BlockEnded)
            return ()
        if self._call is not None:
            return self._grow(event, self._call)
        if isinstance(event, Finished):
            return (*self.release(), self._finished(event))
        return self._pass(event)

    def release(self) -> Sequence[Event]:
        """Return what is held back, as it came; nothing is held from here on."""
        self._holding = False
        held, self._held = self._held, []
        return held

    def _pass(self, event: Event) -> Sequence[Event]:
        if not self._holding:
            return (event,)
        self._held.append(event)
        self._size += _PER_EVENT + len(getattr(event, "text", ""))
        return self.release() if self._size > MOST_HELD else ()

    def _start(self, event: BlockStarted) -> Sequence[Event]:
        match event.part:
            case ToolCall(name=self._name) as call:
                return self._drop("a second answer") if self._answered else self._begin(call)
            case ToolCall():
                self._called = True
                return (*self.release(), event)
            case Text() if self._answered:
                return self._drop("words behind the answer")
            case Text():
                self._holding = not self._called and self._size <= MOST_HELD
            case _:
                pass  # what is no word stands beside the answer
        return self._pass(event)

    def _drop(self, what: str) -> Sequence[Event]:
        self._losses.dropped(self._where, what, "an answer in JSON is JSON alone")
        self._dropping = True
        return ()

    @property
    def _where(self) -> str:
        return f"$.candidates[{self._index}]"

    def _begin(self, call: ToolCall) -> Sequence[Event]:
        """Begin the answer; the words before it go."""
        before = self.release()
        if not self._called:
            before = self._without_words(before)
        self._answered = True
        self._call = _Answer(self._index, Envelope() if self._enveloped else None)
        return (*before, BlockStarted(part=Text(text=""), candidate=self._index), *self._call.feed(call.arguments))

    def _without_words(self, events: Sequence[Event]) -> Sequence[Event]:
        kept: list[Event] = []
        words = False
        for event in events:
            if isinstance(event, BlockStarted):
                words = isinstance(event.part, Text)
                if words:
                    self._losses.dropped(self._where, "words before the answer", "an answer in JSON is JSON alone")
            if not words:
                kept.append(event)
            words = words and not isinstance(event, BlockEnded)
        return kept

    def _grow(self, event: Event, answer: _Answer) -> Sequence[Event]:
        match event:
            case ArgumentsDelta(text=text):
                return answer.feed(text)
            case BlockEnded(part=part):
                self._call = None
                made = answer.end(part.arguments if isinstance(part, ToolCall) else "")
                if answer.surplus:
                    self._losses.dropped(self._where, "what is not the answer", "the arguments hold more than that")
                return (*made, BlockEnded(candidate=self._index))
            case _:
                return (event,)

    def _finished(self, event: Finished) -> Finished:
        """Return how it ended: a call that was the answer is no call that waits for a result (pitfall-47)."""
        if not self._answered or self._called or event.finish.reason != "tool_calls":
            return event
        return replace(event, finish=replace(event.finish, reason="stop", raw=None, dialect=None))


class _Answer:
    """The arguments of the call as they come, and the answer in them."""

    def __init__(self, candidate: int, envelope: Envelope | None) -> None:
        self._candidate = candidate
        self._envelope = envelope
        self._size = 0

    @property
    def surplus(self) -> bool:
        """Whether there was more than the answer."""
        return self._envelope is not None and self._envelope.surplus

    def feed(self, text: str) -> Sequence[Event]:
        self._size += len(text)
        return self._said(text if self._envelope is None else self._envelope.feed(text))

    def end(self, whole: str) -> Sequence[Event]:
        """Return the rest; `whole` are the arguments where the wire repeats them at the end."""
        rest = self.feed(whole[self._size :])
        return (*rest, *self._said("" if self._envelope is None else self._envelope.close()))

    def _said(self, text: str) -> Sequence[Event]:
        return (TextDelta(text=text, candidate=self._candidate),) if text else ()
