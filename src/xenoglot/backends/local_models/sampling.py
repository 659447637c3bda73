"""Converts sampling settings of a request to those of the transformers library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from xenoglot.backends.local_models.function_parameters import report_logprobs
from xenoglot.codec.requests.checks import is_token
from xenoglot.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.codec.loss import Losses
    from xenoglot.model.request import Sampling

Tokens: TypeAlias = "tuple[int, ...]"

SEEDS: Final = 2**63
"""The library takes any seed of 64 bits."""

_RANGES: Final[dict[str, tuple[float, float]]] = {
    "max_tokens": (1, 2**53),
    "temperature": (0, 100),
    "top_p": (0, 1),
    "top_k": (-1, 2**31 - 1),
    "min_p": (0, 1),
    "repetition_penalty": (0.01, 100),
}
_DRAWN: Final = ("temperature", "top_p", "top_k", "min_p")
_UNKNOWN: Final = ("frequency_penalty", "presence_penalty")


def generate_settings(
    sampling: Sampling, vocabulary: int, losses: Losses, encode: Callable[[str], list[int]]
) -> dict[str, Any]:
    """Return the settings of `generate` for `sampling`, but for its length and its seed; `encode` tokenizes a text.

    At temperature 0 the likeliest word is taken. Where the request says nothing of the drawing, the model's own
    generation config holds.

    Raises:
        WireError: a value is out of its range.
    """
    for name, (low, high) in _RANGES.items():
        value = getattr(sampling, name)
        if value is not None and not low <= value <= high:
            raise WireError(f"$.{name}", f"found {value}, expected {low} to {high}")
    for name in _UNKNOWN:
        if getattr(sampling, name) is not None:
            losses.dropped("$.sampling", name, "the library has no such setting")
    report_logprobs(sampling, losses)
    settings: dict[str, Any] = {}
    if sampling.repetition_penalty is not None:
        settings["repetition_penalty"] = float(sampling.repetition_penalty)
    if sampling.logit_bias:
        settings["sequence_bias"] = _biases(sampling.logit_bias, vocabulary, encode)
    return settings | _samplers(sampling)


def _samplers(sampling: Sampling) -> dict[str, Any]:
    if sampling.temperature == 0:
        return {"do_sample": False}
    drawn = {name: value for name in _DRAWN if (value := getattr(sampling, name)) is not None}
    if not drawn:
        return {}
    if "temperature" in drawn:
        drawn["temperature"] = float(drawn["temperature"])
    if "top_k" in drawn:
        drawn["top_k"] = max(0, drawn["top_k"])  # 0 is all of them, which others write as -1
    return drawn | {"do_sample": True}


def _biases(biases: dict[str, float], vocabulary: int, encode: Callable[[str], list[int]]) -> dict[Tokens, float]:
    """Return the biases by sequences of one token; those of a text hold for each of its tokens."""
    found: dict[Tokens, float] = {}
    for key, bias in biases.items():
        if not is_token(key):
            tokens = encode(key)
        elif len(key) < len(str(2**53)) and int(key) < vocabulary:
            tokens = [int(key)]
        else:
            raise WireError("$.logit_bias", f"expected numbers of tokens, 0 to {vocabulary - 1}")
        for token in tokens:
            found[token,] = found.get((token,), 0.0) + float(bias)
    return found
