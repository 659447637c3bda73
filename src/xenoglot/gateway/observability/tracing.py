"""Protocols of tracing: what a traced request reports to its spans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.events import Event
    from xenoglot.model.request import Request
    from xenoglot.model.response import Response


class LoggedTarget(Protocol):
    """A target in the log: the backend, its name for the model, and whether the client requested another model."""

    @property
    def backend(self) -> str:
        """The backend, by its name in the configuration."""
        ...

    @property
    def model(self) -> str:
        """The model, by the backend's name for it."""
        ...

    @property
    def substituted(self) -> bool:
        """Whether the client requested another model."""
        ...


class RequestSpans(Protocol):
    """The spans of one request."""

    @property
    def content(self) -> bool:
        """Whether answers are observed event by event."""
        ...

    @property
    def trace_id(self) -> str:
        """The id of the trace: 32 hexadecimal digits."""
        ...

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Return the headers with the context for an upstream."""
        ...

    def tried(self, target: LoggedTarget, operation: str | None) -> None:
        """Note that a target is called now; `operation` is `None` for an ordinary answer."""
        ...

    def not_sent(self) -> None:
        """Note that nothing was sent to the target."""
        ...

    def asked(self, request: Request) -> None:
        """Note the request to the target."""
        ...

    def failed(self, error: str, why: str) -> None:
        """Note that the try failed."""
        ...

    def observe(self, events: Sequence[Event]) -> None:
        """Note events of the answer."""
        ...

    def note(self, response: Response) -> None:
        """Note a whole answer."""
        ...

    def end(self, ended: float) -> None:
        """End them: the request was over at this time of its clock."""
        ...
