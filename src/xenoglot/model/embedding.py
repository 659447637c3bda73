"""Embedding requests, and the vectors that answer them."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from xenoglot.model.content import Extra, Opaque
from xenoglot.model.response import Usage
from xenoglot.model.short_repr import short_repr

Input: TypeAlias = str | tuple[int, ...] | Opaque
"""A text, the tokens of one by their numbers, or a value that only its own dialect has (an image, a text in parts)."""

Vector: TypeAlias = tuple[float, ...]


class EmbeddingRequest(Struct, frozen=True, kw_only=True):
    """What is to be placed, by which model.

    `dimensions` is the length that the vectors are to have, `truncate` whether a text that is too long is to be cut
    rather than refused; `None` leaves either to the model's server.
    """

    model: str
    inputs: tuple[Input, ...] = ()
    dimensions: int | None = None
    truncate: bool | None = None
    extra: Extra | None = None

    __repr__ = short_repr


class Embeddings(Struct, frozen=True, kw_only=True):
    """The vectors, one for each input in their order, and what they cost."""

    vectors: tuple[Vector, ...] = ()
    model: str | None = None
    usage: Usage | None = None
    extra: Extra | None = None

    __repr__ = short_repr
