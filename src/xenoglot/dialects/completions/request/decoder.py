"""Decodes requests."""

from __future__ import annotations

from xenoglot.codec.reader import Reader, expected
from xenoglot.codec.requests.checks import MOST_CANDIDATES, taken
from xenoglot.dialects.completions.extras import NAME, extra_of
from xenoglot.dialects.completions.request.fields import PROMPT, REQUEST, SAMPLING
from xenoglot.dialects.openai.sampling import TEXTS, take_stream_options
from xenoglot.errors import WireError
from xenoglot.model.content import Extra
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import Prompt, Request, Sampling


def decode_request(body: JSON) -> Request:
    """Return the canonical request.

    Raises:
        WireError: a field is missing, of a wrong type or out of range.
    """
    reader = Reader(body)
    form: JSONObject = {}
    model = reader.need("model", str)
    prompt = Prompt(texts=_take_texts(reader, form), **PROMPT.read(reader, form))
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
        **REQUEST.read(reader, form),
        extra=extra_of(reader, form) or Extra(dialect=NAME),
    )


def _decode_sampling(reader: Reader, form: JSONObject) -> Sampling:
    logprobs, top = _take_logprobs(reader, form)
    return Sampling(logprobs=logprobs, top_logprobs=top, **SAMPLING.read(reader, form))


def _take_logprobs(reader: Reader, form: JSONObject) -> tuple[bool | None, int | None]:
    """Take how many alternatives are wanted; some clients send only whether. vLLM's -1 (all there are) stays."""
    said = reader.take_if("logprobs", bool)
    if said is not None:
        form["logprobs"] = "bool"
        return said, None
    if reader.peek("logprobs") == -1:
        return None, None
    count: int | None = taken(reader, "logprobs", int, 0, MOST_CANDIDATES, TEXTS.out_of_range)
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
