"""`:batchEmbedContents` and `:embedContent` (https://ai.google.dev/api/embeddings): many contents, or one.

A content that is one text is a text; any other (several parts, an image) exists in this dialect only. Fields of one
content alone (`taskType`, `title`) are carried under its place: `requests[0].title`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.features.operation import EMBED, OperationForm, decode_vector
from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader, expected
from xenoglot.dialects.gemini.request.aliases import plain, sent_paths
from xenoglot.errors import WireError
from xenoglot.model.content import Opaque
from xenoglot.model.embedding import EmbeddingRequest, Embeddings
from xenoglot.model.response import Usage

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.dialects.gemini.request.aliases import Shape
    from xenoglot.model.embedding import Input, Vector
    from xenoglot.model.json import JSON, JSONObject

NAME = "gemini_embeddings"

_MODELS = "/v1beta/models"
_PREFIX = "models/"
_ONE: Shape = {"content": {"parts": [{}]}}
_MANY: Shape = {"requests": [_ONE]}


def decode_batch_request(value: JSON) -> EmbeddingRequest:
    """Return the request in `value`.

    Raises:
        WireError: a field is missing or of the wrong type, or the contents are to be treated differently.
    """
    if not isinstance(value, dict):
        raise expected("$", "object", value)
    body, note = plain(value, _MANY)
    with sent_paths(note):
        return _decoded_batch(Reader(body))


def _decoded_batch(reader: Reader) -> EmbeddingRequest:
    model = reader.need("model", str)
    inputs: list[Input] = []
    roles: JSONObject = {}
    sizes: list[int | None] = []
    carried: JSONObject = {}
    for index, item in enumerate(reader.objects("requests")):
        inputs.append(_take_content(item, roles, str(index)))
        sizes.append(_take_size(item))
        _take_model(item, model)
        carried |= {f"requests[{index}].{name}": one for name, one in item.rest().items()}
    if len(set(sizes)) > 1:
        raise WireError(reader.at("requests"), "expected the same `outputDimensionality` in all")
    reader.rest().update(carried)
    extra = reader.extra(NAME, roles=roles or None)
    return EmbeddingRequest(model=model, inputs=tuple(inputs), dimensions=sizes[0] if sizes else None, extra=extra)


def encode_batch_request(request: EmbeddingRequest, losses: Losses) -> JSONObject:
    """Return the request as the wire has it.

    Raises:
        WireError: an input is of a kind that only another dialect has.
    """
    own = dict(losses.carry(request.extra, "$", NAME))
    items = [_item(request, index, own) for index in range(len(request.inputs))]
    _note_truncation(request, losses)
    return {"model": request.model, "requests": items, **own}


def decode_batch_response(body: JSON) -> Embeddings:
    """Return the vectors in `body`.

    Raises:
        WireError: they are missing or malformed.
    """
    reader = Reader(body)
    vectors = tuple(_vector(item) for item in reader.objects("embeddings"))
    return Embeddings(vectors=vectors, usage=_take_usage(reader), extra=reader.extra(NAME))


def encode_batch_response(embeddings: Embeddings, request: EmbeddingRequest, losses: Losses) -> JSONObject:  # noqa: ARG001  the record's form
    """Return the answer for the client that sent a batch."""
    found: list[JSON] = [{"values": list(vector)} for vector in embeddings.vectors]
    return {"embeddings": found} | _usage(embeddings) | losses.carry(embeddings.extra, "$", NAME)


def decode_one_request(value: JSON) -> EmbeddingRequest:
    """Return the request in `value`, which has one content.

    Raises:
        WireError: a field is missing or of the wrong type.
    """
    if not isinstance(value, dict):
        raise expected("$", "object", value)
    body, note = plain(value, _ONE)
    with sent_paths(note):
        return _decoded_one(Reader(body))


def _decoded_one(reader: Reader) -> EmbeddingRequest:
    model = reader.need("model", str)
    roles: JSONObject = {}
    inputs = (_take_content(reader, roles, "0"),)
    size = _take_size(reader)
    return EmbeddingRequest(model=model, inputs=inputs, dimensions=size, extra=reader.extra(NAME, roles=roles or None))


def encode_one_request(request: EmbeddingRequest, losses: Losses) -> JSONObject:
    """Return the request as the wire has it.

    Raises:
        WireError: it has not one input, or that is of a kind that only another dialect has.
    """
    if len(request.inputs) != 1:
        raise WireError("$.input", f"expected one content, got {len(request.inputs)}")
    own = losses.carry(request.extra, "$", NAME)
    _note_truncation(request, losses)
    return {**_item(request, 0, {}), "model": request.model, **own}


def decode_one_response(body: JSON) -> Embeddings:
    """Return the vector in `body`.

    Raises:
        WireError: it is missing or malformed.
    """
    reader = Reader(body)
    item = reader.object("embedding")
    if item is None:
        raise WireError(reader.at("embedding"), "required, expected object")
    return Embeddings(vectors=(_vector(item),), usage=_take_usage(reader), extra=reader.extra(NAME))


def encode_one_response(embeddings: Embeddings, request: EmbeddingRequest, losses: Losses) -> JSONObject:  # noqa: ARG001  the record's form
    """Return the answer for the client that sent one content."""
    values: list[JSON] = [*embeddings.vectors[0]] if embeddings.vectors else []
    return {"embedding": {"values": values}} | _usage(embeddings) | losses.carry(embeddings.extra, "$", NAME)


def _take_content(item: Reader, roles: JSONObject, place: str) -> Input:
    """Take `content`; its `role` is put into `roles` if it is set."""
    content = item.need("content", dict)
    match content:
        case {"parts": [{"text": str(text), **nothing}], **rest} if not nothing and set(rest) <= {"role"}:
            if "role" in rest:
                roles[place] = rest["role"]
            return text
        case {"parts": list(parts)} if parts:
            return Opaque(dialect=NAME, data=content)
        case _:
            raise expected(f"{item.at('content')}.parts", "list of parts", content.get("parts"))


def _take_size(item: Reader) -> int | None:
    size = item.take("outputDimensionality", int)
    if size is not None and size < 1:
        raise WireError(item.at("outputDimensionality"), f"expected at least 1, got {size}")
    return size


def _take_model(item: Reader, model: str) -> None:
    """Take the name of the model, which has to be that of the path."""
    named = item.take("model", str)
    if named is not None and named.removeprefix(_PREFIX) != model.removeprefix(_PREFIX):
        raise WireError(item.at("model"), "is another model than the one in the path")


def _item(request: EmbeddingRequest, index: int, own: JSONObject) -> JSONObject:
    """Return one content with its own fields, which are taken out of `own`."""
    item: JSONObject = {"model": _PREFIX + request.model.removeprefix(_PREFIX), "content": _content(request, index)}
    if request.dimensions is not None:
        item["outputDimensionality"] = request.dimensions
    place = f"requests[{index}]."
    for name in [name for name in own if name.startswith(place)]:
        item[name.removeprefix(place)] = own.pop(name)
    return item


def _content(request: EmbeddingRequest, index: int) -> JSON:
    roles = form_of(request.extra, NAME).get("roles", {})
    role = {"role": roles[str(index)]} if str(index) in roles else {}
    match request.inputs[index]:
        case str(text):
            return {"parts": [{"text": text}], **role}
        case Opaque(dialect=dialect, data=data) if dialect == NAME:
            return data
        case _:
            raise WireError(
                f"$.input[{index}]", "expected a text: this model's server knows no other tokens or dialects"
            )


def _note_truncation(request: EmbeddingRequest, losses: Losses) -> None:
    if request.truncate is False:
        losses.dropped("$", "truncate", "the server cuts texts that are too long")


def _vector(item: Reader) -> Vector:
    return decode_vector(item.need("values", list), item.at("values"))


def _take_usage(reader: Reader) -> Usage | None:
    if not isinstance(reader.peek("usageMetadata"), dict):
        return None
    usage = Reader(reader.take_any("usageMetadata"), reader.at("usageMetadata"))
    return Usage(input_tokens=usage.count("promptTokenCount"), extra=usage.extra(NAME))


def _usage(embeddings: Embeddings) -> JSONObject:
    tokens = None if embeddings.usage is None else embeddings.usage.input_tokens
    return {} if tokens is None else {"usageMetadata": {"promptTokenCount": tokens}}


FORMS = (
    OperationForm(
        operation=EMBED,
        name=NAME,
        path=_MODELS + "/{model}:batchEmbedContents",
        aliases=("/v1/models/{model}:batchEmbedContents",),
        decode_request=decode_batch_request,
        encode_request=encode_batch_request,
        decode_response=decode_batch_response,
        encode_response=encode_batch_response,
    ),
    OperationForm(
        operation=EMBED,
        name=NAME,
        path=_MODELS + "/{model}:embedContent",
        aliases=("/v1/models/{model}:embedContent",),
        decode_request=decode_one_request,
        encode_request=encode_one_request,
        decode_response=decode_one_response,
        encode_response=encode_one_response,
    ),
)
