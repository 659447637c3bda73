"""The `Embedder` protocol: backends that make embeddings."""

from __future__ import annotations

from typing import Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from xenoglot.backends.operation import OperationCall
from xenoglot.model.embedding import EmbeddingRequest, Embeddings
from xenoglot.model.limits import RateLimits

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
