"""Workload identity of Anthropic: an OIDC token of the platform is exchanged for an access token (RFC 7523).

The request and its beta headers are those of the SDK, `anthropic/lib/credentials/_workload.py` and `_constants.py` of
version 2.11. The identity token is read at each exchange, because platforms replace the file.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from xenoglot.backends.remote.sign_in.credential import Credential, SignInError
from xenoglot.backends.remote.sign_in.token_request import send_token_request

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.backends.remote.sign_in.token_request import TokenResponse

GRANT: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
TOKEN_PATH: Final = "/v1/oauth/token"  # noqa: S105  a path
REQUEST_BETA: Final = "oauth-2025-04-20"
"""The value of `anthropic-beta` that requests with such a token need."""
EXCHANGE_BETA: Final = f"{REQUEST_BETA},oidc-federation-2026-04-01"
LONGEST_ASSERTION: Final = 16 * 1024
"""Bytes of an identity token: what is longer is another file."""
BAD: Final = 400
UNAUTHORIZED: Final = 401
MISMATCH: Final = "does the federation rule fit the identity token, and is `workspace` set if the rule has several?"
REFUSED: Final = "are `federation_rule` and `organization` right?"


class _Issued(Struct):
    access_token: str
    expires_in: float
    token_type: str = "Bearer"  # noqa: S105  not a secret


class _Refusal(Struct):
    error: object = None
    error_description: object = None


class IdentityExchange(Struct, frozen=True, kw_only=True):
    """What is sent with the identity token."""

    federation_rule_id: str
    organization_id: str
    service_account_id: str | None = None
    workspace_id: str | None = None


class AnthropicTokens:
    """Exchanges identity tokens at `url`; `read_token` returns the current one."""

    def __init__(
        self,
        url: str,
        exchange: IdentityExchange,
        read_token: Callable[[], str],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._url, self._exchange, self._read_token, self._clock = url, exchange, read_token, clock
        self.secrets: tuple[str, ...] = ()
        """The identity token that was read last."""

    def fetch(self, *, anew: bool) -> Credential[str]:
        """Return a new token."""
        del anew  # nothing is kept here
        assertion = self._read_token()
        self.secrets = (assertion,)
        if not 0 < len(assertion) <= LONGEST_ASSERTION:
            problem = f"the identity token has {len(assertion)} bytes; expected up to {LONGEST_ASSERTION}"
            raise SignInError(problem, "is `token_file` the file with the token?")
        fields = {name: value for name, value in msgspec.structs.asdict(self._exchange).items() if value is not None}
        body = msgspec.json.encode({"grant_type": GRANT, "assertion": assertion, **fields})
        headers = {"content-type": "application/json", "anthropic-beta": EXCHANGE_BETA, "user-agent": "xenoglot"}
        issued = _read(send_token_request(self._url, "POST", body, headers))
        token = issued.access_token
        return Credential(value=token, expires_at=self._clock() + issued.expires_in, secrets=(token,))


def token_reader(file: str | None, text: str | None) -> Callable[[], str]:
    """Return what reads the identity token: from a file, or `text`."""

    def read() -> str:
        if file is None:
            return text or ""
        try:
            return Path(file).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise SignInError(f"the identity token in `{file}` cannot be read: {error.strerror}") from None

    return read


def _read(response: TokenResponse) -> _Issued:
    if response.status >= BAD:
        remedy = MISMATCH if response.status == UNAUTHORIZED else REFUSED
        raise SignInError(f"the token endpoint answered {response.status}{_words(response.data)}", remedy)
    try:
        issued = msgspec.json.decode(response.data, type=_Issued)
    except msgspec.DecodeError as error:
        raise SignInError(f"the token endpoint's answer ({response.status}) is not a token: {error}") from None
    if issued.token_type.lower() != "bearer":
        raise SignInError(f"the token endpoint issued a token of type `{issued.token_type[:40]}`; expected Bearer")
    return issued


def _words(data: bytes) -> str:
    """Return the error of RFC 6749 section 5.2; nothing else, because a body may repeat the identity token."""
    try:
        refusal = msgspec.json.decode(data, type=_Refusal)
    except msgspec.DecodeError:
        return ""
    found = [text for text in (refusal.error, refusal.error_description) if isinstance(text, str)]
    return f": {': '.join(found)}" if found else ""
