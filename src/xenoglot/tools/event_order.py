"""Order in which the ends of parallel tool calls are reported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from xenoglot.tools.events import CallEnded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.content import ToolCall
    from xenoglot.tools.events import RunEvent

Order: TypeAlias = Literal["call", "result"]
"""The order of the calls in the answer, or of their results."""


class EventOrder:
    """A stage over the events of parallel calls: holds each end back until its turn."""

    def __init__(self, calls: Sequence[ToolCall], order: Order) -> None:
        self._waiting = [call.id for call in calls]
        self._order = order
        self._pending: dict[str, CallEnded] = {}

    def feed(self, event: RunEvent, /) -> Sequence[RunEvent]:
        """Return the events to report now."""
        if self._order == "result" or not isinstance(event, CallEnded):
            return (event,)
        self._pending[event.call.id] = event
        told: list[RunEvent] = []
        while self._waiting and (ended := self._pending.pop(self._waiting[0], None)) is not None:
            del self._waiting[0]
            told.append(ended)
        return told

    def close(self) -> Sequence[RunEvent]:
        """Return the events still held back."""
        held, self._pending = self._pending, {}
        return tuple(held[name] for name in self._waiting if name in held)
