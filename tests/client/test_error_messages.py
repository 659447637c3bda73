"""Errors of the client and of the command line: where, why and what to do, against servers that misbehave so."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from xenoglot import Client
from xenoglot.backends.http.timeouts import Deadlines, TransportError
from xenoglot.errors import (
    AuthenticationError,
    ConnectionFailedError,
    DeadlineError,
    FailureError,
    HTTPStatusError,
    IncompleteError,
    InvalidRequestError,
    NotFoundError,
    PermissionDeniedError,
    RateLimitError,
    UpstreamError,
    WireError,
)
from xenoglot.policy.target_health import Retry

if TYPE_CHECKING:
    from collections.abc import Generator

KEY = "sk-the-secret-key-of-the-server"
PATH = "/v1/chat/completions"
SILENT = b""
"""The server takes the request and says nothing."""
HTML = b"<!DOCTYPE html><html><head><title>Welcome to\n nginx</title></head><body>Hi</body></html>"
UNKNOWN_HOST = "http://nowhere.invalid"
PATIENT = Deadlines()


def answer(status: int, body: bytes | dict[str, object], kind: str = "application/json", *fields: str) -> bytes:
    """An HTTP response."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} x", f"content-type: {kind}", f"content-length: {len(data)}", *fields, "", ""]
    return "\r\n".join(lines).encode() + data


def error(status: int, message: str, *fields: str) -> bytes:
    """An error in the form of OpenAI's API."""
    return answer(status, {"error": {"message": message}}, "application/json", *fields)


@contextmanager
def misbehaving(said: bytes | None) -> Generator[str]:
    """A server that answers each request with the bytes `said` and closes; without them nobody listens."""
    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    if said is None:
        listening.close()
        yield url
        return
    open_ones: list[socket.socket] = []

    def serve() -> None:
        with suppress(OSError):
            while True:
                peer, _ = listening.accept()
                open_ones.append(peer)
                with suppress(OSError):
                    peer.recv(65536)
                    if said != SILENT:
                        peer.sendall(said)
                        peer.shutdown(socket.SHUT_WR)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield url
    finally:
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        for peer in open_ones:
            peer.close()
        thread.join()


def raised(url: str, *, key: str | None = None, deadlines: Deadlines = PATIENT) -> FailureError:
    """The error of one question."""
    with (
        Client(url, model="m", key=key, proxy=None, retry=Retry(attempts=1), deadlines=deadlines) as client,
        pytest.raises(FailureError) as caught,
    ):
        client.complete("Hi")
    return caught.value


CASES = [
    pytest.param(
        None,
        ConnectionFailedError,
        "cannot connect to {url}: connection refused; is the server running?",
        ConnectionRefusedError,
        id="nobody-listens",
    ),
    pytest.param(
        error(500, "the GPU is on fire"),
        UpstreamError,
        "HTTP 500 from {url}{path}: the GPU is on fire",
        HTTPStatusError,
        id="500",
    ),
    pytest.param(
        answer(502, HTML, "text/html"),
        UpstreamError,
        "HTTP 502 from {url}{path}: Welcome to nginx",
        HTTPStatusError,
        id="502-html",
    ),
    pytest.param(
        answer(200, HTML, "text/html"),
        UpstreamError,
        "{url}{path} answered HTML (200, text/html), not JSON: is the base URL right?",
        WireError,
        id="html",
    ),
    pytest.param(
        answer(200, b"Ollama is running", "text/plain"),
        UpstreamError,
        "{url}{path} answered no JSON (200, text/plain): Ollama is running; is the base URL right?",
        WireError,
        id="text",
    ),
    pytest.param(
        answer(200, b""),
        UpstreamError,
        "{url}{path} answered nothing (200, application/json): is the base URL right?",
        WireError,
        id="empty",
    ),
    pytest.param(
        answer(200, {"hello": "world"}),
        UpstreamError,
        "{url}{path} answered in an unexpected form: $.choices: required, expected list; "
        "does the server speak this dialect?",
        WireError,
        id="other-json",
    ),
    pytest.param(
        error(429, "slow down", "retry-after: 1"),
        RateLimitError,
        "rate limited (429) by {url}{path}: slow down, retry after 1 s",
        HTTPStatusError,
        id="429",
    ),
    pytest.param(
        error(401, "who are you"),
        AuthenticationError,
        "401 from {url}{path}: no key was sent; pass `key=` or `key_env=`",
        HTTPStatusError,
        id="401-no-key",
    ),
    pytest.param(
        error(403, "not yours"),
        PermissionDeniedError,
        "403 from {url}{path}: access denied: not yours; may this key use the model?",
        HTTPStatusError,
        id="403",
    ),
    pytest.param(
        error(404, "the model `m` does not exist"),
        NotFoundError,
        "404 from {url}{path}: the model `m` does not exist; are model name and base URL right?",
        HTTPStatusError,
        id="404",
    ),
    pytest.param(
        error(400, "temperature is too high"),
        InvalidRequestError,
        "HTTP 400 from {url}{path}: temperature is too high",
        HTTPStatusError,
        id="400",
    ),
    pytest.param(
        answer(302, b"", "text/html", "location: https://elsewhere.invalid/"),
        UpstreamError,
        "{url}{path} redirects (302), which is not followed: use the URL that it redirects to",
        HTTPStatusError,
        id="redirect",
    ),
    pytest.param(
        b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{",
        ConnectionFailedError,
        "connection lost to {url}: it closed the connection before the end of its response; see the log of that server",
        TransportError,
        id="closed-within",
    ),
    pytest.param(
        b"220 mail.example ESMTP\r\n\r\n",
        UpstreamError,
        "{url} does not answer in HTTP/1.1: the response is not well-formed HTTP/1.1; "
        "is it an HTTP server, and http:// or https:// right?",
        TransportError,
        id="no-http",
    ),
]


@pytest.mark.parametrize(("said", "kind", "text", "cause"), CASES)
def test_an_error_names_url_cause_and_remedy(
    said: bytes | None, kind: type[FailureError], text: str, cause: type[BaseException]
) -> None:
    with misbehaving(said) as url:
        error = raised(url)
    assert (type(error), str(error)) == (kind, text.format(url=url, path=PATH))
    assert isinstance(error.__cause__, cause)
    if isinstance(error.__cause__, HTTPStatusError):
        assert (error.__cause__.status, error.__cause__.url) == (error.failure.status or 302, f"{url}{PATH}")
    assert "127.0.0.1" not in error.failure.message


BEGUN = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n"
    b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m",'
    b'"choices":[{"index":0,"delta":{"content":"Hi"}}]}\n\n'
)


@pytest.mark.parametrize("text_syntax", ["off", "auto"])
def test_a_stream_that_breaks_off_has_the_cause(text_syntax: str) -> None:
    with (
        misbehaving(BEGUN) as url,
        Client(url, model="m", proxy=None, text_syntax=text_syntax) as client,
        client.stream("Hi") as stream,
        pytest.raises(IncompleteError) as caught,
    ):
        assert "".join(stream.texts()) == "Hi"
    assert str(caught.value).startswith(f"connection lost to {url}: ")
    assert isinstance(caught.value.__cause__, TransportError)


def test_a_key_that_is_refused_is_named_but_not_shown() -> None:
    with misbehaving(error(401, f"wrong key {KEY}")) as url:
        found = raised(url, key=KEY)
    assert str(found) == f"401 from {url}{PATH}: the key in `key=` was refused: wrong key [redacted]"


@pytest.mark.parametrize(
    ("deadlines", "reason"),
    [
        pytest.param(
            Deadlines(first_byte=0.01), "it did not answer within the deadline of the first byte", id="first-byte"
        ),
        pytest.param(Deadlines(total=0.01), "the exchange took longer than its total deadline", id="total"),
    ],
)
def test_a_time_out_says_which_deadline(deadlines: Deadlines, reason: str) -> None:
    with misbehaving(SILENT) as url:
        found = raised(url, deadlines=deadlines)
    assert type(found) is DeadlineError
    assert str(found) == f"time-out at {url}: {reason}; raise the deadline if the model is slow"


def test_the_timeout_of_a_call_is_named() -> None:
    with (
        misbehaving(SILENT) as url,
        Client(url, model="m", proxy=None) as client,
        pytest.raises(DeadlineError, match="`timeout` of the call") as caught,
    ):
        client.complete("Hi", timeout=0.01)
    assert isinstance(caught.value.__cause__, TimeoutError)


def test_a_host_name_that_cannot_be_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr("socket.getaddrinfo", unknown)
    found = raised(UNKNOWN_HOST)
    assert str(found) == (
        f"cannot connect to {UNKNOWN_HOST}: its host name cannot be resolved; is the host name in the URL right?"
    )
    assert isinstance(found.__cause__, socket.gaierror)


def test_a_server_without_tls() -> None:
    with misbehaving(b"HTTP/1.1 400 Bad Request\r\n\r\n") as url:
        secure = url.replace("http", "https")
        found = raised(secure)
    assert type(found) is ConnectionFailedError
    assert str(found).startswith(f"no TLS connection to {secure}: ")
    assert str(found).endswith("does the server speak TLS (https://) on this port?")


def test_a_stream_that_breaks_off_names_the_server() -> None:
    chunk = b'data: {"id":"1","model":"m","choices":[{"index":0,"delta":{"content":"Hi"}}]}\n\n'
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 10000\r\n\r\n"
    with (
        misbehaving(head + chunk) as url,
        Client(url, model="m", proxy=None) as client,
        pytest.raises(IncompleteError) as caught,
        client.stream("Hi") as stream,
    ):
        list(stream)
    assert str(caught.value).startswith(f"connection lost to {url}: it closed the connection")


@pytest.mark.parametrize(
    ("said", "code", "text"),
    [
        pytest.param(None, 8, "cannot connect to {url}: connection refused; is the server running?", id="unreachable"),
        pytest.param(
            error(401, "no"), 7, "401 from {url}{path}: no key was sent; name one with --key-env", id="no-key"
        ),
        pytest.param(error(400, "too hot"), 7, "HTTP 400 from {url}{path}: too hot", id="refused"),
        pytest.param(
            answer(200, HTML, "text/html"),
            8,
            "{url}{path} answered HTML (200, text/html), not JSON: is the base URL right?",
            id="html",
        ),
    ],
)
def test_the_command_line_says_the_same(said: bytes | None, code: int, text: str) -> None:
    with misbehaving(said) as url:
        command = [str(Path(sys.executable).parent / "xenoglot"), "ask", "Hi", "--upstream", url, "--model", "m"]
        done = subprocess.run(command, capture_output=True, timeout=60, check=False, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stderr.decode()) == (code, f"xenoglot: {text.format(url=url, path=PATH)}\n")
