"""Embeddings in every form that a dialect has for them: home trips, crossings, and what no form allows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from xenoglot import dialect_registry as dialects
from xenoglot.codec.loss import Losses
from xenoglot.errors import WireError
from xenoglot.model.content import Opaque
from xenoglot.model.embedding import EmbeddingRequest, Embeddings
from xenoglot.model.response import Usage

if TYPE_CHECKING:
    from xenoglot.codec.features.operation import EmbeddingForm
    from xenoglot.model.json import JSON, JSONObject

ROOT = Path(__file__).parents[2] / "vectors" / "embeddings"
FORMS: dict[str, EmbeddingForm] = {
    form.path: form for name in dialects.names() for form in dialects.get(name).embeddings
}
BY_NAME = {form.name: form for form in reversed(FORMS.values())}
"""The forms by their names; of two of one name the first, which takes many inputs."""

CASES = sorted(folder for form in ROOT.iterdir() for folder in form.iterdir())
TEXTS = EmbeddingRequest(model="m", inputs=("a", "b"))
VECTORS = Embeddings(vectors=((0.5, -0.25), (1.0, 0.0)), model="m", usage=Usage(input_tokens=6))


def read(path: Path) -> JSON:
    """The JSON in a file."""
    return json.loads(path.read_text(encoding="utf-8"))


def lost(losses: Losses) -> list[tuple[str, str, str]]:
    """Where, what and how, for each loss."""
    return [(loss.where, loss.what, loss.how) for loss in losses]


def test_every_form_has_vectors() -> None:
    assert {folder.parent.name for folder in CASES} == set(BY_NAME)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}-{case.name}")
def test_home_trip(case: Path) -> None:
    form, losses = BY_NAME[case.parent.name], Losses()
    asked, answered = read(case / "request.json"), read(case / "response.json")
    request, embeddings = form.decode_request(asked), form.decode_response(answered)
    assert form.encode_request(request, losses) == asked
    assert form.encode_response(embeddings, request, losses) == answered
    assert lost(losses) == []


ASKED: dict[str, JSONObject] = {
    "embeddings": {"model": "m", "input": ["a", "b"]},
    "ollama_embed": {"model": "m", "input": ["a", "b"], "truncate": False},
    "gemini_embeddings": {
        "model": "m",
        "requests": [{"model": "models/m", "content": {"parts": [{"text": text}]}} for text in "ab"],
    },
    "llama_stack_embeddings": {"model_id": "m", "contents": ["a", "b"]},
}
ANSWERED: dict[str, JSONObject] = {
    "embeddings": {
        "object": "list",
        "data": [
            {"object": "embedding", "index": 0, "embedding": [0.5, -0.25]},
            {"object": "embedding", "index": 1, "embedding": [1.0, 0.0]},
        ],
        "model": "m",
        "usage": {"prompt_tokens": 6, "total_tokens": 6},
    },
    "ollama_embed": {"model": "m", "embeddings": [[0.5, -0.25], [1.0, 0.0]], "prompt_eval_count": 6},
    "gemini_embeddings": {
        "embeddings": [{"values": [0.5, -0.25]}, {"values": [1.0, 0.0]}],
        "usageMetadata": {"promptTokenCount": 6},
    },
    "llama_stack_embeddings": {"embeddings": [[0.5, -0.25], [1.0, 0.0]]},
}


@pytest.mark.parametrize("name", ASKED)
def test_texts_and_vectors_in_every_form(name: str) -> None:
    form, losses = BY_NAME[name], Losses(strict=True)
    assert form.encode_request(TEXTS, losses) == ASKED[name]
    assert form.encode_response(VECTORS, TEXTS, losses) == ANSWERED[name]
    assert form.decode_request(ASKED[name]).inputs == TEXTS.inputs
    assert form.decode_response(ANSWERED[name]).vectors == VECTORS.vectors
    losses.settle()


@pytest.mark.parametrize(
    ("home", "away", "expected"),
    [
        ("embeddings/one-text", "ollama_embed", [("$", "user", "dropped")]),
        ("ollama_embed/texts", "embeddings", [("$", "options", "dropped")]),
        ("ollama_embed/text", "embeddings", [("$", "truncate", "dropped"), ("$", "keep_alive", "dropped")]),
        ("ollama_embed/texts", "gemini_embeddings", [("$", "options", "dropped"), ("$", "truncate", "dropped")]),
        (
            "gemini_embeddings/batch",
            "embeddings",
            [("$", "requests[0].taskType", "dropped"), ("$", "requests[0].title", "dropped")],
        ),
        ("llama_stack_embeddings/texts", "ollama_embed", [("$", "task_type", "dropped")]),
    ],
)
def test_away(home: str, away: str, expected: list[tuple[str, str, str]]) -> None:
    losses = Losses()
    request = BY_NAME[home.partition("/")[0]].decode_request(read(ROOT / home / "request.json"))
    body = BY_NAME[away].encode_request(request, losses)
    assert BY_NAME[away].decode_request(body).inputs == request.inputs
    assert lost(losses) == expected


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.parametrize("given", [Opaque(dialect="other", data={}), (1, 2)], ids=["of-another", "tokens"])
def test_what_only_another_form_can_say_is_refused(name: str, given: Opaque | tuple[int, ...]) -> None:
    request = replace(TEXTS, inputs=(given,))
    if name == "embeddings" and isinstance(given, tuple):
        assert BY_NAME[name].encode_request(request, Losses()) == {"model": "m", "input": [[1, 2]]}
        return
    with pytest.raises(WireError, match=r"\$\.input\[0\]"):
        BY_NAME[name].encode_request(request, Losses())


REFUSED: dict[str, tuple[str, JSON, str]] = {
    "no-model": ("embeddings", {"input": "a"}, "$.model: required, expected str"),
    "no-input": ("embeddings", {"model": "m"}, "$.input: required, expected str or list"),
    "empty": ("embeddings", {"model": "m", "input": []}, "$.input: is empty"),
    "number": ("embeddings", {"model": "m", "input": 1}, "$.input: expected str or list, got int"),
    "mixed": ("embeddings", {"model": "m", "input": [1, "a"]}, "$.input[1]: expected int, got str"),
    "float": ("embeddings", {"model": "m", "input": [[1.5]]}, "$.input[0][0]: expected int, got number"),
    "bool": ("embeddings", {"model": "m", "input": [[True]]}, "$.input[0][0]: expected int, got bool"),
    "null": ("embeddings", {"model": "m", "input": ["a", None]}, "$.input[1]: expected str or list, got null"),
    "dimensions": (
        "embeddings",
        {"model": "m", "input": "a", "dimensions": 0},
        "$.dimensions: expected at least 1, got 0",
    ),
    "format": (
        "embeddings",
        {"model": "m", "input": "a", "encoding_format": "int8"},
        "$.encoding_format: expected `float` or `base64`",
    ),
    "ollama": ("ollama_embed", {"model": "m", "input": [1]}, "$.input[0]: expected str, got int"),
    "ollama-prompt": ("ollama_embeddings", {"model": "m", "prompt": 1}, "$.prompt: expected str, got int"),
    "gemini": (
        "gemini_embeddings",
        {"model": "m", "requests": [{}]},
        "$.requests[0].content: required, expected object",
    ),
    "gemini-model": (
        "gemini_embeddings",
        {"model": "m", "requests": [{"model": "models/n", "content": {"parts": [{"text": "a"}]}}]},
        "$.requests[0].model: is another model than the one in the path",
    ),
    "llama-stack": (
        "llama_stack_embeddings",
        {"model_id": "m", "contents": [1]},
        "$.contents[0]: expected str or item, got int",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_requests_name_the_field(case: str) -> None:
    name, body, told = REFUSED[case]
    with pytest.raises(WireError) as refused:
        BY_NAME[name].decode_request(body)
    assert str(refused.value) == told


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"data": [{"embedding": "AAA"}]}, "$.data[0].embedding: is not base64"),
        (
            {"data": [{"embedding": "AAAA"}]},
            "$.data[0].embedding: is not a whole number of single-precision numbers",
        ),
        ({"data": [{"embedding": "AADAfw=="}]}, "$.data[0].embedding: holds a number that is not finite"),
        ({"data": [{"embedding": [1, "a"]}]}, "$.data[0].embedding[1]: expected number, got str"),
        ({"data": [{"embedding": [1], "index": 1}]}, "$.data: the vectors' numbers are not those of the inputs"),
    ],
)
def test_an_answer_that_holds_no_vectors_is_none(body: JSON, told: str) -> None:
    with pytest.raises(WireError) as refused:
        BY_NAME["embeddings"].decode_response(body)
    assert str(refused.value) == told


def test_vectors_come_in_the_order_of_the_inputs() -> None:
    data: JSON = [{"embedding": [2.0], "index": 1}, {"embedding": [1.0], "index": 0}]
    assert BY_NAME["embeddings"].decode_response({"data": data}).vectors == ((1.0,), (2.0,))


FLOATS = st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=8)


@given(st.lists(FLOATS, min_size=1, max_size=4))
def test_what_is_packed_is_exact(vectors: list[list[float]]) -> None:
    form = BY_NAME["embeddings"]
    request = form.decode_request({"model": "m", "input": ["a"] * len(vectors), "encoding_format": "base64"})
    embeddings = Embeddings(vectors=tuple(map(tuple, vectors)))
    assert form.decode_response(form.encode_response(embeddings, request, Losses())).vectors == embeddings.vectors


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(sorted(CASES)), st.sampled_from(["request", "response"]), st.data())
def test_garbage_is_an_error_and_nothing_else(case: Path, which: str, data: st.DataObject) -> None:
    form = BY_NAME[case.parent.name]
    body = read(case / f"{which}.json")
    assert isinstance(body, dict)
    body[data.draw(st.sampled_from(sorted(body)))] = data.draw(ANYTHING)
    decode = form.decode_request if which == "request" else form.decode_response
    try:
        decode(body)
    except WireError:
        return


@pytest.mark.parametrize("body", [None, 1, "a", [], {}])
def test_what_is_no_request_is_an_error(body: JSON) -> None:
    for form in FORMS.values():
        with pytest.raises(WireError):
            form.decode_request(body)


def test_a_lone_content_of_gemini() -> None:
    form = FORMS["/v1beta/models/{model}:embedContent"]
    body: JSONObject = {"model": "models/m", "content": {"parts": [{"text": "a"}]}, "title": "t"}
    request = form.decode_request(body | {"outputDimensionality": 2})
    assert (request.inputs, request.dimensions) == (("a",), 2)
    assert form.addressed(form.encode_request(replace(request, model="m"), Losses())) == (
        "/v1beta/models/m:embedContent",
        {"content": {"parts": [{"text": "a"}]}, "outputDimensionality": 2, "title": "t"},
    )
    answer: JSONObject = {"embedding": {"values": [1.0]}}
    assert form.encode_response(form.decode_response(answer), request, Losses()) == answer
    with pytest.raises(WireError, match="expected one content, got 2"):
        form.encode_request(TEXTS, Losses())
