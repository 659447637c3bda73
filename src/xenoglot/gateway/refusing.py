"""What cannot be asked of anybody, as a failure of the request that asks it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from xenoglot.errors import FailureError, LossError, WireError
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Generator


@contextmanager
def refusing() -> Generator[None]:
    """Turn what no server can be asked, or may not be as something would be lost, into a failure of the request.

    Raises:
        FailureError: it is that.
    """
    try:
        yield
    except LossError as error:
        param = error.unknown[0] if error.unknown else None
        raise FailureError(Failure(kind="invalid_request", message=str(error), param=param)) from None
    except WireError as error:  # the target's encoder refuses what the request asks
        raise FailureError(invalid(error)) from None
    except RecursionError:  # what could just be read may be too deep to write from here
        raise FailureError(Failure(kind="invalid_request", message="the request is nested too deeply")) from None


def invalid(error: WireError) -> Failure:
    """Return the failure that tells a client what is wrong with its request, and where."""
    where = error.path.removeprefix("$").removeprefix(".")
    message = f"{where}: {error.problem}" if where else error.problem
    return Failure(kind="invalid_request", message=message, param=error.path)
