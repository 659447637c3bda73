"""Texts to be made into vectors, as a call of a backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xenoglot.backends.embedding import EmbeddingCall
from xenoglot.client.call.validate_request import sendable
from xenoglot.codec.json.json_io import encode_json
from xenoglot.dialect_registry import get
from xenoglot.errors import WireError
from xenoglot.model.embedding import EmbeddingRequest

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses

USUAL = "chat"


def embedding_request(inputs: str | Sequence[str], model: str, dimensions: int | None) -> EmbeddingRequest:
    """Return the request for vectors of `inputs`.

    Raises:
        WireError: they are no texts, or there are none; the path says which.
    """
    texts: object = (inputs,) if isinstance(inputs, str) else inputs
    if not isinstance(texts, Sequence) or isinstance(texts, bytes) or not texts:
        raise WireError("$.inputs", "expected a string, or a list of at least one")
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise WireError(f"$.inputs[{index}]", f"found a `{type(text).__name__}`; expected a string")
        sendable(text, f"$.inputs[{index}]")
    if dimensions is not None and (type(dimensions) is not int or dimensions < 1):
        raise WireError("$.dimensions", "expected a whole number above 0")
    return EmbeddingRequest(model=model, inputs=tuple(texts), dimensions=dimensions)


def embedding_call(
    request: EmbeddingRequest, dialect: str, losses: Losses, headers: tuple[tuple[str, str], ...]
) -> EmbeddingCall:
    """Return the call of an upstream that speaks `dialect`.

    Raises:
        LossError: its form cannot say it all, and has to.
    """
    form = (get(dialect).embeddings or get(USUAL).embeddings)[0]
    body = encode_json(form.encode_request(request, losses))
    losses.settle()
    return EmbeddingCall(request=request, losses=losses, form=form, body=body, dialect=dialect, headers=headers)
