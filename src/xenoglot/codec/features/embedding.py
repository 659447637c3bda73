"""The operation `embed`, and vectors decoded from JSON."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

from xenoglot.codec.features.operation import Operation, OperationForm
from xenoglot.codec.reader import expected
from xenoglot.errors import WireError
from xenoglot.model.embedding import EmbeddingRequest, Embeddings

if TYPE_CHECKING:
    from xenoglot.model.embedding import Vector
    from xenoglot.model.json import JSON

NUMBER_BYTES = 8
"""Bytes of a number of a vector in an encoded result, approximately."""


def _check(request: EmbeddingRequest, embeddings: Embeddings) -> None:
    found, wanted = len(embeddings.vectors), len(request.inputs)
    if found != wanted:
        raise WireError("$", f"expected {wanted} vectors, got {found}")


EMBED = Operation[EmbeddingRequest, Embeddings](
    name="embed",
    unable="`{model}` makes no embeddings: ask for another model",
    embeds=True,
    inputs=lambda request: request.inputs,
    usage=lambda embeddings: embeddings.usage,
    size=lambda embeddings, _request: NUMBER_BYTES * sum(map(len, embeddings.vectors)),
    check=_check,
)

EmbeddingForm: TypeAlias = OperationForm[EmbeddingRequest, Embeddings]


def decode_vector(value: JSON, path: str) -> Vector:
    """Return the numbers of the list `value`.

    Raises:
        WireError: it is no list of finite numbers.
    """
    if not isinstance(value, list):
        raise expected(path, "list", value)
    for index, number in enumerate(value):
        if type(number) not in (float, int):
            raise expected(f"{path}[{index}]", "number", number)
    return checked(tuple(map(float, value)), path)


def checked(vector: Vector, path: str) -> Vector:
    """Return `vector`, which JSON has to be able to write.

    Raises:
        WireError: a number in it is none.
    """
    if not all(map(math.isfinite, vector)):
        raise WireError(path, "holds a number that is not finite")
    return vector


def texts_of(request: EmbeddingRequest, why: str) -> list[str]:
    """Return the inputs, which have to be texts; `why` is the reason for that in the error.

    Raises:
        WireError: one is not.
    """
    for index, one in enumerate(request.inputs):
        if not isinstance(one, str):
            raise WireError(f"$.input[{index}]", f"expected a text: {why}")
    return [one for one in request.inputs if isinstance(one, str)]
