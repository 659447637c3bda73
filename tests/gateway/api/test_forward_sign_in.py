"""Endpoints beside answers, in front of servers that verify who calls: tokens, signatures, the client's own sign-in."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import httpx2
import pytest

from tests.backends.remote.sign_in.scripted_tokens import token_endpoint
from tests.backends.remote.sign_in.signature_check import refusal
from tests.gateway.api.test_forward import (
    FILE,
    JSON_TYPE,
    MODERATION,
    SPEECH,
    TRANSCRIPT,
    answering,
    form_of,
    multipart,
    one,
    served,
)
from tests.gateway.running_gateway import TIMEOUT
from xenoglot.testing.script import RequestMatcher, Respond, ScriptRule
from xenoglot.testing.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.backends.remote.sign_in.scripted_tokens import TokenCall, TokenEndpoint
    from tests.gateway.api.test_forward import Served
    from xenoglot.model.json import JSON, JSONObject

EMBEDDED: JSONObject = {
    "object": "list",
    "model": "big",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}],
    "usage": {"prompt_tokens": 1, "total_tokens": 1},
}
RANKED: JSONObject = {"results": [{"index": 0, "relevance_score": 0.5}]}
RULES = (
    answering("/v1/moderations", MODERATION),
    answering("/v1/audio/speech", SPEECH, "audio/mpeg"),
    answering("/v1/images/generations", {"created": 1, "data": []}),
    answering("/v1/decisions", {"id": "d1"}),
    answering("/v1/audio/transcriptions", TRANSCRIPT),
    answering("/v1/audio/translations", TRANSCRIPT),
    answering("/v1/images/edits", {"created": 1, "data": []}),
    answering("/v1/rerank", RANKED),
    answering("/v1/embeddings", EMBEDDED),
)
BODIES: dict[str, JSON] = {
    "/v1/moderations": {"model": "m", "input": "Hi"},
    "/v1/audio/speech": {"model": "m", "input": "Hi", "voice": "alloy"},
    "/v1/images/generations": {"model": "m", "prompt": "A cat"},
    "/v1/decisions": {"model": "m", "input": "Hi"},
    "/v1/rerank": {"model": "m", "query": "Hi", "documents": ["a"]},
    "/v1/embeddings": {"model": "m", "input": "Hi"},
}
FORMS = ("/v1/audio/transcriptions", "/v1/audio/translations", "/v1/images/edits")
PATHS = (*BODIES, *FORMS, "large form")
AWS: JSONObject = {"auth": "aws", "sign_in": {"region": "r1", "service": "bedrock"}}
LOGIN = "sk-proj-key-of-the-client"
KEY = "gw-key-of-the-gateway"


class Tokens:
    """Issues numbered tokens."""

    def __init__(self) -> None:
        self.issued = 0

    def issue(self, call: TokenCall) -> JSONObject:
        """Issue the next one."""
        assert call.form["assertion"] == "the.identity.token"
        self.issued += 1
        return {"access_token": f"sk-ant-oat01-token-{self.issued}", "expires_in": 3600, "token_type": "Bearer"}


@pytest.fixture(scope="module")
def tokens() -> Iterator[TokenEndpoint]:
    """A token endpoint."""
    with token_endpoint(Tokens().issue) as endpoint:
        yield endpoint


def signed_in(endpoint: TokenEndpoint) -> JSONObject:
    """Return the settings of an upstream with a token."""
    options = {"federation_rule": "f", "organization": "o", "token_env": "OIDC", "token_url": endpoint.url}
    return {"auth": "anthropic_identity", "sign_in": options, "retry": {"attempts": 1}}


async def call(running: Served, path: str, headers: dict[str, str] | None = None) -> httpx2.Response:
    """Send one request to a path; a large form is one whose end is not read before it is forwarded."""
    host, port = running.address
    async with httpx2.AsyncClient(base_url=f"http://{host}:{port}", timeout=TIMEOUT) as client:
        if path in BODIES:
            return await client.post(path, json=BODIES[path], headers=headers)
        data = multipart(("model", b"m"), ("file", b"RIFF" if path in FORMS else FILE))
        form = {"content-type": "multipart/form-data; boundary=XX", **(headers or {})}
        return await client.post(path if path in FORMS else FORMS[0], content=data, headers=form)


async def test_every_endpoint_has_the_token(tokens: TokenEndpoint) -> None:
    async with (
        Upstream(*RULES) as upstream,
        served(*one(upstream, **signed_in(tokens)), {"OIDC": "the.identity.token"}) as running,
    ):
        for path in PATHS:
            answer = await call(running, path, {"authorization": "Bearer whatever"})
            assert answer.status_code == 200, (path, answer.text)
        shown = [[value for name, value in sent.headers if name == "authorization"] for sent in upstream.requests]
        assert len(shown) == len(PATHS)
        assert all(len(values) == 1 and values[0].startswith("Bearer sk-ant-oat01-token-") for values in shown)
        assert form_of(upstream.requests[-1]) == {"model": [b"big"], "file": [FILE]}


async def test_every_request_is_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The body of a form that streams is not signed, as the specification allows it over TLS."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "the-secret-key")
    keys, scope = {"AKIDEXAMPLE": ("the-secret-key", None)}, ("r1", "bedrock")
    async with Upstream(*RULES) as upstream, served(*one(upstream, **AWS)) as running:
        for path in PATHS:
            answer = await call(running, path)
            assert answer.status_code == 200, (path, answer.text)
        judged = [
            refusal(sent.method, sent.target, dict(sent.headers), sent.body, keys=keys, scope=scope)
            for sent in upstream.requests
        ]
        hashed = [sent.header("x-amz-content-sha256") for sent in upstream.requests]
    assert judged == [None] * len(PATHS)
    assert hashed == [None] * (len(PATHS) - 1) + ["UNSIGNED-PAYLOAD"]


@pytest.mark.parametrize("path", ["/v1/moderations", "/v1/rerank", "/v1/embeddings", "/v1/audio/transcriptions"])
async def test_tokens_that_expire_under_load_fail_no_request(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server stops accepting the first token while requests are under way: each is sent again with another."""
    monkeypatch.setattr("xenoglot.backends.remote.sign_in.refreshed_credential.RENEWAL_SECONDS", 0.0)
    tokens = Tokens()
    expired = Respond(401, (JSON_TYPE,), b'{"error":{"message":"the token has expired"}}')
    with token_endpoint(tokens.issue) as endpoint:
        refusing = ScriptRule(when=RequestMatcher(path=path), steps=(expired,), times=8)
        async with (
            Upstream(refusing, *RULES) as upstream,
            served(*one(upstream, **signed_in(endpoint)), {"OIDC": "the.identity.token"}) as running,
        ):
            answers = await asyncio.gather(*(call(running, path) for _ in range(8)))
            shown = [sent.header("authorization") for sent in upstream.requests]
    assert [answer.status_code for answer in answers] == [200] * 8
    assert set(shown[:8]) == {"Bearer sk-ant-oat01-token-1"}
    assert len(shown[8:]) == 8
    assert "Bearer sk-ant-oat01-token-1" not in shown[8:]


@pytest.mark.parametrize("dialect", ["chat", "responses"])
async def test_the_clients_own_sign_in_reaches_its_provider(dialect: str) -> None:
    headers = {"authorization": f"Bearer {LOGIN}", "openai-organization": "org-1", "x-xenoglot-key": KEY}
    keys: JSONObject = {"keys": {"env": ["KEYS"]}}
    async with (
        Upstream(*RULES) as upstream,
        served(*one(upstream, dialect=dialect, auth="client"), {"KEYS": KEY}, **keys) as running,
    ):
        paths = [path for path in PATHS if dialect == "chat" or path not in ("/v1/rerank", "/v1/embeddings")]
        for path in paths:
            answer = await call(running, path, headers)
            assert answer.status_code == 200, (path, answer.text)
            missing = await call(running, path, {"x-xenoglot-key": KEY})
            assert missing.status_code == 401, path
        assert len(upstream.requests) == len(paths)
        for sent in upstream.requests:
            assert [value for name, value in sent.headers if name == "authorization"] == [f"Bearer {LOGIN}"]
            assert (sent.header("openai-organization"), sent.header("x-xenoglot-key")) == ("org-1", None)


async def test_the_clients_own_sign_in_reaches_nobody_else() -> None:
    """Another upstream that a target falls back to has the gateway's key; an error does not repeat the login."""
    headers = {"authorization": f"Bearer {LOGIN}", "x-xenoglot-key": KEY}
    refused = {"error": {"message": f"not accepted: {LOGIN}"}}
    busy = Respond(429, (JSON_TYPE,), json.dumps(refused).encode())
    wrong = Respond(400, (JSON_TYPE,), json.dumps(refused).encode())
    targets: list[JSON] = [{"upstream": "a", "model": "big"}, {"upstream": "b", "model": "big"}]
    models: list[JSON] = [
        {"name": "m", "strategy": "ordered", "targets": targets},
        {"name": "alone", "upstream": "a", "model": "big"},
    ]
    first = Upstream(ScriptRule(steps=(busy,), times=1), ScriptRule(steps=(wrong,)))
    async with first, Upstream(*RULES) as other:
        upstreams: JSONObject = {
            "a": {"dialect": "chat", "base_url": first.url, "auth": "client", "retry": {"attempts": 1}},
            "b": {"dialect": "chat", "base_url": other.url, "key_env": "OTHER"},
        }
        environ = {"KEYS": KEY, "OTHER": "sk-of-the-gateway"}
        async with served(upstreams, models, environ, keys={"env": ["KEYS"]}) as running:
            answer = await call(running, "/v1/moderations", headers)
            host, port = running.address
            async with httpx2.AsyncClient(base_url=f"http://{host}:{port}", timeout=TIMEOUT) as client:
                refusal = await client.post("/v1/moderations", json={"model": "alone", "input": "Hi"}, headers=headers)
    assert answer.status_code == 200
    assert [sent.header("authorization") for sent in other.requests] == ["Bearer sk-of-the-gateway"]
    assert LOGIN not in str([sent.headers for sent in other.requests])
    assert refusal.status_code == 400
    assert LOGIN not in refusal.text
