"""Requests for embeddings, from the arguments of a program."""

from __future__ import annotations

from collections.abc import Sequence

from xenoglot.client.call.validate_request import encode_value
from xenoglot.errors import WireError
from xenoglot.model.embedding import EmbeddingRequest


def embedding_request(inputs: str | Sequence[str], model: str, dimensions: int | None) -> EmbeddingRequest:
    """Return the embedding request for `inputs`.

    Raises:
        WireError: `inputs` is empty or has an item that is not text; the error has its path.
    """
    texts: object = (inputs,) if isinstance(inputs, str) else inputs
    if not isinstance(texts, Sequence) or isinstance(texts, bytes) or not texts:
        raise WireError("$.inputs", "expected a string, or a list of at least one")
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise WireError(f"$.inputs[{index}]", f"found a `{type(text).__name__}`; expected a string")
        encode_value(text, f"$.inputs[{index}]")
    if dimensions is not None and (type(dimensions) is not int or dimensions < 1):
        raise WireError("$.dimensions", "expected a whole number above 0")
    return EmbeddingRequest(model=model, inputs=tuple(texts), dimensions=dimensions)
