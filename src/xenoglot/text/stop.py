"""Enforces stop strings: an answer ends where the model writes one of them.

Theory of operation. The words of a text block go through an automaton, character by character, so where they are cut
into deltas is of no account. What may become a stop string is held back: as many characters as some string begins
with, and so never as many as the longest has. The first string to be complete ends the answer, as it would on a server
that looks after each token; of several complete at one character, the longest. Nothing that comes later is needed to
know, so the upstream can be closed at once. Reasoning and calls are not searched, nor the text of a prompt that an
answer begins with, and no string reaches from one block into another.

Incremental multi-string search in one pass (Aho and Corasick, 1975).
"""

from __future__ import annotations

import re
from collections import deque
from itertools import accumulate
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec.structs import replace

from xenoglot.codec.requests.prompt_echo import is_marked
from xenoglot.errors import WireError
from xenoglot.model.content import Text, ToolCall
from xenoglot.model.events import (
    ArgumentsDelta,
    AudioDelta,
    BlockEnded,
    BlockStarted,
    CitationDelta,
    Event,
    Failed,
    Finished,
    HostedProgress,
    OpaqueDelta,
    Ping,
    ReasoningDelta,
    SignatureDelta,
    Started,
    TextDelta,
    UsageReported,
)
from xenoglot.model.response import Finish

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xenoglot.model.content import Logprob


START: Final = 0
"""The state in which nothing of any string has been read."""

Found: TypeAlias = tuple[int, str]
"""Where the first string to be complete ends in the piece that was read, and that string."""


class Automaton:
    """What `words` (none of them empty) look like from each of their beginnings.

    A state is the longest end of the text read so far that some word begins with; `depths` has its length. Among the
    words that are complete at the same character the longest is found. What a word costs is a state for each character.
    """

    __slots__ = ("_beginning", "_edges", "_fallbacks", "_words", "depths")

    def __init__(self, words: Iterable[str]) -> None:
        self.depths = [0]
        self._edges: list[dict[str, int]] = [{}]
        self._words: list[str | None] = [None]
        for word in words:
            self._add(word)
        self._fallbacks = [START] * len(self._edges)
        self._link()
        beginnings = "".join(map(re.escape, self._edges[START]))
        self._beginning = re.compile(f"[{beginnings}]" if beginnings else "(?!)")

    def search(self, text: str, state: int) -> tuple[int, Found | None]:
        """Read `text` on from `state`; return the state after it, or after the first word that is complete in it."""
        position, end = 0, len(text)
        while position < end:
            if state == START:  # most texts have nothing to look at: skip to what has
                begun = self._beginning.search(text, position)
                if begun is None:
                    return START, None
                position = begun.start()
            state = self._step(state, text[position])
            position += 1
            word = self._words[state]
            if word is not None:
                return state, (position, word)
        return state, None

    def _add(self, word: str) -> None:
        state = START
        for depth, character in enumerate(word, 1):
            following = self._edges[state].get(character)
            if following is None:
                following = self._edges[state][character] = len(self._edges)
                self._edges.append({})
                self._words.append(None)
                self.depths.append(depth)
            state = following
        self._words[state] = word

    def _link(self) -> None:
        """Find for each state the longest other one that is its end, the shorter ones first."""
        waiting = deque(self._edges[START].values())
        while waiting:
            state = waiting.popleft()
            for character, following in self._edges[state].items():
                fallback = self._step(self._fallbacks[state], character)
                self._fallbacks[following] = fallback
                self._words[following] = self._words[following] or self._words[fallback]
                waiting.append(following)

    def _step(self, state: int, character: str) -> int:
        """Return the state after `character`. A fall makes the state shorter, so there is one for each character."""
        while (following := self._edges[state].get(character)) is None:
            if state == START:
                return START
            state = self._fallbacks[state]
        return following


MOST_CHARACTERS: Final = 16_384
"""Limit for all stop strings of a request together: each character costs a state of the automaton."""

_MOST_HELD: Final = 2 * MOST_CHARACTERS
"""Deltas: only those without a word can come to be so many."""


_OfCandidate: TypeAlias = (
    BlockStarted
    | TextDelta
    | CitationDelta
    | ReasoningDelta
    | SignatureDelta
    | ArgumentsDelta
    | AudioDelta
    | HostedProgress
    | OpaqueDelta
    | BlockEnded
    | Finished
)


class StopStage:
    """Ends each candidate at the first of `stops`. Empty ones have no effect; `candidates` is the number of answers.

    Raises:
        WireError: the strings are too long.
    """

    __slots__ = ("_answers", "_automaton", "_candidates", "_cut", "_over")

    def __init__(self, stops: Iterable[str], *, candidates: int = 1) -> None:
        words = [word for word in dict.fromkeys(stops) if word]
        size = sum(map(len, words))
        if size > MOST_CHARACTERS:
            raise WireError("$.stop", f"found {size} characters in all, expected at most {MOST_CHARACTERS}")
        self._automaton = Automaton(words)
        self._answers: dict[int, _Answer] = {}
        self._candidates = candidates
        self._over = 0
        self._cut = False

    @property
    def stopped(self) -> bool:
        """Whether all answers are over, one of them at least by a stop string: no more need be read."""
        return self._cut and self._over >= self._candidates

    def feed(self, event: Event, /) -> Sequence[Event]:
        """Take one event; return what is known not to be of a stop string."""
        match event:
            case Started() | UsageReported() | Ping():
                return (event,)
            case Failed():
                return () if self.stopped else (*self.close(), event)
            case _:
                return self._feed(event)

    def close(self) -> Sequence[Event]:
        """Return what may have become a stop string and did not."""
        return [event for answer in self._answers.values() for event in answer.rest()]

    def _feed(self, event: _OfCandidate) -> Sequence[Event]:
        answer = self._answers.get(event.candidate)
        if answer is None:
            answer = self._answers[event.candidate] = _Answer(self._automaton, event.candidate)
        if answer.over:
            return ()
        events = answer.feed(event)
        if answer.over:
            self._over += 1
            self._cut = self._cut or answer.cut
        return events


class _Answer:
    """One candidate: what is held back of its open text block."""

    __slots__ = (
        "_automaton",
        "_called",
        "_candidate",
        "_given",
        "_held",
        "_length",
        "_reading",
        "_state",
        "cut",
        "over",
    )

    def __init__(self, automaton: Automaton, candidate: int) -> None:
        self.cut = False
        self.over = False
        self._automaton = automaton
        self._candidate = candidate
        self._state = START
        self._reading = False  # within a text block
        self._given = False  # the client knows of that block
        self._called = False
        self._held: deque[Event] = deque()
        self._length = 0  # characters held back

    def feed(self, event: Event) -> Sequence[Event]:
        """Take one event of this candidate."""
        if self._reading:
            return self._inside(event)
        match event:
            case BlockStarted(part=Text() as part) if not is_marked(part):
                return self._begin(event, part)
            case BlockStarted(part=ToolCall()):
                self._called = True
            case Finished():
                self.over = True
            case _:
                pass
        return (event,)

    def rest(self) -> Sequence[Event]:
        """Return all that is held back."""
        held, self._length = (*self._held,), 0
        self._held.clear()
        self._given = self._given or bool(held)
        return held

    def _begin(self, event: BlockStarted, part: Text) -> Sequence[Event]:
        """Hold a block back until there is a word to give out in it: it may come to nothing."""
        self._reading, self._given, self._state = True, False, START
        if not part.text and not part.logprobs:
            self._held.append(event)
            return ()
        self._held.append(replace(event, part=replace(part, text="", logprobs=())))
        return self._read(TextDelta(text=part.text, logprobs=part.logprobs, candidate=self._candidate))

    def _inside(self, event: Event) -> Sequence[Event]:
        match event:
            case TextDelta() if event.text or self._may_hold(event):
                return self._read(event)
            case TextDelta(logprobs=()) if not self._given:
                return ()
            case BlockEnded():
                return self._end(event)
            case _:  # it has no words: it need not wait for any
                return (*self._header(), event)

    def _may_hold(self, empty: TextDelta) -> bool:
        """Whether a delta without words follows those that are held back; what it weighs comes after theirs."""
        return bool(empty.logprobs and self._held) and len(self._held) < _MOST_HELD

    def _header(self) -> Sequence[Event]:
        if self._given:
            return ()
        self._given = True
        return (self._held.popleft(),)

    def _read(self, delta: TextDelta) -> Sequence[Event]:
        self._state, found = self._automaton.search(delta.text, self._state)
        if self._state == START and not self._held:
            return (delta,)
        self._held.append(delta)
        self._length += len(delta.text)
        if found is not None:
            return self._stop(delta, found)
        depth = self._automaton.depths[self._state]
        return self.rest() if not depth and self._length else self._release(self._length - depth)

    def _stop(self, delta: TextDelta, found: Found) -> Sequence[Event]:
        end, word = found
        behind = len(delta.text) - end
        given = self._release(self._length - behind - len(word))
        ended = (BlockEnded(candidate=self._candidate),) if self._given else ()
        return (*given, *ended, self._finish(word))

    def _release(self, count: int) -> Sequence[Event]:
        """Give out the first `count` characters that are held back, with what belongs to them."""
        events: list[Event] = []
        self._length -= count
        while count:
            event = self._held.popleft()
            if isinstance(event, TextDelta):
                if len(event.text) > count:
                    event, behind = _parted(event, count)
                    self._held.appendleft(behind)
                count -= len(event.text)
            self._given = True
            events.append(event)
        return events

    def _end(self, event: BlockEnded) -> Sequence[Event]:
        """End the block; the whole of it, where the wire repeats it, may have other words."""
        events = self.rest()
        self._reading = False
        if isinstance(event.part, Text) and (found := self._automaton.search(event.part.text, START)[1]) is not None:
            end, word = found
            return (*events, replace(event, part=_cut(event.part, end - len(word))), self._finish(word))
        return (*events, event)

    def _finish(self, word: str) -> Finished:
        """End the answer; one that has called a tool waits for its result all the same (pitfall-70)."""
        self._held.clear()
        self._length = 0
        self.over = self.cut = True
        finish = Finish(reason="tool_calls" if self._called else "stop_sequence", stop_sequence=word)
        return Finished(finish=finish, candidate=self._candidate)


def _parted(delta: TextDelta, at: int) -> tuple[TextDelta, TextDelta]:
    """Return both parts of a delta; each token is weighed where it begins."""
    tokens = _begun(delta.text, delta.logprobs, at)
    return (
        replace(delta, text=delta.text[:at], logprobs=delta.logprobs[:tokens]),
        replace(delta, text=delta.text[at:], logprobs=delta.logprobs[tokens:]),
    )


def _cut(part: Text, at: int) -> Text:
    return replace(part, text=part.text[:at], logprobs=part.logprobs[: _begun(part.text, part.logprobs, at)])


def _begun(text: str, logprobs: Sequence[Logprob], at: int) -> int:
    """Return how many of the tokens of `text` begin before `at`. The first may have begun before the text."""
    behind = accumulate(len(one.token) for one in reversed(logprobs))
    return sum(len(text) - length < at for length in behind)
