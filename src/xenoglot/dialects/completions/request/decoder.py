"""Decodes requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.reader import Reader, expected
from xenoglot.codec.requests.bounds import MOST_CANDIDATES, MOST_TOKENS
from xenoglot.dialects.completions.extras import NAME, extra_of
from xenoglot.dialects.openai.sampling import (
    ranged,
    take_bias,
    take_repetition,
    take_seed,
    take_stop,
    take_stream_options,
)
from xenoglot.errors import WireError
from xenoglot.model.content import Extra
from xenoglot.model.request import Prompt, Request, Sampling

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

_UNLIMITED = -1
"""Said for `max_tokens` to servers of local models (llama.cpp, LM Studio): nothing but the model ends the answer."""


def decode_request(body: JSON) -> Request:
    """Return the canonical request.

    Raises:
        WireError: a field is missing, of a wrong type or out of range.
    """
    reader = Reader(body)
    form: JSONObject = {}
    model = reader.need("model", str)
    prompt = Prompt(
        texts=_take_texts(reader, form),
        suffix=reader.take("suffix", str),
        echo=reader.take("echo", bool),
        best_of=ranged(reader, "best_of", int, 1, MOST_CANDIDATES),
    )
    sampling = _decode_sampling(reader, form)
    stream_usage = take_stream_options(reader, form)
    stream = reader.take("stream", bool)
    form["unstreamed"] = stream is False
    return Request(
        model=model,
        prompt=prompt,
        sampling=sampling,
        stream=stream is True,
        stream_usage=stream_usage,
        user=reader.take("user", str),
        extra=extra_of(reader, form) or Extra(dialect=NAME),
    )


def _decode_sampling(reader: Reader, form: JSONObject) -> Sampling:
    logprobs, top = _take_logprobs(reader, form)
    return Sampling(
        max_tokens=_take_max_tokens(reader, form),
        temperature=ranged(reader, "temperature", float, 0, 2),
        top_p=ranged(reader, "top_p", float, 0, 1),
        top_k=ranged(reader, "top_k", int, -1, MOST_TOKENS),
        min_p=ranged(reader, "min_p", float, 0, 1),
        seed=take_seed(reader),
        frequency_penalty=ranged(reader, "frequency_penalty", float, -2, 2),
        presence_penalty=ranged(reader, "presence_penalty", float, -2, 2),
        repetition_penalty=take_repetition(reader, form),
        logit_bias=take_bias(reader, form),
        logprobs=logprobs,
        top_logprobs=top,
        stop=take_stop(reader, form),
        n=ranged(reader, "n", int, 1, MOST_CANDIDATES),
    )


def _take_max_tokens(reader: Reader, form: JSONObject) -> int | None:
    limit: int | None = ranged(reader, "max_tokens", int, _UNLIMITED, MOST_TOKENS)
    form["unlimited"] = limit == _UNLIMITED
    return None if limit == _UNLIMITED else limit


def _take_logprobs(reader: Reader, form: JSONObject) -> tuple[bool | None, int | None]:
    """Take how many alternatives are wanted; some clients say only whether. vLLM's -1 (all there are) stays."""
    said = reader.take_if("logprobs", bool)
    if said is not None:
        form["logprobs"] = "bool"
        return said, None
    if reader.peek("logprobs") == -1:
        return None, None
    count: int | None = ranged(reader, "logprobs", int, 0, MOST_CANDIDATES)
    return (None, None) if count is None else (True, count)


def _take_texts(reader: Reader, form: JSONObject) -> tuple[str | tuple[int, ...], ...]:
    """Take `prompt`: a text, its tokens, or a list of either. None at all is the start of a document."""
    value, path = reader.take_any("prompt"), reader.at("prompt")
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list):
        raise expected(path, "str or list", value)
    if not value:
        raise WireError(path, "expected at least one text or token, found none")
    if type(value[0]) is int:
        return (_tokens(value, path),)
    form["prompt"] = len(value) == 1
    return tuple(_text(item, f"{path}[{index}]") for index, item in enumerate(value))


def _text(item: JSON, path: str) -> str | tuple[int, ...]:
    if isinstance(item, str):
        return item
    if not isinstance(item, list):
        raise expected(path, "str or list of tokens", item)
    return _tokens(item, path)


def _tokens(items: list[JSON], path: str) -> tuple[int, ...]:
    if not items:
        raise WireError(path, "expected at least one token, found none")
    for index, item in enumerate(items):
        if type(item) is not int or item < 0:
            raise WireError(f"{path}[{index}]", "expected the number of a token")
    return tuple(items)
