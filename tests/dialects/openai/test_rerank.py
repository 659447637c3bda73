"""Documents ranked by relevance, in the three forms of servers: home trips, crossings, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from xenoglot.codec.loss import Losses
from xenoglot.dialects.openai.rerank import FORMS, RERANK
from xenoglot.errors import WireError
from xenoglot.model.content import Opaque
from xenoglot.model.rerank import Ranking, RerankRequest, RerankResult
from xenoglot.model.response import Usage

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

ROOT = Path(__file__).parents[2] / "vectors" / "rerank"
V1, V2, TEI = FORMS
BY_NAME = {"rerank": V1, "rerank_v2": V2, "rerank_tei": TEI}
CASES = sorted(folder for form in ROOT.iterdir() for folder in form.iterdir())
OURS = {"rerank": set[str](), "rerank_v2": set[str](), "rerank_tei": {"model", "return_text"}}
"""Fields that are handled here, and that no server is sent."""

TEXTS = ("The moon pulls the sea.", "A cat sat.")
REQUEST = RerankRequest(model="m", query="tides", documents=TEXTS)
RANKING = Ranking(
    results=(RerankResult(index=0, score=0.25), RerankResult(index=1, score=0.5)),
    id="r-1",
    usage=Usage(input_tokens=12),
)


def read(path: Path) -> JSON:
    """The JSON in a file."""
    return json.loads(path.read_text(encoding="utf-8"))


def lost(losses: Losses) -> list[tuple[str, str, str]]:
    """Where, what and how, for each loss."""
    return [(loss.where, loss.what, loss.how) for loss in losses]


def test_every_form_has_vectors() -> None:
    assert {folder.parent.name for folder in CASES} == set(BY_NAME)
    assert all((folder / "NOTE.md").exists() for folder in CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}-{case.name}")
def test_home_trip(case: Path) -> None:
    form, losses = BY_NAME[case.parent.name], Losses()
    asked, answered = read(case / "request.json"), read(case / "response.json")
    assert isinstance(asked, dict)
    request, ranking = form.decode_request(asked), form.decode_response(answered)
    sent = {name: value for name, value in asked.items() if name not in OURS[case.parent.name]}
    assert form.encode_request(request, losses) == sent
    assert form.encode_response(ranking, request, losses) == answered
    assert lost(losses) == []


AWAY: dict[str, tuple[str, str, list[tuple[str, str, str]]]] = {
    "objects-to-v2": (
        "rerank/objects",
        "rerank_v2",
        [("$.documents[0]", "rank_fields", "emulated")],
    ),
    "objects-to-tei": (
        "rerank/objects",
        "rerank_tei",
        [("$.documents[0]", "rank_fields", "emulated"), ("$", "max_chunks_per_doc", "dropped")],
    ),
    "v2-to-v1": ("rerank_v2/texts", "rerank", []),
    "v2-to-tei": ("rerank_v2/texts", "rerank_tei", [("$", "max_tokens", "dropped"), ("$", "priority", "dropped")]),
    "tei-to-v1": ("rerank_tei/texts", "rerank", [("$", "truncate", "dropped"), ("$", "raw_scores", "dropped")]),
    "tei-to-v2": ("rerank_tei/texts", "rerank_v2", [("$", "truncate", "dropped"), ("$", "raw_scores", "dropped")]),
}
SENT: dict[str, JSONObject] = {
    "objects-to-v2": {
        "model": "m",
        "query": "tides",
        "documents": ["title: Sea\ntext: The moon pulls it.", "A cat sat."],
        "max_chunks_per_doc": 10,
    },
    "objects-to-tei": {"query": "tides", "texts": ["title: Sea\ntext: The moon pulls it.", "A cat sat."]},
    "v2-to-v1": {
        "model": "m",
        "query": "tides",
        "documents": [*TEXTS],
        "top_n": 2,
        "max_tokens_per_doc": 4096,
        "priority": 1,
    },
    "v2-to-tei": {"query": "tides", "texts": [*TEXTS]},
    "tei-to-v1": {"model": "m", "query": "tides", "documents": [*TEXTS], "return_documents": True},
    "tei-to-v2": {"model": "m", "query": "tides", "documents": [*TEXTS]},
}


@pytest.mark.parametrize("case", AWAY)
def test_a_request_in_another_form(case: str) -> None:
    vector, away, expected = AWAY[case]
    losses = Losses()
    request = BY_NAME[vector.partition("/")[0]].decode_request(read(ROOT / vector / "request.json"))
    assert BY_NAME[away].encode_request(request, losses) == SENT[case]
    assert lost(losses) == expected


SHOWN: dict[str, tuple[JSONObject, JSON]] = {
    "in-order": (
        {"documents": [*TEXTS]},
        {
            "id": "r-1",
            "model": "m",
            "results": [{"index": 1, "relevance_score": 0.5}, {"index": 0, "relevance_score": 0.25}],
            "usage": {"prompt_tokens": 12, "total_tokens": 12},
        },
    ),
    "the-first": (
        {"documents": [*TEXTS], "top_n": 1},
        {
            "id": "r-1",
            "model": "m",
            "results": [{"index": 1, "relevance_score": 0.5}],
            "usage": {"prompt_tokens": 12, "total_tokens": 12},
        },
    ),
    "all-as-vllm-says-it": (
        {"documents": [*TEXTS], "top_n": 0, "return_documents": True},
        {
            "id": "r-1",
            "model": "m",
            "results": [
                {"index": 1, "relevance_score": 0.5, "document": {"text": "A cat sat."}},
                {"index": 0, "relevance_score": 0.25, "document": {"text": "The moon pulls the sea."}},
            ],
            "usage": {"prompt_tokens": 12, "total_tokens": 12},
        },
    ),
    "tei": ({"texts": [*TEXTS]}, [{"index": 1, "score": 0.5}, {"index": 0, "score": 0.25}]),
    "tei-with-texts": (
        {"texts": [*TEXTS], "return_text": True},
        [
            {"index": 1, "text": "A cat sat.", "score": 0.5},
            {"index": 0, "text": "The moon pulls the sea.", "score": 0.25},
        ],
    ),
}


@pytest.mark.parametrize("case", SHOWN)
def test_an_answer_for_its_client(case: str) -> None:
    fields, expected = SHOWN[case]
    request = V1.decode_request({"model": "m", "query": "tides", **fields})
    losses = Losses()
    assert V1.encode_response(RANKING, request, losses) == expected
    assert lost(losses) == []


def test_tokens_in_the_form_of_version_2() -> None:
    answered = V2.encode_response(RANKING, REQUEST, Losses())
    assert answered == {
        "id": "r-1",
        "results": [{"index": 1, "relevance_score": 0.5}, {"index": 0, "relevance_score": 0.25}],
        "meta": {"tokens": {"input_tokens": 12}},
    }


@pytest.mark.parametrize(
    ("body", "tokens", "units"),
    [
        pytest.param({"usage": {"total_tokens": 3}}, 3, None, id="jina"),
        pytest.param({"usage": {"prompt_tokens": 2, "total_tokens": 3}}, 2, None, id="llama-server"),
        pytest.param({"meta": {"billed_units": {"search_units": 1}}}, None, 1, id="cohere"),
        pytest.param({"meta": {"billed_units": {"search_units": 2.0, "input_tokens": 4}}}, 4, 2.0, id="cohere-tokens"),
        pytest.param({"meta": {"tokens": {"input_tokens": 5.0}}}, 5, None, id="counted-tokens"),
        pytest.param({"meta": "none"}, None, None, id="neither"),
    ],
)
def test_what_a_ranking_cost(body: JSONObject, tokens: int | None, units: float | None) -> None:
    ranking = V1.decode_response({"results": [], **body})
    assert (None if ranking.usage is None else ranking.usage.input_tokens, ranking.search_units) == (tokens, units)


def test_documents_that_the_client_does_not_want_are_left_out() -> None:
    found = V1.decode_response({"results": [{"index": 0, "relevance_score": 1, "document": {"text": "a"}}]})
    request = replace(REQUEST, return_documents=False)
    assert V1.encode_response(found, request, Losses()) == {
        "model": "m",
        "results": [{"index": 0, "relevance_score": 1}],
    }


def test_fields_of_one_server_are_lost_for_the_clients_of_another() -> None:
    found = V1.decode_response({"results": [{"index": 0, "relevance_score": 1.0, "rank": 1}], "meta": {"x": 1}})
    losses = Losses()
    TEI.encode_response(found, TEI.decode_request({"model": "m", "query": "q", "texts": ["a"]}), losses)
    assert lost(losses) == [("$", "meta", "dropped"), ("$.results[0]", "rank", "dropped")]


REFUSED: dict[str, tuple[JSON, str]] = {
    "no-model": ({"query": "q", "documents": ["a"]}, "$.model: required, expected str"),
    "no-query": ({"model": "m", "documents": ["a"]}, "$.query: required, expected str or object"),
    "query": ({"model": "m", "query": 1, "documents": ["a"]}, "$.query: expected str or object, got int"),
    "no-documents": ({"model": "m", "query": "q"}, "$.documents: required, expected list"),
    "a-text": ({"model": "m", "query": "q", "documents": "a"}, "$.documents: expected list, got str"),
    "empty": ({"model": "m", "query": "q", "documents": []}, "$.documents: is empty"),
    "number": (
        {"model": "m", "query": "q", "documents": ["a", 1]},
        "$.documents[1]: expected str or object, got int",
    ),
    "top-n": ({"model": "m", "query": "q", "documents": ["a"], "top_n": -1}, "$.top_n: expected at least 0, got -1"),
    "no-texts": ({"model": "m", "query": "q", "texts": []}, "$.texts: is empty"),
    "tei-query": ({"model": "m", "query": {}, "texts": ["a"]}, "$.query: expected str, got object"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_requests_name_the_field(case: str) -> None:
    body, told = REFUSED[case]
    for form in FORMS:
        with pytest.raises(WireError) as refused:
            form.decode_request(body)
        assert str(refused.value) == told


@pytest.mark.parametrize("form", [V2, TEI])
def test_a_server_of_texts_takes_no_pictures(form: object) -> None:
    picture = Opaque(dialect="rerank", data={"image": "https://example.com/a.png"})
    for request in (replace(REQUEST, documents=(picture,)), replace(REQUEST, query=picture)):
        with pytest.raises(WireError, match="expected a text, or an object with `text`"):
            (V2 if form is V2 else TEI).encode_request(request, Losses())


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({}, "$.results: required, expected list"),
        ({"results": [{"index": 0}]}, "$.results[0].relevance_score: required, expected number"),
        ({"results": [{"relevance_score": 1}]}, "$.results[0].index: required, expected int"),
    ],
)
def test_an_answer_that_holds_no_ranking_is_none(body: JSON, told: str) -> None:
    with pytest.raises(WireError) as refused:
        V1.decode_response(body)
    assert str(refused.value) == told


@pytest.mark.parametrize("indexes", [(0, 0), (2,)], ids=["twice", "of-no-document"])
def test_a_ranking_is_of_the_documents_of_its_request(indexes: tuple[int, ...]) -> None:
    ranking = Ranking(results=tuple(RerankResult(index=index, score=0.0) for index in indexes))
    with pytest.raises(WireError, match="the indexes are not those of the documents"):
        RERANK.check(REQUEST, ranking)


def test_what_is_estimated() -> None:
    fields = Opaque(dialect="rerank", data={"title": "Sea", "year": 2})
    request = replace(REQUEST, documents=("a", fields), return_documents=True)
    assert list(RERANK.inputs(request)) == ["tides", "a", "tides", "Sea 2"]
    assert RERANK.size(RANKING, request) == 2 * 64 + 1 + 5


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(CASES), st.sampled_from(["request", "response"]), st.data())
def test_garbage_is_an_error_and_nothing_else(case: Path, which: str, data: st.DataObject) -> None:
    form, body = BY_NAME[case.parent.name], read(case / f"{which}.json")
    if isinstance(body, list):
        body = [data.draw(ANYTHING)]
    else:
        assert isinstance(body, dict)
        body[data.draw(st.sampled_from(sorted(body)))] = data.draw(ANYTHING)
    decode = form.decode_request if which == "request" else form.decode_response
    try:
        decode(body)
    except WireError:
        return
