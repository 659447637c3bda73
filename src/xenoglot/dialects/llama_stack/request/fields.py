"""Field tables of requests (`SamplingParams` in `llama_stack/models/llama/datatypes.py`)."""

from __future__ import annotations

from typing import Final

from xenoglot.codec.fields import Field, Fields, FieldTexts, by_hand
from xenoglot.codec.reader import Reader
from xenoglot.codec.requests.checks import MOST_PENALTY, MOST_TOKENS, ranged
from xenoglot.codec.requests.encode_context import EncodeContext, write_max_tokens
from xenoglot.codec.requests.stop_strings import stop_writer
from xenoglot.errors import WireError
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import OutputFormat, Request, Sampling


def _take_max_tokens(reader: Reader, key: str, form: JSONObject) -> JSON:
    """Take the limit; 0 sets none (L2)."""
    return _unless_empty(ranged(reader, key, int, 0, MOST_TOKENS), key, form)


def _take_stop(reader: Reader, key: str, form: JSONObject) -> JSON:
    return _unless_empty(reader.strings(key), key, form)


def _unless_empty(value: JSON, key: str, form: JSONObject) -> JSON:
    """Return `value`; one that requests nothing, such as 0 or an empty list, is kept as spelling alone."""
    if not value:
        form.setdefault("empty", {})[key] = [] if value == () else value
    return value or None


def _write_max_tokens(wanted: int, form: JSONObject, context: EncodeContext) -> int:
    if wanted == 0:
        raise WireError("$.max_tokens", "the server sets no limit where it is 0; ask for 1 at least")
    return write_max_tokens(wanted, form, context)


def _write_stop(stop: tuple[str, ...], form: JSONObject, context: EncodeContext) -> JSON:
    return _write_stops(stop, form, context) if stop else None


_write_stops = stop_writer(4)

SAMPLING: Final = Fields(
    Sampling,
    "$.sampling",
    (
        by_hand("temperature", "strategy.temperature", values=f"number, 0 to {MOST_PENALTY}"),
        by_hand("top_p", "strategy.top_p", values="number, 0 to 1"),
        by_hand("top_k", "strategy.top_k", values=f"integer, 0 to {MOST_TOKENS}"),
        Field("max_tokens", "max_tokens", int, 0, MOST_TOKENS, read=_take_max_tokens, write=_write_max_tokens),
        Field("repetition_penalty", "repetition_penalty", float, 0, MOST_PENALTY),
        Field("stop", "stop", list, read=_take_stop, write=_write_stop),
        "logprobs",
        "top_logprobs",
        "n",
    ),
    neutral={"min_p": 0, "frequency_penalty": 0, "presence_penalty": 0, "logit_bias": {}},
)
"""Sampling in `sampling_params`; of temperature, `top_p` and `top_k` the wire takes one strategy (L1)."""

OUTPUT: Final = Fields(
    OutputFormat, "$.output", ("kind", "schema"), texts=FieldTexts("the dialect gives a schema none")
)

REQUEST: Final = Fields(
    Request,
    "$",
    (
        by_hand("model", "model_id", values="string"),
        by_hand("messages", "messages", values="list of turns"),
        by_hand("prompt", "content", note="text completion"),
        by_hand("tools", "tools", values="list of tools"),
        by_hand("tool_choice", "tool_choice", "tool_config.tool_choice", values="word"),
        by_hand("output", "response_format", values="object with a JSON Schema"),
        by_hand("stream", "stream", values="boolean"),
        "sampling",
        "stream_usage",
        "previous",
    ),
    neutral={"store": False},
)
