"""Tokens of Google Cloud, by the library `google-auth`: default credentials, service accounts, workload identity.

The library finds a credential as its own clients do: `GOOGLE_APPLICATION_CREDENTIALS`, the login of `gcloud`, the
metadata server (https://google-auth.readthedocs.io/en/master/reference/google.auth.html); a file that is configured
stands before all.
"""

from __future__ import annotations

import json
from calendar import timegm
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from xenoglot.backends.remote.sign_in.credential import Credential, SignInError
from xenoglot.backends.remote.sign_in.token_request import TokenResponse, send_token_request
from xenoglot.errors import ConfigurationError, missing_extra

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from google.auth.credentials import Credentials

    from xenoglot.model.json import JSONObject

SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"

NO_CREDENTIALS: Final = (
    "set `credentials_file` under [upstreams.NAME.sign_in], or GOOGLE_APPLICATION_CREDENTIALS, or run "
    "`gcloud auth application-default login`"
)
REFUSED: Final = "is the key or the login still valid, and may the account use the project?"


class GoogleTokens:
    """Issues access tokens for `scopes`. Raises `ConfigurationError` where the library is not installed."""

    secrets: tuple[str, ...] = ()

    def __init__(self, scopes: tuple[str, ...] = (), credentials_file: str | None = None) -> None:
        try:
            import google.auth  # noqa: F401, PLC0415  an extra
        except ModuleNotFoundError:
            raise ConfigurationError(missing_extra("google_auth")) from None
        self._scopes = scopes or (SCOPE,)
        self._file = credentials_file
        self._credentials: Credentials | None = None

    def fetch(self, *, anew: bool) -> Credential[str]:
        """Return a new token."""
        del anew  # `refresh` always fetches
        from google.auth import exceptions  # noqa: PLC0415  as above

        try:
            credentials = self._credentials = self._credentials or self._found()
            credentials.refresh(_request)  # type: ignore[no-untyped-call]
        except exceptions.DefaultCredentialsError as error:
            raise SignInError(str(error), NO_CREDENTIALS) from None
        except exceptions.GoogleAuthError as error:
            raise SignInError(f"{type(error).__name__}: {_first_words(error)}", REFUSED) from None
        if not credentials.token:
            raise SignInError("the library returned no token", NO_CREDENTIALS)
        expiry = credentials.expiry  # in UTC, without a time zone
        expires_at = None if expiry is None else float(timegm(expiry.utctimetuple()))
        return Credential(value=credentials.token, expires_at=expires_at, secrets=(credentials.token,))

    def _found(self) -> Credentials:
        import google.auth  # noqa: PLC0415  as above

        if self._file is None:
            request: Any = _request  # it is only called
            found, _ = google.auth.default(scopes=self._scopes, request=request)
            credentials: Credentials = found
            return credentials
        loaded: Credentials = _from_file(self._file, self._scopes)
        return loaded


def _from_file(path: str, scopes: tuple[str, ...]) -> Any:  # noqa: ANN401  the library is not typed
    """Return the credential in a file, by its type: the library's loader for any type is deprecated."""
    try:
        info = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise SignInError(f"`{path}` cannot be read: {error.strerror}", NO_CREDENTIALS) from None
    except ValueError:
        raise SignInError(f"`{path}` is not JSON", NO_CREDENTIALS) from None
    kind = info.get("type") if isinstance(info, dict) else None
    load = _LOADERS.get(kind if isinstance(kind, str) else "")
    if load is None:
        raise SignInError(f"`{path}`: found the type `{kind}`; expected one of {', '.join(_LOADERS)}", NO_CREDENTIALS)
    try:
        return load(info, list(scopes))
    except (ValueError, KeyError) as error:
        raise SignInError(f"`{path}` is incomplete: {error}", NO_CREDENTIALS) from None


def _service_account(info: JSONObject, scopes: list[str]) -> Any:  # noqa: ANN401  as above
    from google.oauth2 import service_account  # noqa: PLC0415  as above

    return service_account.Credentials.from_service_account_info(info, scopes=scopes)  # type: ignore[no-untyped-call]


def _user(info: JSONObject, scopes: list[str]) -> Any:  # noqa: ANN401  as above
    from google.oauth2 import credentials  # noqa: PLC0415  as above

    return credentials.Credentials.from_authorized_user_info(info, scopes)  # type: ignore[no-untyped-call]


def _federated(info: JSONObject, scopes: list[str]) -> Any:  # noqa: ANN401  as above
    from google.auth import aws, identity_pool, pluggable  # noqa: PLC0415  as above

    source = info.get("credential_source")
    kind: Any = identity_pool
    if isinstance(source, dict) and "executable" in source:
        kind = pluggable
    elif info.get("subject_token_type") == "urn:ietf:params:aws:token-type:aws4_request":
        kind = aws
    return kind.Credentials.from_info(info, scopes=scopes)


def _impersonated(info: JSONObject, scopes: list[str]) -> Any:  # noqa: ANN401  as above
    from google.auth import impersonated_credentials  # noqa: PLC0415  as above

    load = impersonated_credentials.Credentials.from_impersonated_service_account_info
    return load(info, scopes=scopes)  # type: ignore[no-untyped-call]


_LOADERS: Mapping[str, Callable[[JSONObject, list[str]], Any]] = {
    "service_account": _service_account,
    "external_account": _federated,
    "impersonated_service_account": _impersonated,
    "authorized_user": _user,
}


def _first_words(error: Exception) -> str:
    """Return the text of an error without the answer that the library puts after it."""
    return str(error.args[0]) if error.args else str(error)


def _request(
    url: str,
    method: str = "GET",
    body: bytes | str | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float | None = None,
    **_: object,
) -> TokenResponse:
    from google.auth.exceptions import TransportError  # noqa: PLC0415  as above

    data = body.encode() if isinstance(body, str) else body
    try:
        return send_token_request(url, method, data, headers, timeout)
    except SignInError as error:
        raise TransportError(str(error)) from None  # type: ignore[no-untyped-call]
