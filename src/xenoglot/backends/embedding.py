"""The `Embedder` protocol, and embedding requests to a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec
from msgspec import Struct

from xenoglot.codec.features.embedding import EmbeddingForm
from xenoglot.codec.json.json_io import encode_json
from xenoglot.codec.loss import Losses
from xenoglot.errors import FailureError, WireError
from xenoglot.model.embedding import EmbeddingRequest, Embeddings
from xenoglot.model.failure import Failure
from xenoglot.model.limits import RateLimits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.json import JSON


class EmbeddingCall(Struct, frozen=True, kw_only=True):
    """One request for embeddings on its way to a backend.

    `body` is the request as the client wrote it in `form`, for a server that has the same; `headers` are the client's
    that a server of `dialect` may see. `key` is that of a `Call`. With `bytes_pass` the caller forwards an answer in
    its own form as bytes, and its vectors need not be decoded.
    """

    request: EmbeddingRequest
    losses: Losses
    form: EmbeddingForm
    body: bytes
    dialect: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    key: int = 0
    bytes_pass: bool = False


class EmbeddingAnswer(Struct, frozen=True, kw_only=True):
    """The vectors; `body` is the answer in the client's own form, to be passed on untouched where there is one."""

    embeddings: Embeddings
    body: bytes | None = None
    limits: RateLimits | None = None


@runtime_checkable
class Embedder(Protocol):
    """A backend that can make embeddings."""

    async def embed(self, call: EmbeddingCall) -> EmbeddingAnswer:
        """Return a vector for each input.

        Raises:
            FailureError: there are none.
        """
        ...


def none_made(name: str) -> FailureError:
    """Return the error of a request for embeddings to a backend, called `name`, that makes none."""
    return FailureError(Failure(kind="unsupported", message=f"`{name}` makes no embeddings: ask for another model"))


def form_for(call: EmbeddingCall, forms: Sequence[EmbeddingForm]) -> tuple[EmbeddingForm, bool]:
    """Return in which of a server's `forms` to ask, and whether it says just what the client's says.

    Raises:
        FailureError: there are none.
    """
    for form in forms:
        if form.decode_request is call.form.decode_request:
            return form, True
    if not forms:
        raise none_made(call.request.model)
    return forms[0], False


def written(call: EmbeddingCall, form: EmbeddingForm, *, verbatim: bool) -> tuple[str, bytes]:
    """Return where to post the request, and it as `form` has it; `verbatim` are the client's bytes, the name apart.

    Raises:
        LossError: something would be lost, and the policy is strict.
        WireError: the form cannot say it.
    """
    if verbatim and form.names_model:
        return form.path, _renamed(call)
    path, body = form.addressed(form.encode_request(call.request, call.losses))
    call.losses.settle()
    return path, encode_json(body)


def understood(answer: JSON, call: EmbeddingCall, form: EmbeddingForm, *, verbatim: bool) -> Embeddings:
    """Return the vectors in an answer; they are as many as the inputs, unless the client is to see it as it is.

    Raises:
        WireError: it is none, or there are too few or too many.
    """
    embeddings = form.decode_response(answer)
    found, wanted = len(embeddings.vectors), len(call.request.inputs)
    if found != wanted and not verbatim:
        raise WireError("$", f"expected {wanted} vectors, got {found}")
    return embeddings


def _renamed(call: EmbeddingCall) -> bytes:
    fields = msgspec.json.decode(call.body, type=dict[str, msgspec.Raw])
    field = "model" if "model" in fields else "model_id"
    name = encode_json(call.request.model)
    if bytes(fields[field]) == name:
        return call.body
    return encode_json(fields | {field: msgspec.Raw(name)})
