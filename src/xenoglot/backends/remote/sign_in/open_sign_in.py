"""Makes the sign-in of an upstream from its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from xenoglot.backends.remote.sign_in.refreshed_credential import RefreshedCredential
from xenoglot.backends.remote.sign_in.strategy import SignIn, SigningSignIn, TokenSignIn
from xenoglot.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from xenoglot.backends.remote.sign_in.aws import AwsKeys
    from xenoglot.backends.remote.sign_in.credential import CredentialSource
    from xenoglot.backends.remote.sign_in.settings import SignInSettings

T = TypeVar("T")

IDENTITY_VARIABLES = {
    "federation_rule": "ANTHROPIC_FEDERATION_RULE_ID",
    "organization": "ANTHROPIC_ORGANIZATION_ID",
    "service_account": "ANTHROPIC_SERVICE_ACCOUNT_ID",
    "workspace": "ANTHROPIC_WORKSPACE_ID",
    "token_file": "ANTHROPIC_IDENTITY_TOKEN_FILE",
}
"""The variables from which the SDK takes what is not set."""


class SignInRequest:
    """What a sign-in is made from: the upstream's `name`, the strategy, and what it may read.

    `secret` returns the value of an environment variable that the settings name. `place` is what messages
    call the options; not set: in the table of the upstream.
    """

    def __init__(  # noqa: PLR0913  one argument per setting
        self,
        name: str,
        auth: str,
        settings: SignInSettings,
        *,
        base_url: str,
        secret: Callable[[str], str],
        environ: Mapping[str, str],
        place: str | None = None,
    ) -> None:
        self.name, self.auth, self.settings = name, auth, settings
        self.base_url, self.secret, self.environ = base_url, secret, environ
        self.place = place or f"upstreams.{name}.sign_in"

    def refreshed(self, source: CredentialSource[T]) -> RefreshedCredential[T]:
        """Return a credential from `source` that is kept fresh."""
        return RefreshedCredential(source, name=self.name, strategy=self.auth)


def open_sign_in(request: SignInRequest) -> SignIn[Any] | None:
    """Return the sign-in; `None` for the client's own, which the gateway does not have.

    Raises:
        ConfigurationError: an option is missing, or a library is not installed; the text has the command to install it.
    """
    made = _STRATEGIES.get(request.auth)
    return None if made is None else made(request)


def _google(request: SignInRequest) -> SignIn[str]:
    from xenoglot.backends.remote.sign_in.google import GoogleTokens  # noqa: PLC0415  an extra

    settings = request.settings
    source = GoogleTokens(settings.scopes, settings.credentials_file)
    project = settings.quota_project
    return TokenSignIn(request.refreshed(source), () if project is None else (("x-goog-user-project", project),))


def _azure(request: SignInRequest) -> SignIn[str]:
    from xenoglot.backends.remote.sign_in.azure import AzureTokens  # noqa: PLC0415  an extra

    settings = request.settings
    secret = None if settings.client_secret_env is None else request.secret(settings.client_secret_env)
    return TokenSignIn(request.refreshed(AzureTokens(settings, secret)))


def _anthropic_identity(request: SignInRequest) -> SignIn[str]:
    from xenoglot.backends.remote.sign_in import anthropic_identity  # noqa: PLC0415  most upstreams have a key

    settings = request.settings
    found = {
        option: getattr(settings, option) or request.environ.get(variable)
        for option, variable in IDENTITY_VARIABLES.items()
    }
    for option in ("federation_rule", "organization"):
        if not found[option]:
            raise _missing(request, option, f"or set the environment variable {IDENTITY_VARIABLES[option]}")
    text = None if settings.token_env is None else request.secret(settings.token_env)
    if text is None and not found["token_file"]:
        raise _missing(request, "token_file", "the file with the OIDC token of the platform, or `token_env`")
    exchange = anthropic_identity.IdentityExchange(
        federation_rule_id=found["federation_rule"] or "",
        organization_id=found["organization"] or "",
        service_account_id=found["service_account"],
        workspace_id=found["workspace"],
    )
    scheme, host = urlsplit(request.base_url)[:2]
    url = settings.token_url or f"{scheme}://{host}{anthropic_identity.TOKEN_PATH}"
    read = anthropic_identity.token_reader(None if text is not None else found["token_file"], text)
    source = anthropic_identity.AnthropicTokens(url, exchange, read)
    return TokenSignIn(request.refreshed(source), listed=("anthropic-beta", anthropic_identity.REQUEST_BETA))


def _aws(request: SignInRequest) -> SignIn[AwsKeys]:
    from xenoglot.backends.remote.sign_in import aws  # noqa: PLC0415  an extra

    source = aws.AwsCredentials(request.settings.profile)
    signer = aws.AwsSigner(request.settings.region, request.settings.service)
    try:
        signer.scope(urlsplit(request.base_url).netloc)
    except ConfigurationError as error:
        raise ConfigurationError(f"{request.place}: {error}") from error
    return SigningSignIn(request.refreshed(source), signer, signer.corrected)


def _missing(request: SignInRequest, option: str, advice: str) -> ConfigurationError:
    return ConfigurationError(f"{request.place}.{option}: required by `{request.auth}`: {advice}")


_STRATEGIES: Mapping[str, Callable[[SignInRequest], SignIn[Any]]] = {
    "google": _google,
    "azure": _azure,
    "anthropic_identity": _anthropic_identity,
    "aws": _aws,
}
