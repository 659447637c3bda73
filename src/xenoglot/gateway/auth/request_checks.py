"""Whether a request may come in at all, by its host, its origin and its media type. Pure.

A page on the web can make a browser send requests to servers on the same machine, under a host name of its own that
resolves to 127.0.0.1 (DNS rebinding), or across origins in the few media types that need no leave. Both stop here. What
programs send is not held against them: `sec-fetch-mode: cors` comes from every Node client.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from xenoglot.gateway.config.settings import is_loopback
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.gateway.config.settings import ServerSettings

FORBIDDEN = 403
UNSUPPORTED_MEDIA_TYPE = 415

# RFC 9110 section 7.2, RFC 3986 section 3.2.2: a name or an address, and perhaps a port. Nothing else belongs there.
_HOST = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_CURL = "application/x-www-form-urlencoded"
_JSON = re.compile(r"application/(?:[a-z0-9.+-]+\+)?json")


class Rejection(Struct, frozen=True):
    """Why not; `status` where HTTP has a word of its own for it."""

    failure: Failure
    status: int | None = None


def check_host(headers: Sequence[tuple[str, str]], server: ServerSettings) -> Rejection | None:
    """Refuse a request without one valid `host`; at a loopback address, also one for a host from elsewhere."""
    hosts = [value for name, value in headers if name == "host"]
    match = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
    if match is None:
        return Rejection(_invalid("the request needs one lawful `host` header"))
    name = match[1].lower()
    if server.loopback and not is_loopback(name) and name not in server.allowed_hosts:
        return _forbidden(
            "the gateway does not answer under this host name; `allowed_hosts` says which it answers under"
        )
    return None


def requested_host(headers: Sequence[tuple[str, str]]) -> str | None:
    """Return the `host` of a request that `check_host` lets in."""
    return next((value for name, value in headers if name == "host"), None)


def check_origin(headers: Sequence[tuple[str, str]], server: ServerSettings) -> Rejection | None:
    """Refuse what a page of a foreign origin made a browser send; pages of the console are not foreign."""
    for name, value in headers:
        if name == "origin" and value not in server.allowed_origins and not _is_own(value, headers, server):
            return _forbidden("pages of this origin may not use the gateway; `allowed_origins` says which may")
    return None


def _is_own(origin: str, headers: Sequence[tuple[str, str]], server: ServerSettings) -> bool:
    """Whether a page of this gateway sent the request: the only pages that it has are those of the console."""
    return server.console is not False and origin.partition("://")[2] == requested_host(headers)


def check_media(headers: Sequence[tuple[str, str]], *, form: bool = False) -> Rejection | None:
    """Refuse a body that is not plain JSON in UTF-8; one without a content type is taken for that.

    So is one of the type that `curl -d` sends, unless a browser may have sent it: browsers send `origin` with every
    POST across origins (https://fetch.spec.whatwg.org/#append-a-request-origin-header), and `sec-fetch-*` headers.
    Where a `form` is wanted, a body that is none is refused.

    Bodies are taken as they are: a compressed one is refused, since what it grows to could not be bounded by its size.
    """
    for name, value in headers:
        if name == "content-type" and (problem := _form_problem(value) if form else _media_problem(value, headers)):
            return Rejection(_invalid(problem), UNSUPPORTED_MEDIA_TYPE)
        if name == "content-encoding" and value.strip().lower() not in ("", "identity"):
            problem = "the body is compressed: send it as it is, without `content-encoding`"
            return Rejection(_invalid(problem), UNSUPPORTED_MEDIA_TYPE)
    return None


def _media_problem(value: str, headers: Sequence[tuple[str, str]]) -> str | None:
    media_type, *parameters = (piece.strip().lower() for piece in value.split(";"))
    if media_type == _CURL and not any(name == "origin" or name.startswith("sec-fetch-") for name, _ in headers):
        media_type = ""
    if media_type and not _JSON.fullmatch(media_type):
        return "the body must be JSON: send it with `content-type: application/json`"
    charsets = {piece.partition("=")[2].strip('"') for piece in parameters if piece.startswith("charset=")}
    return None if charsets <= {"utf-8", "utf8", "us-ascii"} else "the body must be encoded in UTF-8"


def _form_problem(value: str) -> str | None:
    wanted = value.partition(";")[0].strip().lower() == "multipart/form-data"
    return None if wanted else "the body must be a form: send it with `content-type: multipart/form-data`"


def _invalid(message: str) -> Failure:
    return Failure(kind="invalid_request", message=message)


def _forbidden(message: str) -> Rejection:
    return Rejection(Failure(kind="permission", message=message))
