"""Operations of another server: the client's bytes between the same forms, written anew between others."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from tests.backends.raw_server import leakless, response
from tests.backends.remote.test_backend import KEY, sent, upstream
from xenoglot.backends.operation import (
    EmbeddingAnswer,
    EmbeddingCall,
    OperationCall,
    handler_of,
    need_handler,
    upstream_form,
)
from xenoglot.codec.features.operation import EMBED, TOKENIZE
from xenoglot.codec.loss import Losses
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get
from xenoglot.errors import FailureError, LossError
from xenoglot.model.embedding import EmbeddingRequest, Embeddings
from xenoglot.model.failure import Failure
from xenoglot.model.request import Request
from xenoglot.model.response import Usage
from xenoglot.model.tokens import TokensRequest

if TYPE_CHECKING:
    from xenoglot.codec.features.operation import EmbeddingForm
    from xenoglot.model.json import JSON

OPENAI: EmbeddingForm = get("chat").embeddings[0]
OLLAMA: EmbeddingForm = get("ollama").embeddings[0]
GEMINI: EmbeddingForm = get("gemini").embeddings[0]
BODY = b'{"input": "a",  "model": "m", "x": 1.0}'
ANSWER = (
    b'{"object":"list", "data":[{"object":"embedding","index":0,"embedding":"AACAPw=="}],"model":"big","usage":null}'
)
NO = b'{"error":{"message":"no","type":"invalid_request_error"}}'
VECTORS = Embeddings(vectors=((1.0,),), model="big", extra=None)


def call(form: EmbeddingForm, body: bytes, *, strict: bool = False, model: str | None = None) -> EmbeddingCall:
    """A client's request in `form`, for the model it names or another."""
    request = form.decode_request(json.loads(body))
    renamed = request if model is None else replace(request, model=model)
    return EmbeddingCall(request=renamed, losses=Losses(strict=strict), form=form, body=body)


async def failure_of(*responses: bytes, dialect: str = "chat", asked: EmbeddingCall) -> Failure:
    """What the client is told."""
    async with upstream(*responses, dialect=dialect) as (remote, _):
        with pytest.raises(FailureError) as raised:
            await remote.operate(asked)
    return raised.value.failure


@leakless
async def test_between_the_same_forms_the_bytes_pass_untouched() -> None:
    async with upstream(response(ANSWER)) as (remote, wire):
        assert handler_of(remote, EMBED) is not None
        answer = await remote.operate(call(OPENAI, BODY))
        line, headers, body = sent(wire)
    assert (line, headers["authorization"], body) == ("POST /v1/embeddings HTTP/1.1", f"Bearer {KEY}", BODY)
    assert answer.body == ANSWER
    assert answer.result.vectors == ((1.0,),)


@leakless
async def test_only_the_name_of_the_model_is_replaced() -> None:
    async with upstream(response(ANSWER)) as (remote, wire):
        await remote.operate(call(OPENAI, BODY, model="big"))
        assert sent(wire)[2] == b'{"input":"a","model":"big","x":1.0}'


CROSSINGS: dict[str, tuple[str, EmbeddingForm, JSON, str, JSON, JSON]] = {
    "openai-to-ollama": (
        "ollama",
        OPENAI,
        {"model": "m", "input": ["a"]},
        "/api/embed",
        {"model": "m", "input": ["a"], "truncate": False},
        {"model": "m", "embeddings": [[1.0]], "prompt_eval_count": 2},
    ),
    "openai-to-gemini": (
        "gemini",
        OPENAI,
        {"model": "m", "input": ["a"]},
        "/v1beta/models/m:batchEmbedContents",
        {"requests": [{"model": "models/m", "content": {"parts": [{"text": "a"}]}}]},
        {"embeddings": [{"values": [1.0]}], "usageMetadata": {"promptTokenCount": 2}},
    ),
    "ollama-to-openai": (
        "responses",
        OLLAMA,
        {"model": "m", "input": "a", "truncate": False},
        "/v1/embeddings",
        {"model": "m", "input": ["a"]},
        {"data": [{"embedding": [1.0]}], "usage": {"prompt_tokens": 2, "total_tokens": 2}},
    ),
    "gemini-to-gemini": (
        "gemini",
        GEMINI,
        {"model": "m", "requests": [{"content": {"parts": [{"text": "a"}]}, "title": "t"}]},
        "/v1beta/models/m:batchEmbedContents",
        {"requests": [{"model": "models/m", "content": {"parts": [{"text": "a"}]}, "title": "t"}]},
        {"embeddings": [{"values": [1.0]}], "usageMetadata": {"promptTokenCount": 2}},
    ),
}


@leakless
@pytest.mark.parametrize("case", CROSSINGS)
async def test_across(case: str) -> None:
    dialect, form, asked, path, written, answered = CROSSINGS[case]
    async with upstream(response(json.dumps(answered).encode()), dialect=dialect) as (remote, wire):
        answer = await remote.operate(call(form, json.dumps(asked).encode(), strict=True))
        line, _, body = sent(wire)
    assert (line, json.loads(body)) == (f"POST {path} HTTP/1.1", written)
    assert answer.result.vectors == ((1.0,),)
    assert answer.result.usage == Usage(input_tokens=2)


ONE = "/v1beta/models/{model}:embedContent"


@pytest.mark.parametrize(
    ("asked", "paths", "path", "passes"),
    [
        pytest.param(OPENAI, (), GEMINI.path, False, id="the-usual-one"),
        pytest.param(OPENAI, (ONE,), ONE, False, id="the-configured-one"),
        pytest.param(GEMINI, (), GEMINI.path, True, id="the-client's"),
        pytest.param(GEMINI, (ONE,), ONE, False, id="the-client's-is-not-there"),
    ],
)
def test_which_endpoint_of_a_server_is_called(
    asked: EmbeddingForm, paths: tuple[str, ...], path: str, *, passes: bool
) -> None:
    request = EmbeddingRequest(model="m", inputs=("a",))
    made = EmbeddingCall(request=request, losses=Losses(), form=asked, body=b"")
    form, verbatim = upstream_form(made, get("gemini").embeddings, Target(operation_paths=paths))
    assert (form.path, verbatim) == (path, passes)


def test_an_endpoint_of_ours_alone_is_none_of_a_server() -> None:
    (form,) = get("chat").forms("tokenize")
    made = OperationCall(request=TokensRequest(request=Request(model="m")), losses=Losses(), form=form, body=b"")
    with pytest.raises(FailureError, match="the tokens of `m` are not known here"):
        upstream_form(made, (form,), Target())


async def test_a_wrapper_and_a_backend_without_the_method() -> None:
    async with upstream() as (remote, _):
        assert handler_of(remote, TOKENIZE) is None
    with pytest.raises(FailureError, match="`x` makes no embeddings"):
        need_handler(object(), EMBED, "x")


@leakless
async def test_what_would_be_lost_is_refused_where_that_is_the_policy() -> None:
    async with upstream(dialect="ollama") as (remote, wire):
        with pytest.raises(LossError, match="user dropped"):
            await remote.operate(call(OPENAI, b'{"model":"m","input":"a","user":"u"}', strict=True))
        assert wire.requests == []


@leakless
async def test_a_server_without_such_an_endpoint() -> None:
    told = "`m` makes no embeddings: ask for another model"
    expected = Failure(kind="unsupported", message=told)
    assert await failure_of(dialect="messages", asked=call(OPENAI, BODY)) == expected


@leakless
@pytest.mark.parametrize(
    ("answer", "dialect", "kind", "message"),
    [
        pytest.param(response(b"<html>"), "chat", "upstream", "not understood", id="no-json"),
        pytest.param(response(b'{"data": 1}'), "chat", "upstream", "$.data: expected list", id="no-vectors"),
        pytest.param(
            response(b'{"embeddings": []}'), "ollama", "upstream", "expected 1 vectors, got 0", id="too-few-across"
        ),
        pytest.param(
            response(NO).replace(b"200 OK", b"404 Not Found"),
            "chat",
            "not_found",
            "no",
            id="refused",
        ),
    ],
)
async def test_what_is_no_answer(answer: bytes, dialect: str, kind: str, message: str) -> None:
    failure = await failure_of(answer, dialect=dialect, asked=call(OPENAI, BODY))
    assert failure.kind == kind
    assert message in failure.message


def test_an_answer_need_not_be_bytes() -> None:
    assert EmbeddingAnswer(embeddings=VECTORS).body is None


USUAL = b'{"object":"list","data":[{"embedding":[1,2],"index":0}],"model":"big","usage":{"prompt_tokens":3%b}}'
SEEN: dict[str, tuple[bytes, Usage | None]] = {
    "usual": (USUAL % b',"total_tokens":3', Usage(input_tokens=3)),
    "another-total": (USUAL % b',"total_tokens":4', Usage(input_tokens=3, total=4)),
    "no-total": (USUAL % b"", Usage(input_tokens=3)),
    "unknown-count": (USUAL % b',"cost":1', None),
    "no-usage": (ANSWER, None),
    "an-error-beside-it": (USUAL[:-1] % b"" + b',"error":{"message":"no"}}', None),
    "no-list": (USUAL.replace(b"[{", b"{").replace(b"}]", b"}") % b"", None),
    "no-json": (USUAL[:-2] % b"", None),
}


@pytest.mark.usefixtures("with_shortcuts")
@pytest.mark.parametrize(("data", "usage"), [pytest.param(*case, id=name) for name, case in SEEN.items()])
def test_findings_5_a_glimpse_sees_what_the_general_way_reads(data: bytes, usage: Usage | None) -> None:
    assert OPENAI.glimpse is not None
    seen = OPENAI.glimpse(data)
    assert (None if seen is None else seen.usage) == usage
    if seen is not None:
        read = OPENAI.decode_response(json.loads(data))
        assert (seen.model, seen.vectors) == (read.model, ())
        assert read.usage is not None
        assert seen.usage == replace(read.usage, extra=None)
