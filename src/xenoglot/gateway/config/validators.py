"""What URLs, origins and headers in the configuration look like, and what is said of those that do not. Pure."""

from __future__ import annotations

import re
from contextlib import suppress
from urllib.parse import urlsplit

from xenoglot.gateway.config.schema import shown
from xenoglot.http1.syntax import CONNECTION_FIELDS, TOKEN

_HEADER_VALUE = re.compile(r"[\x20-\x7e]*")
_KEYED = frozenset({"authorization", "x-api-key", "api-key", "proxy-authorization", "cookie"})


def url_problem(url: str) -> str | None:
    """Return what is wrong with a base URL; the URL is not repeated where it may hold a password."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return f"not a URL: {error}"
    if "@" in parts.netloc:
        return "holds a user or password; a key goes into an environment variable, named in `key_env`"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return f"found {shown(url)}; expected http:// or https:// and a host"
    if port == 0:
        return f"found {shown(url)}; expected a port from 1 to 65535"
    if parts.fragment or not url.isascii() or not url.isprintable() or " " in url:
        return f"found {shown(url)}; expected no fragment, blanks or characters beyond ASCII"
    return None


def header_problem(name: str, value: str) -> str | None:
    """Return what is wrong with a header for an upstream; its value, which may be a secret, is not repeated."""
    if name.lower() in _KEYED:
        return "a key does not stand in the file: name the environment variable that holds it in `key_env`"
    if name.lower() in CONNECTION_FIELDS:
        return "belongs to the connection, and is written by the gateway"
    if not TOKEN.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
        return "not a header of printable ASCII characters"
    return None


def origin_problem(origin: str) -> str | None:
    """Return what is wrong with an origin, as a browser would write it (RFC 6454 section 6.2)."""
    with suppress(ValueError):
        scheme, host, *rest = urlsplit(origin)
        if scheme and host and not any(rest) and origin == origin.lower():
            return None
    return f"found {shown(origin)}; expected an origin in lower case like https://app.example:8443"
