"""`POST /api/embed`, and `POST /api/embeddings`, which it replaced.

Sources: `EmbedRequest`, `EmbedResponse`, `EmbeddingRequest` and `EmbeddingResponse` in `api/types.go`, and
`docs/api.md`. The older one takes one text, and answers without a count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.features.operation import EMBED, OperationForm, decode_vector, texts_of
from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader, expected
from xenoglot.errors import WireError
from xenoglot.model.embedding import EmbeddingRequest, Embeddings
from xenoglot.model.response import Usage

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSON, JSONObject

EMBED_NAME, EMBEDDINGS = "ollama_embed", "ollama_embeddings"

_TEXTS = "this model's server embeds texts"


def decode_embed_request(value: JSON) -> EmbeddingRequest:
    """Return the request in `value`; an empty text is none at all, as it is for the server.

    Raises:
        WireError: a field is missing, or of the wrong type.
    """
    reader = Reader(value)
    model, form = reader.need("model", str), {}
    given = reader.peek("input")
    if isinstance(given, str) or given is None:
        inputs: tuple[str, ...] = (given,) if given else ()
        form["input"] = reader.take("input", str)
    elif isinstance(given, list):
        inputs = reader.strings("input") or ()
    else:
        raise expected(reader.at("input"), "str or list", given)
    truncate = reader.take("truncate", bool)
    if truncate is None:
        form["truncate"] = "unsaid"
    dimensions = reader.take("dimensions", int) or None
    if dimensions is not None and dimensions < 0:
        raise WireError(reader.at("dimensions"), "expected at least 1")
    return EmbeddingRequest(
        model=model,
        inputs=inputs,
        dimensions=dimensions,
        truncate=truncate is not False,
        extra=reader.extra(EMBED_NAME, **form),
    )


def encode_embed_request(request: EmbeddingRequest, losses: Losses) -> JSONObject:
    """Return the request as the wire has it.

    Raises:
        WireError: an input is no text.
    """
    form = form_of(request.extra, EMBED_NAME)
    body: JSONObject = {"model": request.model}
    if "input" in form:
        body["input"] = form["input"]
    elif request.inputs or not form:
        body["input"] = texts_of(request, _TEXTS)
    if "truncate" not in form:
        body["truncate"] = bool(request.truncate)  # the server's own default is to cut
    if request.dimensions is not None:
        body["dimensions"] = request.dimensions
    return body | losses.carry(request.extra, "$", EMBED_NAME)


def decode_embed_response(body: JSON) -> Embeddings:
    """Return the vectors in `body`.

    Raises:
        WireError: they are missing, or are none.
    """
    reader = Reader(body)
    path = reader.at("embeddings")
    found = reader.need("embeddings", list)
    vectors = tuple(decode_vector(value, f"{path}[{index}]") for index, value in enumerate(found))
    tokens = reader.count("prompt_eval_count")
    usage = None if tokens is None else Usage(input_tokens=tokens)
    return Embeddings(vectors=vectors, model=reader.take_if("model", str), usage=usage, extra=reader.extra(EMBED_NAME))


def encode_embed_response(embeddings: Embeddings, request: EmbeddingRequest, losses: Losses) -> JSONObject:
    """Return the answer for the client that sent `request`."""
    vectors: list[JSON] = [list(vector) for vector in embeddings.vectors]
    body: JSONObject = {"model": embeddings.model or request.model, "embeddings": vectors}
    usage = embeddings.usage
    if usage is not None and usage.input_tokens is not None:
        body["prompt_eval_count"] = usage.input_tokens
    return body | losses.carry(embeddings.extra, "$", EMBED_NAME)


def decode_older_request(value: JSON) -> EmbeddingRequest:
    """Return the request in `value`; without a prompt it only has the model loaded.

    Raises:
        WireError: a field is missing, or of the wrong type.
    """
    reader = Reader(value)
    model, prompt = reader.need("model", str), reader.take("prompt", str)
    inputs = (prompt,) if prompt else ()
    extra = reader.extra(EMBEDDINGS, prompt=prompt if not prompt else None)
    return EmbeddingRequest(model=model, inputs=inputs, truncate=True, extra=extra)


def encode_older_request(request: EmbeddingRequest, losses: Losses) -> JSONObject:
    """Return the request as the wire has it.

    Raises:
        WireError: it has several inputs, or one that is no text.
    """
    texts = texts_of(request, _TEXTS)
    if len(texts) > 1:
        raise WireError("$.input", f"expected one text, got {len(texts)}")
    body: JSONObject = {"model": request.model} | form_of(request.extra, EMBEDDINGS)
    if texts:
        body["prompt"] = texts[0]
    if request.dimensions is not None:
        losses.dropped("$", "dimensions", "the endpoint has no such field")
    if request.truncate is False:
        losses.dropped("$", "truncate", "the endpoint has no such field")
    return body | losses.carry(request.extra, "$", EMBEDDINGS)


def decode_older_response(body: JSON) -> Embeddings:
    """Return the vector in `body`; there is none if there was no prompt.

    Raises:
        WireError: it is none.
    """
    reader = Reader(body)
    vector = decode_vector(reader.need("embedding", list), reader.at("embedding"))
    return Embeddings(vectors=(vector,) if vector else (), extra=reader.extra(EMBEDDINGS))


def encode_older_response(embeddings: Embeddings, request: EmbeddingRequest, losses: Losses) -> JSONObject:  # noqa: ARG001  the record's form
    """Return the answer; clients of this endpoint receive no count."""
    vector: list[JSON] = [*embeddings.vectors[0]] if embeddings.vectors else []
    return {"embedding": vector, **losses.carry(embeddings.extra, "$", EMBEDDINGS)}


FORMS = (
    OperationForm(
        operation=EMBED,
        name=EMBED_NAME,
        path="/api/embed",
        decode_request=decode_embed_request,
        encode_request=encode_embed_request,
        decode_response=decode_embed_response,
        encode_response=encode_embed_response,
    ),
    OperationForm(
        operation=EMBED,
        name=EMBEDDINGS,
        path="/api/embeddings",
        decode_request=decode_older_request,
        encode_request=encode_older_request,
        decode_response=decode_older_response,
        encode_response=encode_older_response,
    ),
)
