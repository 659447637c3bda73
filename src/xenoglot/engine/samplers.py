"""Validates llama-server's sampler fields, which no dialect defines, and passes them to the runtime.

Source:
https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md#post-completion-given-a-prompt-it-returns-the-predicted-completion
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.invalid_request import refused
from xenoglot.codec.json.json_io import to_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.model.json import JSON, JSONObject

MOST: Final = 2**31 - 1
"""The runtime takes 32 bits."""

WHOLE: Final[Mapping[str, tuple[int, int]]] = {
    "min_keep": (0, MOST),
    "mirostat": (0, 2),
    "dry_allowed_length": (0, MOST),
    "dry_penalty_last_n": (-1, MOST),
    "repeat_last_n": (-1, MOST),
    "n_predict": (-1, MOST),
}
NUMBERS: Final[Mapping[str, tuple[float, float]]] = {
    "typical_p": (0, 1),
    "top_n_sigma": (-1, 100),
    "dynatemp_range": (0, 2),
    "dynatemp_exponent": (0, 10),
    "xtc_probability": (0, 1),
    "xtc_threshold": (0, 1),
    "mirostat_tau": (0, 100),
    "mirostat_eta": (0, 1),
    "dry_multiplier": (0, 100),
    "dry_base": (0, 100),
}
FLAGS: Final = frozenset({"ignore_eos", "cache_prompt"})
NAMES: Final = frozenset(
    {"penalties", "dry", "top_n_sigma", "top_k", "typ_p", "typical_p", "top_p", "min_p", "xtc", "temperature"}
)
"""What `samplers` may put in order."""

MOST_BREAKERS: Final = 16
LONGEST_BREAKER: Final = 40
"""Each breaker is looked for in the whole vocabulary before the answer begins."""

ELSEWHERE: Final = frozenset({"n_predict", "cache_prompt"})
"""What is understood, but is no field of how words are drawn."""

READ: Final = frozenset({*WHOLE, *NUMBERS, *FLAGS, "dry_sequence_breakers", "samplers"})


WINDOWS: Final = ("repeat_last_n", "dry_penalty_last_n")
"""Numbers of tokens for which the runtime reserves memory; -1 are all of the context."""


def sampler_fields(fields: JSONObject, context: int) -> JSONObject:
    """Return the runtime's fields for those of a request's `fields` that are for it; no window exceeds the `context`.

    Raises:
        FailureError: a value is of a wrong type, or out of its range.
    """
    found = {name: value for name, value in fields.items() if name in READ and value is not None}
    for name, value in found.items():
        _check(name, value)
    for name in WINDOWS:
        if name in found:
            found[name] = context if found[name] < 0 else min(found[name], context)
    return {name: value for name, value in found.items() if name not in ELSEWHERE}


def longest_of(fields: JSONObject) -> int | None:
    """Return the most tokens that `n_predict` allows; `None` where there is no such bound."""
    value = fields.get("n_predict")
    if value is None:
        return None
    _check("n_predict", value)
    return value if value >= 0 else None


def _check(name: str, value: JSON) -> None:
    if name in WHOLE:
        _check_number(name, value, (int,), WHOLE[name])
    elif name in NUMBERS:
        _check_number(name, value, (int, float), NUMBERS[name])
    elif name in FLAGS:
        _need(name, value, "true or false", fits=type(value) is bool)
    elif name == "samplers":
        fits = isinstance(value, list) and all(isinstance(one, str) and one in NAMES for one in value)
        _need(name, value, f"a list of {', '.join(sorted(NAMES))}", fits=fits)
    else:
        fits = isinstance(value, list) and len(value) <= MOST_BREAKERS and all(map(_is_breaker, value))
        _need(name, value, f"up to {MOST_BREAKERS} texts of 1 to {LONGEST_BREAKER} characters", fits=fits)


def _check_number(name: str, value: JSON, kinds: tuple[type, ...], bounds: tuple[float, float]) -> None:
    least, most = bounds
    fits = type(value) in kinds and least <= value <= most
    _need(name, value, f"{'a whole number' if kinds == (int,) else 'a number'}, {least} to {most}", fits=fits)


def _need(name: str, value: JSON, wanted: str, *, fits: bool) -> None:
    if not fits:
        raise refused(f"$.{name}", f"found {to_text(value)[:64]}, expected {wanted}")


def _is_breaker(value: JSON) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LONGEST_BREAKER
