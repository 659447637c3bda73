"""Exceptions of the embedded model before it has answered anything, and the failures that a request gets.

::

    EngineError            a XenoglotError; the embedded model cannot be used now
    ├── WeightsError       there is no model file, or it is not one
    ├── StartError         the child process refused or failed to start
    └── UnavailableError   it is starting, resting after crashes, or stopped
"""

from __future__ import annotations

from xenoglot.errors import FailureError, XenoglotError
from xenoglot.model.failure import Failure


class EngineError(XenoglotError):
    """The embedded model cannot be used now; the text is one line with the remedy.

    `detail` is the output of the installer or the runtime. It may name paths and hosts of this machine, so it is for
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


RESTART_SECONDS = 1.0

CRASHED = Failure(
    kind="overloaded",
    message="service unavailable: the embedded model's process ended while it answered; it restarts, so retry",
    retry_after=RESTART_SECONDS,
)
BROKEN = Failure(kind="internal", message="internal error: the embedded model failed on this request")


def queue_full(seconds: float) -> FailureError:
    """Return the failure of a request that the full queue rejects; a retry makes sense after `seconds`."""
    message = "overloaded: too many requests wait for the embedded model; try again later"
    return FailureError(Failure(kind="rate_limit", message=message, retry_after=seconds))


def context_overflow(tokens: int, limit: int) -> FailureError:
    """Return the failure of a prompt of `tokens` for a model whose context is `limit`, answer included."""
    message = f"the prompt is {tokens} tokens, and the embedded model holds {limit}, its answer included"
    return FailureError(Failure(kind="context_overflow", message=message, tokens=tokens, limit=limit))


def unavailable(error: EngineError) -> FailureError:
    """Return the failure of a request while the model cannot be used; only the operator sees the detail."""
    if isinstance(error, UnavailableError):
        return FailureError(Failure(kind="overloaded", message=str(error), retry_after=error.retry_after))
    return FailureError(Failure(kind="internal", message=str(error)))
