"""A model's server of any dialect, over real HTTP: it reads requests by that dialect's record, and answers a script.

The answers are canonical; over the wire goes what the dialect writes of them, streamed or whole as it was asked.
"""

from __future__ import annotations

import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Self

from msgspec.structs import replace

from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.requests.url_params import informed
from xenoglot.codec.stage import Pipeline, through
from xenoglot.gateway.endpoint.routes import EndpointRow, Routes
from xenoglot.model.catalog import ModelInfo
from xenoglot.model.events import TextDelta
from xenoglot.model.failure import Failure
from xenoglot.model.fold import unfold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from xenoglot.codec.dialect import Dialect
    from xenoglot.model.events import Event
    from xenoglot.model.request import Request
    from xenoglot.model.response import Response

MODELS = (ModelInfo(id="large", owned_by="speaker"),)

_LOOK = 0.05
"""Seconds after which it looks whether it is to end."""


class DialectServer:
    """Answers each request with the next turn of its script; `requests` are those that came, in order.

    A turn is a response, or a function from the request to one. A stream has its words in pieces of `piece`
    characters, where that is said.
    """

    def __init__(self, dialect: Dialect, *, piece: int | None = None) -> None:
        self.dialect = dialect
        self._piece = piece
        self.requests: list[Request] = []
        self.headers: list[dict[str, str]] = []
        self._turns: deque[Response | Failure | Callable[[Request], Response]] = deque()
        paths = dict.fromkeys((dialect.path, dialect.stream_path or dialect.path, *dialect.aliases))
        self._routes = Routes([EndpointRow(method="POST", path=path, policy="open", handler=_no_app) for path in paths])
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_LOOK,), name=f"speaker of {dialect.name}"
        )

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def script(self, *turns: Response | Failure | Callable[[Request], Response]) -> None:
        """Answer the next requests so; what was left of an earlier script is forgotten."""
        self._turns = deque(turns)
        self.requests = []
        self.headers = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def response(self, path: str, body: bytes) -> tuple[int, str, bytes]:
        """Return status, media type and body for what was posted to `path`."""
        dialect = self.dialect
        found = self._routes.find(path.partition("?")[0])
        if not found.rows:
            failure = Failure(kind="not_found", message=f"nothing at {path}")
            return self._failed(failure)
        told = informed(decode_json(body), found.rows["POST"].path, found.variables, dialect)
        request = dialect.decode_request(told)
        self.requests.append(request)
        turn = self._turns.popleft() if self._turns else Failure(kind="internal", message="nothing was scripted")
        if isinstance(turn, Failure):
            return self._failed(turn)
        response = turn(request) if callable(turn) else turn
        response = replace(response, model=request.model)
        if not request.stream:
            return 200, "application/json", encode_json(dialect.encode_response(response, request, Losses()))
        encoder = Pipeline(dialect.stream_encoder(request, Losses()), dialect.framing.encoder())
        return 200, dialect.framing.media_type, b"".join(through(self._streamed(response), encoder))

    def _streamed(self, response: Response) -> Iterator[Event]:
        for event in unfold(response):
            if isinstance(event, TextDelta) and self._piece is not None:
                starts = range(0, len(event.text), self._piece)
                yield from (replace(event, text=event.text[start : start + self._piece]) for start in starts)
            else:
                yield event

    def _failed(self, failure: Failure) -> tuple[int, str, bytes]:
        status, body = self.dialect.encode_error(failure)
        return status, "application/json", encode_json(body)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        speaker = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                """Say nothing."""

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                speaker.headers.append({name.lower(): value for name, value in self.headers.items()})
                self._send(*speaker.response(self.path, body))

            def do_GET(self) -> None:
                self._send(200, "application/json", encode_json(speaker.dialect.encode_models(MODELS)))

            def _send(self, status: int, media_type: str, body: bytes) -> None:
                self.send_response(status)
                self.send_header("content-type", media_type)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        return Handler


async def _no_app(*_: object) -> None:
    raise AssertionError
