"""Removes a code fence around a whole JSON answer, incrementally: of text, and as a stage of events."""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.model.content import Text
from xenoglot.model.events import BlockEnded, BlockStarted, CitationDelta, Event, Failed, TextDelta

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses


MOST_BEFORE: Final = 256
"""The most characters up to the content: an answer that begins with more has no fence of ours."""

MOST_HELD: Final = 65_536
"""The most characters that are held back within, while they may be the end: more white space ends nothing."""

_OPENING = re.compile(
    r"\s*```[ \t]*(?:json(?:\s+(?=[\dtfn-])|\s*(?=[{\[\"]))|\s*(?=[{\[\"\d-]))",  # `json5` is another language
    re.IGNORECASE,
)
_BEGINS = re.compile(r"\s*(?:`{0,2}|```[ \t]*(?:j|js|jso|json\s*|\s*))", re.IGNORECASE)
_TOKEN = re.compile(r"\s+|`+|[^\s`]+")
_TICKS: Final = 3


class _State(Enum):
    BEFORE = auto()  # it may be a fence
    BARE = auto()  # it is none
    WITHIN = auto()
    SPACE = auto()  # within, behind white space
    TICKS = auto()  # within, behind backticks
    CLOSED = auto()  # behind as many as close a fence
    ENDLESS = auto()  # within, and no end is looked for


class StripFence:
    """A stage over one text: without the code fence (marked as JSON, or unmarked) around the whole of it.

    A fence that does not end where the text ends was around something else; only its beginning, which was needed to
    know, is then missing.
    """

    __slots__ = ("_held", "_size", "_state", "_ticks")

    def __init__(self) -> None:
        self._state = _State.BEFORE
        self._held: list[str] = []  # the beginning; and within, what may be the end
        self._size = 0  # in characters, of what is held
        self._ticks = 0

    @property
    def undecided(self) -> bool:
        """Whether the text may still turn out to have a fence."""
        return self._state is _State.BEFORE

    @property
    def found(self) -> bool:
        """Whether something was taken off."""
        return self._state not in (_State.BEFORE, _State.BARE)

    def feed(self, text: str, /) -> str:
        """Take more of the text; return what of it can be given."""
        if self._state is _State.BEFORE:
            text = self._begin(text)
        if not text or self._state in (_State.BEFORE, _State.BARE, _State.ENDLESS):
            return text
        made: list[str] = []
        for token in _TOKEN.findall(text):
            self._within(token, made)
            if self._size > MOST_HELD:
                made.append(self._release())
                self._state = _State.ENDLESS
        return "".join(made)

    def close(self) -> str:
        """The text is over; return what was held back and is no fence."""
        if self._state is _State.CLOSED or (self._state is _State.TICKS and self._ticks == _TICKS):
            self._held.clear()
        return self._release()

    def _begin(self, text: str) -> str:
        """Return what the fence is known to be before; nothing while it is not known."""
        begun = self._release() + text
        if found := _OPENING.match(begun, 0, MOST_BEFORE):
            self._state = _State.WITHIN
            return begun[found.end() :]
        if len(begun) <= MOST_BEFORE and _BEGINS.fullmatch(begun):
            self._held.append(begun)
            return ""
        self._state = _State.BARE
        return begun

    def _within(self, token: str, made: list[str]) -> None:
        if self._state is _State.ENDLESS:
            made.append(token)
        elif token[0] == "`":
            self._take_ticks(token, made)
        elif not token[0].isspace():
            made += [self._release(), token]
            self._state = _State.WITHIN
        elif self._state is _State.TICKS and self._ticks != _TICKS:
            made.append(self._release())
            self._hold(token, _State.SPACE)
        else:
            closed = self._state in (_State.TICKS, _State.CLOSED)
            self._hold(token, _State.CLOSED if closed else _State.SPACE)

    def _take_ticks(self, token: str, made: list[str]) -> None:
        if self._state is _State.CLOSED:
            made.append(self._release())
        if self._state is not _State.TICKS:
            self._ticks = 0
        self._ticks += len(token)
        self._hold(token, _State.TICKS)

    def _hold(self, token: str, state: _State) -> None:
        self._held.append(token)
        self._size += len(token)
        self._state = state

    def _release(self) -> str:
        held = "".join(self._held)
        self._held.clear()
        self._size = 0
        return held


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
        """Return the content of `events` without the fence; what is counted in characters or tokens goes with it."""
        if any(isinstance(event, CitationDelta) for event in events):
            self._losses.dropped(self._where, "citations", "their places are counted with the code fence")
        if any(isinstance(event, TextDelta) and event.logprobs for event in events):
            self._losses.dropped(self._where, "logprobs", "they cover the code fence too")
        return self._delta(text)
