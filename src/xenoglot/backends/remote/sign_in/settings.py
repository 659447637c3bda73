"""How the requests of an upstream are signed in: the names of the strategies, and their options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, ValidationError, convert
from msgspec.structs import asdict

from xenoglot.errors import ConfigurationError
from xenoglot.providers.provider import SIGN_INS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from xenoglot.model.json import JSON


class SignInSettings(Struct, frozen=True, kw_only=True):
    """Options of `auth`, for the strategies that `OPTIONS` lists; what is not set is what the cloud's library finds."""

    scopes: tuple[str, ...] = ()
    """What the token is for; not set: the usual scope of the cloud."""
    credentials_file: str | None = None
    """A key of a service account, or the configuration of a workload identity federation."""
    quota_project: str | None = None
    """The project that requests are billed to, if it is not that of the credential."""
    tenant: str | None = None
    client_id: str | None = None
    client_secret_env: str | None = None
    """The environment variable with the client's secret."""
    authority: str | None = None
    """The host that issues tokens, of a sovereign cloud."""
    managed_identity: bool = False
    """Whether the managed identity of the machine is used, and nothing else is tried."""
    token_file: str | None = None
    """The file with the identity token that is exchanged; it is read at each exchange."""
    token_env: str | None = None
    """The environment variable with the identity token that is exchanged."""
    federation_rule: str | None = None
    organization: str | None = None
    service_account: str | None = None
    workspace: str | None = None
    profile: str | None = None
    """The profile in the configuration files of AWS; not set: the usual one."""
    region: str | None = None
    """The AWS region of signatures, if the upstream's host names none."""
    service: str | None = None
    """The name of the service in signatures, if the upstream's host names none."""
    token_url: str | None = None
    """Where the identity token is exchanged; not set: `/v1/oauth/token` of the upstream's host."""

    @property
    def variables(self) -> Iterator[tuple[str, str]]:
        """The options that name environment variables with secrets, and their values."""
        for option in ("client_secret_env", "token_env"):
            name = getattr(self, option)
            if name is not None:
                yield option, name

    @property
    def chosen(self) -> tuple[str, ...]:
        """The options that are set."""
        usual = asdict(SignInSettings())
        return tuple(name for name, value in asdict(self).items() if value != usual[name])


OPTIONS: Mapping[str, tuple[str, ...]] = {
    "google": ("scopes", "credentials_file", "quota_project"),
    "azure": ("scopes", "tenant", "client_id", "client_secret_env", "authority", "managed_identity", "token_file"),
    "aws": ("profile", "region", "service"),
    "anthropic_identity": (
        "token_file",
        "token_env",
        "federation_rule",
        "organization",
        "service_account",
        "workspace",
        "token_url",
    ),
}
"""The options of each strategy."""


_LISTS = frozenset({"scopes"})
_SWITCHES = frozenset({"managed_identity"})
_ON = frozenset({"true", "yes", "1"})


def option_value(name: str, text: str) -> JSON:
    """Return the value of an option that was passed as text: lists are separated by spaces or commas."""
    if name in _LISTS:
        return [*text.replace(",", " ").split()]
    return text.lower() in _ON if name in _SWITCHES else text


def sign_in_options(auth: str, options: Mapping[str, object]) -> SignInSettings:
    """Return the options of a strategy, from a mapping that a program has passed.

    Raises:
        ConfigurationError: one is none of the strategy's, or has the wrong type.
    """
    allowed = OPTIONS.get(auth, ())
    for name in options:
        if name not in allowed:
            advice = f"expected one of {', '.join(allowed)}" if allowed else "it has none"
            raise ConfigurationError(f'`sign_in`: found `{name}`, not an option of `auth="{auth}"`; {advice}')
    try:
        return convert(options, SignInSettings)
    except ValidationError as error:
        raise ConfigurationError(f"`sign_in`: {error}") from None


def sign_in_problems(
    auth: str | None, keys: Collection[str], options: SignInSettings, also: Iterable[str | None]
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with an upstream's sign-in, after the setting that it is in.

    `keys` are the variables with keys of the upstream, `also` the `auth` of its further dialects.
    """
    signs_in = is_sign_in(auth)
    if signs_in and keys:
        yield "key_env", f'not used with `auth = "{auth}"`; remove one of them'
    allowed = OPTIONS.get(auth or "", ())
    for option in options.chosen:
        if option not in allowed:
            where = f'`auth = "{auth}"`' if signs_in else "an upstream with a key"
            advice = f"expected one of {', '.join(allowed)}" if allowed else "remove it, or set `auth`"
            yield f"sign_in.{option}", f"not an option of {where}; {advice}"
    if auth == "azure" and options.client_secret_env is not None:
        for option in ("tenant", "client_id"):
            if getattr(options, option) is None:
                yield f"sign_in.{option}", "required by `client_secret_env`"
    for other in also:
        if not signs_in and is_sign_in(other):
            yield "also", f'found `auth = "{other}"`; a sign-in is set for the whole upstream'


def is_sign_in(auth: object) -> bool:
    """Return whether `auth` is a strategy, not a form in which a key is sent."""
    return auth in SIGN_INS
