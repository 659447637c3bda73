"""Tokens of Google Cloud: a token endpoint verifies the signed assertion of a service account, or another proof."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.backends.remote.sign_in.scripted_tokens import TokenCall, TokenRefusalError, token_endpoint
from xenoglot.backends.remote.sign_in.credential import SignInError
from xenoglot.backends.remote.sign_in.google import NO_CREDENTIALS, REFUSED, SCOPE, GoogleTokens

if TYPE_CHECKING:
    from pathlib import Path

    from xenoglot.model.json import JSONObject

ACCOUNT = "gateway@project-1.iam.gserviceaccount.com"
AUDIENCE = "https://oauth2.googleapis.com/token"
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    """The key of a service account."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def write_key(path: Path, key: rsa.RSAPrivateKey, token_uri: str) -> str:
    """Write the file that the console gives out, with another token endpoint."""
    plain = serialization.NoEncryption()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    info = {
        "type": "service_account",
        "project_id": "project-1",
        "private_key_id": "key-1",
        "private_key": pem.decode(),
        "client_email": ACCOUNT,
        "client_id": "1",
        "token_uri": token_uri,
    }
    file = path / "key.json"
    file.write_text(json.dumps(info), encoding="utf-8")
    return str(file)


class ServiceAccounts:
    """A token endpoint that verifies assertions as Google's does (RFC 7523)."""

    def __init__(self, key: rsa.RSAPrivateKey) -> None:
        self.key = key
        self.claims: list[JSONObject] = []
        self.disabled = False

    def answer(self, call: TokenCall) -> JSONObject:
        """Return a token for a valid assertion."""
        assert (call.method, call.form["grant_type"]) == ("POST", GRANT)
        if self.disabled:
            raise TokenRefusalError(400, {"error": "invalid_grant", "error_description": "Invalid JWT Signature."})
        assertion = call.form["assertion"]
        assert isinstance(assertion, str)
        claims = jwt.decode(assertion, self.key.public_key(), algorithms=["RS256"], audience=AUDIENCE)
        self.claims.append(claims)
        return {"access_token": f"ya29.token-{len(self.claims)}", "expires_in": 3600, "token_type": "Bearer"}


def test_a_service_account_signs_an_assertion(tmp_path: Path, key: rsa.RSAPrivateKey) -> None:
    accounts = ServiceAccounts(key)
    with token_endpoint(accounts.answer) as endpoint:
        source = GoogleTokens((), write_key(tmp_path, key, f"{endpoint.url}/token"))
        first, second = source.fetch(anew=False), source.fetch(anew=True)
    assert (first.value, second.value) == ("ya29.token-1", "ya29.token-2")
    assert first.secrets == ("ya29.token-1",)
    assert first.expires_at == pytest.approx(time.time() + 3600, abs=60)
    claims = accounts.claims[0]
    assert (claims["iss"], claims["scope"]) == (ACCOUNT, SCOPE)


def test_default_credentials_are_found_as_the_library_finds_them(
    tmp_path: Path, key: rsa.RSAPrivateKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    accounts = ServiceAccounts(key)
    with token_endpoint(accounts.answer) as endpoint:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", write_key(tmp_path, key, f"{endpoint.url}/token"))
        assert GoogleTokens(("scope-a", "scope-b")).fetch(anew=False).value == "ya29.token-1"
    assert accounts.claims[0]["scope"] == "scope-a scope-b"


def test_a_federated_identity_is_exchanged(tmp_path: Path) -> None:
    """Workload identity federation: the platform's token goes to the security token service (RFC 8693)."""
    (tmp_path / "oidc").write_text("token of the platform", encoding="utf-8")
    audience = "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q"

    def answer(call: TokenCall) -> JSONObject:
        assert call.form["subject_token"] == "token of the platform"
        assert call.form["audience"] == audience
        assert call.form["scope"] == SCOPE
        return {
            "access_token": "ya29.federated",
            "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
            "expires_in": 3600,
            "token_type": "Bearer",
        }

    with token_endpoint(answer) as endpoint:
        info = {
            "type": "external_account",
            "audience": audience,
            "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
            "token_url": f"{endpoint.url}/v1/token",
            "credential_source": {"file": str(tmp_path / "oidc")},
        }
        (tmp_path / "adc.json").write_text(json.dumps(info), encoding="utf-8")
        assert GoogleTokens((), str(tmp_path / "adc.json")).fetch(anew=False).value == "ya29.federated"


def test_a_refusal_names_the_error_and_what_to_do(tmp_path: Path, key: rsa.RSAPrivateKey) -> None:
    accounts = ServiceAccounts(key)
    accounts.disabled = True
    with token_endpoint(accounts.answer) as endpoint:
        source = GoogleTokens((), write_key(tmp_path, key, f"{endpoint.url}/token"))
        with pytest.raises(SignInError) as caught:
            source.fetch(anew=False)
    assert str(caught.value) == "RefreshError: invalid_grant: Invalid JWT Signature."
    assert caught.value.remedy == REFUSED


def test_without_credentials_the_remedy_lists_where_they_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "missing.json"))
    with pytest.raises(SignInError, match=r"missing\.json was not found") as caught:
        GoogleTokens().fetch(anew=False)
    assert caught.value.remedy == NO_CREDENTIALS
