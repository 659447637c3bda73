"""Field tables of requests."""

from __future__ import annotations

from typing import Final

from xenoglot.codec.fields import Field, Fields, by_hand
from xenoglot.codec.reader import Reader
from xenoglot.codec.requests.checks import MOST_CANDIDATES, MOST_TOKENS, taken
from xenoglot.codec.requests.encode_context import write_max_tokens
from xenoglot.codec.requests.stop_strings import stop_writer, take_stop
from xenoglot.dialects.openai.sampling import TEXTS, encode_bias, numbers, take_bias
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import Prompt, Request, Sampling

UNLIMITED: Final = -1
"""Sent as `max_tokens` to servers of local models (llama.cpp, LM Studio): nothing but the model ends the answer."""


def _take_max_tokens(reader: Reader, key: str, form: JSONObject) -> JSON:
    limit = taken(reader, key, int, UNLIMITED, MOST_TOKENS, TEXTS.out_of_range)
    form["unlimited"] = limit == UNLIMITED
    return None if limit == UNLIMITED else limit


SAMPLING: Final = Fields(
    Sampling,
    "$.sampling",
    (
        *numbers("top_k", "min_p", "repetition_penalty"),
        Field("n", "n", int, 1, MOST_CANDIDATES),
        Field("max_tokens", "max_tokens", int, UNLIMITED, MOST_TOKENS, read=_take_max_tokens, write=write_max_tokens),
        Field("logit_bias", "logit_bias", read=take_bias, write=encode_bias, values="object, or list of pairs"),
        Field("stop", "stop", read=take_stop, write=stop_writer(4), values="string or list of strings"),
        by_hand("logprobs", "logprobs", values="boolean, or number of alternatives"),
        by_hand("top_logprobs"),
    ),
    texts=TEXTS,
)

PROMPT: Final = Fields(
    Prompt,
    "$.prompt",
    (
        by_hand("texts", "prompt", values="string, list of tokens, or list of either"),
        Field("suffix", "suffix"),
        Field("echo", "echo", bool),
        Field("best_of", "best_of", int, 1, MOST_CANDIDATES),
    ),
    texts=TEXTS,
)

REQUEST: Final = Fields(
    Request,
    "$",
    (
        by_hand("model", "model", values="string"),
        Field("user", "user"),
        by_hand("stream", "stream", values="boolean"),
        by_hand("stream_usage", "stream_options", values="object with `include_usage`"),
        "messages",
        "prompt",
        "tools",
        "tool_choice",
        "sampling",
        "output",
        "previous",
    ),
)
