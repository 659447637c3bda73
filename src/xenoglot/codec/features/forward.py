"""Endpoints whose requests and answers are forwarded as they are: only the model's name is read, and replaced.

A `ForwardedPath` is a row of one such endpoint. The gateway serves the rows of a dialect to its clients, and an
upstream of a dialect with the same row is called at the same path.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, Protocol

from msgspec import Struct

from xenoglot.codec.features.operation import Operation, OperationForm
from xenoglot.codec.loss import Losses
from xenoglot.model.json import JSON
from xenoglot.model.response import Usage


class RequestBody(Protocol):
    """The body of a request that is forwarded: a first part, which can be sent again, and what follows it."""

    @property
    def media_type(self) -> str:
        """The value of its `content-type`."""
        ...

    def first(self, model: str) -> bytes:
        """Return the first part, with the name of the `model`."""
        ...

    def length(self, model: str) -> int | None:
        """Return how many bytes all of it are; `None` if the client did not send it."""
        ...

    def rest(self) -> AsyncIterator[bytes] | None:
        """Return what follows the first part, once; `None` if that is all."""
        ...


class ForwardedRequest(Struct, frozen=True, kw_only=True):
    """A request that is forwarded to `model`."""

    model: str
    body: RequestBody


class ForwardedAnswer(Struct, frozen=True, kw_only=True):
    """The answer of an upstream as its bytes come. `pieces` raise `FailureError` if it breaks off."""

    media_type: str
    pieces: AsyncIterator[bytes]
    aclose: Callable[[], Awaitable[None]]


def _not_decoded(*_: object) -> Any:  # noqa: ANN401  of what is forwarded nothing is decoded
    raise TypeError("what is forwarded is not decoded")


FORWARD: Final = Operation[ForwardedRequest, ForwardedAnswer](
    name="forward",
    unable="`{model}` is at an upstream that has no such endpoint: ask for a model of an upstream that has it",
)


class ForwardedPath(Struct, frozen=True, kw_only=True):
    """One endpoint: its `name` in the log, its path, and whether its requests are forms or JSON.

    `default_model` is the model that the API documents for requests without one. `usage` decodes the object `usage` of
    an answer, or of an event of a streamed one. `complete` returns an answer in JSON with what other servers leave out,
    and notes that; `None` if nothing is missing.
    """

    name: str
    path: str
    form: bool = False
    default_model: str | None = None
    usage: Callable[[JSON], Usage | None]
    complete: Callable[[JSON, Losses], JSON | None] | None = None

    @property
    def endpoint(self) -> OperationForm[ForwardedRequest, ForwardedAnswer]:
        """The endpoint as calls to backends name it."""
        return OperationForm(
            operation=FORWARD,
            name=self.name,
            path=self.path,
            decode_request=_not_decoded,
            encode_response=_not_decoded,
        )
