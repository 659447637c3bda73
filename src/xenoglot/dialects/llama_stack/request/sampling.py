"""Encodes and decodes sampling parameters and the output format.

Of temperature, `top_p` and `top_k` the wire takes one strategy (`SamplingParams` in
`llama_stack/models/llama/datatypes.py`): `greedy` is a temperature of 0, `top_p` has a temperature as well, `top_k`
stands alone (L1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.reader import Reader, leave
from xenoglot.codec.requests.checks import MOST_CANDIDATES, MOST_PENALTY, MOST_TOKENS, ranged
from xenoglot.dialects.llama_stack.extras import NAME, own_fields, rest_of
from xenoglot.dialects.llama_stack.request.fields import OUTPUT, SAMPLING
from xenoglot.errors import WireError
from xenoglot.model.request import OutputFormat, Sampling

if TYPE_CHECKING:
    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.json import JSONObject

_WHERE = "$.sampling"

DEFAULT_TEMPERATURE = 1.0
"""Written with a `top_p` that came alone: the strategy requires one."""


def take_sampling(reader: Reader, form: JSONObject) -> Sampling:
    """Take `sampling_params` and `logprobs`; a `max_tokens` of 0 sets no limit (L2).

    Raises:
        WireError: a field is of the wrong type, or the strategy is none that we know.
    """
    params = reader.object("sampling_params")
    logprobs, top = _take_logprobs(reader, form)
    if params is None:
        return Sampling(logprobs=logprobs, top_logprobs=top)
    temperature, top_p, top_k = _take_strategy(params, form)
    sampling = Sampling(
        temperature=temperature,
        top_p=top_p,
        top_k=top_k,
        logprobs=logprobs,
        top_logprobs=top,
        **SAMPLING.read(params, form),
    )
    form["sampling_params"] = leave(reader, "sampling_params", params)
    return sampling


def _take_strategy(params: Reader, form: JSONObject) -> tuple[float | None, float | None, int | None]:
    strategy = params.object("strategy")
    if strategy is None:
        return None, None, None
    word = strategy.need("type", str)
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    if word == "greedy":
        temperature = 0.0
    elif word == "top_p":
        temperature = ranged(strategy, "temperature", float, 0, MOST_PENALTY)
        top_p = ranged(strategy, "top_p", float, 0, 1)
    elif word == "top_k":
        top_k = ranged(strategy, "top_k", int, 0, MOST_TOKENS)
        if top_k is None:
            top_k = strategy.need("top_k", int)
    else:
        raise WireError(strategy.at("type"), "expected one of greedy, top_p, top_k")
    nulls = leave(params, "strategy", strategy)
    form["strategy"], form["nulls"] = word, None if nulls is True else nulls
    return temperature, top_p, top_k


def _take_logprobs(reader: Reader, form: JSONObject) -> tuple[bool | None, int | None]:
    config = reader.object("logprobs")
    if config is None:
        return None, None
    top = ranged(config, "top_k", int, 0, MOST_CANDIDATES)
    form["logprobs"] = leave(reader, "logprobs", config)
    return True, top


def encode_sampling(sampling: Sampling, form: JSONObject, own: JSONObject, crossing: EncodeContext) -> JSONObject:
    """Return `sampling_params` and `logprobs`."""
    params = rest_of(own, form, "sampling_params")
    strategy = _said_strategy(sampling, form) or _strategy(sampling, crossing)
    rest = rest_of(params, {"strategy": form.get("nulls")}, "strategy")
    if strategy:
        params["strategy"] = strategy | rest
    params |= form.get("empty", {})
    SAMPLING.write(sampling, params, form, crossing)
    fields: JSONObject = {"sampling_params": params} if params or "sampling_params" in form else {}
    return fields | _logprobs(sampling, form, own, crossing)


def _said_strategy(sampling: Sampling, form: JSONObject) -> JSONObject:
    """Return the strategy as it came, if it has the current values."""
    temperature, top_p, top_k = sampling.temperature, sampling.top_p, sampling.top_k
    match form.get("strategy"):
        case "greedy" if temperature == 0 and top_p is None and top_k is None:
            return {"type": "greedy"}
        case "top_p" if top_k is None:
            said = {"temperature": temperature, "top_p": top_p}
            return {"type": "top_p"} | {key: value for key, value in said.items() if value is not None}
        case "top_k" if temperature is None and top_p is None and top_k is not None:
            return {"type": "top_k", "top_k": top_k}
        case _:
            return {}


def _strategy(sampling: Sampling, crossing: EncodeContext) -> JSONObject:
    """Return the one strategy that comes nearest (L-W13 is to change what `top_k` means without a word)."""
    temperature, top_p = sampling.temperature, sampling.top_p
    top_k = sampling.top_k if (sampling.top_k or 0) > 0 else None
    why = "one strategy is drawn by, and it holds no such thing"
    if temperature == 0:
        for field, value in (("top_p", top_p), ("top_k", top_k)):
            if value is not None:
                crossing.losses.dropped(_WHERE, field, why)
        return {"type": "greedy"}
    if top_k is not None and temperature in (None, 1) and top_p in (None, 1):
        return {"type": "top_k", "top_k": top_k}
    if temperature is None and top_p is None:
        return {}
    if top_k is not None:
        crossing.losses.dropped(_WHERE, "top_k", why)
    if temperature is None:
        crossing.losses.approximated(
            _WHERE, "temperature", f"the strategy requires one; {DEFAULT_TEMPERATURE:g} is written"
        )
        temperature = DEFAULT_TEMPERATURE
    return {"type": "top_p", "temperature": temperature, **({} if top_p is None else {"top_p": top_p})}


def _logprobs(sampling: Sampling, form: JSONObject, own: JSONObject, crossing: EncodeContext) -> JSONObject:
    """Return `logprobs`: without requested alternatives one is requested, as for none the server sends nothing."""
    top = sampling.top_logprobs
    if "logprobs" in form and sampling.logprobs:
        return {"logprobs": rest_of(own, form, "logprobs") | ({} if top is None else {"top_k": top})}
    if sampling.logprobs is False and top:
        crossing.losses.dropped(_WHERE, "top_logprobs", "no probabilities are requested")
    if sampling.logprobs is False or not (sampling.logprobs or top):
        return {}
    if not top:
        crossing.losses.emulated(_WHERE, "logprobs", "the likeliest token is requested at each place")
    return {"logprobs": {"top_k": top or 1}}


def take_output(reader: Reader) -> OutputFormat | None:
    """Take `response_format` where it is a schema; a grammar is left where it is, for no other dialect has it."""
    value = reader.peek("response_format")
    if not isinstance(value, dict) or value.get("type") != "json_schema":
        return None
    output = Reader(reader.take("response_format", dict), reader.at("response_format"))
    output.take("type", str)
    return OutputFormat(kind="json_schema", schema=output.need("json_schema", dict), extra=output.extra(NAME))


def encode_output(output: OutputFormat | None, crossing: EncodeContext) -> JSONObject:
    """Return `response_format`; JSON of any kind becomes an object of any kind."""
    if output is None or output.kind == "text":
        return {}
    own = own_fields(output.extra, "$.output", crossing.losses)
    OUTPUT.note_unsupported(output, crossing.losses)
    schema = output.schema
    if output.kind == "json":
        crossing.losses.emulated("$.output", "kind", "written as the schema of an object")
        schema = {"type": "object"}
    return {"response_format": {"type": "json_schema", "json_schema": schema, **own}}
