"""Sampling settings of a request as parameters of a function and of the transformers library."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct

from xenoglot.codec.requests.checks import is_token
from xenoglot.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.codec.loss import Losses
    from xenoglot.model.request import Sampling


NAMES: Final[dict[str, tuple[str, ...]]] = {
    "max_tokens": ("max_tokens", "max_new_tokens"),
    "temperature": ("temperature",),
    "top_p": ("top_p",),
    "top_k": ("top_k",),
    "min_p": ("min_p",),
    "seed": ("seed",),
    "frequency_penalty": ("frequency_penalty",),
    "presence_penalty": ("presence_penalty",),
    "repetition_penalty": ("repetition_penalty",),
    "logit_bias": ("logit_bias",),
}
"""A setting -> the parameters that mean it, the usual name first."""

_NEVER: Final = ("logprobs", "top_logprobs")


class FunctionParameters(Struct, frozen=True):
    """The parameters of a function that can be given by name; `accepts_any` is whether it takes any others too."""

    names: frozenset[str] = frozenset()
    accepts_any: bool = False

    def named(self, setting: str) -> str | None:
        """Return the parameter that means `setting`."""
        names = NAMES[setting]
        return next((name for name in names if name in self.names), names[0] if self.accepts_any else None)


def parameters_of(function: Callable[..., Any], *, given: int) -> FunctionParameters:
    """Return the parameters of `function` that are left when the first `given` have their values."""
    left = _remaining(function, given)
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return FunctionParameters(
        frozenset(one.name for one in left if one.kind in named),
        accepts_any=any(one.kind is inspect.Parameter.VAR_KEYWORD for one in left),
    )


def required_of(function: Callable[..., Any], *, given: int) -> frozenset[str]:
    """Return the names of the parameters without a default that are left when the first `given` have their values."""
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    left = (one for one in _remaining(function, given) if one.kind not in several)
    return frozenset(one.name for one in left if one.default is inspect.Parameter.empty)


def _remaining(function: Callable[..., Any], given: int) -> list[inspect.Parameter]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some that are written in C do not tell
        return []
    places = [one for one in parameters if one.kind is not inspect.Parameter.KEYWORD_ONLY]
    taken = {one.name for one in places[:given]}
    return [one for one in parameters if one.name not in taken]


def settings_for(sampling: Sampling, parameters: FunctionParameters, losses: Losses) -> dict[str, Any]:
    """Return the settings of the request by the function's own names; a setting without a parameter is a loss.

    Stop strings and `n` are left out, because the caller of the function handles them.
    """
    told: dict[str, Any] = {}
    for setting in NAMES:
        value = getattr(sampling, setting)
        if value is None:
            continue
        name = parameters.named(setting)
        if name is None:
            losses.dropped("$.sampling", setting, "the model's function has no such parameter")
        else:
            told[name] = value
    report_logprobs(sampling, losses)
    return told


def report_logprobs(sampling: Sampling, losses: Losses) -> None:
    """Record that a model that returns text returns no probabilities."""
    for setting in _NEVER:
        if getattr(sampling, setting):
            losses.dropped("$.sampling", setting, "the model does not report token probabilities")


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

    At temperature 0 the likeliest word is taken. Without sampling settings in the request, the model's own
    generation config applies.

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
