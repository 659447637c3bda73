"""Tokens of Microsoft Entra: a client secret over TLS, a workload identity, the managed identity of a machine."""

from __future__ import annotations

import ssl
import time
from typing import TYPE_CHECKING

import pytest
import trustme

from tests.backends.remote.sign_in.scripted_tokens import TokenCall, TokenRefusalError, token_endpoint
from xenoglot.backends.remote.sign_in.azure import NO_CREDENTIALS, REFUSED, SCOPE, AzureTokens
from xenoglot.backends.remote.sign_in.credential import SignInError
from xenoglot.backends.remote.sign_in.settings import SignInSettings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.backends.remote.sign_in.scripted_tokens import TokenEndpoint
    from xenoglot.model.json import JSONObject

TENANT, CLIENT, SECRET = "00000000-aaaa-0000-0000-000000000001", "client-1", "the secret of client 1"


class Entra:
    """The token endpoint of one tenant (https://learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-client-creds-grant-flow)."""

    def __init__(self) -> None:
        self.url = ""
        self.issued = 0

    def answer(self, call: TokenCall) -> JSONObject:
        """Return what the tenant publishes, or a token for the right proof."""
        authority = f"{self.url}/{TENANT}"
        if call.path.endswith("/.well-known/openid-configuration"):
            return {
                "issuer": f"{authority}/v2.0",
                "authorization_endpoint": f"{authority}/oauth2/v2.0/authorize",
                "token_endpoint": f"{authority}/oauth2/v2.0/token",
            }
        assert call.path == f"/{TENANT}/oauth2/v2.0/token"
        form = call.form
        assert (form["grant_type"], form["client_id"], form["scope"]) == ("client_credentials", CLIENT, SCOPE)
        if form.get("client_secret") != SECRET and form.get("client_assertion") != "token of the platform":
            raise TokenRefusalError(
                401, {"error": "invalid_client", "error_description": "AADSTS7000215: Invalid client secret provided."}
            )
        self.issued += 1
        return {"token_type": "Bearer", "expires_in": 3599, "access_token": f"eyJ.token-{self.issued}"}


@pytest.fixture(name="entra")
def tenant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TokenEndpoint]:
    """A tenant behind TLS, whose authority this process trusts."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "ca.pem"))
    entra = Entra()
    with token_endpoint(entra.answer, context) as endpoint:
        entra.url = endpoint.url
        yield endpoint


def test_a_client_secret(entra: TokenEndpoint) -> None:
    settings = SignInSettings(tenant=TENANT, client_id=CLIENT, client_secret_env="X", authority=entra.url)
    source = AzureTokens(settings, SECRET)
    first, kept, another = source.fetch(anew=False), source.fetch(anew=False), source.fetch(anew=True)
    assert [one.value for one in (first, kept, another)] == ["eyJ.token-1", "eyJ.token-1", "eyJ.token-2"]
    assert first.expires_at == pytest.approx(time.time() + 3599, abs=60)
    assert (source.secrets, first.secrets) == ((SECRET,), ("eyJ.token-1",))


def test_a_workload_identity(entra: TokenEndpoint, tmp_path: Path) -> None:
    file = tmp_path / "oidc"
    file.write_text("token of the platform", encoding="utf-8")
    settings = SignInSettings(tenant=TENANT, client_id=CLIENT, token_file=str(file), authority=entra.url)
    assert AzureTokens(settings).fetch(anew=False).value == "eyJ.token-1"


def test_a_wrong_secret_names_the_error_and_what_to_do(entra: TokenEndpoint) -> None:
    settings = SignInSettings(tenant=TENANT, client_id=CLIENT, client_secret_env="X", authority=entra.url)
    with pytest.raises(SignInError, match="AADSTS7000215: Invalid client secret provided") as caught:
        AzureTokens(settings, "a wrong secret").fetch(anew=False)
    assert caught.value.remedy == REFUSED
    assert "a wrong secret" not in str(caught.value)


def test_the_managed_identity_of_a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """App Service (https://learn.microsoft.com/en-us/azure/app-service/overview-managed-identity#rest-endpoint-reference)."""

    def answer(call: TokenCall) -> JSONObject:
        assert call.headers["x-identity-header"] == "header of the machine"
        assert "resource=https://ai.azure.com&" in call.path
        assert "client_id=client-1" in call.path
        return {
            "access_token": "eyJ.machine",
            "expires_on": str(int(time.time()) + 3600),
            "resource": "https://ai.azure.com",
            "token_type": "Bearer",
        }

    with token_endpoint(answer) as endpoint:
        monkeypatch.setenv("IDENTITY_ENDPOINT", f"{endpoint.url}/msi/token")
        monkeypatch.setenv("IDENTITY_HEADER", "header of the machine")
        settings = SignInSettings(scopes=("https://ai.azure.com/.default",), managed_identity=True, client_id=CLIENT)
        assert AzureTokens(settings).fetch(anew=False).value == "eyJ.machine"


def test_without_credentials_the_remedy_lists_where_they_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential")
    for name in ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SignInError, match="EnvironmentCredential authentication unavailable") as caught:
        AzureTokens(SignInSettings()).fetch(anew=False)
    assert caught.value.remedy == NO_CREDENTIALS
