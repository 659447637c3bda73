"""Hop count of the current request: how many gateways it has passed. Each gateway sends it to the next.

Whatever a request has asked of an upstream (an answer, a count, a list of models) may lead back to where it came from.
So the number belongs to the request as a whole, and stands in its context.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

from xenoglot.errors import FailureError
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Sequence

HEADER = "x-xenoglot-hops"
MOST = 5
"""One more is taken for a circle."""

_hops: ContextVar[int] = ContextVar("hops", default=0)


def read_hops(headers: Sequence[tuple[str, str]]) -> int:
    """Return how far the request has come that sent `headers` (lower-case names); what is no number says nothing.

    Raises:
        FailureError: so far that it must be going in a circle.
    """
    said = next((value for name, value in headers if name == HEADER), "")
    hops = int(said) if said.isdecimal() and said.isascii() and len(said) <= len("99") else 0
    if hops >= MOST:
        message = "the request goes in a circle: one of this gateway's upstreams leads back to it"
        raise FailureError(Failure(kind="invalid_request", message=message, non_retryable=True))
    return hops


def arrive(hops: int) -> None:
    """Note how far the request has come that is answered from here on."""
    _hops.set(hops)


def onward() -> str:
    """Return the header's value for the next gateway."""
    return str(_hops.get() + 1)
