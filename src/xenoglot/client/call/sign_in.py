"""Sign-in of a client at its upstream: what its options `auth` and `sign_in` stand for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from xenoglot.backends.remote.sign_in.settings import OPTIONS, SignInSettings, sign_in_options
from xenoglot.errors import ConfigurationError

if TYPE_CHECKING:
    from xenoglot.backends.remote.sign_in.strategy import SignIn


class ClientSignIn(Struct, frozen=True, kw_only=True):
    """How requests of a client are signed in, before anything is fetched."""

    auth: str
    options: SignInSettings
    environ: Mapping[str, str]

    def open(self, name: str, base_url: str) -> SignIn[Any] | None:
        """Return the sign-in for a server that messages call `name`; blocks, because it may import a large library.

        Raises:
            ConfigurationError: a library is not installed, or an option is missing.
        """
        from xenoglot.backends.remote.sign_in.open_sign_in import SignInRequest, open_sign_in  # noqa: PLC0415  most servers have a key

        request = SignInRequest(
            name,
            self.auth,
            self.options,
            base_url=base_url,
            secret=lambda variable: self.environ.get(variable, ""),
            environ=self.environ,
            place="`sign_in`",
        )
        return open_sign_in(request)


def sign_in_of(
    auth: str | None,
    options: Mapping[str, object] | None,
    environ: Mapping[str, str],
    *,
    usual: str | None = None,
    keyed: bool,
) -> ClientSignIn | None:
    """Return how requests are signed in; `None` with a key. `usual` is the provider's own way.

    Raises:
        ConfigurationError: there is no such way, an option is wrong, or a key is passed too.
    """
    chosen = auth or usual
    if chosen is None or chosen not in OPTIONS:
        if auth is not None:
            raise ConfigurationError(f'`auth`: found "{auth}"; expected one of {", ".join(OPTIONS)}')
        if options:
            raise ConfigurationError("`sign_in`: options of `auth`, which is not set")
        return None
    if keyed:
        raise ConfigurationError(f'`key` and `key_env` are not used with `auth="{chosen}"`; remove one of them')
    return ClientSignIn(auth=chosen, options=sign_in_options(chosen, options or {}), environ=environ)
