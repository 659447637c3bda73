"""A client signs in: tokens and signatures that scripted servers verify, the options, and what is wrong with them."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from msgspec.structs import replace

from tests.backends.remote.sign_in.scripted_tokens import token_endpoint
from tests.backends.remote.sign_in.signature_check import refusal
from tests.backends.remote.sign_in.test_google import ServiceAccounts, write_key
from xenoglot.cli import main
from xenoglot.client.async_ import AsyncClient
from xenoglot.client.call.open_upstream import UpstreamOptions, address_of
from xenoglot.client.sync import Client
from xenoglot.errors import ConfigurationError
from xenoglot.testing.canned import answers
from xenoglot.testing.script import RequestMatcher, Respond, ScriptRule
from xenoglot.testing.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.backends.remote.sign_in.scripted_tokens import TokenCall
    from xenoglot.model.json import JSONObject

TOKEN = "sk-ant-oat01-issued-by-the-endpoint"
JSON_TYPE = (("content-type", "application/json"),)


@pytest.fixture(scope="module")
def server() -> Iterator[Upstream]:
    """A server of messages, with its count of tokens."""
    counted = ScriptRule(
        when=RequestMatcher(path="/v1/messages/count_tokens"), steps=(Respond(200, JSON_TYPE, b'{"input_tokens":3}'),)
    )
    with Upstream(counted, *answers("messages", text=("Hel", "lo.")).rules()) as running:
        yield running


def issue(call: TokenCall) -> JSONObject:
    """Issue a token for an identity token."""
    assert call.form["assertion"] == "the.identity.token"
    return {"access_token": TOKEN, "expires_in": 3600, "token_type": "Bearer"}


def test_every_call_has_the_token(server: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    server.forget()
    monkeypatch.setenv("OIDC", "the.identity.token")
    with token_endpoint(issue) as endpoint:
        options = {"federation_rule": "f", "organization": "o", "token_env": "OIDC", "token_url": endpoint.url}
        with Client(server.url, dialect="messages", model="m", auth="anthropic_identity", sign_in=options) as client:
            assert client.complete("Hi").text == "Hello."
            assert client.complete("Hi", timeout=60).text == "Hello."
            assert client.count_tokens("Hi") == 3
            with client.stream("Hi") as stream:
                assert "".join(stream.texts()) == "Hello."
        assert len(endpoint.calls) == 1
    assert {request.header("authorization") for request in server.requests} == {f"Bearer {TOKEN}"}
    assert len(server.requests) == 4


async def test_requests_are_signed(server: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    server.forget()
    for name, value in (("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"), ("AWS_SECRET_ACCESS_KEY", "the-secret-key")):
        monkeypatch.setenv(name, value)
    options = {"region": "eu-central-1", "service": "bedrock"}
    async with AsyncClient(server.url, dialect="messages", model="m", auth="aws", sign_in=options) as client:
        assert (await client.complete("Hi")).text == "Hello."
    (sent,) = server.requests
    scope, keys = ("eu-central-1", "bedrock"), {"AKIDEXAMPLE": ("the-secret-key", None)}
    assert refusal(sent.method, sent.path, dict(sent.headers), sent.body, keys=keys, scope=scope) is None


async def test_a_provider_has_its_own_way(tmp_path: Path) -> None:
    """The row of Vertex AI names the way, and the endpoint of Claude has the paths of the row, streamed or not."""
    accounts = ServiceAccounts(rsa.generate_private_key(public_exponent=65537, key_size=2048))
    rules = [
        replace(rule, when=replace(rule.when, path="*/claude-x:*awPredict"))
        for rule in answers("messages", text=("Hel", "lo.")).rules()
    ]
    with token_endpoint(accounts.answer) as endpoint, Upstream(*rules) as server:
        file = write_key(tmp_path, accounts.key, f"{endpoint.url}/token")
        options = {"project": "acme"}
        async with AsyncClient(
            "vertex", model="claude-x", settings=options, sign_in={"credentials_file": file}
        ) as client:
            address = client._calling.connection.address
            assert address is not None
            assert address.base_url == (
                "https://aiplatform.googleapis.com/v1/projects/acme/locations/global/publishers/anthropic"
            )
            client._calling.connection.address = replace(address, base_url=server.url)
            assert (await client.complete("Hi")).text == "Hello."
            async with client.stream("Hi") as stream:
                assert "".join([text async for text in stream.texts()]) == "Hello."
    assert [(request.path, request.header("authorization")) for request in server.requests] == [
        ("/models/claude-x:rawPredict", "Bearer ya29.token-1"),
        ("/models/claude-x:streamRawPredict", "Bearer ya29.token-1"),
    ]
    assert [request.json.get("anthropic_version") for request in server.requests] == ["vertex-2023-10-16"] * 2


def test_a_command_signs_in(
    server: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server.forget()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    (tmp_path / "token").write_text("the.identity.token", encoding="utf-8")
    with token_endpoint(issue) as endpoint:
        said = {"federation_rule": "f", "organization": "o", "token_file": "token", "token_url": endpoint.url}
        flags = [part for name, value in said.items() for part in ("--setting", f"{name}={value}")]
        where = ["--upstream", server.url, "--dialect", "messages", "--model", "m", "--auth", "anthropic-identity"]
        assert main(["ask", "Hi", *where, *flags, "--no-history"]) == 0
    assert capsys.readouterr().out.strip() == "Hello."
    assert [request.header("authorization") for request in server.requests] == [f"Bearer {TOKEN}"]


@pytest.mark.parametrize(
    ("upstream", "naming", "problem"),
    [
        pytest.param(
            "anthropic",
            UpstreamOptions(auth="gogle"),
            '`auth`: found "gogle"; expected one of google, azure, aws, anthropic_identity',
            id="no-such-way",
        ),
        pytest.param(
            "anthropic",
            UpstreamOptions(auth="client"),
            '`auth`: found "client"; expected one of google, azure, aws, anthropic_identity',
            id="a-client-has-no-clients",
        ),
        pytest.param(
            "anthropic",
            UpstreamOptions(auth="anthropic_identity", key="k"),
            '`key` and `key_env` are not used with `auth="anthropic_identity"`; remove one of them',
            id="a-key-too",
        ),
        pytest.param(
            "anthropic",
            UpstreamOptions(sign_in={"profile": "p"}),
            "`sign_in`: options of `auth`, which is not set",
            id="no-way",
        ),
        pytest.param(
            "vertex",
            UpstreamOptions(sign_in={"tenant": "t"}, settings={"project": "p"}),
            '`sign_in`: found `tenant`, not an option of `auth="google"`; expected one of scopes, credentials_file, '
            "quota_project",
            id="option-of-another",
        ),
        pytest.param(
            "vertex",
            UpstreamOptions(sign_in={"scopes": "s"}, settings={"project": "p"}),
            "`sign_in`: Expected `array`, got `str` - at `$.scopes`",
            id="wrong-type",
        ),
        pytest.param(
            "bedrock",
            UpstreamOptions(settings={"region": "r1"}),
            'no API key: set the environment variable AWS_BEARER_TOKEN_BEDROCK, or pass `key=`, or `auth="aws"` to '
            "sign in without a key",
            id="neither-key-nor-sign-in",
        ),
    ],
)
def test_mistakes_are_named(upstream: str, naming: UpstreamOptions, problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        address_of(upstream, naming, {})
    assert str(caught.value) == problem
