"""A secret that was just made, on its way from the form to the page after it, which shows it once.

It is in a cookie of the browser that made it, which the page removes. The gateway stores it nowhere, so that any of
several gateways can answer. A code that is made with the token of the session, which no other site knows, proves that
this session made it.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from hmac import compare_digest
from hmac import digest as keyed_digest
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from xenoglot.gateway.console.sessions import cookie_of, set_cookie

if TYPE_CHECKING:
    from xenoglot.gateway.console.route import ConsoleRequest

COOKIE: Final = "xenoglot_console_key"
PATH: Final = "/keys"
SECONDS: Final = 120.0
"""How long the browser may take to show it."""
BYTES: Final = 32
"""Length of the code."""


class MadeKey(Struct, frozen=True, array_like=True):
    """The name of a key and its secret, which no `repr()` shows."""

    name: str
    secret: str

    def __repr__(self) -> str:
        return f"MadeKey(name={self.name!r})"


def made_cookie(request: ConsoleRequest, made: MadeKey) -> str:
    """Return the cookie with a secret, for the answer to the form."""
    body = msgspec.json.encode(made)
    text = urlsafe_b64encode(_code(request, body) + body).decode()
    return set_cookie(COOKIE, text, SECONDS, path=PATH, secure=is_secure(request))


def made_key(request: ConsoleRequest) -> tuple[MadeKey | None, str | None]:
    """Return the secret that the session has just made, and the cookie that removes it; `None` without one."""
    text = cookie_of(request.ctx.exchange, COOKIE)
    if text is None:
        return None, None
    removed = set_cookie(COOKIE, "", 0, path=PATH, secure=False)
    try:
        data = urlsafe_b64decode(text.encode("ascii"))
        code, body = data[:BYTES], data[BYTES:]
        if not request.session.csrf or not compare_digest(code, _code(request, body)):
            return None, removed
        return msgspec.json.decode(body, type=MadeKey), removed
    except (ValueError, msgspec.DecodeError):
        return None, removed


def is_secure(request: ConsoleRequest) -> bool:
    """Return whether the form came from a page over HTTPS."""
    return (request.ctx.exchange.header("origin") or "").startswith("https://")


def _code(request: ConsoleRequest, body: bytes) -> bytes:
    return keyed_digest(request.session.csrf.encode(), b"made key\0" + body, "sha256")
