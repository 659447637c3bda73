"""The stages that read a stream's bytes: whatever they hold, what comes of it is fit to be told to a client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.backends.refusal import not_understood, unreachable
from xenoglot.errors import WireError
from xenoglot.model.events import Failed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xenoglot.backends.transport import TransportError
    from xenoglot.codec.stage import Stage
    from xenoglot.model.events import Event
    from xenoglot.model.failure import Failure


class Reader:
    """Makes events of bytes; of what cannot be read, a failure. `fit` makes a failure one that a client may see."""

    __slots__ = ("_fit", "_stage", "failed")

    def __init__(self, stage: Stage[bytes, Event], fit: Callable[[Failure], Failure]) -> None:
        self.failed = False
        """Whether nothing that follows counts."""
        self._stage = stage
        self._fit = fit

    def feed(self, chunk: bytes, /) -> Sequence[Event]:
        """Return the events of one read."""
        try:
            events = self._stage.feed(chunk)
        except WireError as error:
            self.failed = True
            return (Failed(failure=not_understood(error)),)
        if not events or type(last := events[-1]) is not Failed:
            return events
        self.failed = True
        return (*events[:-1], Failed(failure=self._fit(last.failure)))

    def close(self) -> Sequence[Event]:
        """Return what the end of the bytes tells."""
        try:
            return self._stage.close()
        except WireError as error:
            return (Failed(failure=not_understood(error)),)

    def broken(self, error: TransportError) -> Sequence[Event]:
        """Return what a break of the bytes tells: nothing, where the answer was whole before it."""
        try:
            incomplete = any(type(event) is Failed for event in self._stage.close())
        except WireError:
            incomplete = True
        return (Failed(failure=unreachable(error)),) if incomplete else ()


class Watch:
    """Sees the events in bytes that are passed on.

    A failure keeps its `dialect` only where the bytes tell it in words that the client may read.
    """

    __slots__ = ("_broken", "_decoder", "_fit")

    def __init__(self, decoder: Stage[bytes, Event], fit: Callable[[Failure], Failure]) -> None:
        self._decoder = decoder
        self._fit = fit
        self._broken = False

    def feed(self, chunk: bytes, /) -> Sequence[Event]:
        """Return the events of one read."""
        return self._shown(self._decoder.feed, chunk)

    def close(self) -> Sequence[Event]:
        """Return what the end of the bytes tells."""
        return self._shown(self._decoder.close)

    def _shown(self, read: Callable[..., Sequence[Event]], *arguments: bytes) -> Sequence[Event]:
        if self._broken:
            return ()
        try:
            events = read(*arguments)
        except WireError as error:
            self._broken = True
            return (Failed(failure=not_understood(error)),)
        if not events or type(failed := events[-1]) is not Failed:
            return events
        failure = self._fit(failed.failure)
        if failure == failed.failure:
            return events
        return (*events[:-1], Failed(failure=replace(failure, dialect=None, raw_type=None, code=None)))
