"""The client's own credential, sent on to the host of its provider and nowhere else.

A client with a login of its own (a subscription, an organization's key) shows it in the usual header, and the
gateway's key in another one. The credential belongs to one request: it is written after the cached head, and never
logged or kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CREDENTIAL_HEADERS: Final = frozenset({"authorization", "x-api-key", "api-key", "x-goog-api-key"})
"""Headers with a credential."""

ACCOUNT_HEADERS: Final = frozenset(
    {"chatgpt-account-id", "openai-organization", "openai-project", "originator", "session_id", "x-app"}
)
"""Headers that go with one: the account of a login, and the program that the login is of (Codex, Claude Code)."""

MISSING: Final = Failure(
    kind="authentication",
    message="the provider of this model wants the client's own sign-in: send it as `Authorization` or `x-api-key`, and "
    "the key of the gateway, if it needs one, as `x-xenoglot-key`; requests in the background and batches have none",
    non_retryable=True,
    not_sent=True,
)


class ClientCredential(Struct, frozen=True, kw_only=True):
    """The header fields of a client's sign-in, and the `origin` (scheme and host) that they are for, once known."""

    headers: tuple[tuple[str, str], ...]
    origin: str = ""

    def __repr__(self) -> str:
        """Omit the values, because a traceback may show this."""
        return f"ClientCredential(origin={self.origin!r})"

    @property
    def secrets(self) -> tuple[str, ...]:
        """The texts that no message may contain."""
        values = [value for name, value in self.headers if name in CREDENTIAL_HEADERS]
        return tuple(piece for value in values for piece in (value, value.rpartition(" ")[2]))

    def bound_to(self, base_url: str) -> ClientCredential:
        """Return it for the host of `base_url` alone."""
        return replace(self, origin=origin_of(base_url))


def origin_of(base_url: str) -> str:
    """Return the scheme and the host of a URL, in lower case."""
    scheme, host = urlsplit(base_url)[:2]
    return f"{scheme}://{host}".lower()


def client_credential(headers: Sequence[tuple[str, str]], is_own_key: Callable[[str], bool]) -> ClientCredential | None:
    """Return the credential in `headers` (lower-case names); `None` where they have only keys of the gateway."""
    found = [(name, value) for name, value in headers if name in CREDENTIAL_HEADERS and not is_own_key(value)]
    if not found:
        return None
    return ClientCredential(headers=(*found, *(field for field in headers if field[0] in ACCOUNT_HEADERS)))
