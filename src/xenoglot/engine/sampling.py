"""Converts sampling parameters to the runtime's fields, and validates them, since the runtime checks little."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.invalid_request import refused
from xenoglot.codec.requests.checks import is_token

if TYPE_CHECKING:
    from xenoglot.engine.server.runtime import RuntimeProperties
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Sampling

DEFAULT_MAX_TOKENS: Final = 1024
"""Default length of an answer; half a minute on two cores."""

DEFAULTS: Final[dict[str, float]] = {"temperature": 0.0, "top_p": 1.0, "top_k": 0, "min_p": 0.05}
"""Default settings. The likeliest word each time: a small model is at its best there, and the
same question gets the same answer. `min_p` cuts the tail that makes a small model talk nonsense once it is warmer."""

SEVERAL_TEMPERATURE: Final = 0.8
"""The default temperature of more than one answer (`n`): at 0 they would all be the same."""

RANGES: Final[dict[str, tuple[float, float]]] = {
    "max_tokens": (1, 2**53),
    "temperature": (0, 2),
    "top_p": (0, 1),
    "top_k": (-1, 2**31 - 1),
    "min_p": (0, 1),
    "frequency_penalty": (-2, 2),
    "presence_penalty": (-2, 2),
    "repetition_penalty": (0.01, 10),
    "top_logprobs": (0, 20),
}
BIAS: Final = (-100, 100)
LONGEST_TEXTS: Final = 64 * 1024
"""Characters of all texts in `logit_bias` together; they are tokenized before the answer begins."""

SEEDS: Final = 2**32 - 1
"""The runtime takes 32 bits, and the last of these numbers for `choose one`."""

FIELDS: Final = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "repetition_penalty": "repeat_penalty",
}
"""Our name of a setting -> the runtime's."""

SUPPORTED: Final = (*FIELDS, "max_tokens", "seed", "logit_bias", "logprobs", "top_logprobs", "stop", "n")
"""All settings that the embedded model follows."""


def completion_fields(sampling: Sampling, facts: RuntimeProperties, slots: int) -> JSONObject:
    """Return the runtime's fields for `sampling`, without `n_predict`.

    Raises:
        FailureError: a value is out of its range; the failure names it.
    """
    _check(sampling, slots)
    several = {"temperature": SEVERAL_TEMPERATURE} if (sampling.n or 1) > 1 else {}
    told = {name: value for name in FIELDS if (value := getattr(sampling, name)) is not None}
    fields: JSONObject = {FIELDS[name]: value for name, value in (DEFAULTS | several | told).items()}
    if sampling.seed is not None:
        fields["seed"] = sampling.seed % SEEDS
    if sampling.logit_bias:
        fields["logit_bias"] = _biases(sampling.logit_bias, facts.vocabulary)
    if wants_logprobs(sampling):
        fields["n_probs"] = max(1, sampling.top_logprobs or 0)
    if (sampling.n or 1) > 1:
        fields["n_cmpl"] = sampling.n
    return fields


def wants_logprobs(sampling: Sampling) -> bool:
    """Return whether the answer needs log probabilities."""
    return bool(sampling.logprobs or sampling.top_logprobs)


def _check(sampling: Sampling, slots: int) -> None:
    for name, (least, most) in (RANGES | {"n": (1, slots)}).items():
        value = getattr(sampling, name)
        if value is not None and not least <= value <= most:
            raise refused(f"$.{name}", f"found {value}, expected {least} to {most}")


def _biases(biases: dict[str, float], vocabulary: int) -> list[list[float | str]]:
    """Return pairs of a token and its bias; the runtime tokenizes a text itself."""
    least, most = BIAS
    if sum(len(key) for key in biases if not is_token(key)) > LONGEST_TEXTS:
        raise refused("$.logit_bias", f"the texts in it are longer than {LONGEST_TEXTS} characters together")
    for key, bias in biases.items():
        path = f"$.logit_bias[{key[:20]!r}]"
        if is_token(key) and (len(key) > len(str(vocabulary)) or int(key) >= vocabulary):
            raise refused(path, f"expected the number of a token of this model, 0 to {vocabulary - 1}")
        if not key:
            raise refused(path, "expected the number of a token, or a text that has tokens")
        if not least <= bias <= most:
            raise refused(path, f"found {bias}, expected {least} to {most}")
    return [[int(key) if is_token(key) else key, bias] for key, bias in biases.items()]
