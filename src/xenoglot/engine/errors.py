"""Exceptions of the embedded model before it has answered anything.

::

    EngineError            a XenoglotError; the embedded model cannot be used now
    ├── WeightsError       there is no model file, or it is not one
    ├── StartError         the child process refused or failed to start
    └── UnavailableError   it is starting, resting after crashes, or stopped
"""

from xenoglot.errors import XenoglotError


class EngineError(XenoglotError):
    """The embedded model cannot be used now; the text is one line and says what to do.

    `detail` holds what the installer or the runtime said. It may name paths and hosts of this machine, so it is for
    the operator's log and terminal, never for a client.
    """

    def __init__(self, message: str, *, detail: str = "") -> None:
        """Store the message for clients and, apart from it, the detail for the operator."""
        super().__init__(message)
        self.detail = detail


class WeightsError(EngineError):
    """The model file does not exist, or is not a model."""


class StartError(EngineError):
    """The child process failed to start, or ended before it was ready."""


class UnavailableError(EngineError):
    """The engine is starting, backing off after crashes, or stopped; `retry_after` is in seconds if known."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        """Store the seconds after which a retry makes sense, if known."""
        super().__init__(message)
        self.retry_after = retry_after
