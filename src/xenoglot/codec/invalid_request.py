"""Failures (`invalid_request`) for requests that cannot be encoded for any server."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from xenoglot.errors import FailureError, LossError, WireError
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Generator

REFUSED = (FailureError, LossError, WireError, RecursionError)
"""Errors of a request or an answer that cannot be sent: `refusal` makes a failure of them. Any other is a bug."""


@contextmanager
def refusing() -> Generator[None]:
    """Turn a request that cannot be encoded, or whose losses are refused, into a failure of the request.

    Raises:
        FailureError: it is that.
    """
    try:
        yield
    except (LossError, WireError, RecursionError) as error:
        raise FailureError(refusal(error)) from None


def refusal(error: FailureError | LossError | WireError | RecursionError) -> Failure:
    """Return the failure of a request that ended in `error`."""
    match error:
        case FailureError():
            return error.failure
        case LossError():
            param = error.unknown[0] if error.unknown else None
            return Failure(kind="invalid_request", message=str(error), param=param)
        case WireError():  # the target's encoder refuses what the request asks
            return invalid(error)
        case _:  # what could just be read may be too deep to write from here
            return Failure(kind="invalid_request", message="the request is nested too deeply")


def invalid(error: WireError) -> Failure:
    """Return the failure that names what is wrong with a request, and its path."""
    return _failure(error.path, error.problem)


def refused(path: str, problem: str) -> FailureError:
    """Return the error for a request that cannot be served; `path` is where, like `$.logit_bias`."""
    return FailureError(_failure(path, problem))


def _failure(path: str, problem: str) -> Failure:
    where = path.removeprefix("$").removeprefix(".")
    message = f"{where}: {problem}" if where else problem
    return Failure(kind="invalid_request", message=message, param=path)
