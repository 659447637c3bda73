"""A credential that expires, where it comes from, and when to refresh it. Pure but for `CredentialSource.fetch`.

Theory of operation. A credential is refreshed `lead` seconds before it expires: a quarter of its lifetime, at most five
minutes. Libraries and metadata servers that keep a token themselves return the same one until shortly before its end;
then the remaining lifetime is short, and so is the next lead: the refresh is repeated until a new one comes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Collection

T = TypeVar("T")

LONGEST_LEAD: Final = 300.0
"""Seconds before its end at which a credential is refreshed, at most."""
LEAD_SHARE: Final = 0.25
"""The same as a share of its lifetime."""
SHORTEST_DELAY: Final = 1.0
"""Seconds between two refreshes, at least."""
FIRST_BACKOFF: Final = 1.0
LONGEST_BACKOFF: Final = 60.0
_MOST_DOUBLINGS: Final = 10


class Credential(Struct, Generic[T], frozen=True, kw_only=True):
    """What requests are signed with. `expires_at` is in seconds since the epoch; `None`: it does not expire.

    `secrets` are the texts in it that no log and no error message may contain.
    """

    value: T
    expires_at: float | None = None
    secrets: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Omit the value, because a traceback may show this."""
        return f"Credential(expires_at={self.expires_at!r})"


class SignInError(Exception):
    """No credential was issued. The text names the library's or server's error, `remedy` what to do about it."""

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(problem)
        self.remedy = remedy


class CredentialSource(Protocol[T]):
    """Issues credentials: a token endpoint, a metadata server, the credential chain of a library."""

    @property
    def secrets(self) -> Collection[str]:
        """The texts that a message about it may not contain: a client secret, for instance."""
        ...

    def fetch(self, *, anew: bool) -> Credential[T]:
        """Return a credential; blocks, so it is called in a thread. With `anew` it is not one that a library kept.

        Raises:
            SignInError: none was issued. Any other exception counts as one, by its class and text.
        """
        ...


def refresh_delay(expires_at: float, now: float) -> float:
    """Return the seconds until a credential that was fetched `now` is refreshed."""
    remaining = expires_at - now
    return max(SHORTEST_DELAY, remaining - min(LONGEST_LEAD, remaining * LEAD_SHARE))


def backoff_delay(failures: int) -> float:
    """Return the seconds until the next attempt after so many consecutive failures."""
    doublings = min(failures - 1, _MOST_DOUBLINGS)
    return min(LONGEST_BACKOFF, FIRST_BACKOFF * 2.0**doublings)
