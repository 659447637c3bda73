"""Workload identity of Anthropic: the same exchange as the SDK's, compared at one token endpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from anthropic.lib.credentials import WorkloadIdentityCredentials

from tests.backends.remote.sign_in.scripted_tokens import TokenCall, TokenRefusalError, token_endpoint
from xenoglot.backends.http.http1 import prepare
from xenoglot.backends.remote.sign_in.anthropic_identity import (
    MISMATCH,
    REFUSED,
    AnthropicTokens,
    IdentityExchange,
    token_reader,
)
from xenoglot.backends.remote.sign_in.credential import SignInError
from xenoglot.backends.remote.sign_in.open_sign_in import SignInRequest, open_sign_in
from xenoglot.backends.remote.sign_in.settings import SignInSettings
from xenoglot.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from xenoglot.backends.remote.sign_in.strategy import SignIn
    from xenoglot.model.json import JSONObject

EXCHANGE = IdentityExchange(
    federation_rule_id="fdrl_1", organization_id="org_1", service_account_id="svac_1", workspace_id="wrkspc_1"
)
ENVIRON = {"ANTHROPIC_FEDERATION_RULE_ID": "fdrl_1", "ANTHROPIC_ORGANIZATION_ID": "org_1"}


def issue(_: TokenCall) -> JSONObject:
    """Issue a token for ten minutes."""
    return {"access_token": "sk-ant-oat01-issued", "expires_in": 600, "token_type": "Bearer"}


def test_the_exchange_is_that_of_the_sdk(tmp_path: Path) -> None:
    file = tmp_path / "oidc"
    file.write_text("token.of.the-platform\n", encoding="utf-8")
    with token_endpoint(issue) as endpoint:
        source = AnthropicTokens(
            f"{endpoint.url}/v1/oauth/token", EXCHANGE, token_reader(str(file), None), clock=lambda: 1000.0
        )
        credential = source.fetch(anew=False)
        sdk = WorkloadIdentityCredentials(
            identity_token_provider=lambda: "token.of.the-platform",
            federation_rule_id="fdrl_1",
            organization_id="org_1",
            service_account_id="svac_1",
            workspace_id="wrkspc_1",
        )
        sdk.bind_base_url(endpoint.url)
        assert sdk().token == credential.value
        sdk.close()
    ours, theirs = endpoint.calls
    assert (ours.method, ours.path, ours.form) == (theirs.method, theirs.path, theirs.form)
    for name in ("anthropic-beta", "content-type"):
        assert ours.headers[name] == theirs.headers[name]
    assert (credential.value, credential.expires_at) == ("sk-ant-oat01-issued", 1600.0)
    assert (credential.secrets, source.secrets) == (("sk-ant-oat01-issued",), ("token.of.the-platform",))


@pytest.mark.parametrize(
    ("status", "body", "problem", "remedy"),
    [
        pytest.param(
            401,
            {"error": "invalid_grant", "error_description": "no rule", "assertion": "token"},
            "the token endpoint answered 401: invalid_grant: no rule",
            MISMATCH,
            id="refused",
        ),
        pytest.param(400, {"message": "token"}, "the token endpoint answered 400", REFUSED, id="not-quoted"),
    ],
)
def test_a_refusal_is_named_and_never_quoted(status: int, body: JSONObject, problem: str, remedy: str) -> None:
    def refuse(_: TokenCall) -> JSONObject:
        raise TokenRefusalError(status, body)

    with token_endpoint(refuse) as endpoint, pytest.raises(SignInError) as caught:
        AnthropicTokens(endpoint.url, EXCHANGE, lambda: "token").fetch(anew=False)
    assert (str(caught.value), caught.value.remedy) == (problem, remedy)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        pytest.param({"access_token": "t"}, "is not a token: Object missing required field `expires_in`", id="partial"),
        pytest.param(
            {"access_token": "t", "expires_in": 1, "token_type": "mac"},
            "of type `mac`; expected Bearer",
            id="not-bearer",
        ),
    ],
)
def test_what_is_no_token_is_refused(body: JSONObject, problem: str) -> None:
    with token_endpoint(lambda _: body) as endpoint, pytest.raises(SignInError, match=problem):
        AnthropicTokens(endpoint.url, EXCHANGE, lambda: "token").fetch(anew=False)


def test_a_file_that_is_no_token_is_not_sent(tmp_path: Path) -> None:
    (tmp_path / "large").write_text("x" * 20_000, encoding="utf-8")
    with pytest.raises(SignInError, match="the identity token has 20000 bytes"):
        AnthropicTokens("http://127.0.0.1:9", EXCHANGE, token_reader(str(tmp_path / "large"), None)).fetch(anew=False)
    with pytest.raises(SignInError, match="cannot be read: No such file"):
        token_reader(str(tmp_path / "missing"), None)()


def opened(settings: SignInSettings, environ: Mapping[str, str], base_url: str = "http://127.0.0.1:9") -> SignIn[str]:
    """Open the sign-in of an upstream `claude`."""
    request = SignInRequest(
        "claude", "anthropic_identity", settings, base_url=base_url, secret=lambda name: f"${name}", environ=environ
    )
    sign_in = open_sign_in(request)
    assert sign_in is not None
    return sign_in


@pytest.mark.parametrize(
    ("settings", "environ", "option"),
    [
        pytest.param(SignInSettings(), {}, "federation_rule", id="no-rule"),
        pytest.param(SignInSettings(federation_rule="f"), {}, "organization", id="no-organization"),
        pytest.param(SignInSettings(), ENVIRON, "token_file", id="no-token"),
    ],
)
def test_a_missing_option_is_named(settings: SignInSettings, environ: Mapping[str, str], option: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"upstreams\.claude\.sign_in\.{option}: required by"):
        opened(settings, environ)


async def test_requests_have_the_token_and_the_beta_header() -> None:
    with token_endpoint(issue) as endpoint:
        sign_in = opened(SignInSettings(token_env="OIDC"), ENVIRON, endpoint.url)
        await sign_in.wait()
        plain = sign_in.signed(prepare("POST", "http://h/v1/messages", (("a", "b"),)).request(b"{}"))
        listed = prepare("POST", "http://h/v1/messages", (("anthropic-beta", "context-1m"),)).request(b"{}")
        merged, again = sign_in.signed(listed), sign_in.signed(sign_in.signed(listed))
        await sign_in.aclose()
    assert (endpoint.calls[0].path, endpoint.calls[0].form["assertion"]) == ("/v1/oauth/token", "$OIDC")
    assert plain.head.endswith(
        b"\r\nauthorization: Bearer sk-ant-oat01-issued\r\nanthropic-beta: oauth-2025-04-20\r\n\r\n"
    )
    assert b"\r\nanthropic-beta: oauth-2025-04-20,context-1m\r\n" in merged.head
    assert again.head.count(b"oauth-2025-04-20") == 1
