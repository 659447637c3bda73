"""A gateway in front of Vertex AI sends what the SDK of Anthropic sends there, with the token of its account."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx2
import pytest
from anthropic import AnthropicVertex
from cryptography.hazmat.primitives.asymmetric import rsa
from google import genai
from google.oauth2.credentials import Credentials
from msgspec.structs import replace

from tests.backends.remote.sign_in.scripted_tokens import token_endpoint
from tests.backends.remote.sign_in.test_google import ServiceAccounts, write_key
from tests.gateway.running_gateway import TIMEOUT
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from xenoglot.testing.canned import answers
from xenoglot.testing.script import RequestMatcher, Respond, ScriptRule
from xenoglot.testing.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.model.json import JSONObject
    from xenoglot.testing.raw_http import Received

CLAUDE = "claude-sonnet-4-5@20250929"
TURNS: Any = [{"role": "user", "content": "Hi"}]
MESSAGES: JSONObject = {"model": CLAUDE, "max_tokens": 100, "messages": TURNS}
BASE = "/v1/projects/acme/locations/europe-west1"
PUBLISHED = f"{BASE}/publishers/anthropic/models"
COUNTED = (Respond(200, (("content-type", "application/json"),), b'{"input_tokens":3}'),)


@pytest.fixture(scope="module", name="vertex")
def vertex_server() -> Iterator[Upstream]:
    """A server with the paths of both publishers."""
    rules = [ScriptRule(when=RequestMatcher(path="*/count-tokens:rawPredict"), steps=COUNTED)]
    rules += [
        replace(rule, when=replace(rule.when, path=pattern))
        for dialect, pattern in (("messages", "*awPredict"), ("gemini", "*/google/models/*"), ("chat", "*/openapi/*"))
        for rule in answers(dialect, text=("Hel", "lo.")).rules()
    ]
    with Upstream(*rules) as server:
        yield server


@pytest.fixture(scope="module", name="running")
def signed_in_gateway(vertex: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DialectGateway]:
    """A gateway with the row of the provider, whose host is the scripted server's."""
    accounts = ServiceAccounts(rsa.generate_private_key(public_exponent=65537, key_size=2048))
    folder = tmp_path_factory.mktemp("google")
    with token_endpoint(accounts.answer) as endpoint:
        file = write_key(folder, accounts.key, f"{endpoint.url}/token")
        base = f"{vertex.url}{BASE}/publishers"
        paths = {
            "path": "/models/{+model}:rawPredict",
            "stream_path": "/models/{+model}:streamRawPredict",
            "count_path": "/models/count-tokens:rawPredict",
        }
        quirks = {"body_fields": {"anthropic_version": "vertex-2023-10-16"}}
        row: JSONObject = {"auth": "google", "sign_in": {"credentials_file": file}}
        upstreams: JSONObject = {
            "claude": {**row, "dialect": "messages", "base_url": f"{base}/anthropic", **paths, "target": quirks},
            "gemini": {**row, "dialect": "gemini", "base_url": f"{base}/google"},
            "open": {**row, "dialect": "chat", "base_url": f"{vertex.url}{BASE}/endpoints/openapi"},
        }
        names = zip(("claude", "gemini", "meta"), upstreams, strict=True)
        models = [{"name": f"{name}-*", "upstream": upstream} for name, upstream in names]
        with DialectGateway(vertex, "chat", upstreams=upstreams, models=models) as gateway:
            yield gateway


def shown(request: Received) -> tuple[str, str, JSONObject]:
    """Return path, credential and body."""
    return urlsplit(request.target).path, dict(request.headers)["authorization"], json.loads(request.body)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("dialect", ["messages", "chat"])
def test_claude_gets_what_the_sdk_sends(vertex: Upstream, running: DialectGateway, dialect: str, stream: bool) -> None:  # noqa: FBT001  a case
    vertex.forget()
    path = "/v1/messages" if dialect == "messages" else "/v1/chat/completions"
    answer = httpx2.post(f"{running.url}{path}", json={**MESSAGES, "stream": stream}, timeout=TIMEOUT)
    assert answer.status_code == 200
    with AnthropicVertex(
        region="europe-west1", project_id="acme", access_token="ya29.token-1", base_url=f"{vertex.url}/v1"
    ) as sdk:
        made = sdk.messages.create(model=CLAUDE, max_tokens=100, messages=TURNS, stream=stream)
        if stream:
            list(made)
    ours, theirs = map(shown, vertex.requests)
    assert ours[0] == theirs[0] == f"{PUBLISHED}/{CLAUDE}:{'streamRawPredict' if stream else 'rawPredict'}"
    assert ours[1].startswith("Bearer ya29.token-")
    if dialect == "messages":  # the version is of the format that is read here; the SDK's is newer
        assert _set(ours[2]) == _set(theirs[2]) | {"anthropic_version": "vertex-2023-10-16"}
    assert "model" not in ours[2]
    assert ours[2].get("stream", False) is stream


def _set(body: JSONObject) -> JSONObject:
    """Return the fields that are set; `stream` is not where it is false."""
    return {name: value for name, value in body.items() if value is not False}


def test_tokens_are_counted(vertex: Upstream, running: DialectGateway) -> None:
    vertex.forget()
    body = {"model": CLAUDE, "messages": TURNS}
    answer = httpx2.post(f"{running.url}/v1/messages/count_tokens", json=body, timeout=TIMEOUT)
    assert answer.json() == {"input_tokens": 3}
    path, _, sent = shown(vertex.requests[0])
    assert (path, sent["model"]) == (f"{PUBLISHED}/count-tokens:rawPredict", CLAUDE)


@pytest.mark.parametrize(
    ("model", "stream", "path"),
    [
        pytest.param("gemini-3-pro", False, "/publishers/google/models/gemini-3-pro:generateContent", id="gemini"),
        pytest.param("gemini-3-pro", True, "/publishers/google/models/gemini-3-pro:streamGenerateContent", id="stream"),
        pytest.param("meta-llama", False, "/endpoints/openapi/chat/completions", id="openai-compatible"),
    ],
)
def test_the_other_publishers(
    vertex: Upstream,
    running: DialectGateway,
    model: str,
    stream: bool,  # noqa: FBT001  a case
    path: str,
) -> None:
    vertex.forget()
    body = {"model": model, "max_tokens": 100, "messages": TURNS, "stream": stream}
    assert httpx2.post(f"{running.url}/v1/messages", json=body, timeout=TIMEOUT).status_code == 200
    assert shown(vertex.requests[0])[:1] == (BASE + path,)


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_googles_sdk_for_vertex_is_a_client(running: DialectGateway, version: str) -> None:
    """Its paths begin with the project; the credential that it shows is none of the gateway's."""
    options = genai.types.HttpOptions(base_url=running.url, api_version=version)
    credentials = Credentials("ya29.of-the-client")  # type: ignore[no-untyped-call]
    with genai.Client(
        vertexai=True, project="p", location="l", credentials=credentials, http_options=options
    ) as client:
        assert client.models.generate_content(model="gemini-3-pro", contents="Hi").text == "Hello."
        chunks = client.models.generate_content_stream(model="gemini-3-pro", contents="Hi")
        assert "".join(chunk.text or "" for chunk in chunks) == "Hello."
        assert client.models.generate_content(model=CLAUDE, contents="Hi").text == "Hello."
