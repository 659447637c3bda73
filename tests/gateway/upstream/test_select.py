"""Requests that need no model, asked with Ollama's own client; and servers that know them themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ollama
import pytest

from tests.gateway.running_gateway import config_for
from tests.gateway.scripted_backends import HELLO
from xenoglot.backends.scripted import Scripted
from xenoglot.gateway.config.settings import ModelSettings, UpstreamSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.running_gateway import AccessLines, RunningGateway

LOADING = [
    pytest.param(lambda client, stream: client.generate(model="m", stream=stream), "load", id="generate"),
    pytest.param(
        lambda client, stream: client.generate(model="m", keep_alive=0, stream=stream), "unload", id="generate-unload"
    ),
    pytest.param(lambda client, stream: client.chat(model="m", messages=[], stream=stream), "load", id="chat"),
    pytest.param(lambda client, stream: client.chat(model="m", keep_alive=0, stream=stream), "unload", id="unload"),
]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("ask", "word"), LOADING)
def test_what_only_loads_a_model_asks_none(
    gateway_server: Callable[..., RunningGateway],
    access_lines: AccessLines,
    ask: Callable[[ollama.Client, bool], Any],
    word: str,
    stream: bool,  # noqa: FBT001  a case
) -> None:
    backend = Scripted(HELLO)
    running = gateway_server({"scripted": backend})
    with ollama.Client(host=running.url) as client:
        answer = ask(client, stream)
        pieces = list(answer) if stream else [answer]
    assert [(piece.model, piece.done, piece.done_reason) for piece in pieces] == [("m", True, word)]
    assert backend.requests == []
    line = access_lines.next()
    assert (line["status"], line["backend"], line["finish"], line["failure"]) == (200, "scripted", "stop", None)


def test_a_model_that_is_not_there_is_not_loaded(gateway_server: Callable[..., RunningGateway]) -> None:
    config = config_for("scripted", models=(ModelSettings(name="m", upstream="scripted"),))
    running = gateway_server({"scripted": Scripted(HELLO)}, config)
    assert running.request("POST", "/api/generate", {"model": "x"}).status == 404


@pytest.mark.parametrize("dialect", ["ollama", "ollama_generate"])
def test_a_server_that_knows_such_requests_is_asked(
    gateway_server: Callable[..., RunningGateway], dialect: str
) -> None:
    backend = Scripted(HELLO)
    upstream = UpstreamSettings(dialect=dialect, base_url="http://upstream.invalid")
    running = gateway_server({"scripted": backend}, config_for("scripted", upstreams={"scripted": upstream}))
    with ollama.Client(host=running.url) as client:
        client.generate(model="m")
    assert [request.model for request in backend.requests] == ["m"]


def test_a_question_is_asked(gateway_server: Callable[..., RunningGateway]) -> None:
    running = gateway_server({"scripted": Scripted(HELLO)})
    with ollama.Client(host=running.url) as client:
        assert client.generate(model="m", prompt="Hi").response == "Hello"


@pytest.mark.parametrize(
    ("asked", "model"),
    [("small:latest", "tiny"), ("small", "tiny"), ("any:latest", "any"), ("any:8b", "any:8b"), ("own:latest", "x")],
)
def test_the_tag_that_says_nothing(gateway_server: Callable[..., RunningGateway], asked: str, model: str) -> None:
    """Clients put `:latest` behind a name; a server of another dialect knows no tags."""
    backend = Scripted(HELLO)
    named = (
        ModelSettings(name="small", upstream="up", model="tiny"),
        ModelSettings(name="own:latest", upstream="up", model="x"),
    )
    upstreams = {"up": UpstreamSettings(dialect="chat", base_url="http://up.example")}
    config = config_for(upstreams=upstreams, models=(*named, ModelSettings(name="*", upstream="up")))
    running = gateway_server({"up": backend}, config)
    with ollama.Client(host=running.url) as client:
        client.chat(model=asked, messages=[{"role": "user", "content": "Hi"}])
    assert [request.model for request in backend.requests] == [model]
