"""A gateway in front of Azure sends what the SDKs of OpenAI and Anthropic send there, signed in as a machine."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from anthropic import AnthropicFoundry
from openai import AzureOpenAI, OpenAI

from tests.backends.remote.sign_in.scripted_tokens import token_endpoint
from tests.gateway.running_gateway import TIMEOUT
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from xenoglot.testing.canned import polyglot
from xenoglot.testing.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.backends.remote.sign_in.scripted_tokens import TokenCall
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.testing.raw_http import Received

TURNS: Any = [{"role": "user", "content": "Hi"}]
TOKEN = "eyJ.token-of-the-machine"


def issue(call: TokenCall) -> JSONObject:
    """Issue a token to the machine, for the scope of the models."""
    assert "resource=https://cognitiveservices.azure.com" in call.path
    return {"access_token": TOKEN, "expires_on": str(int(time.time()) + 3600), "token_type": "Bearer"}


@pytest.fixture(scope="module", name="azure")
def azure_server() -> Iterator[Upstream]:
    """A server of every dialect."""
    with Upstream(*polyglot(text=("Hel", "lo."))) as server:
        yield server


@pytest.fixture(scope="module", name="running")
def signed_in_gateway(azure: Upstream) -> Iterator[DialectGateway]:
    """A gateway in front of it, with the paths of the rows."""
    row: JSONObject = {"auth": "azure", "sign_in": {"managed_identity": True}}
    deployments = "/openai/deployments/{model}/chat/completions"
    upstreams: JSONObject = {
        "v1": {**row, "dialect": "chat", "base_url": f"{azure.url}/openai/v1"},
        "dated": {**row, "dialect": "chat", "base_url": f"{azure.url}?api-version=2024-10-21", "path": deployments},
        "foundry": {**row, "dialect": "messages", "base_url": f"{azure.url}/anthropic"},
    }
    models: JSON = [{"name": name, "upstream": name, "model": "m"} for name in upstreams]
    with pytest.MonkeyPatch.context() as patch, token_endpoint(issue) as endpoint:
        patch.setenv("IDENTITY_ENDPOINT", f"{endpoint.url}/msi/token")
        patch.setenv("IDENTITY_HEADER", "header of the machine")
        with DialectGateway(azure, "chat", upstreams=upstreams, models=models) as gateway:
            yield gateway


def shown(request: Received) -> tuple[str, str | None]:
    """Return target and credential."""
    headers = dict(request.headers)
    assert "api-key" not in headers
    return request.target, headers["authorization"]


@pytest.mark.parametrize("name", ["v1", "dated", "foundry"])
def test_requests_are_those_of_the_sdk(azure: Upstream, running: DialectGateway, name: str) -> None:
    azure.forget()
    body = {"model": name, "messages": TURNS, "max_tokens": 100}
    path = "/v1/messages" if name == "foundry" else "/v1/chat/completions"
    assert httpx2.post(f"{running.url}{path}", json=body, timeout=TIMEOUT).status_code == 200
    if name == "foundry":
        with AnthropicFoundry(azure_ad_token_provider=lambda: TOKEN, base_url=f"{azure.url}/anthropic") as foundry:
            foundry.messages.create(model="m", max_tokens=100, messages=TURNS)
    elif name == "dated":
        with AzureOpenAI(azure_ad_token=TOKEN, azure_endpoint=azure.url, api_version="2024-10-21") as dated:
            dated.chat.completions.create(model="m", messages=TURNS)
    else:
        with OpenAI(api_key=TOKEN, base_url=f"{azure.url}/openai/v1") as openai:
            openai.chat.completions.create(model="m", messages=TURNS)
    ours, theirs = map(shown, azure.requests)
    assert ours == theirs
    assert ours[1] == f"Bearer {TOKEN}"
