"""`xenoglot health` as a container's health check uses it: an exit code, one line, and an end in time."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.gateway.running_gateway import TIMEOUT, RunningGateway
from tests.gateway.scripted_backends import Backend
from xenoglot.cli import main
from xenoglot.gateway.app import Gateway
from xenoglot.gateway.config.load import Config

if TYPE_CHECKING:
    from collections.abc import Generator


@contextmanager
def raw_server(answer: bytes) -> Generator[str]:
    """Answer one connection with `answer`, whatever it asks; with nothing, only when the client gives up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(TIMEOUT)
                connection.recv(65536)
                connection.sendall(answer)
                if not answer:
                    connection.recv(1)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join(TIMEOUT)


def test_a_ready_gateway_is_healthy(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with RunningGateway(Gateway(Config(), {"main": Backend("main")})) as gateway:
        monkeypatch.setenv("XENOGLOT_URL", gateway.url)
        assert main(["health"]) == 0
        assert main(["health", f"{gateway.url}/", "--live"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f'{gateway.url}/readyz: HTTP 200: {{"status":"ready"}}',
        f'{gateway.url}/livez: HTTP 200: {{"status":"ok"}}',
    ]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        pytest.param(
            b'HTTP/1.1 503 Service Unavailable\r\nContent-Length: 21\r\n\r\n{"status":"draining"}',
            ': HTTP 503: {"status":"draining"}',
            id="draining",
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{\x1b[31m\n\r\n\n", ": HTTP 200", id="control-characters"
        ),
        pytest.param(b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", ": HTTP 302", id="redirect"),
    ],
)
def test_other_answers(answer: bytes, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with raw_server(answer) as url:
        code = main(["health", url])
    output, errors = capsys.readouterr()
    assert (code, output or errors) == (0 if "200" in told else 1, f"{url}/readyz{told}\n")


@pytest.mark.parametrize(
    ("answer", "flags"),
    [
        pytest.param(b"SSH-2.0-server\r\n", (), id="another-protocol"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", (), id="half-a-body"),
        pytest.param(b"", ("--timeout", "0.05"), id="silence"),
    ],
)
def test_a_server_that_is_no_gateway_is_unhealthy(
    answer: bytes, flags: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with raw_server(answer) as url:
        assert main(["health", url, *flags]) == 1
    output, errors = capsys.readouterr()
    assert (output, errors.count("\n"), errors.startswith(f"{url}/readyz: ")) == ("", 1, True)


def test_no_server_is_unhealthy(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["health", "http://127.0.0.1:9"]) == 1
    assert capsys.readouterr().err == "http://127.0.0.1:9/readyz: no connection to the gateway: Connection refused\n"


@pytest.mark.parametrize("url", ["127.0.0.1:8080", "ftp://127.0.0.1", "http://", "http://127.0.0.1:eight"])
def test_what_is_no_url_is_a_usage_error(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["health", url]) == 2
    assert f'found "{url}"' in capsys.readouterr().err


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "soon"])
def test_a_time_limit_is_a_positive_number(seconds: str) -> None:
    assert main(["health", "--timeout", seconds]) == 2
