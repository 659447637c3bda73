"""Cache of request heads per server: few of them differ from one request to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.backends.http.http1 import prepare
from xenoglot.backends.remote import hop_count
from xenoglot.shortcuts import shortcut

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xenoglot.backends.http.http1 import PreparedRequest
    from xenoglot.codec.dialect import Headers

USER_AGENT = "xenoglot"
JSON_TYPE = "application/json"

MOST = 256
"""Kept of one server. Clients may send what they like in the fields that are passed on: beyond it, all begins anew."""
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
        onward = hop_count.onward()
        kind = (url, key, accept, onward, passed)
        found = self._prepared.get(kind)
        if found is None:
            fields = {"content-type": JSON_TYPE, "accept": accept, **self._auth_headers[key], hop_count.HEADER: onward}
            found = prepare("POST", url, tuple((fields | dict(passed)).items()), self._socket_path)
            self._cache(kind, found)
        return found

    def get(self, url: str) -> PreparedRequest:
        """Return the head of a GET of JSON, with the first key."""
        fields = {**self._auth_headers[0], "accept": JSON_TYPE}
        return prepare("GET", url, (*fields.items(), (hop_count.HEADER, hop_count.onward())), self._socket_path)

    @shortcut("heads")
    def _cache(self, kind: object, prepared: PreparedRequest) -> None:
        if len(prepared.start) > LONGEST:
            return
        if len(self._prepared) >= MOST:
            self._prepared.clear()
        self._prepared[kind] = prepared
