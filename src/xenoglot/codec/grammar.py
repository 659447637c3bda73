"""A stage that validates the order of events by `GRAMMAR` and `GROWTH` of `model.events`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.errors import GrammarError
from xenoglot.model.events import (
    BETWEEN,
    DONE,
    GRAMMAR,
    GROWTH,
    IDLE,
    INSIDE,
    BlockEnded,
    BlockStarted,
    Event,
    Failed,
    OpaqueDelta,
    Started,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.content import Part


class Grammar:
    """Passes events on unchanged, and raises if they are out of order.

    Raises:
        GrammarError: an event has no place where it stands; or, on `close`, the stream neither finished nor failed.
    """

    __slots__ = ("_blocks", "_failed", "_states", "_stream")

    def __init__(self) -> None:
        self._stream = IDLE
        self._states: dict[int, str] = {}
        self._blocks: dict[int, type[Part]] = {}  # what is open
        self._failed = False

    def feed(self, event: Event, /) -> Sequence[Event]:
        """Check one event and return it."""
        kind = type(event)
        if self._failed:
            raise GrammarError(f"`{kind.__name__}` after `Failed`: nothing may follow")
        if kind is Failed:
            self._failed = True
        elif kind is Started:
            self._stream = self._step(self._stream, kind)
        else:
            self._feed_candidate(event, kind)
        return (event,)

    def close(self) -> Sequence[Event]:
        """Check that the stream ended as streams end."""
        open_states = {state for state in self._states.values() if state != DONE}
        if not self._failed and (not self._states or open_states):
            raise GrammarError("the stream ended without `Finished` or `Failed`")
        return ()

    def _feed_candidate(self, event: Event, kind: type[Event]) -> None:
        candidate = getattr(event, "candidate", None)
        if self._stream == IDLE:
            self._step(IDLE, kind)
        elif candidate is None:  # usage and pings belong to no candidate: they may come at any time
            self._step(INSIDE, kind)
        else:
            state = self._states.get(candidate, BETWEEN)
            following = self._step(state, kind)
            if kind is not OpaqueDelta or candidate in self._states:  # one of the whole stream begins no candidate
                self._states[candidate] = following
            if isinstance(event, BlockStarted):
                self._blocks[candidate] = type(event.part)
            elif state == INSIDE:
                self._check_growth(event, self._blocks[candidate])

    @staticmethod
    def _check_growth(event: Event, block: type[Part]) -> None:
        if isinstance(event, BlockEnded):
            if event.part is not None and type(event.part) is not block:
                raise GrammarError(f"a `{block.__name__}` ended as a `{type(event.part).__name__}`")
        elif type(event) is not OpaqueDelta and type(event) not in GROWTH[block]:
            raise GrammarError(f"`{type(event).__name__}` in a `{block.__name__}`: it does not grow by that")

    @staticmethod
    def _step(state: str, kind: type[Event]) -> str:
        following = GRAMMAR[state].get(kind)
        if following is None:
            lawful = ", ".join(sorted(kind.__name__ for kind in GRAMMAR[state]))
            raise GrammarError(f"`{kind.__name__}` while `{state}`: expected one of {lawful}")
        return following
