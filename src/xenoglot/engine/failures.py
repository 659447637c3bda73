"""Failures that a request gets when the embedded model cannot answer it."""

from xenoglot.engine.errors import EngineError, UnavailableError
from xenoglot.errors import FailureError
from xenoglot.model.failure import Failure

RESTART_SECONDS = 1.0

CRASHED = Failure(
    kind="overloaded",
    message="service unavailable: the embedded model's process ended while it answered; it restarts, so try again",
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
