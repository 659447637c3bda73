"""Encodes and decodes sampling: `options`, and the fields for log probabilities beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.fields import Fields
from xenoglot.codec.reader import Reader, expected
from xenoglot.codec.requests.bounds import MOST_LOGPROBS, MOST_PENALTY, MOST_SEED, MOST_TOKENS, ranged
from xenoglot.dialects.ollama.extras import OPTION
from xenoglot.errors import WireError
from xenoglot.model.request import Sampling

if TYPE_CHECKING:
    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.json import JSONObject

_NAMES = {
    "max_tokens": "num_predict",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "seed": "seed",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "repetition_penalty": "repeat_penalty",
}
"""Ours, and theirs (`Options` in `api/types.go`). What else stands there is about how the model is loaded."""

_SAMPLING = Fields(
    Sampling, "$.sampling", (*_NAMES, "logprobs", "top_logprobs", "stop", "n"), neutral={"logit_bias": {}}
)


def decode_sampling(reader: Reader, form: JSONObject) -> Sampling:
    """Take `options`, `logprobs` and `top_logprobs`; each option that we do not know is carried under its own name.

    Raises:
        WireError: an option is of a wrong type.
    """
    logprobs, top = reader.take("logprobs", bool), ranged(reader, "top_logprobs", int, 0, MOST_LOGPROBS)
    options = reader.object("options")
    if options is None:
        return Sampling(logprobs=logprobs, top_logprobs=top)
    sampling = Sampling(
        max_tokens=_take_count(options, "num_predict", 1, MOST_TOKENS),
        temperature=ranged(options, "temperature", float, 0, MOST_PENALTY),
        top_p=ranged(options, "top_p", float, 0, 1),
        top_k=ranged(options, "top_k", int, -1, MOST_TOKENS),
        min_p=ranged(options, "min_p", float, 0, 1),
        seed=_take_count(options, "seed", 0, MOST_SEED),
        frequency_penalty=ranged(options, "frequency_penalty", float, -MOST_PENALTY, MOST_PENALTY),
        presence_penalty=ranged(options, "presence_penalty", float, -MOST_PENALTY, MOST_PENALTY),
        repetition_penalty=ranged(options, "repeat_penalty", float, 0, MOST_PENALTY),
        logprobs=logprobs,
        top_logprobs=top,
        stop=_take_stop(options, form),
    )
    rest = options.rest()
    form["options"] = {name: value for name, value in rest.items() if value is None} or True
    reader.rest().update({OPTION + name: value for name, value in rest.items() if value is not None})
    return sampling


def encode_sampling(sampling: Sampling, form: JSONObject, own: JSONObject, crossing: EncodeContext) -> JSONObject:
    """Return `options`, `logprobs` and `top_logprobs`; options that were carried are taken out of `own`.

    Raises:
        WireError: nothing is to be generated.
    """
    options = {key: value for name, key in _NAMES.items() if (value := getattr(sampling, name)) is not None}
    if sampling.max_tokens is not None and sampling.max_tokens < 1:  # the server would take it for no limit
        raise WireError("$.max_tokens", "must be at least 1")
    limit = crossing.target.max_tokens_limit
    if limit is not None and options.get("num_predict", 0) > limit:
        options["num_predict"] = limit
        crossing.losses.approximated("$.sampling", "max_tokens", f"lowered to {limit}, the most of the server")
    if options.get("seed", 0) < 0:
        del options["seed"]
        crossing.losses.dropped("$.sampling", "seed", "below zero the server draws one itself")
    if sampling.stop is not None:
        options["stop"] = sampling.stop[0] if "stop" in form and len(sampling.stop) == 1 else list(sampling.stop)
    _SAMPLING.note_unsupported(sampling, crossing.losses)
    for key in [key for key in own if key.startswith(OPTION)]:
        options[key.removeprefix(OPTION)] = own.pop(key)
    spelled = form.get("options")
    nulls = spelled if isinstance(spelled, dict) else {}
    fields: JSONObject = {"options": nulls | options} if options or spelled else {}
    fields |= {"logprobs": sampling.logprobs, "top_logprobs": sampling.top_logprobs}
    return {key: value for key, value in fields.items() if value is not None}


def _take_count(options: Reader, key: str, least: int, most: int) -> int | None:
    """Take a number of at least `least`: below it stand the server's own words, such as -1 for no limit."""
    value = options.peek(key)
    if type(value) in (int, float) and value < least:
        return None
    count: int | None = ranged(options, key, int, least, most)
    return count


def _take_stop(options: Reader, form: JSONObject) -> tuple[str, ...] | None:
    alone = options.take_if("stop", str)
    if alone is not None:  # as `docs/openapi.yaml` has it
        form["stop"] = "string"
        return (alone,)
    if "stop" in options and type(options.peek("stop")) is not list:
        raise expected(options.at("stop"), "str or list", options.peek("stop"))
    return options.strings("stop")
