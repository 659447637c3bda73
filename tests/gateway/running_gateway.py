"""A gateway on a real socket, in a thread of its own, and what a test needs to speak to it."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import queue
import signal
import socket
import threading
from typing import TYPE_CHECKING, Self

import pytest
from msgspec.structs import replace

from tests.gateway.asgi_server import ASGIServer
from tests.gateway.scripted_backends import HELLO
from xenoglot.backends.scripted import Scripted
from xenoglot.gateway.app import Gateway
from xenoglot.gateway.config.load import Config
from xenoglot.gateway.config.settings import ServerSettings, UpstreamSettings
from xenoglot.gateway.observability.access_log import configure_logging
from xenoglot.gateway.process.serve import GatewayServer as NativeServer
from xenoglot.gateway.process.serve import bind, loop_factory
from xenoglot.policy.target_health import BreakerSettings, Retry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.backends.backend import Backend
    from xenoglot.gateway.endpoint.routes import EndpointRow
    from xenoglot.model.json import JSON
    from xenoglot.store.store import Store

SERVERS = ("native", "asgi")
"""What `gateway_server` can be parametrized with."""

TIMEOUT = 120.0
"""Seconds after which something that has to happen has not."""


class GatewayResponse:
    """A response: its status, its headers by lower-case names, its body, and whether that was broken off."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.truncated = False
        try:
            self.body = response.read()
        except http.client.IncompleteRead as error:
            self.body, self.truncated = error.partial, True

    @property
    def json(self) -> JSON:
        """The body, decoded."""
        return json.loads(self.body)


class RunningGateway:
    """A gateway that serves at `url`, by our own server or by uvicorn's. Its backends live in its thread's loop."""

    def __init__(self, gateway: Gateway, *, asgi: bool = False) -> None:
        self.gateway = gateway
        self._listener = bind("127.0.0.1", 0)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._server = _UvicornServer(gateway) if asgi else _Server(gateway)
        self._thread = threading.Thread(target=self._run, name="gateway")
        configure_logging(gateway.redact)
        self._thread.start()

    def request(
        self, method: str, path: str, body: JSON | bytes = None, headers: Mapping[str, str] | None = None
    ) -> GatewayResponse:
        """Send one request and return its answer; a `body` that is not bytes goes as JSON."""
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
        try:
            connection.putrequest(method, path, skip_host="host" in (headers or {}), skip_accept_encoding=True)
            for name, value in (headers or {}).items():
                connection.putheader(name, value)
            if data is not None:
                connection.putheader("content-length", str(len(data)))
            connection.endheaders(data)
            return GatewayResponse(connection.getresponse())
        finally:
            connection.close()

    def connect(self) -> socket.socket:
        """Return a plain connection, for what no client would send."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=TIMEOUT)

    def exchange(self, data: bytes) -> bytes:
        """Send bytes, and return all that comes until the gateway closes."""
        with self.connect() as connection:
            connection.sendall(data)
            return read_all(connection)

    def signal(self) -> None:
        """Send it a signal to stop, as far as a thread can get one."""
        self._server.handle_exit(signal.SIGTERM, None)

    def wait_until_refused(self) -> None:
        """Wait until it takes no connections any more."""
        assert self._server.draining.wait(TIMEOUT)
        with pytest.raises(ConnectionRefusedError):
            self.connect()

    def join(self) -> None:
        """Wait until it has stopped."""
        self._thread.join(TIMEOUT)
        assert not self._thread.is_alive()

    def stop(self) -> None:
        """Stop it."""
        self._server.should_exit = True
        self.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        with self._listener, asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        await self._server.serve([self._listener])
        await self.gateway.let_go_of_batches()
        if self.gateway.keeper is not None:
            await self.gateway.keeper.aclose()


class _Server(NativeServer):
    """The server, and a word when it has closed its door."""

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(gateway)
        self.draining = threading.Event()

    async def shutdown(self) -> None:
        """Say that the door is closed, as soon as whoever closes it waits for anything."""
        asyncio.get_running_loop().call_soon(self.draining.set)
        await super().shutdown()


class _UvicornServer(ASGIServer):
    """The same in uvicorn."""

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(gateway)
        self.draining = threading.Event()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Say that the door is closed, as soon as whoever closes it waits for anything."""
        asyncio.get_running_loop().call_soon(self.draining.set)
        await super().shutdown(sockets)


class AccessLines(logging.Handler):
    """The lines of the access log, as they come."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one line."""
        self._lines.put(record.getMessage())

    def next(self) -> JSON:
        """Wait for the next line, and return what it says."""
        return json.loads(self._lines.get(timeout=TIMEOUT))


def read_all(connection: socket.socket) -> bytes:
    """Return all that comes until the other side closes."""
    pieces = []
    try:
        while piece := connection.recv(65536):
            pieces.append(piece)
    except ConnectionResetError:
        pieces.append(b"<reset>")
    return b"".join(pieces)


def read_until(connection: socket.socket, mark: bytes) -> bytes:
    """Return what comes, up to and including `mark`."""
    data = b""
    while mark not in data:
        piece = connection.recv(65536)
        assert piece, f"closed before {mark!r}: {data!r}"
        data += piece
    return data


def endpoint_rows() -> tuple[EndpointRow, ...]:
    """Return the rows of the route table, of several dialects at one place the first."""
    rows = Gateway(config_for("scripted"), {"scripted": Scripted(HELLO)}).routes.endpoints
    return tuple({(row.method, row.path): row for row in reversed(rows)}.values())[::-1]


def config_for(*names: str, **changes: object) -> Config:
    """Return a configuration with an upstream (that is never asked) for each of `names`.

    Nothing is waited for or tried twice, and nobody is left alone for having failed.
    """
    upstream = UpstreamSettings(
        dialect="chat",
        base_url="http://upstream.invalid/v1",
        retry=Retry(attempts=1),
        breaker=BreakerSettings(failures=1_000_000),
    )
    upstreams = dict.fromkeys(names, upstream)
    return replace(Config(server=ServerSettings(drain_seconds=0.0), upstreams=upstreams), **changes)


def run_gateway(
    backends: Mapping[str, Backend],
    config: Config | None = None,
    embedded_model: str | None = None,
    store: Store | None = None,
    *,
    asgi: bool = False,
) -> RunningGateway:
    """Return a running gateway; without `config`, the lone backend answers to every name."""
    gateway = Gateway(config or config_for(*backends), backends, embedded_model=embedded_model, store=store)
    return RunningGateway(gateway, asgi=asgi)
