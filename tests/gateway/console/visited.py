"""A browser without scripts at the console of a gateway: a cookie, forms and the token that they bear."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx2

from tests.gateway.running_gateway import TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from xenoglot.model.json import JSON


class Visitor:
    """Visits the console at `url`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._client = httpx2.Client(base_url=f"{url}/console", timeout=TIMEOUT)

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    @property
    def cookies(self) -> Mapping[str, str]:
        """The cookies that it has."""
        return dict(self._client.cookies)

    def get(self, path: str = "/", headers: Mapping[str, str] | None = None) -> httpx2.Response:
        """Return the answer to a GET."""
        return self._client.get(path, headers=dict(headers or {}))

    def post(
        self, path: str, form: Mapping[str, str], headers: Mapping[str, str] | None = None, *, token: bool = True
    ) -> httpx2.Response:
        """Return the answer to a form, which has the token of the session unless it is left out."""
        sent = {**form, "csrf": self.token()} if token else dict(form)
        return self._client.post(path, data=sent, headers={"origin": self.url, **(headers or {})})

    def post_json(self, path: str, body: JSON) -> httpx2.Response:
        """Return the answer to what a script sends."""
        return self._client.post(path, json=body, headers={"origin": self.url, "x-csrf-token": self.token()})

    def sign_in(self, key: str, to: str = "/") -> httpx2.Response:
        """Return the answer to the form with a key."""
        return self.post("/sign-in", {"key": key, "to": to}, token=False)

    def token(self) -> str:
        """Return the token of the session, as a page has it."""
        found = re.search(r'name="csrf" value="([0-9a-f]+)"', self.get().text)
        assert found is not None
        return found[1]


@contextmanager
def signed_in(url: str, key: str) -> Iterator[Visitor]:
    """Give a visitor of the gateway at `url` with a session of this key."""
    visitor = Visitor(url)
    visitor.sign_in(key)
    try:
        yield visitor
    finally:
        visitor.close()
