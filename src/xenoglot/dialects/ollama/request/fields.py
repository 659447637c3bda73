"""Field tables of requests of both endpoints (`ChatRequest`, `GenerateRequest` and `Options` in `api/types.go`)."""

from __future__ import annotations

from typing import Final

from xenoglot.codec.fields import STATELESS, Field, Fields, FieldTexts, Read, by_hand
from xenoglot.codec.reader import Reader
from xenoglot.codec.requests.checks import MOST_LOGPROBS, MOST_PENALTY, MOST_SEED, MOST_TOKENS, ranged
from xenoglot.codec.requests.encode_context import EncodeContext, write_max_tokens
from xenoglot.codec.requests.stop_strings import take_stop
from xenoglot.errors import WireError
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import OutputFormat, Request, Sampling


def _from(least: int, most: int) -> Read:
    """Return what takes a number of at least `least`: below it are the server's own words, such as -1 for no limit."""

    def take(reader: Reader, key: str, _form: JSONObject) -> JSON:
        value = reader.peek(key)
        if type(value) in (int, float) and value < least:
            return None
        return ranged(reader, key, int, least, most)

    return take


def _write_max_tokens(wanted: int, form: JSONObject, context: EncodeContext) -> int:
    if wanted < 1:  # the server would take it for no limit
        raise WireError("$.max_tokens", "must be at least 1")
    return write_max_tokens(wanted, form, context)


def _write_seed(seed: int, _form: JSONObject, context: EncodeContext) -> JSON:
    if seed >= 0:
        return seed
    context.losses.dropped("$.sampling", "seed", "below zero the server draws one itself")
    return None


def _write_stop(stop: tuple[str, ...], form: JSONObject, _context: EncodeContext) -> JSON:
    return stop[0] if "stop" in form and len(stop) == 1 else list(stop)


LOGPROBS: Final = Fields(
    Sampling,
    "$.sampling",
    (Field("logprobs", "logprobs", bool), Field("top_logprobs", "top_logprobs", int, 0, MOST_LOGPROBS)),
)

OPTIONS: Final = Fields(
    Sampling,
    "$.sampling",
    (
        Field(
            "max_tokens",
            "num_predict",
            int,
            1,
            MOST_TOKENS,
            read=_from(1, MOST_TOKENS),
            write=_write_max_tokens,
        ),
        Field("temperature", "temperature", float, 0, MOST_PENALTY),
        Field("top_p", "top_p", float, 0, 1),
        Field("top_k", "top_k", int, -1, MOST_TOKENS),
        Field("min_p", "min_p", float, 0, 1),
        Field("seed", "seed", int, 0, MOST_SEED, read=_from(0, MOST_SEED), write=_write_seed),
        Field("frequency_penalty", "frequency_penalty", float, -MOST_PENALTY, MOST_PENALTY),
        Field("presence_penalty", "presence_penalty", float, -MOST_PENALTY, MOST_PENALTY),
        Field("repetition_penalty", "repeat_penalty", float, 0, MOST_PENALTY),
        Field("stop", "stop", read=take_stop, write=_write_stop, values="string or list of strings"),
        "logprobs",
        "top_logprobs",
        "n",
    ),
    neutral={"logit_bias": {}},
)
"""Sampling in `options`. What else stands there is about how the model is loaded."""

OUTPUT: Final = Fields(
    OutputFormat, "$.output", ("kind", "schema", "strict"), texts=FieldTexts("the dialect gives a schema none")
)

REQUEST: Final = Fields(
    Request,
    "$",
    (
        by_hand("model", "model", values="string"),
        by_hand("messages", "messages", "system", "prompt", values="list of turns, or texts"),
        by_hand("tools", "tools", values="list of tools"),
        by_hand("output", "format", values="`json` or a JSON Schema"),
        by_hand("thinking", "think", values="boolean or word"),
        by_hand("stream", "stream", values="boolean", note="true by default"),
        "prompt",
        "tool_choice",
        "parallel_tool_calls",
        "sampling",
        "stream_usage",
        "previous",
    ),
    neutral=STATELESS,
)
