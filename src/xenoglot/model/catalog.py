"""One entry of a model list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from msgspec import Struct

from xenoglot.model.content import Extra

if TYPE_CHECKING:
    from collections.abc import Iterable

Modality: TypeAlias = Literal["text", "image", "audio", "video", "file", "embeddings"]

MODALITIES: tuple[Modality, ...] = get_args(Modality)


class TokenPrice(Struct, frozen=True, kw_only=True):
    """Prices of one token in US dollars, as decimal text; `None` is unknown."""

    input: str | None = None
    output: str | None = None
    cache_read: str | None = None
    cache_write: str | None = None


class ModelInfo(Struct, frozen=True, kw_only=True):
    """One available model; `created` in Unix seconds, the limits in tokens.

    `lifecycle` is the server's word for whether it is `active`, `deprecated` or `retired`. What a model takes
    (`input_modalities`), what it answers with, and whether it calls tools and reasons is `None` where it is unknown.
    `extra` has what only its own dialect lists. A model for embeddings answers with `embeddings`, as in the list of
    OpenRouter, and writes nothing.
    """

    id: str
    display_name: str | None = None
    created: int | None = None
    owned_by: str | None = None
    max_input_tokens: int | None = None
    max_output_tokens: int | None = None
    lifecycle: str | None = None
    input_modalities: tuple[Modality, ...] | None = None
    output_modalities: tuple[Modality, ...] | None = None
    tools: bool | None = None
    reasoning: bool | None = None
    price: TokenPrice | None = None
    extra: Extra | None = None

    def writes_text(self) -> bool:
        """Return false if it is known not to answer with text."""
        return self.output_modalities is None or "text" in self.output_modalities


def modalities_of(words: Iterable[object] | None) -> tuple[Modality, ...] | None:
    """Return the modalities among `words`, in the usual order; `None` if there are none."""
    found = {word for word in words or () if isinstance(word, str)}
    return tuple(modality for modality in MODALITIES if modality in found) or None
