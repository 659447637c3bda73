"""Paths at which nothing is served, or not what the client means: whose words the refusal is in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anthropic
import ollama
import openai
import pytest

from tests.gateway.scripted_backends import HELLO
from xenoglot.backends.scripted import Scripted

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.running_gateway import RunningGateway
    from xenoglot.model.json import JSON

ANTHROPIC = {"anthropic-version": "2023-06-01"}


@pytest.fixture
def running(gateway_server: Callable[..., RunningGateway]) -> RunningGateway:
    """A gateway."""
    return gateway_server({"scripted": Scripted(HELLO)})


def shape(value: JSON) -> JSON:
    """Return the keys of a JSON value, and its kinds of errors."""
    if not isinstance(value, dict):
        return type(value).__name__
    return {key: value[key] if key in ("type", "status") else shape(value[key]) for key in value}


CHAT: JSON = {"error": {"message": "str", "type": "invalid_request_error", "param": "NoneType", "code": "str"}}
GEMINI: JSON = {"error": {"code": "int", "message": "str", "status": "NOT_FOUND", "details": "list"}}
MESSAGES: JSON = {"type": "error", "error": {"type": "not_found_error", "message": "str"}, "request_id": "str"}
OLLAMA: JSON = {"error": "str"}
LLAMA_STACK: JSON = {"status": 404, "title": "str", "detail": "str"}


@pytest.mark.parametrize(
    ("path", "headers", "told"),
    [
        pytest.param("/v1/nothing", {}, CHAT, id="usual"),
        pytest.param("/nothing", {}, CHAT, id="no-version"),
        pytest.param("/v1/chat/nothing", {}, CHAT, id="chat"),
        pytest.param("/api/nothing", {}, OLLAMA, id="findings-K-ollama"),
        pytest.param("/api/blobs/sha256:0", {}, OLLAMA, id="findings-K-ollama-deeper"),
        pytest.param("/v1beta/nothing", {}, GEMINI, id="findings-K-gemini"),
        pytest.param("/v1beta/cachedContents", {}, GEMINI, id="findings-K-gemini-caches"),
        pytest.param("/v1/messages/nothing", {}, MESSAGES, id="findings-K-messages"),
        pytest.param("/v1/inference/nothing", {}, LLAMA_STACK, id="findings-K-llama-stack"),
        pytest.param("/v1/nothing", ANTHROPIC, MESSAGES, id="marked"),
        pytest.param("/api/nothing", ANTHROPIC, OLLAMA, id="the-path-before-the-mark"),
        pytest.param("/" + "x/" * 5_000, {}, CHAT, id="many-segments"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_unknown_paths_are_told_in_the_dialect_of_their_beginning(
    running: RunningGateway, method: str, path: str, headers: dict[str, str], told: JSON
) -> None:
    answer = running.request(method, path, {} if method == "POST" else None, headers)
    assert (answer.status, shape(answer.json)) == (404, told)


def test_findings_j_files_are_openais_for_everybody_else(running: RunningGateway) -> None:
    assert running.request("GET", "/v1/files").json == {
        "object": "list",
        "data": [],
        "has_more": False,
        "first_id": None,
        "last_id": None,
    }


def test_findings_h_j_anthropics_sdk(running: RunningGateway) -> None:
    strict = anthropic.Anthropic(base_url=running.url, api_key="k", max_retries=0, _strict_response_validation=True)
    with strict as client:
        assert [model.lifecycle for model in client.models.list()] == ["active"]
        file = client.beta.files.upload(file=("a.txt", b"a", "text/plain"))
        assert list(client.beta.files.list()) == [file]
        client.beta.files.delete(file.id)
        with pytest.raises(anthropic.NotFoundError) as caught:
            client.beta.files.download(file.id)
        assert shape(caught.value.body) == MESSAGES


def test_findings_k_ollamas_sdk(running: RunningGateway) -> None:
    client = ollama.Client(host=running.url)
    with pytest.raises(ollama.ResponseError, match="nothing is served at `/api/copy`") as caught:
        client.copy("a", "b")
    client._client.close()
    assert caught.value.status_code == 404


def test_findings_e_openais_paths_of_llama_stack(running: RunningGateway) -> None:
    mark = {"x-llamastack-client-version": "0.2.12"}
    with openai.OpenAI(
        base_url=f"{running.url}/v1/openai/v1", api_key="k", max_retries=0, default_headers=mark
    ) as client:
        said = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi"}], store=True)
        assert said.choices[0].message.content == "Hello"
        assert client.chat.completions.retrieve(said.id).id == said.id
        assert [one.id for one in client.chat.completions.list()] == [said.id]
        assert client.completions.create(model="m", prompt="Hi").choices[0].text == "Hello"
        answer = client.responses.create(model="m", input="Hi")
        assert client.responses.retrieve(answer.id) == answer
        assert len(client.responses.input_items.list(answer.id).data) == 1
        assert client.files.list().data == []
        assert [model.object for model in client.models.list()] == ["model"]
        with pytest.raises(openai.NotFoundError, match="nothing is served at `/v1/openai/v1/nothing`"):
            client.get("/nothing", cast_to=object)
    assert running.request("GET", "/v1/version", headers=mark).json == {"version": "0.2.12"}
    assert running.request("POST", "/v1/openai/v1/messages", {}).status == 404
