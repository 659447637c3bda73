"""Opens, queues and closes content blocks for wire formats that have no blocks or interleave them.

Theory of operation. A dialect's decoder assigns each delta to a block, by a key; here the deltas become valid
events. Text and reasoning may end at any moment, so another block closes them. A tool call may not: other calls can
grow in parallel. While one is open, others wait in a queue, in order of appearance, and the open one gives way as soon
as another block appears and its arguments are a complete JSON object (only white space could follow), or at the end.
So what comes in order streams as it comes, and what is interleaved is put in order.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from xenoglot.codec.json.json_io import ObjectText
from xenoglot.errors import WireError
from xenoglot.model.content import ToolCall
from xenoglot.model.events import ArgumentsDelta, BlockEnded, BlockStarted

if TYPE_CHECKING:
    from collections.abc import Hashable

    from xenoglot.model.content import Part
    from xenoglot.model.events import Event


class _Block:
    __slots__ = ("_arguments", "header", "key", "waiting")

    def __init__(self, key: Hashable, header: Part) -> None:
        self.key = key
        self.header = header
        self.waiting: list[Event] = []  # for the block's turn
        self._arguments = ObjectText(header.arguments if isinstance(header, ToolCall) else "")

    def note(self, event: Event) -> None:
        if type(event) is ArgumentsDelta:
            self._arguments.pieces.append(event.text)

    def may_close(self) -> bool:
        if not isinstance(self.header, ToolCall):
            return True
        return self.header.kind == "function" and self._arguments.is_complete()


class Blocks:
    """The content blocks of one candidate."""

    __slots__ = ("_candidate", "_closed", "_growing", "_last", "_open", "_queue")

    def __init__(self, candidate: int = 0) -> None:
        self._candidate = candidate
        self._open: _Block | None = None
        self._queue: deque[_Block] = deque()
        self._last: _Block | None = None
        self._growing: dict[Hashable, _Block] = {}  # of the open one and the queue, those that can still grow
        self._closed: set[Hashable] = set()  # tool calls that are over

    @property
    def begun(self) -> bool:
        """Whether there is any block."""
        return self._last is not None

    def open(self, key: Hashable, header: Part) -> list[Event]:
        """Begin the block `key`, unless it exists already or existed as a tool call."""
        return [] if key in self._growing or key in self._closed else self._begin(key, header)

    def grow(self, key: Hashable, delta: Event, header: Part | None = None) -> list[Event]:
        """Add `delta` to the block `key`; if it does not exist yet, begin it with `header`.

        Raises:
            WireError: the block is closed for good (a tool call that continued after its last brace).
        """
        block = self._growing.get(key)
        if block is None:
            if header is not None and key not in self._closed:
                return [*self._begin(key, header), *self.grow(key, delta)]
            if isinstance(delta, ArgumentsDelta) and not delta.text.strip():
                return []
            raise WireError("$", "a tool call continued after its arguments were complete")
        block.note(delta)
        if block is self._open:
            return [delta]
        block.waiting.append(delta)
        return []

    def more(self, delta: Event) -> Event:
        """Add `delta` to the open block, which is known to be its own."""
        if self._open is not None:
            self._open.note(delta)
        return delta

    def close(self) -> list[Event]:
        """End the open block and give out all that waited."""
        events: list[Event] = []
        while self._open is not None:
            events += self._advance()
        return events

    def _begin(self, key: Hashable, header: Part) -> list[Event]:
        if self._last is not None and not isinstance(self._last.header, ToolCall):
            self._retire(self._last)  # words grow only while nothing came after them
        self._last = self._growing[key] = _Block(key, header)
        self._queue.append(self._last)
        events: list[Event] = [] if self._open is not None else self._advance()
        while self._queue and self._open is not None and self._open.may_close():
            events += self._advance()
        return events

    def _advance(self) -> list[Event]:
        """Close the open block, if any, and open the first that waits, if any."""
        events: list[Event] = []
        if self._open is not None:
            events.append(BlockEnded(candidate=self._candidate))
            self._retire(self._open)
            if isinstance(self._open.header, ToolCall):
                self._closed.add(self._open.key)
        self._open = self._queue.popleft() if self._queue else None
        if self._open is not None:
            events.append(BlockStarted(part=self._open.header, candidate=self._candidate))
            events += self._open.waiting
            self._open.waiting = []
        return events

    def _retire(self, block: _Block) -> None:
        if self._growing.get(block.key) is block:
            del self._growing[block.key]
