"""Sessions of the console: an API key of an administrator or viewer in exchange for a cookie.

The cookie is a random token. The store has its SHA-256 and that of the key, never the key: a session ends when its time
is over, when its owner signs out, and as soon as the key is disabled, deleted or loses its role. Forms bear a token
made from the cookie, which no page of another origin can know.
"""

from __future__ import annotations

import secrets
from hashlib import sha256
from hmac import compare_digest
from hmac import digest as keyed_digest
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct, field

from xenoglot.errors import FailureError
from xenoglot.gateway.admin.services import AdminServices
from xenoglot.gateway.auth.keys import EVERYBODY, Principal, digest_of_wire
from xenoglot.gateway.console.route import CONSOLE, Session
from xenoglot.gateway.endpoint.request_context import AuthService
from xenoglot.model.failure import Failure
from xenoglot.policy.auth_throttle import AuthThrottle, ThrottleSettings
from xenoglot.store.ledger import console_sessions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.gateway.http.application import Exchange

COOKIE: Final = "xenoglot_console"
SECONDS: Final = 12 * 3600.0
"""How long a session holds."""

LOGINS: Final = ThrottleSettings(burst=300, per_second=3.0, sources=1)
"""Wrong keys of all addresses together. A key that has opened the console since the start is accepted nevertheless."""
ALL: Final = "all"
"""The source that stands for all of them."""

TOO_MANY: Final = "the rate limit of wrong keys is reached: wait a minute, or use a key that has signed in here before"
NO_KEY: Final = Failure(kind="authentication", message="enter the API key of an administrator or viewer")


class _SignIn(NamedTuple):
    """What `AuthService` reads of a request, with the key of a form as its credential."""

    headers: Sequence[tuple[str, str]]
    peer: str
    query: str = ""


class Sessions(Struct, frozen=True):
    """Opens, finds and ends sessions."""

    services: AdminServices
    auth: AuthService
    logins: AuthThrottle = field(default_factory=lambda: AuthThrottle(LOGINS))

    @property
    def enabled(self) -> bool:
        """Whether there is a console: clients can sign in, or need no key."""
        server, keyring = self.services.config.server, self.auth.keyring
        if server.console is False:
            return False
        if not keyring.needs_key("view"):
            return server.loopback
        return keyring.has_admins and self.services.keeper is not None

    async def find(self, exchange: Exchange) -> Session | None:
        """Return the session of a request; `None` if its sender has to sign in.

        Raises:
            FailureError: the store cannot be used.
        """
        if not self.auth.keyring.needs_key("view"):
            return Session(client=EVERYBODY)
        token = cookie_of(exchange, COOKIE)
        if token is None:
            return None
        services = self.services
        key = await services.read(console_sessions.find(_digest(token), services.now()))
        if key is None:
            return None
        digest = bytes.fromhex(key)
        await self.auth.keyring.learn_digest(digest)
        client = self.auth.keyring.admit_digest(digest, "view")
        if not isinstance(client, Principal):
            return None
        return Session(client=client, csrf=_csrf(token), signed_in=True)

    async def holds(self, exchange: Exchange) -> bool:
        """Return whether the session of a request has not ended; raises what `find` does."""
        return await self.find(exchange) is not None

    async def sign_in(self, exchange: Exchange, key: str) -> str:
        """Return the cookie of a new session for a client that has `key`.

        Raises:
            FailureError: the key is not one of an administrator or viewer, too many wrong ones came, or the store
                cannot be used.
        """
        if not key or not key.isascii():
            raise FailureError(NO_KEY)
        request = _SignIn((("authorization", f"Bearer {key}"),), exchange.peer)
        await self.auth.learn(request)
        found = self.auth.admitted(request, "view")
        self._limit(found, key)
        if not isinstance(found, Principal):
            raise FailureError(found)
        token, services = secrets.token_urlsafe(32), self.services
        now = services.now()
        await services.write(console_sessions.prune(now))
        await services.write(console_sessions.add(_digest(token), digest_of_wire(key).hex(), now + SECONDS))
        return set_cookie(COOKIE, token, SECONDS, secure=(exchange.header("origin") or "").startswith("https://"))

    def _limit(self, found: Principal | Failure, key: str) -> None:
        """Limit the wrong keys of all addresses together.

        Raises:
            FailureError: there were too many recently, and the console was not opened with this key before.
        """
        now = self.auth.clock()
        if isinstance(found, Principal):
            wait = self.logins.accepted(ALL, digest_of_wire(key).hex(), now)
        else:
            wait = self.logins.refused(ALL, now)
        if wait:
            raise FailureError(Failure(kind="rate_limit", message=TOO_MANY, retry_after=wait))

    async def sign_out(self, exchange: Exchange) -> str:
        """End the session of a request, and return the cookie that removes it from the browser.

        Raises:
            FailureError: the store cannot be used.
        """
        token = cookie_of(exchange, COOKIE)
        if token is not None:
            await self.services.write(console_sessions.remove(_digest(token)))
        return set_cookie(COOKIE, "", 0, secure=False)


def is_token_of(session: Session, token: str) -> bool:
    """Return whether a form bears the token of its session."""
    return bool(session.csrf) and compare_digest(session.csrf.encode(), token.encode("utf-8", "surrogateescape"))


def cookie_of(exchange: Exchange, name: str) -> str | None:
    """Return the value of a cookie that a request has; `None` for an empty one."""
    try:
        morsel = SimpleCookie(exchange.header("cookie") or "").get(name)
    except CookieError:
        return None
    return None if morsel is None else morsel.value or None


def set_cookie(name: str, value: str, seconds: float, *, path: str = "", secure: bool) -> str:
    """Return a `set-cookie` header for pages of the console below `path`: no script and no other site gets it."""
    flag = "; Secure" if secure else ""
    return f"{name}={value}; Path={CONSOLE}{path}; Max-Age={seconds:.0f}; HttpOnly; SameSite=Strict{flag}"


def _digest(token: str) -> str:
    return sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def _csrf(token: str) -> str:
    return keyed_digest(token.encode("utf-8", "surrogateescape"), b"csrf", "sha256").hex()
