"""`POST /v1/rerank`, `/v2/rerank` and `/rerank`: documents ranked by their relevance to a query.

`/v1/rerank` is the form that Cohere's version 1, Jina, vLLM and llama-server have in common; `/v2/rerank` that of
Cohere's version 2, which takes texts alone and returns no documents; `/rerank` with `texts` that of Hugging Face's
text-embeddings-inference (TEI), which llama-server understands too. Servers have `/v1/rerank` unless their
`operation_paths` name another.

Sources: https://docs.cohere.com/v1/reference/rerank, https://docs.cohere.com/reference/rerank,
https://docs.vllm.ai/en/stable/serving/openai_compatible_server.html, https://jina.ai/reranker,
https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md,
https://github.com/huggingface/text-embeddings-inference/blob/main/router/src/http/types.rs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from xenoglot.codec.features.operation import Operation, OperationForm
from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader, expected
from xenoglot.errors import WireError
from xenoglot.model.content import Opaque
from xenoglot.model.rerank import Ranking, RerankRequest, RerankResult
from xenoglot.model.response import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.codec.loss import Losses
    from xenoglot.model.embedding import Input
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.rerank import Document

NAME: Final = "rerank"
TEI: Final = "rerank_tei"

_RESULT_BYTES: Final = 64
"""Bytes of a result without its document, approximately."""


def decode_request(value: JSON) -> RerankRequest:
    """Return the request in `value`, which is of version 1, or has TEI's `texts`.

    Raises:
        WireError: a field is missing, of the wrong type or out of its range.
    """
    reader = Reader(value)
    if "texts" in reader and "documents" not in reader:
        return _decode_texts(reader)
    model, query = reader.need("model", str), _document(reader.take_any("query"), reader.at("query"))
    given, path = reader.need("documents", list), reader.at("documents")
    if not given:
        raise WireError(path, "is empty")
    return RerankRequest(
        model=model,
        query=query,
        documents=tuple(_document(one, f"{path}[{index}]") for index, one in enumerate(given)),
        top_n=_count(reader, "top_n"),
        return_documents=reader.take("return_documents", bool),
        max_tokens=_count(reader, "max_tokens_per_doc"),
        rank_fields=reader.strings("rank_fields"),
        extra=reader.extra(NAME),
    )


def encode_request(request: RerankRequest, losses: Losses) -> JSONObject:
    """Return the request in the form of version 1."""
    if request.truncate is not None:
        losses.dropped("$", "truncate", "the server decides what it does with texts that are too long")
    fields: JSONObject = {
        "return_documents": request.return_documents,
        "rank_fields": None if request.rank_fields is None else list(request.rank_fields),
    }
    documents: list[JSON] = [_encoded(document) for document in request.documents]
    return _encode(request, _encoded(request.query), documents, fields) | losses.carry(request.extra, "$", NAME)


def decode_v2_request(value: JSON) -> RerankRequest:
    """Return the request in `value`, which is of version 2.

    Raises:
        WireError: as `decode_request`.
    """
    return decode_request(value)


def encode_v2_request(request: RerankRequest, losses: Losses) -> JSONObject:
    """Return the request in the form of version 2. Documents are added to the results here.

    Raises:
        WireError: a document or the query has no text.
    """
    if request.truncate is not None:
        losses.dropped("$", "truncate", "the server reads as much of a text as `max_tokens_per_doc` allows")
    texts: list[JSON] = [*_texts(request, losses)]
    return _encode(request, _text(request.query, "$.query"), texts, {}) | losses.carry(request.extra, "$", NAME)


def encode_texts_request(request: RerankRequest, losses: Losses) -> JSONObject:
    """Return the request in TEI's form. The results are cut, and documents added to them, here.

    Raises:
        WireError: a document or the query has no text.
    """
    if request.max_tokens is not None:
        losses.dropped("$", "max_tokens", "the server has one limit for all texts")
    body: JSONObject = {"query": _text(request.query, "$.query"), "texts": [*_texts(request, losses)]}
    if request.truncate is not None:
        body["truncate"] = request.truncate
    return body | losses.carry(request.extra, "$", TEI)


def decode_response(body: JSON) -> Ranking:
    """Return the ranking in `body`, in the form of version 1 or 2.

    Raises:
        WireError: it is none.
    """
    reader = Reader(body)
    reader.take_if("object", str)
    if not isinstance(reader.peek("results"), list):
        raise WireError(reader.at("results"), "required, expected list")
    results = tuple(_ranked(item, NAME, "relevance_score", "document") for item in reader.objects("results"))
    meta = reader.peek("meta")
    return Ranking(
        results=results,
        id=reader.take_if("id", str),
        model=reader.take_if("model", str),
        usage=_take_usage(reader, meta),
        search_units=_search_units(meta),
        extra=reader.extra(NAME),
    )


def decode_texts_response(body: JSON) -> Ranking:
    """Return the ranking in `body`, in TEI's form.

    Raises:
        WireError: it is none.
    """
    if not isinstance(body, list):
        raise expected("$", "list", body)
    items = (Reader(item, f"$[{index}]") for index, item in enumerate(body))
    return Ranking(results=tuple(_ranked(item, TEI, "score", "text") for item in items))


def encode_response(ranking: Ranking, request: RerankRequest, losses: Losses) -> JSON:
    """Return the ranking in the form of version 1, or of TEI if the request is."""
    if _is_tei(request):
        return _encode_texts(ranking, request, losses)
    body: JSONObject = {"id": ranking.id} if ranking.id is not None else {}
    body |= {"model": ranking.model or request.model, "results": _results(ranking, request, losses)}
    if (tokens := _tokens(ranking)) is not None:
        body["usage"] = {"prompt_tokens": tokens, "total_tokens": tokens}
    return body | losses.carry(ranking.extra, "$", NAME)


def encode_v2_response(ranking: Ranking, request: RerankRequest, losses: Losses) -> JSON:
    """Return the ranking in the form of version 2, or of TEI if the request is."""
    if _is_tei(request):
        return _encode_texts(ranking, request, losses)
    body: JSONObject = {"id": ranking.id} if ranking.id is not None else {}
    body |= {"results": _results(ranking, request, losses)} | losses.carry(ranking.extra, "$", NAME)
    if (tokens := _tokens(ranking)) is not None and "meta" not in body:
        body["meta"] = {"tokens": {"input_tokens": tokens}}
    return body


def _encode_texts(ranking: Ranking, request: RerankRequest, losses: Losses) -> JSON:
    losses.carry(ranking.extra, "$", TEI)
    found: list[JSON] = []
    for one in _ordered(ranking, request):
        document = _shown(one, request)
        path = f"$.results[{len(found)}]"
        text = {} if document is None else {"text": _text(document, path)}
        found.append({"index": one.index, **text, "score": one.score, **losses.carry(one.extra, path, TEI)})
    return found


def _decode_texts(reader: Reader) -> RerankRequest:
    texts = reader.strings("texts") or ()
    if not texts:
        raise WireError(reader.at("texts"), "is empty")
    return RerankRequest(
        model=reader.need("model", str),
        query=reader.need("query", str),
        documents=texts,
        top_n=_count(reader, "top_n"),
        return_documents=reader.take("return_text", bool) is True,
        truncate=reader.take("truncate", bool),
        extra=reader.extra(TEI, texts=True),
    )


def _is_tei(request: RerankRequest) -> bool:
    return "texts" in form_of(request.extra, TEI)


def _document(value: JSON, path: str) -> Document:
    match value:
        case str():
            return value
        case dict():
            return Opaque(dialect=NAME, data=value)
        case None:
            raise WireError(path, "required, expected str or object")
        case _:
            raise expected(path, "str or object", value)


def _count(reader: Reader, key: str) -> int | None:
    found = reader.take(key, int)
    if found is not None and found < 0:
        raise WireError(reader.at(key), f"expected at least 0, got {found}")
    return found


def _encode(request: RerankRequest, query: JSON, documents: list[JSON], more: JSONObject) -> JSONObject:
    fields = {"top_n": request.top_n, **more, "max_tokens_per_doc": request.max_tokens}
    body: JSONObject = {"model": request.model, "query": query, "documents": documents}
    return body | {name: value for name, value in fields.items() if value is not None}


def _encoded(document: Document) -> JSON:
    return document.data if isinstance(document, Opaque) else document


def _texts(request: RerankRequest, losses: Losses) -> Iterator[str]:
    """Yield the documents as texts; an object becomes the fields to rank by."""
    for index, document in enumerate(request.documents):
        path = f"$.documents[{index}]"
        if request.rank_fields is None or not isinstance(document, Opaque):
            yield _text(document, path)
            continue
        fields = document.data if isinstance(document.data, dict) else {}
        chosen = [name for name in request.rank_fields if name in fields]
        if chosen != ["text"]:
            losses.emulated(path, "rank_fields", "the server takes texts: the fields are written as lines")
            yield "\n".join(f"{name}: {fields[name]}" for name in chosen)
        else:
            yield _text(document, path)


def _text(document: Document, path: str) -> str:
    """Return the text of a document.

    Raises:
        WireError: it has none.
    """
    match document:
        case str():
            return document
        case Opaque(data={"text": str(text)}):
            return text
        case _:
            raise WireError(path, "expected a text, or an object with `text`: this server takes no others")


def _ranked(item: Reader, name: str, score: str, document: str) -> RerankResult:
    index, value = item.need("index", int), item.need(score, float)
    if index < 0 or not math.isfinite(value):
        raise WireError(item.at(score), "expected a number for the document of an index")
    found = item.take_any(document)
    shown = None if found is None else _document(found, item.at(document))
    match shown:
        case Opaque(data={"text": str(text), **rest}) if not rest:
            shown = text
        case _:
            pass
    return RerankResult(index=index, score=value, document=shown, extra=item.extra(name))


def _take_usage(reader: Reader, meta: JSON) -> Usage | None:
    if isinstance(reader.peek("usage"), dict):
        usage = Reader(reader.take_any("usage"), reader.at("usage"))
        prompt, total = usage.count("prompt_tokens"), usage.count("total_tokens")
        return Usage(input_tokens=total if prompt is None else prompt, extra=usage.extra(NAME))
    match meta:
        case {"tokens": {"input_tokens": int() | float() as tokens}}:
            return Usage(input_tokens=int(tokens))
        case {"billed_units": {"input_tokens": int() | float() as tokens}}:
            return Usage(input_tokens=int(tokens))
        case _:
            return None


def _search_units(meta: JSON) -> float | None:
    match meta:
        case {"billed_units": {"search_units": int() | float() as units}}:
            return units
        case _:
            return None


def _tokens(ranking: Ranking) -> int | None:
    return None if ranking.usage is None else ranking.usage.input_tokens


def _ordered(ranking: Ranking, request: RerankRequest) -> list[RerankResult]:
    """Return the results in their order, and as many as are wanted."""
    found = sorted(ranking.results, key=lambda one: -one.score)
    return found[: request.top_n] if request.top_n else found


def _results(ranking: Ranking, request: RerankRequest, losses: Losses) -> list[JSON]:
    found: list[JSON] = []
    for one in _ordered(ranking, request):
        result: JSONObject = {"index": one.index, "relevance_score": one.score}
        document = _shown(one, request)
        if document is not None:
            result["document"] = {"text": document} if isinstance(document, str) else document.data
        found.append(result | losses.carry(one.extra, f"$.results[{len(found)}]", NAME))
    return found


def _shown(one: RerankResult, request: RerankRequest) -> Document | None:
    """Return the document that a result contains: what the server returned, or the client sent, if it is wanted."""
    if request.return_documents is False:
        return None
    return request.documents[one.index] if one.document is None and request.return_documents else one.document


def _check(request: RerankRequest, ranking: Ranking) -> None:
    found = [one.index for one in ranking.results]
    if len(set(found)) < len(found) or max(found, default=-1) >= len(request.documents):
        raise WireError("$.results", "the indexes are not those of the documents")


def _inputs(request: RerankRequest) -> Iterator[Input]:
    """Yield what the model reads: the query with each document."""
    for document in request.documents:
        yield _plain(request.query)
        yield _plain(document)


def _size(ranking: Ranking, request: RerankRequest) -> int:
    documents = sum(len(_plain(document)) for document in request.documents) if request.return_documents else 0
    return documents + sum(_RESULT_BYTES + len(_plain(one.document or "")) for one in ranking.results)


def _plain(document: Document) -> str:
    """Return the text of a document, or of its fields."""
    if isinstance(document, str):
        return document
    return " ".join(map(str, document.data.values())) if isinstance(document.data, dict) else ""


RERANK: Final = Operation[RerankRequest, Ranking](
    name="rerank",
    unable="`{model}` ranks no documents: ask for a reranker",
    inputs=_inputs,
    usage=lambda ranking: ranking.usage,
    size=_size,
    check=_check,
)

FORMS: Final = (
    OperationForm(
        operation=RERANK,
        name=NAME,
        path="/v1/rerank",
        aliases=("/v1/reranking",),
        decode_request=decode_request,
        encode_request=encode_request,
        decode_response=decode_response,
        encode_response=encode_response,
        passes=lambda request: not _is_tei(request),
    ),
    OperationForm(
        operation=RERANK,
        name=NAME,
        path="/v2/rerank",
        optional=True,
        decode_request=decode_v2_request,
        encode_request=encode_v2_request,
        decode_response=decode_response,
        encode_response=encode_v2_response,
        passes=lambda request: not _is_tei(request),
    ),
    OperationForm(
        operation=RERANK,
        name=TEI,
        path="/rerank",
        optional=True,
        decode_request=decode_request,
        encode_request=encode_texts_request,
        decode_response=decode_texts_response,
        encode_response=encode_response,
        passes=_is_tei,
    ),
)
