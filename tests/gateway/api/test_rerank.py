"""`/v1/rerank` and its kin through a served gateway, with a scripted server behind it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.faults.direct_exchange import handle
from tests.gateway.scripted_backends import Backend
from xenoglot.gateway.config.load import check
from xenoglot.gateway.process.build import build_gateway
from xenoglot.testing.script import Respond
from xenoglot.testing.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults.direct_exchange import DirectExchange
    from tests.gateway.running_gateway import RunningGateway
    from xenoglot.model.json import JSON, JSONObject

TYPE = ("content-type", "application/json")
DOCUMENTS: list[JSON] = ["The moon pulls the sea.", "A cat sat."]
ASKED: JSONObject = {"model": "m", "query": "tides", "documents": DOCUMENTS, "x_new": 1}
TEXTS: JSONObject = {"query": "tides", "texts": DOCUMENTS, "return_text": True}
V1: JSONObject = {
    "model": "big",
    "object": "list",
    "usage": {"prompt_tokens": 7, "total_tokens": 7},
    "results": [{"index": 1, "relevance_score": -3.5}, {"index": 0, "relevance_score": 2.5}],
}
V2: JSONObject = {
    "id": "r-1",
    "results": [{"index": 0, "relevance_score": 0.9}, {"index": 1, "relevance_score": 0.1}],
    "meta": {"billed_units": {"search_units": 1}},
}
TEI: list[JSON] = [{"index": 0, "score": 0.9}, {"index": 1, "score": 0.1}]


async def through(
    path: str, body: JSONObject, answer: JSON, *, status: int = 200, paths: tuple[str, ...] = (), **model: str
) -> tuple[DirectExchange, list[tuple[str, JSON]]]:
    """Return what the client gets, and what the server was sent."""
    answered = Respond(status, (TYPE,), json.dumps(answer).encode())
    async with Upstream((answered,)) as upstream:
        plain = {
            "server": {"port": 0},
            "upstreams": {
                "u": {"dialect": "chat", "base_url": upstream.url, "target": {"operation_paths": list(paths)}}
            },
            "models": [{"name": "m", "upstream": "u", "model": "big", **model}],
            "store": {"url": "off"},
        }
        async with build_gateway(check(plain, {}, "a test")) as gateway:
            asked = await handle(gateway, "POST", path, json.dumps(body).encode())
            held = gateway.dispatcher.ward.measures(0.0)
        assert [one.running for one in held] in ([0], [])
        return asked, [(request.path, request.json) for request in upstream.requests]


@pytest.mark.parametrize("path", ["/v1/rerank", "/rerank", "/v1/reranking", "/reranking"])
async def test_the_bytes_pass_between_the_same_forms(path: str) -> None:
    asked, sent = await through(path, ASKED, V1)
    assert (asked.status, json.loads(asked.body)) == (200, V1)
    assert sent == [("/v1/rerank", {**ASKED, "model": "big"})]
    assert "x-xenoglot-losses" not in asked.response_headers


ACROSS: dict[str, tuple[str, JSONObject, tuple[str, ...], JSON, tuple[str, JSON], JSON, str]] = {
    "v2-to-v1": (
        "/v2/rerank",
        {"model": "m", "query": "tides", "documents": DOCUMENTS, "top_n": 1},
        (),
        V1,
        ("/v1/rerank", {"model": "big", "query": "tides", "documents": DOCUMENTS, "top_n": 1}),
        {"results": [{"index": 0, "relevance_score": 2.5}], "meta": {"tokens": {"input_tokens": 7}}},
        "",
    ),
    "v2-to-v2": (
        "/v2/rerank",
        {"model": "m", "query": "tides", "documents": DOCUMENTS},
        ("/v2/rerank",),
        V2,
        ("/v2/rerank", {"model": "big", "query": "tides", "documents": DOCUMENTS}),
        V2,
        "",
    ),
    "tei-to-v1": (
        "/rerank",
        TEXTS,
        (),
        V1,
        (
            "/v1/rerank",
            {"model": "big", "query": "tides", "documents": DOCUMENTS, "return_documents": True},
        ),
        [
            {"index": 0, "text": "The moon pulls the sea.", "score": 2.5},
            {"index": 1, "text": "A cat sat.", "score": -3.5},
        ],
        "",
    ),
    "v1-to-tei": (
        "/v1/rerank",
        {**ASKED, "top_n": 1},
        ("/rerank",),
        TEI,
        ("/rerank", {"query": "tides", "texts": DOCUMENTS}),
        {"model": "m", "results": [{"index": 0, "relevance_score": 0.9}]},
        "$ x_new dropped (only rerank has it)",
    ),
    "tei-to-tei": (
        "/rerank",
        TEXTS,
        ("/rerank",),
        TEI,
        ("/rerank", {**TEXTS, "model": "big"}),
        TEI,
        "",
    ),
}


@pytest.mark.parametrize("case", ACROSS)
async def test_across(case: str) -> None:
    path, body, paths, answer, sent, expected, losses = ACROSS[case]
    asked, seen = await through(path, body, answer, paths=paths)
    assert (asked.status, json.loads(asked.body)) == (200, expected)
    assert seen == [sent]
    assert asked.response_headers.get("x-xenoglot-losses", "") == losses


async def test_what_is_lost_of_a_ranking_is_told() -> None:
    asked, _ = await through("/rerank", TEXTS, {**V2, "x_new": 1})
    assert asked.status == 200
    told = "$ meta dropped (only rerank has it); $ x_new dropped (only rerank has it)"
    assert asked.response_headers["x-xenoglot-losses"] == told


async def test_a_loss_is_refused_where_that_is_the_policy() -> None:
    asked, sent = await through("/v1/rerank", ASKED, TEI, paths=("/rerank",), on_loss="refuse")
    assert (asked.status, sent) == (400, [])
    assert "x_new dropped" in json.loads(asked.body)["error"]["message"]


@pytest.mark.parametrize(
    ("status", "answer", "told", "message"),
    [
        pytest.param(400, {"message": "too many documents"}, 400, "too many documents", id="cohere"),
        pytest.param(422, {"detail": "no such model"}, 422, "no such model", id="jina"),
        pytest.param(413, {"error": "batch size 33 > 32", "error_type": "Validation"}, 413, "batch size", id="tei"),
        pytest.param(200, {"results": [{"index": 5, "relevance_score": 1}]}, 200, "", id="of-no-document-passes"),
        pytest.param(200, {"results": 1}, 502, "$.results: required, expected list", id="no-ranking"),
    ],
)
async def test_errors_of_servers(status: int, answer: JSONObject, told: int, message: str) -> None:
    asked, _ = await through("/v1/rerank", ASKED, answer, status=status)
    assert (asked.status, message in asked.body.decode()) == (told, True)


async def test_a_ranking_of_other_documents_is_no_answer_of_another_form() -> None:
    asked, _ = await through("/v2/rerank", ASKED, {"results": [{"index": 5, "relevance_score": 1}]})
    assert (asked.status, "the indexes are not those" in asked.body.decode()) == (502, True)


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank", "/rerank"])
def test_a_model_that_ranks_nothing_says_so(gateway_server: Callable[..., RunningGateway], path: str) -> None:
    answer = gateway_server({"a": Backend()}).request("POST", path, ASKED)
    assert (answer.status, answer.json["error"]["code"]) == (400, "unsupported_parameter")
    assert answer.json["error"]["message"] == "`m` ranks no documents: ask for a reranker"


def test_a_request_that_is_none(gateway_server: Callable[..., RunningGateway]) -> None:
    answer = gateway_server({"a": Backend()}).request("POST", "/v1/rerank", {"model": "m", "query": "tides"})
    assert (answer.status, answer.json["error"]["message"]) == (400, "documents: required, expected list")
