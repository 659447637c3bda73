"""Whether an answer has started: until then nothing of it is passed on, and the request may be sent again.

The only implementation of that question, for the gateway (with a task and without) and for the client. What is read of
an answer that has not started is kept by the reader; it is passed on when the answer starts, and dropped when it
fails.

| state | one read of the source | next state |
|---|---|---|
| `waiting` | no events but silent ones | `waiting`; after `MOST_SILENT` such reads, `started` |
| `waiting` | events that end in a failure | `failed` |
| `waiting` | any others | `started` |

`started` and `failed` are final. The end of the source is not in the table: what an answer that ends without having
started means depends on who asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from xenoglot.model.events import Failed, Ping

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from xenoglot.model.events import Event
    from xenoglot.model.failure import Failure

State: TypeAlias = Literal["waiting", "started", "failed"]

MOST_SILENT: Final = 64
"""Reads with nothing but silent events; after so many they are passed on all the same."""


class AnswerStart:
    """The start of one answer. Events of the types `silent` do not start it."""

    __slots__ = ("_reads", "_silent", "state")

    def __init__(self, silent: Collection[type[Event]] = (Ping,)) -> None:
        self.state: State = "waiting"
        self._silent = silent
        self._reads = 0

    def feed(self, events: Sequence[Event]) -> State:
        """Return the state after one more read, which held `events`."""
        self._reads += 1
        if failure_of(events) is not None:
            self.state = "failed"
        elif self._reads > MOST_SILENT or any(type(event) not in self._silent for event in events):
            self.state = "started"
        return self.state


def failure_of(events: Sequence[Event]) -> Failure | None:
    """Return the failure that `events` end in; `None` where they do not."""
    last = events[-1] if events else None
    return last.failure if type(last) is Failed else None
