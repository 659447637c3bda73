"""Which model a request without `model` means, and what of it reaches an upstream."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.gateway.running_gateway import config_for, run_gateway
from tests.gateway.scripted_backends import HELLO, Backend
from xenoglot.backends.backend import EventAnswer
from xenoglot.backends.operation import EmbeddingAnswer
from xenoglot.gateway.auth.keys import EVERYBODY, Principal
from xenoglot.gateway.config.load import Config
from xenoglot.gateway.config.local_models import EMBEDDING, Embedded, EmbeddedModel
from xenoglot.gateway.config.settings import ModelSettings, UpstreamSettings
from xenoglot.gateway.routing.model_router import sole_model
from xenoglot.gateway.routing.router import Router, plans, single
from xenoglot.model.embedding import Embeddings
from xenoglot.model.fold import unfold

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from xenoglot.backends.backend import Call
    from xenoglot.backends.operation import EmbeddingCall
    from xenoglot.model.events import Event

OWN, MAKER = "writer", "maker"
ONE = {"main": UpstreamSettings(dialect="chat", base_url="http://one.example")}
MADE = single(MAKER, EMBEDDING)
NAMED = ModelSettings(name="m", upstream="main")
OTHER = ModelSettings(name="n", upstream="main")
SAME = ModelSettings(name="n", upstream="main", model="m")
PATTERN = ModelSettings(name="claude-*", upstream="main")
INSTEAD = ModelSettings(name="claude-*", upstream="embedded")
BESIDE = Embedded(models={"coder": EmbeddedModel(gguf="/models/coder.gguf")})


def config(*models: ModelSettings) -> Config:
    """A configuration of one upstream."""
    return Config(upstreams=ONE, models=models)


@pytest.mark.parametrize(
    ("config", "own", "allowed", "writes", "embeds"),
    [
        pytest.param(Config(), OWN, (), OWN, MAKER, id="embedded-alone"),
        pytest.param(Config(models=(INSTEAD,)), OWN, (), OWN, MAKER, id="embedded-by-two-names"),
        pytest.param(Config(embedded=BESIDE), OWN, (), None, MAKER, id="two-embedded"),
        pytest.param(Config(embedded=BESIDE), OWN, ("coder",), "coder", "coder", id="two-embedded-one-allowed"),
        pytest.param(config(), None, (), None, None, id="lone-upstream-of-unknown-models"),
        pytest.param(config(), None, ("m",), "m", "m", id="lone-upstream-one-allowed"),
        pytest.param(config(), None, ("m*",), None, None, id="lone-upstream-a-pattern-allowed"),
        pytest.param(config(), OWN, (), None, None, id="lone-upstream-and-embedded"),
        pytest.param(config(NAMED), None, (), "m", None, id="one-name"),
        pytest.param(config(NAMED), OWN, (), None, None, id="one-name-and-embedded"),
        pytest.param(config(NAMED, OTHER), None, (), None, None, id="two-names"),
        pytest.param(config(NAMED, OTHER), None, ("n", MAKER), "n", None, id="two-names-one-allowed"),
        pytest.param(config(NAMED, SAME), None, (), "m", None, id="two-names-of-one-model"),
        pytest.param(config(NAMED, PATTERN), None, (), None, None, id="a-name-and-a-pattern"),
        pytest.param(config(NAMED), None, ("x",), None, None, id="none-allowed"),
    ],
)
def test_findings_f_the_only_model_is_meant(
    config: Config, own: str | None, allowed: Sequence[str], writes: str | None, embeds: str | None
) -> None:
    router = Router((*plans(config, own), MADE))
    client = Principal(models=tuple(allowed)) if allowed else EVERYBODY
    assert (sole_model(router, client), sole_model(router, client, embeds=True)) == (writes, embeds)


TURN = {"role": "user", "content": "Hi"}
ITEM = {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}
ASKED = [
    ("/v1/chat/completions", {"messages": [TURN]}, "model"),
    ("/v1/completions", {"prompt": "Hi"}, "model"),
    ("/v1/responses", {"input": [ITEM]}, "model"),
    ("/v1/responses", {"input": [ITEM], "store": False}, "model"),
    ("/v1/responses", {"input": [ITEM], "background": True}, "model"),
    ("/v1/responses/input_tokens", {"input": [ITEM]}, "model"),
    ("/v1/messages", {"messages": [TURN], "max_tokens": 8}, "model"),
    ("/v1/messages/count_tokens", {"messages": [TURN]}, "model"),
    ("/api/chat", {"messages": [TURN], "stream": False}, "model"),
    ("/api/generate", {"prompt": "Hi", "stream": False}, "model"),
    ("/v1/inference/chat-completion", {"messages": [TURN]}, "model_id"),
    ("/v1/inference/completion", {"content": "Hi"}, "model_id"),
]
"""A request without a model for each endpoint that asks for words or counts, and what calls it there."""

EMBEDDED = [
    ("/v1/embeddings", {"input": "Hi"}, "model"),
    ("/api/embed", {"input": "Hi"}, "model"),
    ("/api/embeddings", {"prompt": "Hi"}, "model"),
    ("/v1/inference/embeddings", {"contents": ["Hi"]}, "model_id"),
]


class Noting(Backend):
    """Answers, counts and embeds, and notes which model it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.models_asked: list[str] = []

    async def answer(self, call: Call) -> EventAnswer:
        """Give the usual answer."""
        self.models_asked.append(call.request.model)
        batches = self._said()
        return EventAnswer(batches=batches, aclose=batches.aclose)

    async def count(self, call: Call) -> int:
        """Give a count."""
        self.models_asked.append(call.request.model)
        return 7

    async def embed(self, call: EmbeddingCall) -> EmbeddingAnswer:
        """Give each text the same vector."""
        self.models_asked.append(call.request.model)
        return EmbeddingAnswer(embeddings=Embeddings(vectors=((1.0,),) * len(call.request.inputs)))

    async def _said(self) -> AsyncGenerator[Sequence[Event]]:
        yield tuple(unfold(HELLO))


@pytest.mark.parametrize(("path", "body", "field"), [*ASKED, *EMBEDDED])
def test_findings_f_each_endpoint_answers_without_a_model(path: str, body: dict[str, object], field: str) -> None:
    backend, models = Noting(), (ModelSettings(name="m", upstream="scripted"),)
    with run_gateway({"scripted": backend}, config_for("scripted", models=models)) as running:
        answers = [running.request("POST", path, {**body, **said}) for said in ({}, {field: None}, {field: "m"})]
    assert [answer.status for answer in answers] == [200, 200, 200]
    assert backend.models_asked == ["m", "m", "m"]


@pytest.mark.parametrize(("path", "body", "field"), [*ASKED, *EMBEDDED])
def test_findings_f_where_several_could_be_meant_the_model_is_required(
    path: str, body: dict[str, object], field: str
) -> None:
    models = (ModelSettings(name="m", upstream="scripted"), ModelSettings(name="n", upstream="scripted"))
    with run_gateway({"scripted": Backend()}, config_for("scripted", models=models)) as running:
        answer = running.request("POST", path, body)
    assert answer.status == 400
    assert f"{field}: required" in json.dumps(answer.json)


def test_findings_d_the_tokenizer_of_several_models_is_nobodys() -> None:
    models = (ModelSettings(name="m", upstream="scripted"), ModelSettings(name="n", upstream="scripted"))
    with run_gateway({"scripted": Backend()}, config_for("scripted", models=models)) as running:
        answers = [running.request("GET", f"/tokenizer_info{query}") for query in ("", "?model=m")]
    assert [(one.status, one.json["error"]["param"]) for one in answers] == [(400, "model"), (400, None)]
