"""Stage that removes the code fence around the text of a JSON answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.model.content import Text
from xenoglot.model.events import BlockEnded, BlockStarted, CitationDelta, Event, Failed, TextDelta
from xenoglot.text.json.code_fence import StripFence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses


class StripCodeFence:
    """Pass events on; what a text loses stands in `losses`. Text is held back while it may be a fence."""

    __slots__ = ("_losses", "_texts")

    def __init__(self, losses: Losses) -> None:
        self._losses = losses
        self._texts: dict[int, _OpenText] = {}

    def feed(self, event: Event, /) -> Sequence[Event]:
        """Take one event; return what can be passed on."""
        match event:
            case BlockStarted(part=Text() as part, candidate=index):
                self._texts[index] = text = _OpenText(self._losses, index)
                start = replace(event, part=replace(part, text="", logprobs=()))
                begun = TextDelta(text=part.text, logprobs=part.logprobs, candidate=index)
                return (start, *(text.feed(begun) if part.text else ()))
            case BlockEnded(candidate=index) if index in self._texts:
                return self._texts.pop(index).end(event)
            case TextDelta(candidate=index) | CitationDelta(candidate=index) if index in self._texts:
                return self._texts[index].feed(event)
            case Failed():
                return (*(held for text in self._texts.values() for held in text.give_up()), event)
            case _:
                return (event,)

    def close(self) -> Sequence[Event]:
        """Return what a text that did not end still held back."""
        return [held for text in self._texts.values() for held in text.give_up()]


class _OpenText:
    """A text in the making."""

    __slots__ = ("_candidate", "_fence", "_held", "_losses")

    def __init__(self, losses: Losses, candidate: int) -> None:
        self._fence = StripFence()
        self._held: list[Event] = []  # as they came, while there may be a fence
        self._losses = losses
        self._candidate = candidate

    def feed(self, event: TextDelta | CitationDelta) -> Sequence[Event]:
        text = self._fence.feed(event.text) if isinstance(event, TextDelta) else ""
        if self._fence.undecided:
            self._held.append(event)
            return ()
        held, self._held = [*self._held, event], []
        return self._without_fence(held, text) if self._fence.found else held

    def end(self, event: BlockEnded) -> Sequence[Event]:
        if not self._fence.found:
            return (*self.give_up(), event)
        self._losses.approximated(self._where, "text", "the code fence around it is taken off")
        return (*self._delta(self._fence.close()), replace(event, part=None))

    def give_up(self) -> Sequence[Event]:
        """Return what is held back, as it is."""
        held, self._held = self._held, []
        return held or self._delta(self._fence.close() if self._fence.found else "")

    @property
    def _where(self) -> str:
        return f"$.candidates[{self._candidate}]"

    def _delta(self, text: str) -> Sequence[Event]:
        return (TextDelta(text=text, candidate=self._candidate),) if text else ()

    def _without_fence(self, events: Sequence[Event], text: str) -> Sequence[Event]:
        """Return what `events` say but for the fence; what is counted in characters or tokens goes with it."""
        if any(isinstance(event, CitationDelta) for event in events):
            self._losses.dropped(self._where, "citations", "their places are counted with the code fence")
        if any(isinstance(event, TextDelta) and event.logprobs for event in events):
            self._losses.dropped(self._where, "logprobs", "they tell of the code fence too")
        return self._delta(text)
