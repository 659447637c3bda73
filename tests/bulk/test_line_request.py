"""One line asked of a backend: the answer, or the error, in the line's own dialect."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from xenoglot.backends.batch_lines import BatchLine, decode_line
from xenoglot.backends.http.client import Transport
from xenoglot.backends.remote.backend import Remote
from xenoglot.backends.scripted import Scripted
from xenoglot.bulk.line_request import answer_line, tokens_of
from xenoglot.codec.json.json_io import encode_json
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get
from xenoglot.model.content import Reasoning, Text
from xenoglot.model.events import Started
from xenoglot.model.failure import Failure
from xenoglot.model.response import Candidate, Finish, Response, Usage
from xenoglot.testing import Respond, Upstream, answers

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

ANSWER = Response(
    candidates=(Candidate(content=(Text(text="Four."),), finish=Finish(reason="stop")),),
    usage=Usage(input_tokens=5, output_tokens=2),
)
LOST = "$.candidates[0] reasoning dropped (the client did not ask for it)"
BODIES: dict[str, JSONObject] = {
    "chat": {"model": "m", "messages": [{"role": "user", "content": "2 + 2?"}]},
    "messages": {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "2 + 2?"}]},
    "responses": {"model": "m", "input": "2 + 2?"},
    "completions": {"model": "m", "prompt": "2 + 2 ="},
    "ollama": {"model": "m", "messages": [{"role": "user", "content": "2 + 2?"}]},
    "gemini": {"model": "m", "contents": [{"role": "user", "parts": [{"text": "2 + 2?"}]}]},
}


def line(dialect: str, **more: object) -> BatchLine:
    return decode_line(encode_json(BODIES[dialect] | more), 1, dialect=dialect)


@pytest.mark.parametrize("dialect", BODIES)
@pytest.mark.parametrize("stream", [{}, {"stream": True}], ids=["whole", "asks-for-a-stream"])
async def test_an_answer_is_whole_and_in_the_dialect_of_the_line(dialect: str, stream: dict[str, object]) -> None:
    backend = Scripted(ANSWER)
    one = await answer_line(line(dialect, **stream), backend)
    assert one.outcome.ok
    read = get(dialect).decode_response(one.outcome.body)
    part = read.candidates[0].content[0]
    assert isinstance(part, Text)
    assert part.text == "Four."
    assert (one.usage, one.model) == (ANSWER.usage, "m")
    assert not backend.requests[0].stream


@pytest.mark.parametrize(("dialect", "shown"), [("messages", False), ("gemini", False), ("chat", True)])
async def test_reasoning_comes_where_the_line_asks_for_it_clients_0(dialect: str, shown: bool) -> None:  # noqa: FBT001
    thought = Candidate(content=(Reasoning(text="hm"), Text(text="Four.")), finish=Finish(reason="stop"))
    one = await answer_line(line(dialect), Scripted(Response(candidates=(thought,))))
    assert ("hm" in json.dumps(one.outcome.body)) == shown
    assert (one.outcome.losses.count(LOST) == 1) != shown


@pytest.mark.parametrize("dialect", BODIES)
async def test_an_error_is_in_the_dialect_of_the_line(dialect: str) -> None:
    failure = Failure(kind="overloaded", message="too many of you", retry_after=2.0)
    one = await answer_line(line(dialect), Scripted(failure))
    assert (one.outcome.ok, one.failure) == (False, failure)
    assert (one.outcome.status, one.outcome.body) == get(dialect).encode_error(failure)


@pytest.mark.parametrize(
    ("dialect", "more", "told"),
    [
        pytest.param("chat", {"messages": "hello"}, "messages", id="wrong-type"),
        pytest.param("chat", {"temperature": "hot"}, "temperature", id="wrong-option"),
        pytest.param("messages", {"max_tokens": -1}, "max_tokens", id="out-of-range"),
        pytest.param("responses", {"input": 7}, "input", id="no-input"),
    ],
)
async def test_a_body_that_is_no_request_ends_in_an_error(dialect: str, more: dict[str, object], told: str) -> None:
    backend = Scripted(ANSWER)
    one = await answer_line(line(dialect, **more), backend)
    assert (one.outcome.status, one.outcome.ok, backend.requests) == (400, False, [])
    assert told in json.dumps(one.outcome.body)


@pytest.mark.parametrize(
    "events",
    [pytest.param((), id="nothing"), pytest.param((Started(id="x"),), id="beginning-alone")],
)
async def test_an_answer_without_an_end_is_an_error(events: tuple[Started, ...]) -> None:
    one = await answer_line(line("chat"), Scripted(events))
    assert (one.outcome.ok, one.outcome.status) == (False, 502)


async def test_where_both_ends_speak_the_same_the_body_is_the_servers() -> None:
    ready = answers("chat")
    async with Upstream(*ready.rules()) as upstream:
        transport = Transport()
        backend = Remote("up", get("chat"), f"{upstream.url}/v1", transport=transport)
        one = await answer_line(line("chat", stream=True, stream_options={"include_usage": True}, seed=7), backend)
        await transport.aclose()
    assert one.outcome.body == json.loads(ready.body)
    assert one.usage is not None
    assert (one.usage.input_tokens, one.usage.output_tokens) == (7, 3)
    sent = upstream.requests[0].json
    assert (sent["stream"], sent["seed"], "stream_options" in sent) == (False, 7, False)


async def test_what_a_model_cannot_be_asked_is_told() -> None:
    async with Upstream(*answers("messages").rules()) as upstream:
        transport = Transport()
        backend = Remote("up", get("messages"), f"{upstream.url}/v1", transport=transport)
        one = await answer_line(line("chat", seed=7), backend)
        await transport.aclose()
    assert one.outcome.ok
    assert any("seed" in loss for loss in one.outcome.losses)


@pytest.mark.parametrize("answer", [b"not json", b"[]", b"{}", b""], ids=["text", "list", "empty-object", "nothing"])
async def test_what_is_no_answer_is_an_error(answer: bytes) -> None:
    steps = (Respond(headers=(("content-type", "application/json"),), body=answer),)
    async with Upstream(steps) as upstream:
        transport = Transport()
        backend = Remote("up", get("chat"), f"{upstream.url}/v1", transport=transport)
        one = await answer_line(line("chat"), backend)
        await transport.aclose()
    assert not one.outcome.ok
    assert upstream.url not in json.dumps(one.outcome.body)


RANKED: JSONObject = {"model": "r", "results": [{"index": 0, "relevance_score": 0.5}]}


@pytest.mark.parametrize(
    ("path", "body", "paths", "said", "told"),
    [
        pytest.param("/v1/rerank", {"documents": ["a"]}, (), RANKED, RANKED, id="passed-through"),
        pytest.param("/v2/rerank", {"documents": ["a"]}, (), RANKED, {"results": RANKED["results"]}, id="translated"),
        pytest.param(
            "/rerank", {"texts": ["a"]}, ("/rerank",), [{"index": 0, "score": 1}], [{"index": 0, "score": 1}], id="tei"
        ),
    ],
)
async def test_documents_are_ranked(
    path: str, body: JSONObject, paths: tuple[str, ...], said: JSON, told: JSON
) -> None:
    wanted = {"custom_id": "1", "url": path, "body": {"model": "r", "query": "q", **body}}
    steps = (Respond(headers=(("content-type", "application/json"),), body=encode_json(said)),)
    async with Upstream(steps) as upstream:
        transport, target = Transport(), Target(operation_paths=paths)
        backend = Remote("up", get("chat"), upstream.url, transport=transport, target=target)
        one = await answer_line(decode_line(encode_json(wanted), 1), backend)
        await transport.aclose()
    assert one.outcome.body == told


async def test_embeddings_are_made_by_a_backend_that_can() -> None:
    answer = {"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [0.5, 1.0]}], "model": "e"}
    said = encode_json(answer | {"usage": {"prompt_tokens": 4, "total_tokens": 4}})
    vectors = decode_line(b'{"model": "e", "input": ["one"]}', 1)
    steps = (Respond(headers=(("content-type", "application/json"),), body=said),)
    async with Upstream(steps) as upstream:
        transport = Transport()
        backend = Remote("up", get("chat"), f"{upstream.url}/v1", transport=transport)
        one = await answer_line(vectors, backend)
        await transport.aclose()
    assert one.outcome.body == json.loads(said)
    assert one.usage is not None
    assert one.usage.input_tokens == 4
    refused = await answer_line(vectors, Scripted(ANSWER))
    assert "makes no embeddings" in json.dumps(refused.outcome.body)


@pytest.mark.parametrize(
    ("asks", "least", "most"),
    [
        pytest.param(line("messages", max_tokens=500), 501, 520, id="with-a-limit"),
        pytest.param(line("chat"), 1, 20, id="without"),
        pytest.param(line("chat", messages=7), 1, 1, id="no-request"),
        pytest.param(decode_line(b'{"model": "e", "input": ["one"]}', 1), 1, 20, id="embeddings"),
    ],
)
def test_what_a_line_may_use_is_estimated(asks: BatchLine, least: int, most: int) -> None:
    assert least <= tokens_of(asks) <= most
