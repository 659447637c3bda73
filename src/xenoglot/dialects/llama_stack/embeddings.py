"""`POST /v1/inference/embeddings` (version 0.2): contents that are texts, or lists of texts.

Source: `Inference.embeddings` and `EmbeddingsResponse` in `llama_stack/apis/inference/inference.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.features.operation import EMBED, OperationForm, decode_vector, texts_of
from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader, expected
from xenoglot.errors import WireError
from xenoglot.model.content import Opaque
from xenoglot.model.embedding import EmbeddingRequest, Embeddings

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.model.embedding import Input
    from xenoglot.model.json import JSON, JSONObject

NAME = "llama_stack_embeddings"

_CUTS = ("none", "start", "end")
"""`TextTruncation`: not at all, or at which end; only the end is what others mean by it."""


def decode_request(value: JSON) -> EmbeddingRequest:
    """Return the request in `value`.

    Raises:
        WireError: a field is missing, or of the wrong type.
    """
    reader = Reader(value)
    model = reader.need("model_id", str)
    path = reader.at("contents")
    contents = reader.need("contents", list)
    inputs = tuple(_input(one, f"{path}[{index}]") for index, one in enumerate(contents))
    cut = reader.take_word("text_truncation", _CUTS)
    dimensions = reader.take("output_dimension", int)
    if dimensions is not None and dimensions < 1:
        raise WireError(reader.at("output_dimension"), f"expected at least 1, got {dimensions}")
    return EmbeddingRequest(
        model=model,
        inputs=inputs,
        dimensions=dimensions,
        truncate=None if cut is None else cut != "none",
        extra=reader.extra(NAME, text_truncation=cut),
    )


def encode_request(request: EmbeddingRequest, losses: Losses) -> JSONObject:
    """Return the request as the wire has it.

    Raises:
        WireError: an input is of a kind that only another dialect has.
    """
    own = all(isinstance(one, str) or (isinstance(one, Opaque) and one.dialect == NAME) for one in request.inputs)
    contents: list[JSON] = [one.data if isinstance(one, Opaque) else one for one in request.inputs]
    if not own:
        contents = [*texts_of(request, "this model's server embeds texts")]
    body: JSONObject = {"model_id": request.model, "contents": contents}
    if request.dimensions is not None:
        body["output_dimension"] = request.dimensions
    if request.truncate is not None:
        said = form_of(request.extra, NAME).get("text_truncation")
        body["text_truncation"] = said or ("end" if request.truncate else "none")
    return body | losses.carry(request.extra, "$", NAME)


def decode_response(body: JSON) -> Embeddings:
    """Return the vectors in `body`.

    Raises:
        WireError: they are missing, or are none.
    """
    reader = Reader(body)
    path = reader.at("embeddings")
    found = reader.need("embeddings", list)
    vectors = tuple(decode_vector(value, f"{path}[{index}]") for index, value in enumerate(found))
    return Embeddings(vectors=vectors, extra=reader.extra(NAME))


def encode_response(embeddings: Embeddings, request: EmbeddingRequest, losses: Losses) -> JSONObject:  # noqa: ARG001  the record's form
    """Return the answer; the wire has no place for counts."""
    found: list[JSON] = [list(vector) for vector in embeddings.vectors]
    return {"embeddings": found, **losses.carry(embeddings.extra, "$", NAME)}


def _input(value: JSON, path: str) -> Input:
    """Return one content: a text, a text as an item, or what is neither."""
    match value:
        case str():
            return value
        case {"type": "text" | "image"}:
            return Opaque(dialect=NAME, data=value) if set(value) != {"type", "text"} else _text(value, path)
        case _:
            raise expected(path, "str or item", value)


def _text(item: JSONObject, path: str) -> str:
    return Reader(item, path).need("text", str)


FORM = OperationForm(
    operation=EMBED,
    name=NAME,
    path="/v1/inference/embeddings",
    decode_request=decode_request,
    encode_request=encode_request,
    decode_response=decode_response,
    encode_response=encode_response,
)
