"""What an answer is called that came without a name, or that is called otherwise here."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.model.events import Failed, Ping, Started

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.events import Event
    from xenoglot.model.response import Response


class ResponseIds:
    """Give an answer that came without id, model or time those of our own making, and a failure its request's id.

    An answer that is `kept` has our id whether it came with one or not. One that may begin `early` does so with the
    first sign of life, if nothing else has come by then; what it says of its own beginning is then too late.
    """

    __slots__ = ("_id", "_kept", "_model", "_request_id", "begun", "early")

    def __init__(self, identifier: str, model: str, request_id: str, *, kept: bool, early: Losses | None) -> None:
        self.begun = False
        self.early = early
        self._id = identifier
        self._kept = kept
        self._model = model
        self._request_id = request_id

    def feed(self, event: Event, /) -> Sequence[Event]:
        """Return the event; `Started` and `Failed` are completed."""
        if type(event) is Started:
            begun, self.begun = self.begun, True
            if begun and self.early is not None:
                self.early.approximated("$", "id", "the answer was long in coming and began under our own id")
            return () if begun else (self._completed(event),)
        if type(event) is Ping and self.early is not None and not self.begun:
            self.begun = True
            return (self._completed(Started()), event)
        if type(event) is Failed:
            return (Failed(failure=replace(event.failure, request_id=self._request_id)),)
        return (event,)

    def _completed(self, started: Started) -> Started:
        if not self._kept and None not in (started.id, started.model, started.created):
            return started
        return replace(
            started,
            id=self._id if self._kept else started.id or self._id,
            model=started.model or self._model,
            created=int(time.time()) if started.created is None else started.created,
        )

    def response(self, response: Response) -> Response:
        """Return a whole answer, completed in the same way."""
        if not self._kept and None not in (response.id, response.model, response.created):
            return response
        return replace(
            response,
            id=self._id if self._kept else response.id or self._id,
            model=response.model or self._model,
            created=int(time.time()) if response.created is None else response.created,
        )

    def close(self) -> Sequence[Event]:
        """Nothing is held back."""
        return ()
