"""A gateway with keys of each role, in front of one scripted server, and requests to its administration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx2

from tests.gateway.running_gateway import TIMEOUT
from tests.gateway.upstream.test_reasoning_requests import DialectGateway

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

CLIENT, ADMIN, VIEWER = "client-key", "admin-key", "viewer-key"
SECRETS = {"CLIENT": CLIENT, "ADMIN": ADMIN, "VIEWER": VIEWER}
KEYS: JSONObject = {"env": ["CLIENT"], "admin_env": ["ADMIN"], "viewer_env": ["VIEWER"]}


class Administered(DialectGateway):
    """A gateway that is administered."""

    def admin(self, method: str, path: str, body: JSON = None, *, key: str | None = ADMIN) -> httpx2.Response:
        """Return the answer to a request below `/admin/v1`."""
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        sent = {} if body is None else {"json": body}
        return httpx2.request(method, f"{self.url}/admin/v1{path}", headers=headers, timeout=TIMEOUT, **sent)

    def post(self, path: str, body: JSON) -> httpx2.Response:
        """Return the answer to a client's request."""
        headers = {"authorization": f"Bearer {CLIENT}"}
        return httpx2.post(f"{self.url}{path}", json=body, headers=headers, timeout=TIMEOUT)

    def generate(self, model: str = "m", path: str = "/v1/chat/completions", **more: JSON) -> httpx2.Response:
        """Return the answer of a model."""
        body = {"model": model, "messages": [{"role": "user", "content": "Hi"}], **more}
        headers = {"authorization": f"Bearer {CLIENT}"}
        return httpx2.post(f"{self.url}{path}", json=body, headers=headers, timeout=TIMEOUT)
