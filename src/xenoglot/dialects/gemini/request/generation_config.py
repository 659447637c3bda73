"""Encodes and decodes sampling and the output format: `generationConfig`.

Source: `GenerationConfig` (https://ai.google.dev/api/generate-content#generationconfig).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from xenoglot.codec.fields import Fields
from xenoglot.codec.loss import form_of
from xenoglot.codec.requests.bounds import LEAST_SEED, MOST_CANDIDATES, MOST_LOGPROBS, MOST_SEED, MOST_TOKENS, ranged
from xenoglot.codec.target import Target
from xenoglot.dialects.gemini.extras import NAME, keep, with_rest, with_said
from xenoglot.dialects.gemini.reasoning_effort import encode_thinking, take_thinking
from xenoglot.dialects.gemini.schemas import as_spelled, json_schema
from xenoglot.errors import WireError
from xenoglot.model.content import Extra
from xenoglot.model.request import OutputFormat, Sampling, Thinking

if TYPE_CHECKING:
    from xenoglot.codec.reader import Reader
    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Request

KEY = "generationConfig"

STOP_LIMIT = 5
"""The most stop strings (`GenerationConfig.stopSequences`)."""

_SEEDS = 2**31
"""Seeds are integers of 32 bits with a sign."""

_JSON = "application/json"
_TEXT = "text/plain"

_PLAIN = {
    "temperature": "temperature",
    "top_p": "topP",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
    "logprobs": "responseLogprobs",
    "top_logprobs": "logprobs",
    "n": "candidateCount",
}
_SAMPLING = Fields(
    Sampling,
    "$.sampling",
    (*_PLAIN, "max_tokens", "top_k", "seed", "stop"),
    neutral={"min_p": 0, "repetition_penalty": 1, "logit_bias": {}},
)


class Generation(NamedTuple):
    """The decoded fields of a `generationConfig`."""

    sampling: Sampling = Sampling()
    output: OutputFormat | None = None
    thinking: Thinking | None = None


def take_generation(reader: Reader, form: JSONObject) -> Generation:
    """Take the configuration of a request; unknown fields stay where it was."""
    config = reader.object(KEY)
    if config is None:
        return Generation()
    top_k = ranged(config, "topK", float, -1, MOST_TOKENS)
    if type(top_k) is float and not top_k.is_integer():
        config.rest()["topK"], top_k = top_k, None
    generation = Generation(
        sampling=Sampling(
            max_tokens=ranged(config, "maxOutputTokens", int, 1, MOST_TOKENS),
            temperature=ranged(config, "temperature", float, 0, 2),
            top_p=ranged(config, "topP", float, 0, 1),
            top_k=None if top_k is None else int(top_k),
            seed=ranged(config, "seed", int, LEAST_SEED, MOST_SEED),
            presence_penalty=ranged(config, "presencePenalty", float, -2, 2),
            frequency_penalty=ranged(config, "frequencyPenalty", float, -2, 2),
            logprobs=config.take("responseLogprobs", bool),
            top_logprobs=ranged(config, "logprobs", int, 0, MOST_LOGPROBS),
            stop=config.strings("stopSequences"),
            n=ranged(config, "candidateCount", int, 1, MOST_CANDIDATES),
        ),
        output=_take_output(config),
        thinking=take_thinking(config),
    )
    if type(top_k) is float:
        form["topK"] = "float"
    keep(reader, KEY, config, form, said=generation != Generation())
    return generation


def _take_output(config: Reader) -> OutputFormat | None:
    """Take the form of the answer; one that is neither text nor JSON stays where it was."""
    media_type = config.take_word("responseMimeType", (_JSON, _TEXT))
    if media_type != _JSON:
        return None if media_type is None else OutputFormat(kind="text")
    if isinstance(config.peek("responseJsonSchema"), dict):
        return OutputFormat(kind="json_schema", schema=config.take("responseJsonSchema", dict))
    schema = config.take_if("responseSchema", dict)
    if schema is None:
        return OutputFormat(kind="json")
    extra = Extra(dialect=NAME, form={"schema": schema})
    return OutputFormat(kind="json_schema", schema=json_schema(schema), extra=extra)


def encode_generation(request: Request, crossing: EncodeContext) -> JSONObject:
    """Return `generationConfig`, in the field of its name, or nothing where there is nothing to say.

    Raises:
        WireError: there are more stop strings than the server takes.
    """
    config = _sampling(request.sampling, form_of(request.extra, NAME), crossing)
    if request.output is not None:
        config |= _output(request.output, crossing)
    max_tokens = config.get("maxOutputTokens")
    config |= encode_thinking(request.thinking, crossing.losses, crossing.target, max_tokens=max_tokens)
    return {KEY: config} if config else {}


def _sampling(sampling: Sampling, form: JSONObject, crossing: EncodeContext) -> JSONObject:
    config: JSONObject = {}
    for field, key in _PLAIN.items():
        with_said(config, **{key: getattr(sampling, field)})
    with_said(config, maxOutputTokens=_max_tokens(sampling.max_tokens, crossing))
    if sampling.top_k is not None and (crossing.home or sampling.top_k > 0):  # less is how others say there is no limit
        config["topK"] = float(sampling.top_k) if "topK" in form else sampling.top_k
    if sampling.seed is not None:
        config["seed"] = _seed(sampling.seed, crossing)
    if sampling.stop is not None:
        config["stopSequences"] = _stop(sampling.stop, crossing)
    _SAMPLING.note_unsupported(sampling, crossing.losses)
    return config


def _max_tokens(wanted: int | None, crossing: EncodeContext) -> int | None:
    limit = crossing.target.max_tokens_limit
    if wanted is None or limit is None or wanted <= limit:
        return wanted
    crossing.losses.approximated("$.sampling", "max_tokens", f"the server generates at most {limit}")
    return limit


def _seed(seed: int, crossing: EncodeContext) -> int:
    if crossing.home or -_SEEDS <= seed < _SEEDS:
        return seed
    crossing.losses.approximated("$.sampling", "seed", "seeds have 32 bits: its remainder is written")
    return seed % _SEEDS


def _stop(stop: tuple[str, ...], crossing: EncodeContext) -> list[str]:
    limit = crossing.target.stop_limit
    if limit == Target().stop_limit:  # nothing is known of the server: the dialect's own limit holds
        limit = None if crossing.home else STOP_LIMIT
    if limit is not None and len(stop) > limit:
        raise WireError("$.stop", f"the server takes at most {limit} stop strings")
    return list(stop)


def _output(output: OutputFormat, crossing: EncodeContext) -> JSONObject:
    losses, where = crossing.losses, "$.output"
    if output.kind == "text":
        return {"responseMimeType": _TEXT}
    config: JSONObject = {"responseMimeType": _JSON}
    if output.kind == "json_schema":
        suffix, schema = as_spelled(output.schema, form_of(output.extra, NAME))
        with_said(config, **{f"response{suffix or 'Schema'}": schema})
    for field in ("name", "description", "strict"):
        if getattr(output, field) is not None:
            losses.dropped(where, field, "the dialect gives a schema none")
    return with_rest(config, output.extra, where, losses)
