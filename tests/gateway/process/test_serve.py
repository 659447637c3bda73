"""The process: what it binds, what it says, and how it ends."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.gateway.running_gateway import TIMEOUT, config_for, read_all, read_until
from tests.gateway.scripted_backends import HELLO, MESSAGES, Backend
from xenoglot.backends.redaction import Redactor
from xenoglot.backends.scripted import Scripted
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.app import Gateway
from xenoglot.gateway.config import settings
from xenoglot.gateway.config.load import Config
from xenoglot.gateway.config.settings import ModelSettings
from xenoglot.gateway.observability.log_format import RedactionFormatter
from xenoglot.gateway.process.greeting import greeting
from xenoglot.gateway.process.reload import FileSource
from xenoglot.gateway.process.serve import GatewayServer, ServeOptions, bind, serve_at

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Sequence

ROOT = Path(__file__).parents[3]
PROGRAM = """
import os, sys
from xenoglot.gateway.config.from_flags import from_flags
from xenoglot.gateway.process.serve import serve
config = from_flags(os.environ, upstream=sys.argv[1], key_env="UPSTREAM_KEY", port=0)
serve(config, say=lambda line: print(line, flush=True))
"""


@pytest.fixture
def upstream() -> Generator[socket.socket]:
    """Give a listening socket that a gateway takes for its upstream."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(TIMEOUT)
        yield listener


def start(upstream: socket.socket) -> tuple[subprocess.Popen[str], int]:
    """Start the gateway as a process; return it, and its port."""
    url = f"http://127.0.0.1:{upstream.getsockname()[1]}/v1"
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, url],
        env=os.environ | {"UPSTREAM_KEY": "sk-upstream-0123456789", "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("Xenoglot serves every model at http://127.0.0.1:"), process.communicate(timeout=TIMEOUT)
    return process, int(line.rpartition(":")[2])


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT], ids=["K12-term", "K13-int"])
def test_a_process_that_is_told_to_stop_ends_well(upstream: socket.socket, sign: signal.Signals) -> None:
    process, port = start(upstream)
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT) as client:
        client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        read_until(client, b'{"status":"ok"}')
        process.send_signal(sign)
        assert read_all(client) == b""
    output, errors = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, output) == (0, "")
    assert [line.partition('"route":')[2].partition(",")[0] for line in errors.splitlines()] == ['"/health"']


def test_k13_a_second_signal_breaks_a_stream_off(upstream: socket.socket) -> None:
    process, port = start(upstream)
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT) as client:
        body = str({**MESSAGES, "stream": True}).replace("'", '"').replace("True", "true").encode()
        head = f"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        client.sendall(head.encode() + body)
        connection, _ = upstream.accept()
        with connection:
            connection.settimeout(TIMEOUT)
            assert b"authorization: Bearer sk-upstream-0123456789\r\n" in read_until(connection, b"\r\n\r\n")
            connection.sendall(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
                b'data: {"id":"1","model":"m","created":1,"choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\n'
            )
            read_until(client, b"Hel")
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGINT)
            assert b"event: error" in read_all(client)
            assert read_all(connection) in (b"", b"<reset>")
    _, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0
    assert "Traceback" not in errors
    assert "sk-upstream" not in errors


def test_k13_k14_a_sighup_while_things_are_loaded_is_heard_afterwards(tmp_path: Path) -> None:
    file = tmp_path / "xenoglot.toml"
    file.write_text('[upstreams.main]\ndialect = "chat"\nbase_url = "http://upstream.invalid"\n')
    source = FileSource(str(file), {}, port=0)
    told: list[str] = []

    @asynccontextmanager
    async def assemble(config: Config) -> AsyncGenerator[Gateway]:
        told.append("loads")
        os.kill(os.getpid(), signal.SIGTERM if len(told) > 1 else signal.SIGHUP)
        for _ in range(20):
            await asyncio.sleep(0)
        yield Gateway(config, {"main": Backend("main")})
        os.kill(os.getpid(), signal.SIGHUP)  # while it is let go of
        await asyncio.sleep(0)
        told.append("lets go")

    with bind("127.0.0.1", 0) as listener:
        serve_at(listener, source.load(), lambda _: told.append("serves"), ServeOptions(assemble, source))
    assert told[:3] == ["loads", "serves", "loads"]
    assert told.count("lets go") >= 1


def test_an_address_in_use() -> None:
    with bind("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(ConfigurationError) as caught:
            bind("127.0.0.1", port)
    problem = f"cannot listen at 127.0.0.1:{port}: Address already in use; choose another with `--host` and `--port`"
    assert str(caught.value) == problem


def test_an_address_of_somebody_else() -> None:
    with pytest.raises(ConfigurationError, match=r"^cannot listen at 192\.0\.2\.1:0: "):
        bind("192.0.2.1", 0)


@pytest.mark.parametrize(
    ("config", "own", "served"),
    [
        pytest.param(config_for("main"), None, "every model", id="upstream"),
        pytest.param(Config(), "tiny", "tiny, every model", id="embedded"),
        pytest.param(
            config_for(
                "main", models=(ModelSettings(name="a-*", upstream="main"), ModelSettings(name="b", upstream="main"))
            ),
            None,
            "b, a-*",
            id="named",
        ),
    ],
)
@pytest.mark.parametrize(("host", "place"), [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")])
def test_the_line_that_says_where(config: Config, own: str | None, served: str, host: str, place: str) -> None:
    gateway = Gateway(config, {name: Backend(name) for name in config.backends}, embedded_model=own)
    with bind(host, 0) as listener:
        port = listener.getsockname()[1]
        assert greeting(gateway, listener) == f"Xenoglot serves {served} at http://{place}:{port}"


def test_r30_no_key_gets_into_the_log() -> None:
    formatter = RedactionFormatter(Redactor(["sk-upstream-0123456789", "x"]))
    error = ValueError("sk-upstream-0123456789 is wrong")
    record = logging.LogRecord("xenoglot", logging.ERROR, "", 0, "no such key %s", ("sk-upstream-0123456789x",), None)
    record.exc_info = (ValueError, error, None)
    assert formatter.format(record) == "no such key [redacted]x\nValueError: [redacted] is wrong"


@pytest.mark.parametrize(
    ("signs", "hurries"),
    [
        pytest.param((signal.SIGTERM,), 0, id="K12-once"),
        pytest.param((signal.SIGTERM, signal.SIGTERM), 0, id="K13-from-a-whole-group-and-from-the-supervisor"),
        pytest.param((signal.SIGTERM, signal.SIGINT), 1, id="K13-at-once"),
    ],
)
async def test_a_worker_is_hurried_by_its_supervisor_alone(signs: Sequence[signal.Signals], hurries: int) -> None:
    config = config_for("scripted", server=settings.ServerSettings(drain_seconds=TIMEOUT))
    server = GatewayServer(Gateway(config, {"scripted": Scripted(HELLO)}), (signal.SIGINT,))
    hurried: list[None] = []
    server.native.stop_now = lambda: hurried.append(None)  # type: ignore[method-assign]  # it only takes note
    with bind("127.0.0.1", 0) as listener:
        serving = asyncio.ensure_future(server.serve([listener]))
        await asyncio.sleep(0)
        for sign in signs:
            server.handle_exit(sign)
        await serving
    assert len(hurried) == hurries
