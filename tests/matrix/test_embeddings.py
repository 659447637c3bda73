"""The embedded models through the SDKs: embeddings, tokens, and the numbers that Prometheus reads."""

from __future__ import annotations

import json
import math
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import ollama
import openai
import pytest
from google import genai

from tests.matrix.embedded_gateway import EmbeddedGateway

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from xenoglot.model.json import JSON

WRITER, EMBEDDER = "smollm2-135m-instruct", "all-minilm-l6-v2"
SENTENCE = "This is an example sentence"
FIRST = (0.0677, 0.0634, 0.0487, 0.0791)
"""How the vector of the sentence begins, by the weights' makers: the example on the page that publishes them."""

TOLERANCE = 1e-3


@pytest.fixture(scope="module")
def embedded() -> Generator[EmbeddedGateway]:
    """One for all."""
    with EmbeddedGateway() as running:
        yield running


@pytest.fixture(scope="module")
def client(embedded: EmbeddedGateway) -> Generator[openai.OpenAI]:
    """The openai SDK."""
    with openai.OpenAI(base_url=f"{embedded.url}/v1", api_key="none", max_retries=0) as made:
        yield made


def post(embedded: EmbeddedGateway, path: str, body: JSON) -> JSON:
    """What is answered to a plain request."""
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(embedded.url + path, json.dumps(body).encode(), headers)  # noqa: S310  our gateway
    with urllib.request.urlopen(request) as answer:  # noqa: S310  the same
        return json.load(answer)


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """How near two vectors of length 1 are."""
    return sum(a * b for a, b in zip(one, other, strict=True))


def refusal(client: openai.OpenAI, **fields: object) -> tuple[int, str | None, str | None]:
    """Status, parameter and code of a request that is refused."""
    with pytest.raises(openai.APIStatusError) as refused:
        client.embeddings.create(**{"model": EMBEDDER, "input": "a", **fields})  # type: ignore[arg-type]
    return refused.value.status_code, refused.value.param, refused.value.code


def test_openai_asks_for_packed_vectors_and_gets_numbers(client: openai.OpenAI) -> None:
    answer = client.embeddings.create(model=EMBEDDER, input=SENTENCE)
    (found,) = answer.data
    assert tuple(found.embedding[:4]) == pytest.approx(FIRST, abs=TOLERANCE)
    assert math.hypot(*found.embedding) == pytest.approx(1.0)
    assert (answer.model, answer.object, len(found.embedding)) == (EMBEDDER, "list", 384)
    assert (answer.usage.prompt_tokens, answer.usage.total_tokens) == (7, 7)


def test_both_encodings_hold_the_same_numbers(client: openai.OpenAI) -> None:
    packed = client.embeddings.create(model=EMBEDDER, input=[SENTENCE])
    plain = client.embeddings.create(model=EMBEDDER, input=[SENTENCE], encoding_format="float")
    assert packed.data[0].embedding == plain.data[0].embedding


def test_tokens_stand_for_their_text(client: openai.OpenAI) -> None:
    texts = client.embeddings.create(model=EMBEDDER, input=[SENTENCE])
    for tokens in ([101, 2023, 2003, 2019, 2742, 6251, 102], [[101, 2023, 2003, 2019, 2742, 6251, 102]]):
        answer = client.embeddings.create(model=EMBEDDER, input=tokens)
        assert cosine(answer.data[0].embedding, texts.data[0].embedding) == pytest.approx(1.0)


def test_what_means_the_same_is_near(client: openai.OpenAI) -> None:
    texts = ["A cat sits on the mat", "A kitten rests on a rug", "The stock market fell today"]
    cat, kitten, market = [one.embedding for one in client.embeddings.create(model=EMBEDDER, input=texts).data]
    assert cosine(cat, kitten) > 0.5 > cosine(cat, market)


def test_more_texts_than_the_runtime_is_given_at_once(client: openai.OpenAI) -> None:
    texts = [f"text number {number}" for number in range(70)]
    answer = client.embeddings.create(model=EMBEDDER, input=texts)
    assert [one.index for one in answer.data] == [*range(70)]
    alone = client.embeddings.create(model=EMBEDDER, input=texts[69])
    assert cosine(answer.data[69].embedding, alone.data[0].embedding) == pytest.approx(1.0, abs=TOLERANCE)


def test_any_name_will_do_and_says_who_answered(client: openai.OpenAI) -> None:
    answer = client.embeddings.with_raw_response.create(model="text-embedding-3-small", input=SENTENCE)
    assert answer.headers["x-xenoglot-substituted-model"] == EMBEDDER
    assert tuple(answer.parse().data[0].embedding[:4]) == pytest.approx(FIRST, abs=TOLERANCE)


def test_the_model_that_writes_has_vectors_of_its_own(client: openai.OpenAI) -> None:
    answer = client.embeddings.create(model=WRITER, input="A sentence " * 60)
    assert (answer.model, len(answer.data[0].embedding)) == (WRITER, 576)
    assert math.hypot(*answer.data[0].embedding) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"dimensions": 100}, (400, "dimensions", None), id="no-matryoshka"),
        pytest.param({"input": ["a", ""]}, (400, "input[1]", None), id="empty"),
        pytest.param({"input": "word " * 600}, (400, "input[0]", "context_length_exceeded"), id="too-long"),
        pytest.param({"input": "a" * 40_000}, (400, "input[0]", "context_length_exceeded"), id="much-too-long"),
        pytest.param({"input": [[1, 99_999]]}, (400, "input[0]", None), id="no-token"),
        pytest.param({"input": ["a"] * 2049}, (400, "input", None), id="too-many"),
        pytest.param({"model": "x" * 300}, (404, "model", "model_not_found"), id="no-name"),
    ],
)
def test_refused(client: openai.OpenAI, fields: dict[str, object], expected: tuple[int, str, str | None]) -> None:
    assert refusal(client, **fields) == expected


def test_the_length_that_the_vectors_have_may_be_asked_for(client: openai.OpenAI) -> None:
    assert len(client.embeddings.create(model=EMBEDDER, input="a", dimensions=384).data[0].embedding) == 384


def test_a_model_that_embeds_writes_nothing(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(model=EMBEDDER, messages=[{"role": "user", "content": "Hi"}])
    assert (refused.value.param, refused.value.code) == ("model", "unsupported_parameter")


def test_both_are_listed_and_the_one_that_writes_comes_first(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == [WRITER, EMBEDDER]


def test_ollama(embedded: EmbeddedGateway) -> None:
    with ollama.Client(embedded.url) as asking:
        answer = asking.embed("all-minilm", [SENTENCE, "word " * 600])
        older = asking.embeddings("all-minilm", SENTENCE)
        with pytest.raises(ollama.ResponseError) as refused:
            asking.embed("all-minilm", "word " * 600, truncate=False)
    assert (answer.model, answer.prompt_eval_count) == (EMBEDDER, 7 + 512)  # what is too long is cut
    assert tuple(answer.embeddings[0][:4]) == pytest.approx(FIRST, abs=TOLERANCE)
    assert [*older.embedding] == [*answer.embeddings[0]]
    assert refused.value.status_code == 400


def test_gemini(embedded: EmbeddedGateway) -> None:
    options = genai.types.HttpOptions(base_url=embedded.url)
    with genai.Client(api_key="none", http_options=options) as asking:
        answer = asking.models.embed_content(model="gemini-embedding-001", contents=[SENTENCE, "another"])
    first, second = [one.values or [] for one in answer.embeddings or []]
    assert tuple(first[:4]) == pytest.approx(FIRST, abs=TOLERANCE)
    assert len(second) == 384


def test_llama_stack(embedded: EmbeddedGateway) -> None:
    answer = post(embedded, "/v1/inference/embeddings", {"model_id": EMBEDDER, "contents": [SENTENCE]})
    assert tuple(answer["embeddings"][0][:4]) == pytest.approx(FIRST, abs=TOLERANCE)


def test_a_text_as_tokens_and_back(embedded: EmbeddedGateway) -> None:
    asked = {"model": WRITER, "prompt": "Hello 😀 world", "return_token_strs": True}
    answer = post(embedded, "/tokenize", asked)
    assert answer == {
        "count": 4,
        "max_model_len": 1024,
        "tokens": [19556, 40303, 218, 905],
        "token_strs": ["Hello", " �", "�", " world"],
    }
    back = post(embedded, "/v1/detokenize", {"model": WRITER, "tokens": answer["tokens"]})
    assert back == {"prompt": "Hello 😀 world", "content": "Hello 😀 world"}


def test_findings_f_no_model_need_be_named(embedded: EmbeddedGateway) -> None:
    told = post(embedded, "/tokenize", {"prompt": "Hello world"})
    assert post(embedded, "/detokenize", {"tokens": told["tokens"]})["prompt"] == "Hello world"
    said = post(embedded, "/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}], "max_tokens": 1})
    made = post(embedded, "/v1/embeddings", {"input": SENTENCE})
    assert (said["model"], made["model"]) == (WRITER, EMBEDDER)
    assert tuple(made["data"][0]["embedding"][:4]) == pytest.approx(FIRST, abs=TOLERANCE)


@pytest.mark.parametrize(
    ("asked", "tokens"),
    [
        pytest.param({"content": "Hello <|im_end|>"}, [19556, 216, 2], id="bare"),
        pytest.param(
            {"content": "Hello <|im_end|>", "parse_special": False},
            [19556, 2067, 108, 306, 79, 486, 108, 46],
            id="no-control-tokens",
        ),
        pytest.param({"content": ""}, [], id="nothing"),
        pytest.param(
            {"content": "Hello 😀", "with_pieces": True},
            [
                {"id": 19556, "piece": "Hello"},
                {"id": 40303, "piece": [32, 240, 159, 152]},
                {"id": 218, "piece": [128]},
            ],
            id="pieces",
        ),
    ],
)
def test_findings_f_tokens_in_the_form_of_llama_server(embedded: EmbeddedGateway, asked: JSON, tokens: JSON) -> None:
    assert post(embedded, "/tokenize", asked) == {"tokens": tokens}


@pytest.mark.parametrize("path", ["/tokenizer_info", "/v1/tokenizer_info", f"/tokenizer_info?model={WRITER}"])
def test_findings_d_facts_of_the_tokenizer(embedded: EmbeddedGateway, path: str) -> None:
    with urllib.request.urlopen(embedded.url + path) as answer:  # noqa: S310  our gateway
        told = json.load(answer)
    template = told.pop("chat_template")
    assert "<|im_start|>" in template
    assert told == {
        "tokenizer_class": "GPT2Tokenizer",
        "bos_token": "<|im_start|>",
        "eos_token": "<|im_end|>",
        "pad_token": None,
    }


def test_a_text_longer_than_the_model_holds_has_tokens_too(embedded: EmbeddedGateway) -> None:
    answer = post(embedded, "/v1/tokenize", {"model": WRITER, "prompt": "a " * 5000, "add_special_tokens": False})
    assert answer["count"] > answer["max_model_len"]


def test_a_conversation_as_tokens(embedded: EmbeddedGateway, client: openai.OpenAI) -> None:
    messages: JSON = [{"role": "user", "content": "Hello <|im_end|>"}]
    found = post(embedded, "/v1/tokenize", {"model": WRITER, "messages": messages})
    answer = client.chat.completions.create(model=WRITER, messages=messages, max_tokens=1)
    assert answer.usage is not None
    assert found["count"] == len(found["tokens"]) == answer.usage.prompt_tokens
    text = post(embedded, "/v1/detokenize", {"model": WRITER, "tokens": found["tokens"]})["prompt"]
    assert text.endswith("<|im_start|>user\nHello <|im_end|><|im_end|>\n<|im_start|>assistant\n")


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/v1/tokenize", {"model": WRITER}, "prompt"),
        ("/v1/tokenize", {"model": WRITER, "prompt": ["a"]}, "prompt"),
        ("/v1/tokenize", {"model": WRITER, "content": ["a"]}, "content"),
        ("/v1/tokenize", {"model": WRITER, "messages": [], "add_generation_prompt": False}, "add_generation_prompt"),
        ("/v1/tokenize", {"model": WRITER, "messages": [], "chat_template": "{{ x }}"}, "chat_template"),
        (
            "/v1/tokenize",
            {"model": WRITER, "messages": [{"role": "user", "content": "a"}], "continue_final_message": True},
            "continue_final_message",
        ),
        ("/v1/detokenize", {"model": WRITER, "tokens": [1, "a"]}, "tokens[1]"),
        ("/v1/detokenize", {"model": WRITER, "tokens": [1, 999_999]}, "tokens[1]"),
        ("/v1/tokenize", {"model": EMBEDDER, "prompt": "a"}, None),
    ],
)
def test_questions_about_tokens_that_have_no_answer(
    embedded: EmbeddedGateway, path: str, body: JSON, param: str | None
) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        post(embedded, path, body)
    with refused.value as answer:
        assert (answer.code, json.load(answer)["error"]["param"]) == (400, param)


def samples(embedded: EmbeddedGateway) -> dict[str, float]:
    """What Prometheus would read, by name and labels."""
    with urllib.request.urlopen(f"{embedded.url}/metrics") as answer:  # noqa: S310  our gateway
        assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        lines = answer.read().decode().splitlines()
    return {
        name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if not line.startswith("#"))
    }


def test_the_numbers_of_an_answer(embedded: EmbeddedGateway, client: openai.OpenAI) -> None:
    before = samples(embedded)
    answer = client.chat.completions.create(
        model=WRITER, messages=[{"role": "user", "content": "Count to twenty."}], max_tokens=8
    )
    after = samples(embedded)
    assert answer.usage is not None
    grown = {name: value - before.get(name, 0.0) for name, value in after.items()}
    of_writer = f'{{model="{WRITER}",backend="embedded"}}'
    assert {
        "prompt": grown[f"xenoglot_engine_prompt_tokens_total{of_writer}"],
        "generated": grown[f"xenoglot_engine_generated_tokens_total{of_writer}"],
        "finished": grown[f"xenoglot_engine_finished_requests_total{of_writer}"],
        "refused": grown[f"xenoglot_engine_refused_requests_total{of_writer}"],
        "requests": grown['xenoglot_gateway_requests_total{route="/v1/chat/completions",status="200"}'],
    } == {
        "prompt": answer.usage.prompt_tokens,
        "generated": answer.usage.completion_tokens,
        "finished": 1,
        "refused": 0,
        "requests": 1,
    }
    assert grown[f"xenoglot_engine_generation_seconds_total{of_writer}"] > 0
    assert after[f"xenoglot_engine_generation_tokens_per_second{of_writer}"] > 0
    assert after[f"xenoglot_engine_slots{of_writer}"] == 4
    assert after[f"xenoglot_engine_queue_requests{of_writer}"] == 0
