"""Endpoints for embeddings and tokens, whatever stands behind: what is routed, refused, told and written down."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gateway.running_gateway import config_for
from tests.gateway.scripted_backends import Backend
from xenoglot.backends.http.client import Transport
from xenoglot.backends.operation import EmbeddingAnswer, OperationAnswer
from xenoglot.engine.embedding import EmbeddingEngine, normal, shape
from xenoglot.engine.errors import WeightsError
from xenoglot.engine.server.server_process import Settings
from xenoglot.engine.server.weights import MINILM, SMOLLM2, Model, Weights, fetch
from xenoglot.errors import FailureError
from xenoglot.gateway.config.local_models import EMBEDDED, EMBEDDING, Embedded
from xenoglot.gateway.config.settings import ModelSettings as Named
from xenoglot.gateway.config.targets import ModelTarget
from xenoglot.model.embedding import Embeddings
from xenoglot.model.failure import Failure
from xenoglot.model.response import Usage
from xenoglot.model.tokens import Tokens

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.running_gateway import AccessLines, RunningGateway
    from xenoglot.backends.operation import EmbeddingCall, OperationCall
    from xenoglot.model.json import JSONObject
    from xenoglot.model.tokens import TextRequest, TokensRequest

ASKED: JSONObject = {"model": "m", "input": ["a"], "user": "u"}
UNSUPPORTED = "unsupported_parameter"


class Embedding(Backend):
    """Gives each text the same vector, and remembers how it was asked."""

    def __init__(self, name: str = "scripted") -> None:
        super().__init__(name)
        self.calls: list[EmbeddingCall] = []

    async def embed(self, call: EmbeddingCall) -> EmbeddingAnswer:
        """Give the vectors; lose the extra fields."""
        self.calls.append(call)
        call.losses.carry(call.request.extra, "$", "nobody")
        call.losses.settle()
        vectors = ((1.0,),) * len(call.request.inputs)
        return EmbeddingAnswer(embeddings=Embeddings(vectors=vectors, usage=Usage(input_tokens=3)))


LOSS = "$ user dropped (only embeddings has it)"


class Failing(Embedding):
    """Loses something, and is busy."""

    async def embed(self, call: EmbeddingCall) -> EmbeddingAnswer:
        """Refuse."""
        call.losses.dropped("$", "dimensions", "x")
        raise FailureError(Failure(kind="overloaded", message="busy", status=503))


def test_an_answer_and_what_is_told_of_it(
    gateway_server: Callable[..., RunningGateway], access_lines: AccessLines
) -> None:
    backend = Embedding()
    running = gateway_server({"a": backend})
    answer = running.request("POST", "/v1/embeddings", ASKED, {"openai-beta": "x", "x-other": "y"})
    assert answer.json == {
        "object": "list",
        "data": [{"object": "embedding", "index": 0, "embedding": [1.0]}],
        "model": "m",
        "usage": {"prompt_tokens": 3, "total_tokens": 3},
    }
    assert answer.headers["x-xenoglot-losses"] == LOSS
    assert [call.headers for call in backend.calls] == [(("openai-beta", "x"),)]
    line = access_lines.next()
    assert (line["route"], line["backend"], line["usage"]["input_tokens"]) == ("/v1/embeddings", "a", 3)


def test_a_loss_is_refused_where_that_is_the_policy(gateway_server: Callable[..., RunningGateway]) -> None:
    config = config_for("a", models=(Named(name="m", upstream="a", on_loss="refuse"),))
    answer = gateway_server({"a": Embedding()}, config).request("POST", "/v1/embeddings", ASKED)
    assert (answer.status, "user dropped" in answer.json["error"]["message"]) == (400, True)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/embeddings", ASKED),
        ("/v1/tokenize", {"model": "m", "prompt": "a"}),
        ("/v1/detokenize", {"model": "m", "tokens": [1]}),
    ],
)
def test_a_backend_that_cannot_says_so(
    gateway_server: Callable[..., RunningGateway], path: str, body: JSONObject
) -> None:
    answer = gateway_server({"a": Backend()}).request("POST", path, body)
    assert (answer.status, answer.json["error"]["code"]) == (400, UNSUPPORTED)
    assert "`m`" in answer.json["error"]["message"]


@pytest.mark.parametrize("first", [Backend(), Failing()], ids=["makes-none", "K04-is-busy"])
def test_of_several_targets_another_makes_them(
    gateway_server: Callable[..., RunningGateway], access_lines: AccessLines, first: Backend
) -> None:
    targets = (ModelTarget(upstream="a", model="one"), ModelTarget(upstream="b", model="two"))
    config = config_for("a", "b", models=(Named(name="m", targets=targets, strategy="ordered"),))
    running = gateway_server({"a": first, "b": Embedding("b")}, config)
    answer = running.request("POST", "/v1/embeddings", ASKED)
    line = access_lines.next()
    assert (answer.status, answer.headers["x-xenoglot-target"]) == (200, "b/two")
    assert (line["tries"], line["losses"]) == (1 + isinstance(first, Failing), [LOSS])
    held = [said.running for said in running.gateway.dispatcher.ward.measures(0.0)]
    assert set(held) == {0}


@pytest.mark.parametrize(
    ("path", "body", "key"),
    [
        ("/api/embed", {"model": "m", "input": "a"}, "embeddings"),
        ("/api/embeddings", {"model": "m", "prompt": "a"}, "embedding"),
        ("/v1beta/models/m:embedContent", {"content": {"parts": [{"text": "a"}]}}, "embedding"),
        ("/v1/inference/embeddings", {"model_id": "m", "contents": ["a"]}, "embeddings"),
        ("/v1/openai/v1/embeddings", {"model": "m", "input": "a"}, "data"),
    ],
)
def test_every_form_is_served(
    gateway_server: Callable[..., RunningGateway], path: str, body: JSONObject, key: str
) -> None:
    answer = gateway_server({"a": Embedding()}).request("POST", path, body)
    assert (answer.status, key in answer.json) == (200, True)


def test_where_any_name_will_do_the_model_for_embeddings_makes_them(
    gateway_server: Callable[..., RunningGateway],
) -> None:
    writer, maker = Embedding("writer"), Embedding("maker")
    config = config_for(embedded=Embedded())
    running = gateway_server({EMBEDDED: writer, EMBEDDING: maker}, config, embedded_model="writer")
    told = {
        name: running.request("POST", "/v1/embeddings", {"model": name, "input": "a"}).headers.get(
            "x-xenoglot-substituted-model"
        )
        for name in ("anything", "maker", "writer")
    }
    assert told == {"anything": "maker", "maker": None, "writer": None}
    assert [call.request.model for call in (*maker.calls, *writer.calls)] == ["maker", "maker", "writer"]


class Tokenizing(Embedding):
    """Counts a text's characters as its tokens; as text it knows its name."""

    async def tokenize(self, call: OperationCall[TokensRequest, Tokens]) -> OperationAnswer[Tokens]:
        """Number the characters."""
        prompt = call.request.request.prompt
        text = str(prompt.texts[0]) if prompt is not None else ""
        return OperationAnswer(result=Tokens(numbers=tuple(range(len(text))), longest=9))

    async def detokenize(self, call: OperationCall[TextRequest, str]) -> OperationAnswer[str]:
        """Tell the name that the model has here."""
        return OperationAnswer(result=call.request.model)


class Busy(Tokenizing):
    """Cannot tokenize now."""

    async def tokenize(self, call: OperationCall[TokensRequest, Tokens]) -> OperationAnswer[Tokens]:
        """Refuse."""
        raise FailureError(Failure(kind="overloaded", message=f"busy with {call.request.model}", status=503))


@pytest.mark.parametrize("first", [Backend(), Busy()], ids=["knows-none", "is-busy"])
def test_of_several_targets_another_tokenizes(
    gateway_server: Callable[..., RunningGateway], access_lines: AccessLines, first: Backend
) -> None:
    targets = (ModelTarget(upstream="a", model="one"), ModelTarget(upstream="b", model="two"))
    config = config_for("a", "b", models=(Named(name="m", targets=targets, strategy="ordered"),))
    running = gateway_server({"a": first, "b": Tokenizing("b")}, config)
    answer = running.request("POST", "/v1/tokenize", {"model": "m", "prompt": "abc"})
    assert answer.json == {"count": 3, "max_model_len": 9, "tokens": [0, 1, 2], "token_strs": None}
    line = access_lines.next()
    assert (line["backend"], line["target"]) == ("b", "two")


def test_what_is_busy_everywhere_is_told(gateway_server: Callable[..., RunningGateway]) -> None:
    answer = gateway_server({"a": Busy()}).request("POST", "/v1/tokenize", {"model": "m", "prompt": "abc"})
    assert (answer.status, answer.json["error"]["message"]) == (503, "busy with m")


def test_operations_without_limits_hold_nothing(gateway_server: Callable[..., RunningGateway]) -> None:
    running = gateway_server({"a": Tokenizing()})
    assert running.request("POST", "/v1/detokenize", {"model": "m", "tokens": [1]}).json["prompt"] == "m"
    assert [(one.running, sum(one.tries.values())) for one in running.gateway.dispatcher.ward.measures(0.0)] == [(0, 0)]


async def test_weights_that_cannot_be_had_are_looked_for_again() -> None:
    tries: list[str] = []

    def find() -> Weights:
        tries.append("once")
        message = "there is no network"
        raise WeightsError(message)

    transport = Transport()
    engine = EmbeddingEngine("m", find, transport=transport)
    for _ in range(2):
        answer = await engine.models()
        assert [model.id for model in answer] == ["m"]
        with pytest.raises(Exception, match="there is no network"):
            await engine._runtime()
    assert tries == ["once", "once"]
    assert engine.measures().starts == 0
    await engine.aclose()
    await transport.aclose()


@pytest.mark.parametrize(
    ("model", "settings", "longest"),
    [(MINILM, Settings(), 512), (SMOLLM2, Settings(), 1024), (SMOLLM2, Settings(context=300), 300)],
)
def test_a_text_fits_into_one_batch(model: Model, settings: Settings, longest: int) -> None:
    made = shape(Weights(path=fetch().path, name=model.name, context=model.context), settings)
    assert (made.context, made.batch, made.slots) == (longest, longest, 1)


def test_a_vector_is_shortened_to_length_one() -> None:
    assert normal((3.0, 4.0)) == (0.6, 0.8)
    assert normal((0.0, 0.0)) == (0.0, 0.0)
