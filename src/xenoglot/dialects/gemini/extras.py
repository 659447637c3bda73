"""The name of the dialect, and its unknown fields in nested objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.unknown_fields import merge_rest

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Extra
    from xenoglot.model.json import JSONObject

NAME = "gemini"
"""The name of this dialect in `Extra`, `Opaque`, `Finish` and `Origin`."""

SIGNATURE = "thoughtSignature"
"""The field of a part that holds the encrypted state of the model's thinking."""


def with_rest(own: JSONObject, extra: Extra | None, where: str, losses: Losses) -> JSONObject:
    """Return the fields `own` with those of `extra` that this dialect carries; objects that are in both are merged."""
    return merge_rest(own, extra, NAME, where, losses)
