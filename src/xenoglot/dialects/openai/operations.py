"""Endpoints that answer in one piece, in every dialect of OpenAI's servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.dialects.openai.embeddings import EMBEDDINGS
from xenoglot.dialects.openai.rerank import FORMS as RERANK

if TYPE_CHECKING:
    from xenoglot.codec.features.operation import AnyForm

OPERATIONS: Final[tuple[AnyForm, ...]] = (EMBEDDINGS, *RERANK)
