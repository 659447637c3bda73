"""Operations, which answer in one piece: the handler of a backend for one, requests to a server, `Embedder`.

A backend handles an operation by a method of its name, which takes an `OperationCall` and returns its result. A
wrapper, and a backend with several models or endpoints, returns handlers instead (`OperationBackend`): it names no
operation itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

import msgspec
from msgspec import Struct

from xenoglot.backends.offload import LARGE
from xenoglot.backends.remote.sign_in.client_credential import ClientCredential
from xenoglot.codec.features.operation import AnyForm, AnyOperation, OperationForm
from xenoglot.codec.json.json_io import encode_json, encode_large
from xenoglot.codec.loss import Losses
from xenoglot.errors import FailureError
from xenoglot.model.embedding import EmbeddingRequest, Embeddings
from xenoglot.model.limits import RateLimits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.target import Target


Asked = TypeVar("Asked")
Made = TypeVar("Made")
Result_co = TypeVar("Result_co", covariant=True)


class OperationCall(Struct, Generic[Asked, Made], frozen=True, kw_only=True):
    """One request of an operation on its way to a backend.

    `body` is the request as the client wrote it in `form`, for a server with the same form; `headers` are those of the
    client that a server of `dialect` may see. `key` and `trace` are those of a `Call`. With `bytes_pass` the caller
    forwards a result in its own form as bytes, and most of it need not be decoded. `credential` is that of a `Call`.
    """

    request: Asked
    losses: Losses
    form: OperationForm[Asked, Made]
    body: bytes
    dialect: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    key: int = 0
    bytes_pass: bool = False
    trace: tuple[tuple[str, str], ...] = ()
    credential: ClientCredential | None = None


class OperationResult(Protocol[Result_co]):
    """The result of an operation; `body` is it in the client's own form, to be passed through, where there is one."""

    @property
    def result(self) -> Result_co: ...  # noqa: D102  as the docstring says

    @property
    def body(self) -> bytes | None: ...  # noqa: D102

    @property
    def limits(self) -> RateLimits | None: ...  # noqa: D102


class OperationAnswer(Struct, Generic[Made], frozen=True, kw_only=True):
    """An `OperationResult`."""

    result: Made
    body: bytes | None = None
    limits: RateLimits | None = None


AnyCall: TypeAlias = OperationCall[Any, Any]
OperationHandler: TypeAlias = Callable[[AnyCall], Awaitable[OperationResult[Any]]]
"""Raises `FailureError` if there is no result."""


@runtime_checkable
class OperationBackend(Protocol):
    """A backend that returns its handlers by operation."""

    def handler(self, operation: AnyOperation) -> OperationHandler | None:
        """Return the handler of `operation`; `None` if there is none."""
        ...


def handler_of(backend: object, operation: AnyOperation) -> OperationHandler | None:
    """Return what handles `operation` at `backend`; `None` if it cannot."""
    if isinstance(backend, OperationBackend):
        return backend.handler(operation)
    method: OperationHandler | None = getattr(backend, operation.name, None)
    return method


def need_handler(backend: object, operation: AnyOperation, name: str) -> OperationHandler:
    """Return what handles `operation` at `backend`, which its caller knows by `name`.

    Raises:
        FailureError: it cannot.
    """
    found = handler_of(backend, operation)
    if found is None:
        raise FailureError(operation.unsupported(name))
    return found


def upstream_form(call: AnyCall, forms: Sequence[AnyForm], target: Target) -> tuple[AnyForm, bool]:
    """Return the endpoint of a server to call, of its dialect's `forms`, and whether the client's bytes fit there.

    Raises:
        FailureError: it has none.
    """
    known = [form for form in forms if form.calls_upstreams]
    configured = [form for form in known if form.path in target.operation_paths]
    usable = configured or [form for form in known if not form.optional]
    for form in usable:
        if form.decode_request is call.form.decode_request:
            return form, bool(form.passes(call.request))
    if not usable:
        raise FailureError(call.form.operation.unsupported(call.request.model))
    return usable[0], False


def encode_call(call: AnyCall, form: AnyForm, *, verbatim: bool) -> tuple[str, bytes]:
    """Return the path to post the request to, and its body in `form`; `verbatim`: the client's bytes.

    Raises:
        LossError: something would be lost, and the policy is strict.
        WireError: the form cannot express it.
    """
    if verbatim and form.names_model:
        return form.path, _renamed(call)
    path, body = form.addressed(form.encode_request(call.request, call.losses))
    call.losses.settle()
    return path, _encoded(call, body)


def _renamed(call: AnyCall) -> bytes:
    """Return the client's body with the server's name of the model."""
    fields = msgspec.json.decode(call.body, type=dict[str, msgspec.Raw])
    field = "model" if "model" in fields else "model_id"
    name = encode_json(call.request.model)
    if bytes(fields[field]) == name:
        return call.body
    return _encoded(call, fields | {field: msgspec.Raw(name)})


def _encoded(call: AnyCall, body: object) -> bytes:
    return (encode_json if len(call.body) < LARGE else encode_large)(body)


EmbeddingCall: TypeAlias = OperationCall[EmbeddingRequest, Embeddings]


class EmbeddingAnswer(Struct, frozen=True, kw_only=True):
    """The vectors; `body` is the answer in the client's own form, to be passed on untouched where there is one."""

    embeddings: Embeddings
    body: bytes | None = None
    limits: RateLimits | None = None

    @property
    def result(self) -> Embeddings:
        """The vectors, as the result of any operation."""
        return self.embeddings


@runtime_checkable
class Embedder(Protocol):
    """A backend that can make embeddings."""

    async def embed(self, call: EmbeddingCall) -> EmbeddingAnswer:
        """Return a vector for each input.

        Raises:
            FailureError: there are none.
        """
        ...
