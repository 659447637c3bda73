"""One entry of a model list."""

from __future__ import annotations

from msgspec import Struct


class ModelInfo(Struct, frozen=True, kw_only=True):
    """One available model; `created` in Unix seconds, the limits in tokens.

    `lifecycle` is the server's word for whether it is `active`, `deprecated` or `retired`.
    """

    id: str
    display_name: str | None = None
    created: int | None = None
    owned_by: str | None = None
    max_input_tokens: int | None = None
    max_output_tokens: int | None = None
    lifecycle: str | None = None
