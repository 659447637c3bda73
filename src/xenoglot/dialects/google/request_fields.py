"""Fields of requests that Google's dialects have alike: stop strings, seeds and service tiers.

Source: `GenerationConfig` (https://ai.google.dev/api/generate-content#generationconfig) and `ServiceTier` in the SDK.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from xenoglot.codec.fields import Field, words
from xenoglot.codec.requests.checks import LEAST_SEED, MOST_SEED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.json import JSON, JSONObject

STOP_LIMIT: Final = 5
"""The most stop strings (`GenerationConfig.stopSequences`)."""

TIERS: Final[Mapping[str, str]] = MappingProxyType({"standard": "default", "flex": "flex", "priority": "priority"})
"""`ServiceTier` in the SDK, and the canonical words."""

TIER_WORDS: Final[Mapping[str, str]] = MappingProxyType({tier: word for word, tier in TIERS.items()})

_SEEDS: Final = 2**31
"""Seeds are integers of 32 bits with a sign."""


def _write_seed(seed: int, _form: JSONObject, context: EncodeContext) -> int:
    if context.home or -_SEEDS <= seed < _SEEDS:
        return seed
    context.losses.approximated("$.sampling", "seed", "seeds have 32 bits: its remainder is written")
    return seed % _SEEDS


def _write_tier(tier: str, _form: JSONObject, context: EncodeContext) -> JSON:
    if tier not in TIER_WORDS:
        context.losses.dropped("$", "service_tier", "the dialect has no such tier")
    return TIER_WORDS.get(tier)


SEED: Final = Field("seed", "seed", int, LEAST_SEED, MOST_SEED, write=_write_seed, note="from elsewhere 32 bits of it")


def service_tier(name: str) -> Field:
    """Return the row of the field `name`, which holds the tier."""
    return Field("service_tier", name, read=words(TIERS), write=_write_tier, values=", ".join(TIERS))
