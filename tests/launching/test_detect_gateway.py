"""Whether a gateway runs already: whose socket it is, what it says of itself, and who is shown a key."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from tests.matrix.dialect_server import DialectServer
from xenoglot import dialect_registry as dialects
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.config.from_flags import from_flags
from xenoglot.launching import detect_gateway
from xenoglot.launching.detect_gateway import DetectedGateway, detect, models_of, owned_by_user, windows_of
from xenoglot.launching.gateway_thread import run_gateway

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

KEY = "sk-key-of-a-gateway"


@contextmanager
def impostor(answers: Mapping[str, tuple[int, bytes]]) -> Iterator[tuple[str, list[str]]]:
    """Give the URL of a server that says `answers`, and what it was shown."""
    shown: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            shown.append(str(self.headers))
            status, body = answers.get(self.path, (404, b""))
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", shown
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_gateway_is_known_by_what_it_says() -> None:
    with DialectServer(dialects.get("chat")) as speaker, run_gateway(from_flags({}, upstream=speaker.url)) as door:
        assert detect(door.url, door.key) == DetectedGateway(ours=True, welcome=True, models=("large",))
        assert detect(door.url, None) == DetectedGateway(ours=True)
        assert detect(f"{door.url}/", "xg-another") == DetectedGateway(ours=True)
        assert models_of(door.url, door.key) == ("large",)
        with pytest.raises(ConfigurationError, match="the gateway rejected the key: name the variable"):
            models_of(door.url, None)


HEALTHY = {"/health": (200, b'{"status":"ok"}')}


@pytest.mark.parametrize(
    ("answers", "shows"),
    [
        pytest.param({}, False, id="something-else"),
        pytest.param({"/health": (200, b"{")}, False, id="no-json"),
        pytest.param({"/health": (500, b'{"status":"ok"}')}, False, id="ill"),
        pytest.param({**HEALTHY, "/": (200, b"nginx")}, False, id="another-server"),
        pytest.param({**HEALTHY, "/": (401, b"")}, True, id="another-that-wants-a-key"),
    ],
)
def test_what_is_no_gateway_is_not_taken_for_one(answers: Mapping[str, tuple[int, bytes]], *, shows: bool) -> None:
    with impostor(answers) as (url, shown):
        assert detect(url, KEY) == DetectedGateway(ours=shows)
        with pytest.raises(
            ConfigurationError, match="the gateway rejected the key" if shows else "no Xenoglot gateway answers at"
        ):
            models_of(url, KEY)
        assert any(KEY in head for head in shown) is shows


@pytest.mark.parametrize(
    "models",
    [
        pytest.param(b"{", id="no-json"),
        pytest.param(b"[]", id="list"),
        pytest.param(b'{"data": 1}', id="number"),
        pytest.param(b'{"data": [1, {"id": 2}, {}]}', id="rows"),
    ],
)
def test_a_list_of_models_that_is_none(models: bytes) -> None:
    with impostor({**HEALTHY, "/": (200, b"Xenoglot: ..."), "/v1/models": (200, models)}) as (url, _):
        assert detect(url, KEY) == DetectedGateway(ours=True, welcome=True)


@pytest.mark.parametrize(
    ("status", "listed", "context"),
    [
        pytest.param(200, b'{"data": [{"id": "n"}, {"id": "m", "context_length": 32768}]}', 32768, id="listed"),
        pytest.param(200, b'{"data": [{"id": "m"}]}', None, id="not-told"),
        pytest.param(200, b'{"data": [{"id": "m", "context_length": "32k"}]}', None, id="no-number"),
        pytest.param(200, b'{"data": [{"id": "m", "context_length": 0}]}', None, id="zero"),
        pytest.param(200, b"no JSON", None, id="no-json"),
        pytest.param(500, b'{"data": [{"id": "m", "context_length": 32768}]}', None, id="failed"),
    ],
)
def test_the_context_window_that_a_gateway_lists(status: int, listed: bytes, context: int | None) -> None:
    """findings-clients-3: nothing is assumed where none is listed."""
    with impostor({"/v1/models": (status, listed)}) as (url, _):
        assert windows_of(url, KEY).get("m") == context


def test_nobody_there() -> None:
    assert windows_of("http://127.0.0.1:9", KEY) == {}
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert detect(f"http://127.0.0.1:{port}", KEY) == DetectedGateway()


@pytest.mark.parametrize("url", ["127.0.0.1:8080", "ftp://a", "http://", "http://a/'b", 'http://a/"b', "http://a\n"])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(ConfigurationError, match="--gateway: found"):
        models_of(url, None)


def table(*owners: int, port: int = 8080, state: str = "0A") -> str:
    """Return a table of sockets as the kernel writes it."""
    rows = [
        f"{n}: 0100007F:{port:04X} 00000000:0000 {state} 0:0 00:0 00000000 {owner} 0 1"
        for n, owner in enumerate(owners)
    ]
    return "\n".join(("  sl  local_address rem_address st tx_queue tr tm->when retrnsmt uid timeout inode", *rows))


@pytest.mark.parametrize(
    ("sockets", "mine"),
    [
        pytest.param(table(os.getuid()), True, id="mine"),
        pytest.param(table(0), True, id="of-the-administrator"),
        pytest.param(table(12345), False, id="of-another-user"),
        pytest.param(table(os.getuid(), 12345), False, id="of-both"),
        pytest.param(table(os.getuid(), port=8081), False, id="another-port"),
        pytest.param(table(os.getuid(), state="01"), False, id="does-not-listen"),
        pytest.param("", False, id="not-told"),
    ],
)
def test_whose_socket_listens(sockets: str, *, mine: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tcp").write_text(sockets)
    monkeypatch.setattr(detect_gateway, "_TABLES", (str(tmp_path / "tcp"), str(tmp_path / "none")))
    assert owned_by_user(8080) is mine


def test_a_service_of_the_system_may_listen_where_that_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tcp").write_text(table(998, port=11434))
    monkeypatch.setattr(detect_gateway, "_TABLES", (str(tmp_path / "tcp"),))
    assert (owned_by_user(11434), owned_by_user(11434, system=True), owned_by_user(1, system=True)) == (
        False,
        True,
        False,
    )


def test_our_own_socket_is_ours() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert owned_by_user(listener.getsockname()[1])
