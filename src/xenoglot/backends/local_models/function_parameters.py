"""Selects the sampling settings of a request that a function has parameters for."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

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
    """The parameters of a function that can be given by name; `accepts_any` says that it takes any others too."""

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
    """Return what the request says, by the function's own names; what it has no parameter for is a loss.

    Stop strings are left out: whoever runs the function sees to them. So is `n`.
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
    """Record that a model which says words does not say how likely they were."""
    for setting in _NEVER:
        if getattr(sampling, setting):
            losses.dropped("$.sampling", setting, "the model does not tell how likely its words are")
