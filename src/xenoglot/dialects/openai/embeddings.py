"""`POST /v1/embeddings`, an endpoint that all of OpenAI's dialects share.

Source: https://developers.openai.com/api/docs/api-reference/embeddings.
"""

from __future__ import annotations

import base64
import binascii
import sys
from array import array
from typing import TYPE_CHECKING, Annotated

from msgspec import DecodeError, Meta, Raw, Struct
from msgspec.json import Decoder

from xenoglot.codec.features.operation import EMBED, OperationForm, checked, decode_vector
from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader, expected
from xenoglot.errors import WireError
from xenoglot.model.content import Opaque
from xenoglot.model.embedding import EmbeddingRequest, Embeddings
from xenoglot.model.response import Usage
from xenoglot.shortcuts import shortcut

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.model.embedding import Input, Vector
    from xenoglot.model.json import JSON, JSONObject

NAME = "embeddings"

_FORMATS = ("float", "base64")
_SINGLE = 4
"""Bytes of a number in base64: IEEE 754 single precision, little-endian."""


def decode_request(value: JSON) -> EmbeddingRequest:
    """Return the request in `value`.

    Raises:
        WireError: a field is missing, of the wrong type or out of its range.
    """
    reader = Reader(value)
    model = reader.need("model", str)
    form: JSONObject = {}
    inputs = _take_inputs(reader, form)
    dimensions = reader.take("dimensions", int)
    if dimensions is not None and dimensions < 1:
        raise WireError(reader.at("dimensions"), f"expected at least 1, got {dimensions}")
    spelled = reader.take("encoding_format", str)
    if spelled is not None and spelled not in _FORMATS:
        raise WireError(reader.at("encoding_format"), "expected `float` or `base64`")
    extra = reader.extra(NAME, encoding_format=spelled, **form)
    return EmbeddingRequest(model=model, inputs=inputs, dimensions=dimensions, extra=extra)


def encode_request(request: EmbeddingRequest, losses: Losses) -> JSONObject:
    """Return the request as the wire has it.

    Raises:
        WireError: an input is of a kind that only another dialect has.
    """
    for index, one in enumerate(request.inputs):
        if isinstance(one, Opaque):
            raise WireError(f"$.input[{index}]", f"expected a text or tokens: only {one.dialect} has others")
    form = form_of(request.extra, NAME)
    inputs: list[JSON] = [list(one) if isinstance(one, tuple) else one for one in request.inputs]
    body: JSONObject = {"model": request.model, "input": inputs[0] if "input" in form else inputs}
    if request.dimensions is not None:
        body["dimensions"] = request.dimensions
    if "encoding_format" in form:
        body["encoding_format"] = form["encoding_format"]
    if request.truncate:
        losses.dropped("$", "truncate", "the server refuses texts that are too long")
    return body | losses.carry(request.extra, "$", NAME)


def decode_response(body: JSON) -> Embeddings:
    """Return the vectors in `body`, in the order of the inputs, whichever of the two ways they are written.

    Raises:
        WireError: they are missing, or are none.
    """
    reader = Reader(body)
    reader.take_if("object", str)
    found: dict[int, Vector] = {}
    strange: JSONObject = {}
    for place, item in enumerate(reader.objects("data")):
        item.take_if("object", str)
        index = item.count("index")
        found[place if index is None else index] = _vector(item)
        strange |= {f"data[{place}].{name}": value for name, value in item.rest().items() if value is not None}
    if sorted(found) != [*range(len(found))]:
        raise WireError(reader.at("data"), "the vectors' numbers are not those of the inputs")
    model, usage = reader.take_if("model", str), _take_usage(reader)
    reader.rest().update(strange)
    vectors = tuple(found[index] for index in range(len(found)))
    return Embeddings(vectors=vectors, model=model, usage=usage, extra=reader.extra(NAME))


def encode_response(embeddings: Embeddings, request: EmbeddingRequest, losses: Losses) -> JSONObject:
    """Return the answer for the client that sent `request`, in the requested encoding."""
    packed = form_of(request.extra, NAME).get("encoding_format") == "base64"
    data: list[JSON] = [
        {"object": "embedding", "index": index, "embedding": _packed(vector) if packed else list(vector)}
        for index, vector in enumerate(embeddings.vectors)
    ]
    body: JSONObject = {"object": "list", "data": data, "model": embeddings.model or request.model}
    usage = embeddings.usage
    tokens = None if usage is None else usage.input_tokens
    if tokens is not None:
        body["usage"] = {"prompt_tokens": tokens, "total_tokens": tokens}
    return body | losses.carry(embeddings.extra, "$", NAME)


class _Tokens(Struct, gc=False, forbid_unknown_fields=True):
    prompt_tokens: Annotated[int, Meta(ge=0, lt=2**53)]
    total_tokens: Annotated[int, Meta(ge=0, lt=2**53)] | None = None


class _Answer(Struct, gc=False):
    data: Raw
    object: str
    model: str
    usage: _Tokens
    error: None = None


_decode = Decoder(_Answer).decode


@shortcut("usage")
def glimpse(data: bytes) -> Embeddings | None:
    """Return the usage of the answer in `data`, without its vectors; `None` if anything else is unusual."""
    try:
        answer = _decode(data)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if memoryview(answer.data)[0] != ord("["):
        return None
    tokens, total = answer.usage.prompt_tokens, answer.usage.total_tokens
    usage = Usage(input_tokens=tokens, total=total if total != tokens else None)
    return Embeddings(vectors=(), model=answer.model, usage=usage)


def _take_inputs(reader: Reader, form: JSONObject) -> tuple[Input, ...]:
    """Take `input`: a text, its tokens, or a list of either; `form` gets whether it was one alone."""
    value = reader.take_any("input")
    path = reader.at("input")
    if value is None:
        raise WireError(path, "required, expected str or list")
    if isinstance(value, str):
        form["input"] = "one"
        return (value,)
    if not isinstance(value, list):
        raise expected(path, "str or list", value)
    if not value:
        raise WireError(path, "is empty")
    if type(value[0]) is int:
        form["input"] = "one"
        return (_tokens(value, path),)
    return tuple(_input(item, f"{path}[{index}]") for index, item in enumerate(value))


def _input(value: JSON, path: str) -> Input:
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise expected(path, "str or list", value)
    return _tokens(value, path)


def _tokens(value: list[JSON], path: str) -> tuple[int, ...]:
    for index, token in enumerate(value):
        if type(token) is not int:
            raise expected(f"{path}[{index}]", "int", token)
    return tuple(value)


def _vector(item: Reader) -> Vector:
    value, path = item.take_any("embedding"), item.at("embedding")
    return _unpacked(value, path) if isinstance(value, str) else decode_vector(value, path)


def _packed(vector: Vector) -> str:
    return base64.b64encode(_little(array("f", vector)).tobytes()).decode()


def _unpacked(text: str, path: str) -> Vector:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise WireError(path, "is not base64") from None
    if len(data) % _SINGLE:
        raise WireError(path, "is not a whole number of single-precision numbers")
    return checked(tuple(_little(array("f", data))), path)


def _little(numbers: array[float]) -> array[float]:
    """Return numbers of this machine in the order of the wire, or the other way round."""
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _take_usage(reader: Reader) -> Usage | None:
    if not isinstance(reader.peek("usage"), dict):
        return None
    usage = Reader(reader.take_any("usage"), reader.at("usage"))
    tokens, total = usage.count("prompt_tokens"), usage.count("total_tokens")
    said = total if total != tokens else None
    return Usage(input_tokens=tokens, total=said, extra=usage.extra(NAME))


EMBEDDINGS = OperationForm(
    operation=EMBED,
    name=NAME,
    path="/v1/embeddings",
    aliases=("/v1/openai/v1/embeddings",),  # where Llama Stack's client asks (version 0.2)
    decode_request=decode_request,
    encode_request=encode_request,
    decode_response=decode_response,
    encode_response=encode_response,
    glimpse=glimpse,
)
