"""`xenoglot probe` of the rows of clouds: at the paths of the row, signed in as the server of the cloud verifies it."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from msgspec.structs import replace

from tests.backends.remote.sign_in.scripted_tokens import token_endpoint
from tests.backends.remote.sign_in.signature_check import refusal
from tests.backends.remote.sign_in.test_google import ServiceAccounts, write_key
from xenoglot import probe_command
from xenoglot.probe_command import ProbeTarget
from xenoglot.providers.probe.runner import ProbeOptions
from xenoglot.testing.canned import answers
from xenoglot.testing.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.providers.probe.findings import Report
    from xenoglot.testing.script import ScriptRule

TIMEOUT = 60.0


def canned(dialect: str, *paths: str) -> list[ScriptRule]:
    """Answer requests of a dialect at other paths, given as patterns."""
    return [
        replace(rule, when=replace(rule.when, path=path))
        for rule in answers(dialect, text=("Hel", "lo.")).rules()
        if rule.when.method == "POST"
        for path in paths
    ]


def probed(provider: str, model: str, server: Upstream, *settings: str, auth: str | None = None) -> Report:
    """Probe a provider as the command does, its host being the scripted server's."""
    options = argparse.Namespace(
        url=provider, model=model, key_env=None, auth=auth, setting=list(settings), timeout=TIMEOUT
    )
    found = probe_command._known_server(options, ProbeOptions(base_url=provider, model=model))
    assert found.upstream is not None
    upstream = replace(found.upstream, base_url=server.url)
    if auth == "aws":  # the host of the scripted server names neither
        upstream = replace(upstream, sign_in=replace(upstream.sign_in, region="r1", service="bedrock"))
    asked = replace(found.options, base_url=server.url)
    return asyncio.run(probe_command._probed(options, ProbeTarget(asked, found.key, upstream), lambda _: None))


@pytest.fixture(scope="module")
def google(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The key file of a service account, whose token endpoint runs."""
    accounts = ServiceAccounts(rsa.generate_private_key(public_exponent=65537, key_size=2048))
    with token_endpoint(accounts.answer) as endpoint:
        yield write_key(tmp_path_factory.mktemp("google"), accounts.key, f"{endpoint.url}/token")


@pytest.mark.parametrize(
    ("model", "dialect", "paths"),
    [
        pytest.param(
            "claude-x", "messages", {"/models/claude-x:rawPredict", "/models/claude-x:streamRawPredict"}, id="claude"
        ),
        pytest.param("meta/llama-4", "chat", {"/v1/chat/completions"}, id="llama"),
    ],
)
def test_vertex(google: str, model: str, dialect: str, paths: set[str]) -> None:
    with Upstream(*canned(dialect, "*awPredict", "*/chat/completions")) as server:
        report = probed("vertex", model, server, "project=acme", f"credentials_file={google}")
    assert report.faces == (dialect,)
    posted = [request for request in server.requests if request.method == "POST"]
    assert paths <= {request.path for request in posted}
    shown = [request.header("authorization") or "" for request in server.requests]
    assert [value for value in shown if not value.startswith("Bearer ya29.token-")] == []
    if dialect == "messages":
        greeting = posted[0].json
        assert greeting is not None
        assert greeting["anthropic_version"] == "vertex-2023-10-16"
        assert "model" not in greeting


def test_bedrock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "the-secret-key")
    with Upstream(*canned("converse", "*/converse*")) as server:
        report = probed("bedrock", "eu.anthropic.claude-x", server, "region=r1", auth="aws")
    assert report.faces == ("converse",)
    keys = {"AKIDEXAMPLE": ("the-secret-key", None)}
    judged = {
        refusal(sent.method, sent.target, dict(sent.headers), sent.body, keys=keys, scope=("r1", "bedrock"))
        for sent in server.requests
    }
    assert judged == {None}


def test_a_key_of_a_row_is_shown_as_the_row_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "the-key-of-the-resource")
    with Upstream(*canned("messages", "/v1/messages")) as server:
        report = probed("azure", "claude-x", server, "resource=acme")
    assert report.faces == ("messages",)
    posted = [request for request in server.requests if request.method == "POST"]
    assert {request.header("x-api-key") for request in posted} == {"the-key-of-the-resource"}
