"""Encodes and decodes usage, with the fields that OpenAI's dialects share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.dialects.chat.extras import NAME
from xenoglot.dialects.openai import usage as family

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.response import Usage


def decode_usage(value: JSON, path: str) -> Usage | None:
    """Return the counts of a `usage` object; what is no count stays in its rest. No object gives no usage."""
    return family.decode_usage(value, path, NAME)


def encode_usage(usage: Usage, losses: Losses) -> JSONObject:
    """Return the `usage` object; counts that are not set are left out."""
    return family.encode_usage(usage, losses, NAME)
