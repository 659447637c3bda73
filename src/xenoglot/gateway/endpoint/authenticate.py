"""Who a request is from: its key, wherever it stands, and how often its source showed a wrong one."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from xenoglot.gateway.auth.keys import KEY_HEADERS, WRONG, Principal
from xenoglot.model.failure import Failure
from xenoglot.policy.auth_throttle import AuthThrottle, source_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.gateway.auth.keys import Keyring, Policy
    from xenoglot.gateway.endpoint.admission_cache import Admission
    from xenoglot.gateway.http.exchange import Exchange

KEY_PARAMETERS = frozenset({*KEY_HEADERS, "access_token", "api_key", "apikey", "authorization", "key", "token"})
"""Parameters of a query in which some clients send a key, in lower case."""

IN_URL = Failure(
    kind="authentication",
    message="an API key does not stand in a URL, which logs keep: send it as `Authorization: Bearer KEY`, `x-api-key: "
    "KEY` or `x-goog-api-key: KEY`, and have the one that was sent replaced",
)
TOO_MANY = "rate limit: too many wrong API keys came from this address"


class AuthService:
    """Tells who clients are by their keys, and slows down sources of wrong ones. `clock` gives seconds."""

    def __init__(self, keyring: Keyring, clock: Callable[[], float]) -> None:
        self.keyring = keyring
        self.throttle = AuthThrottle()
        self.clock = clock

    def admitted(self, exchange: Exchange, policy: Policy) -> Principal | Failure:
        """Return who sent the request, or why it may not pass a route of this `policy`. It changes only counts."""
        keyring = self.keyring
        if not keyring.needs_key(policy):
            return keyring.admit(exchange.headers, policy)
        if shows_key(exchange.query):
            return IN_URL
        found = keyring.admit(exchange.headers, policy)
        source, now, wait = source_of(exchange.peer), self.clock(), 0.0
        if source is not None and isinstance(found, Principal):
            wait = self.throttle.accepted(source, found.owner, now)
        elif source is not None and found == WRONG:
            wait = self.throttle.refused(source, now)
        return Failure(kind="rate_limit", message=TOO_MANY, retry_after=wait) if wait else found

    def is_let_in_again(self, entry: Admission) -> bool:
        """Return whether a request with the head of one that was let in may come in as that did, counting it too."""
        source = entry.source
        return source is None or not self.throttle.accepted(source, entry.client.owner, self.clock())


def shows_key(query: str) -> bool:
    """Return whether a query has a parameter of the name that keys go by."""
    if not query:
        return False
    return any(name.lower() in KEY_PARAMETERS for name, _ in parse_qsl(query.replace("+", "%2B")))
