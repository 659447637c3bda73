"""The record of a dialect's embedding endpoint, and vectors decoded from JSON."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from xenoglot.codec.loss import Losses
from xenoglot.codec.reader import expected
from xenoglot.codec.requests.path_template import has_model, in_path
from xenoglot.errors import WireError
from xenoglot.model.embedding import EmbeddingRequest, Embeddings
from xenoglot.model.json import JSON, JSONObject

if TYPE_CHECKING:
    from xenoglot.model.embedding import Vector


class EmbeddingForm(Struct, frozen=True, kw_only=True):
    """An embedding endpoint: its path, and the codecs of its requests and responses.

    `name` labels what only it knows. Where `path` has `{model}` in it, the model is asked for there; to the functions
    it is a field of the body. Decoders raise `WireError`.
    """

    name: str
    path: str
    aliases: tuple[str, ...] = ()
    decode_request: Callable[[JSON], EmbeddingRequest]
    encode_request: Callable[[EmbeddingRequest, Losses], JSONObject]
    decode_response: Callable[[JSON], Embeddings]
    encode_response: Callable[[Embeddings, EmbeddingRequest, Losses], JSONObject]
    glimpse: Callable[[bytes], Embeddings | None] | None = None
    """Returns what is to be noted of an answer that passes as it is, without its vectors; `None` if it is unusual."""

    @property
    def names_model(self) -> bool:
        """Whether the body, rather than the path, names the model."""
        return not has_model(self.path)

    def addressed(self, body: JSONObject) -> tuple[str, JSONObject]:
        """Return the path to post `body` to, and the remaining body.

        Raises:
            WireError: the model's name would lead elsewhere on the server.
        """
        if self.names_model:
            return self.path, body
        rest = dict(body)
        return in_path(self.path, rest.pop("model", "")), rest


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
