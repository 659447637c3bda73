"""A gateway in front of an upstream that it signs in at: every endpoint has the token, and failures name no secret."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import httpx2
import pytest

from tests.backends.remote.sign_in.scripted_tokens import TokenCall, TokenRefusalError, token_endpoint
from tests.gateway.running_gateway import TIMEOUT
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.config.load import check
from xenoglot.testing.canned import answers
from xenoglot.testing.script import RequestMatcher, Respond, ScriptRule
from xenoglot.testing.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.model.json import JSON, JSONObject

TOKEN = "sk-ant-oat01-issued-by-the-endpoint"
CHAT: JSONObject = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
MESSAGES: JSONObject = {**CHAT, "max_tokens": 100}
MODELS = b'{"data":[{"type":"model","id":"m","display_name":"M","created_at":"2026-01-01T00:00:00Z"}],"has_more":false}'
COUNTED = b'{"input_tokens":3}'
JSON_TYPE = (("content-type", "application/json"),)


def issue(_: TokenCall) -> JSONObject:
    """Issue a token for an hour."""
    return {"access_token": TOKEN, "expires_in": 3600, "token_type": "Bearer"}


def identity(token_url: str, **more: JSON) -> JSONObject:
    """Return the settings of an upstream with a workload identity."""
    options = {"federation_rule": "fdrl_1", "organization": "org_1", "token_env": "OIDC", "token_url": token_url}
    return {"auth": "anthropic_identity", "sign_in": {**options, **more}}


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    """A server of messages, with its list of models and its count of tokens."""
    rules = (
        ScriptRule(when=RequestMatcher(method="GET"), steps=(Respond(200, JSON_TYPE, MODELS),)),
        ScriptRule(when=RequestMatcher(path="/v1/messages/count_tokens"), steps=(Respond(200, JSON_TYPE, COUNTED),)),
    )
    with Upstream(*rules, *answers("messages", text=("Hel", "lo.")).rules()) as server:
        yield server


@pytest.fixture(scope="module")
def gateway(upstream: Upstream) -> Iterator[DialectGateway]:
    """A gateway that signs in there."""
    with (
        token_endpoint(issue) as endpoint,
        DialectGateway(
            upstream, "messages", {"OIDC": "the.identity.token"}, upstream=identity(endpoint.url)
        ) as running,
    ):
        yield running


@pytest.mark.parametrize(
    ("path", "body"),
    [
        pytest.param("/v1/messages", MESSAGES, id="same-dialect"),
        pytest.param("/v1/messages", {**MESSAGES, "stream": True}, id="same-dialect-stream"),
        pytest.param("/v1/chat/completions", CHAT, id="translated"),
        pytest.param("/v1/chat/completions", {**CHAT, "stream": True}, id="translated-stream"),
        pytest.param("/v1/messages/count_tokens", CHAT, id="count"),
        pytest.param("/v1/models", None, id="models"),
    ],
)
def test_every_endpoint_has_the_token(
    upstream: Upstream, gateway: DialectGateway, path: str, body: JSONObject | None
) -> None:
    upstream.forget()
    headers = {"anthropic-beta": "context-1m-2025-08-07", "authorization": "Bearer whatever"}
    with httpx2.Client(base_url=gateway.url, timeout=TIMEOUT, headers=headers) as client:
        answer = client.get(path) if body is None else client.post(path, json=body)
    assert answer.status_code == 200
    assert TOKEN not in answer.text + str(answer.headers)
    (request,) = upstream.requests
    assert [value for name, value in request.headers if name == "authorization"] == [f"Bearer {TOKEN}"]
    betas = [value for name, value in request.headers if name == "anthropic-beta"]
    assert len(betas) == 1
    assert "oauth-2025-04-20" in betas[0].split(",")
    if path == "/v1/messages":
        assert "context-1m-2025-08-07" in betas[0]


def test_a_sign_in_that_fails_is_a_failure_without_hosts(upstream: Upstream, caplog: pytest.LogCaptureFixture) -> None:
    def refuse(_: TokenCall) -> JSONObject:
        raise TokenRefusalError(401, {"error": "invalid_grant", "error_description": "no rule fits the.identity.token"})

    upstream.forget()
    environ = {"OIDC": "the.identity.token"}
    with token_endpoint(refuse) as endpoint, caplog.at_level(logging.WARNING, "xenoglot"):
        options: JSONObject = {**identity(endpoint.url), "retry": {"attempts": 1}}
        with DialectGateway(upstream, "messages", environ, upstream=options) as running:
            answer = httpx2.post(f"{running.url}/v1/messages", json=MESSAGES, timeout=TIMEOUT)
    assert answer.status_code == 502
    assert "the gateway could not sign in to the upstream; retry later" in answer.text
    assert "127.0.0.1" not in answer.text
    assert "invalid_grant" not in answer.text
    assert upstream.requests == []
    told = caplog.text
    assert (
        "sign-in `anthropic_identity` of upstream `up` failed: the token endpoint answered 401: invalid_grant: no rule "
        "fits [redacted]; does the federation rule fit the identity token" in told
    )
    assert "the.identity.token" not in told


SERVER: JSONObject = {"dialect": "messages", "base_url": "https://models.example"}


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        pytest.param(
            {"auth": "google", "sign_in": {"tenant": "t"}},
            'upstreams.up.sign_in.tenant: not an option of `auth = "google"`; expected one of scopes',
            id="option-of-another",
        ),
        pytest.param(
            {"sign_in": {"scopes": ["s"]}},
            "upstreams.up.sign_in.scopes: not an option of an upstream with a key; remove it, or set `auth`",
            id="option-of-a-key",
        ),
        pytest.param(
            {"auth": "azure", "key_env": "KEY"},
            'upstreams.up.key_env: not used with `auth = "azure"`; remove one of them',
            id="a-key-too",
        ),
        pytest.param(
            {"auth": "azure", "sign_in": {"client_secret_env": "SECRET"}},
            "upstreams.up.sign_in.tenant: required by `client_secret_env`",
            id="half-a-client",
        ),
        pytest.param(
            {"auth": "azure", "sign_in": {"client_secret_env": "UNSET", "tenant": "t", "client_id": "c"}},
            "upstreams.up.sign_in.client_secret_env: the environment variable",
            id="an-unset-variable",
        ),
        pytest.param({"auth": "gogle"}, 'upstreams.up.auth: found "gogle"; expected one of key, bearer', id="unknown"),
        pytest.param(
            {"also": [{"dialect": "chat", "auth": "google"}]},
            'upstreams.up.also: found `auth = "google"`; a sign-in is set for the whole upstream',
            id="for-one-dialect",
        ),
    ],
)
def test_mistakes_of_the_settings_are_named(settings: JSONObject, problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        check({"upstreams": {"up": {**SERVER, **settings}}}, {"KEY": "k", "SECRET": "s"}, "file")
    assert problem in str(caught.value)


def test_a_sign_in_needs_no_key_of_the_provider() -> None:
    plain: JSONObject = {"upstreams": {"up": {"provider": "anthropic", "auth": "anthropic_identity"}}}
    upstream = check(plain, {}, "file").upstreams["up"]
    assert (upstream.key_env, upstream.auth) == (None, "anthropic_identity")
    plain = {"upstreams": {"up": {"provider": "azure", "settings": {"resource": "r"}, "auth": "azure"}}}
    upstream = check(plain, {}, "file").upstreams["up"]
    assert {upstream.auth, *(one.auth for one in upstream.also)} == {"azure"}
