"""Token endpoints on a real socket, in a thread: they verify what a real one would, and issue numbered tokens."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qs

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator, Mapping

    from xenoglot.model.json import JSONObject


class TokenCall(NamedTuple):
    """A request to a token endpoint; `form` is its body, of JSON or of a form."""

    method: str
    path: str
    headers: Mapping[str, str]
    form: JSONObject


class TokenRefusalError(Exception):
    """What a token endpoint answers in place of a token."""

    def __init__(self, status: int, body: JSONObject) -> None:
        super().__init__(status)
        self.status, self.body = status, body


class TokenEndpoint:
    """A running endpoint: its `url`, and the `calls` that it got."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.calls: list[TokenCall] = []


@contextmanager
def token_endpoint(
    answer: Callable[[TokenCall], JSONObject], tls: ssl.SSLContext | None = None
) -> Iterator[TokenEndpoint]:
    """Serve what `answer` returns, or the `TokenRefusalError` that it raises."""
    endpoint = TokenEndpoint("")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self._serve()

        def do_GET(self) -> None:
            self._serve()

        def log_message(self, *_: object) -> None:
            pass

        def _serve(self) -> None:
            data = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            call = TokenCall(self.command, self.path, headers, _form(data, headers.get("content-type", "")))
            endpoint.calls.append(call)
            try:
                status, body = 200, answer(call)
            except TokenRefusalError as refusal:
                status, body = refusal.status, refusal.body
            encoded = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(encoded)))
            self.end_headers()
            self.wfile.write(encoded)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    endpoint.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _form(data: bytes, media_type: str) -> JSONObject:
    if not data:
        return {}
    if "json" in media_type:
        found: JSONObject = json.loads(data)
        return found
    return {name: values[0] for name, values in parse_qs(data.decode()).items()}
