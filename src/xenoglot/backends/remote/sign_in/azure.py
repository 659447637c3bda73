"""Tokens of Microsoft Entra, by the library `azure-identity`: secrets, workload identity, managed identity, logins.

Without options the library tries what its own clients try, in their order
(https://learn.microsoft.com/en-us/python/api/azure-identity/azure.identity.defaultazurecredential).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from xenoglot.backends.remote.sign_in.credential import Credential, SignInError
from xenoglot.errors import ConfigurationError, missing_extra

if TYPE_CHECKING:
    from collections.abc import Callable

    from azure.core.credentials import TokenCredential

    from xenoglot.backends.remote.sign_in.settings import SignInSettings

SCOPE: Final = "https://cognitiveservices.azure.com/.default"

NO_CREDENTIALS: Final = (
    "set the options under [upstreams.NAME.sign_in], or AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, or "
    "run `az login`"
)
REFUSED: Final = "are tenant, client and secret right, and has the client a role at the resource?"


class AzureTokens:
    """Issues access tokens for one scope. Raises `ConfigurationError` where the library is not installed."""

    def __init__(self, settings: SignInSettings, secret: str | None = None) -> None:
        try:
            import azure.identity  # noqa: F401, PLC0415  an extra
        except ModuleNotFoundError:
            raise ConfigurationError(missing_extra("azure_identity")) from None
        self.secrets = (secret,) if secret else ()
        self._scopes = settings.scopes or (SCOPE,)
        self._make = _credential_of(settings, secret)
        self._remedy = REFUSED if settings.chosen else NO_CREDENTIALS
        self._credential: TokenCredential | None = None

    def fetch(self, *, anew: bool) -> Credential[str]:
        """Return a token; the library keeps one until shortly before it expires, unless another is wanted."""
        from azure.core.exceptions import AzureError, ClientAuthenticationError  # noqa: PLC0415  as above
        from azure.identity import CredentialUnavailableError  # noqa: PLC0415

        if anew or self._credential is None:
            self._credential = self._make()
        try:
            token = self._credential.get_token(*self._scopes)
        except CredentialUnavailableError as error:
            raise SignInError(_words(error), NO_CREDENTIALS) from None
        except ClientAuthenticationError as error:
            raise SignInError(_words(error), self._remedy) from None
        except (AzureError, ValueError) as error:
            raise SignInError(f"{type(error).__name__}: {_words(error)}", self._remedy) from None
        return Credential(value=token.token, expires_at=float(token.expires_on), secrets=(token.token,))


def _words(error: Exception) -> str:
    """Return the text of an error in one line, without the advice at its end."""
    return " ".join(str(error).partition("To mitigate this issue")[0].split())


def _credential_of(settings: SignInSettings, secret: str | None) -> Callable[[], TokenCredential]:
    """Return what makes the credential that the options describe."""
    from azure import identity  # noqa: PLC0415  as above

    # Libraries ask the public cloud whether a host issues tokens; one that the operator names needs no such question.
    named_host = {"authority": settings.authority, "disable_instance_discovery": True}
    where: dict[str, Any] = {} if settings.authority is None else named_host
    tenant, client = settings.tenant or "", settings.client_id
    if secret is not None:
        return lambda: identity.ClientSecretCredential(tenant, client or "", secret, **where)
    if settings.token_file is not None:
        options = {**where, "tenant_id": settings.tenant, "client_id": client, "token_file_path": settings.token_file}
        named = {name: value for name, value in options.items() if value is not None}
        return lambda: identity.WorkloadIdentityCredential(**named)
    if settings.managed_identity:
        return lambda: identity.ManagedIdentityCredential(client_id=client)
    chain = {**where, **({} if client is None else {"managed_identity_client_id": client})}
    return lambda: identity.DefaultAzureCredential(**chain)
