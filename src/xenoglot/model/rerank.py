"""Requests to rank documents by their relevance to a query, and the ranking."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from xenoglot.model.content import Extra, Opaque
from xenoglot.model.response import Usage
from xenoglot.model.short_repr import short_repr

Document: TypeAlias = str | Opaque
"""A text, or an object with fields, an image or parts."""


class RerankRequest(Struct, frozen=True, kw_only=True):
    """Documents to rank by their relevance to `query`.

    `top_n` is how many results are returned, `return_documents` whether they contain their documents, `max_tokens` how
    many tokens of a document are read, `rank_fields` which fields of a document that is an object; `truncate` is
    whether a text that is too long is cut rather than refused. `None` leaves each to the server.
    """

    model: str
    query: Document
    documents: tuple[Document, ...] = ()
    top_n: int | None = None
    return_documents: bool | None = None
    max_tokens: int | None = None
    rank_fields: tuple[str, ...] | None = None
    truncate: bool | None = None
    extra: Extra | None = None

    __repr__ = short_repr


class RerankResult(Struct, frozen=True, kw_only=True):
    """The relevance of the document at `index` of the request; the scale of `score` is the model's own."""

    index: int
    score: float
    document: Document | None = None
    extra: Extra | None = None

    __repr__ = short_repr


class Ranking(Struct, frozen=True, kw_only=True):
    """The results, the most relevant first, and what they cost: tokens, or `search_units`, as the server counts."""

    results: tuple[RerankResult, ...] = ()
    id: str | None = None
    model: str | None = None
    usage: Usage | None = None
    search_units: float | None = None
    extra: Extra | None = None

    __repr__ = short_repr
