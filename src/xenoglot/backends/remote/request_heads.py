"""Heads of requests to upstreams: cached per server, with the hop count of the current request.

Whatever a request has asked of an upstream (an answer, a count, a list of models) may lead back to where it came from.
So the number belongs to the request as a whole, and stands in its context.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

from xenoglot.backends.http.http1 import prepare
from xenoglot.errors import FailureError
from xenoglot.model.failure import Failure
from xenoglot.shortcuts import shortcut

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xenoglot.backends.http.http1 import PreparedRequest
    from xenoglot.codec.dialect import Headers


HOPS_HEADER = "x-xenoglot-hops"
MOST_HOPS = 5
"""One more is taken for a circle."""

_hops: ContextVar[int] = ContextVar("hops", default=0)


def read_hops(headers: Sequence[tuple[str, str]]) -> int:
    """Return the hops of the request with these `headers` (lower-case names); invalid numbers are ignored.

    Raises:
        FailureError: so far that it must be going in a circle.
    """
    said = next((value for name, value in headers if name == HOPS_HEADER), "")
    hops = int(said) if said.isdecimal() and said.isascii() and len(said) <= len("99") else 0
    if hops >= MOST_HOPS:
        message = "the request goes in a circle: one of this gateway's upstreams leads back to it"
        raise FailureError(Failure(kind="invalid_request", message=message, non_retryable=True))
    return hops


def arrive(hops: int) -> None:
    """Note how far the request has come that is answered from here on."""
    _hops.set(hops)


def next_hops() -> str:
    """Return the header's value for the next gateway."""
    return str(_hops.get() + 1)


USER_AGENT = "xenoglot"
JSON_TYPE = "application/json"

MOST = 256
"""Most heads kept per server. Clients may send anything in forwarded fields: above it, the cache is emptied."""
LONGEST = 4096
"""Bytes of a head that is kept."""


class RequestHeads:
    """Writes them: the fields of the server's key first, then those that are sent to it in any case (`fixed`).

    With `socket_path` the server is at that unix socket.
    """

    def __init__(self, keys: Sequence[Headers], fixed: Mapping[str, str], socket_path: str | None = None) -> None:
        self._socket_path = socket_path
        own = {name.lower(): value for name, value in fixed.items()}
        self._auth_headers = [{"user-agent": USER_AGENT, **dict(key), **own} for key in keys]
        self._prepared: dict[object, PreparedRequest] = {}

    def post(self, url: str, key: int, accept: str, passed: Headers = ()) -> PreparedRequest:
        """Return the head of a POST of JSON, with the fields of the client that are `passed` on.

        Raises:
            TransportError: it cannot be written as HTTP.
        """
        onward = next_hops()
        kind = (url, key, accept, onward, passed)
        found = self._prepared.get(kind)
        if found is None:
            fields = {"content-type": JSON_TYPE, "accept": accept, **self._auth_headers[key], HOPS_HEADER: onward}
            found = prepare("POST", url, tuple((fields | dict(passed)).items()), self._socket_path)
            self._cache(kind, found)
        return found

    def post_body(self, url: str, key: int, media_type: str, passed: Headers = ()) -> PreparedRequest:
        """Return the head of a POST of something other than JSON, with the fields of the client that are `passed` on.

        Raises:
            TransportError: it cannot be written as HTTP.
        """
        fields = {"accept": "*/*", **self._auth_headers[key], HOPS_HEADER: next_hops(), **dict(passed)}
        return prepare("POST", url, tuple((fields | {"content-type": media_type}).items()), self._socket_path)

    def get(self, url: str) -> PreparedRequest:
        """Return the head of a GET of JSON, with the first key."""
        fields = {**self._auth_headers[0], "accept": JSON_TYPE}
        return prepare("GET", url, (*fields.items(), (HOPS_HEADER, next_hops())), self._socket_path)

    @shortcut("heads")
    def _cache(self, kind: object, prepared: PreparedRequest) -> None:
        if len(prepared.start) > LONGEST:
            return
        if len(self._prepared) >= MOST:
            self._prepared.clear()
        self._prepared[kind] = prepared
