"""What a request is told when the embedded model does not answer it."""

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


def crowded(seconds: float) -> FailureError:
    """Return the error of a request for which there is no room in the line; it may come again after `seconds`."""
    message = "overloaded: too many requests wait for the embedded model; try again later"
    return FailureError(Failure(kind="rate_limit", message=message, retry_after=seconds))


def overflow(tokens: int, limit: int) -> FailureError:
    """Return the error of a prompt of `tokens` for a model that holds `limit`, answer included."""
    message = f"the prompt is {tokens} tokens, and the embedded model holds {limit}, its answer included"
    return FailureError(Failure(kind="context_overflow", message=message, tokens=tokens, limit=limit))


def unavailable(error: EngineError) -> FailureError:
    """Return the error of a request that came while the model cannot be used; the detail stays with the operator."""
    if isinstance(error, UnavailableError):
        return FailureError(Failure(kind="overloaded", message=str(error), retry_after=error.retry_after))
    return FailureError(Failure(kind="internal", message=str(error)))
