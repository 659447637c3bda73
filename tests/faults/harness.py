"""A gateway, the scripted upstreams behind it and a raw client before it: one event loop, real sockets, pushed time.

Everything happens in turns of one loop: nothing waits for a clock, and hours pass when a test says so. Each case is a
coroutine that runs to its end on that loop; after it nothing may be left but idle connections.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import warnings
from collections import deque
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Self

import pytest

from tests.backends.raw_server import open_descriptors, turns
from tests.faults.canaries import Canaries, LogCapture, capture_logs
from tests.faults.client_requests import client_request
from tests.faults.manual_clock import ManualClockLoop, wait_until
from tests.faults.raw_client import RawClient, RawResponse
from tests.faults.wire_responses import ALL_DIALECTS
from xenoglot.backends.http.client import Transport
from xenoglot.gateway.config.load import check
from xenoglot.gateway.config.settings import UpstreamSettings as Settings
from xenoglot.gateway.http import process_resources
from xenoglot.gateway.process import build
from xenoglot.gateway.process.serve import GatewayServer, bind
from xenoglot.gateway.routing.reservation import TargetRegistry
from xenoglot.testing.upstream import Upstream

if TYPE_CHECKING:
    import ssl
    from collections.abc import Coroutine, Mapping, Sequence
    from contextlib import ExitStack

    from xenoglot.backends.http.connection import ConnectionPool, UpstreamConnection
    from xenoglot.gateway.app import Gateway
    from xenoglot.model.json import JSON, JSONObject

HOST = "upstream.test"
LISTENING, REFUSING, UNRESPONSIVE = "127.0.0.1", "127.0.0.2", "127.0.0.3"
"""Where the upstream listens, where nobody does, and where nobody ever accepts."""

CONNECT, FIRST_BYTE, IDLE, TOTAL = 5.0, 10.0, 12.0, 60.0
PING = 14.0
"""Seconds: the deadlines of the usual upstreams, and what a client may hear nothing for."""


class AccessLogLines(logging.Handler):
    """The lines of the access log."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[JSONObject] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one."""
        self.lines.append(json.loads(record.getMessage()))


class GatewayHarness:
    """The gateway and its upstream. A model `<dialect>-small` leads to the upstream in that dialect.

    `patient-<dialect>-small` waits long for everything, `tls-<dialect>-small` speaks TLS, and trusts whom `trust` says;
    `secure` are the servers behind it, by their addresses. `addresses` is what the name of the upstream leads to; a
    deque holds one answer for each lookup.
    """

    def __init__(
        self,
        *,
        retry: JSONObject | None = None,
        trust: ssl.SSLContext | None = None,
        tls_upstreams: Mapping[str, Upstream] | None = None,
        more: JSONObject | None = None,
    ) -> None:
        self.canaries = Canaries("faults")
        self.addresses: Sequence[str] | deque[Sequence[str]] | Exception | asyncio.Future[Sequence[str]] = (LISTENING,)
        self.loop_errors: list[object] = []
        self.access_log = AccessLogLines()
        self.server: GatewayServer
        self.gateway: Gateway
        self.upstream = Upstream()
        self.tls_upstreams = dict(tls_upstreams or {})
        self.port = 0
        self._retry = {"attempts": 1} if retry is None else retry
        self._more = more or {}
        self._trust = trust
        self._transports: list[Transport] = []
        self._captured: LogCapture
        self._exits = AsyncExitStack()
        self._serving: asyncio.Task[None]
        self._runner = asyncio.Runner(loop_factory=ManualClockLoop)

    @property
    def _upstreams(self) -> tuple[Upstream, ...]:
        return (self.upstream, *self.tls_upstreams.values())

    def run(self, scenario: Coroutine[object, object, object]) -> None:
        """Play one case, and look that nothing is left of it."""
        self._runner.run(self._run_scenario(scenario))

    def start(self, stack: ExitStack) -> Self:
        """Begin to serve, until the stack unwinds."""
        stack.callback(self._stop)
        self._captured = stack.enter_context(capture_logs())
        access = logging.getLogger("xenoglot.access")
        access.addHandler(self.access_log)
        stack.callback(access.removeHandler, self.access_log)
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(build, "Transport", self._transport)
        patch.setattr(
            process_resources, "trim", lambda: True
        )  # in a thread, at a second of the machine's: it opens a file at first
        patch.setenv("UPSTREAM_KEY", self.canaries.upstream_key)
        patch.setenv("CLIENT_KEY", self.canaries.client_key)
        self._runner.run(self._start())
        return self

    def _stop(self) -> None:
        self._runner.run(self._end())
        self._runner.close()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            gc.collect()
        unclosed = [str(warning.message) for warning in caught if issubclass(warning.category, ResourceWarning)]
        assert (unclosed, self.loop_errors) == ([], [])

    def _transport(self, **settings: object) -> Transport:
        transport = Transport(**settings, resolve=self._resolve, ssl_context=self._trust)  # type: ignore[arg-type]
        self._transports.append(transport)
        return transport

    async def _resolve(self, _host: str) -> Sequence[str]:
        addresses = self.addresses
        if isinstance(addresses, deque):
            return addresses.popleft()
        if isinstance(addresses, asyncio.Future):
            return await asyncio.shield(addresses)
        if isinstance(addresses, Exception):
            raise addresses
        return addresses

    async def _start(self) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, complaint: self.loop_errors.append(complaint))
        await self._exits.enter_async_context(self.upstream)
        for upstream in self.tls_upstreams.values():
            upstream.port = next(iter(self.tls_upstreams.values())).port
            await self._exits.enter_async_context(upstream)
        await self._exits.enter_async_context(Upstream(door="stall", host=UNRESPONSIVE, port=self.upstream.port))
        config = check(self._config(), os.environ, "the tests")
        self.gateway = await self._exits.enter_async_context(build.build_gateway(config))
        self.gateway.dispatcher.clock = asyncio.get_running_loop().time
        self.server = GatewayServer(self.gateway)
        listener = self._exits.enter_context(bind("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        self._serving = asyncio.get_running_loop().create_task(self.server.serve([listener]))
        await self._ready()
        self._tasks = set(asyncio.all_tasks()) - {asyncio.current_task()}
        gc.collect()  # sockets of other tests that nothing holds any more are closed now, not while a fault is played
        self._count_open()

    def _count_open(self) -> None:
        """Note what is open between two faults."""
        self._opened, self._kept = open_descriptors(), self._idle()

    async def _ready(self) -> None:
        """Have one answer of the gateway, so that everything is there that stays."""
        _, raw_client = await asyncio.get_running_loop().create_connection(RawClient, "127.0.0.1", self.port)
        raw_client.transport.write(b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        await wait_until(lambda: raw_client.closed, "the gateway serves")
        assert raw_client.response().status == 200
        await turns()

    async def _end(self) -> None:
        assert b"xenoglot_gateway_requests_running 0" in self.gateway.metrics()
        self.server.should_exit = True
        await self._serving
        await self._exits.aclose()

    def _config(self) -> JSONObject:
        """Return the configuration, as a file would give it."""
        upstreams: JSONObject = {}
        models: list[JSONObject] = []
        usual = {"connect": CONNECT, "first_byte": FIRST_BYTE, "idle": IDLE, "total": TOTAL}
        patient = {"connect": 500.0, "first_byte": 500.0, "idle": 500.0, "total": 3600.0}
        kinds = [("", "http", self.upstream.port, usual), ("patient-", "http", self.upstream.port, patient)]
        if self.tls_upstreams:
            kinds.append(("tls-", "https", next(iter(self.tls_upstreams.values())).port, usual))
        for dialect in ALL_DIALECTS:
            for prefix, scheme, port, deadlines in kinds:
                name = f"{prefix}{dialect}"
                upstreams[name] = {
                    "dialect": dialect,
                    "also": [],
                    "base_url": f"{scheme}://{HOST}:{port}",
                    "key_env": "UPSTREAM_KEY",
                    "deadlines": deadlines,
                }
                if "retry" in Settings.__struct_fields__:
                    upstreams[name]["retry"] = self._retry
                if "breaker" in Settings.__struct_fields__:
                    upstreams[name]["breaker"] = {"failures": 1_000_000}
                models.append({"name": f"{name}-*", "upstream": name})
        return {
            "server": {"drain_seconds": 0.0, "ping_interval": PING},
            "keys": {"env": ["CLIENT_KEY"]},
            "store": {"url": "off"},
            "upstreams": upstreams,
            "models": models,
        } | self._more

    async def start_request(self, client: str, model: str, *, streamed: bool, **more: JSON) -> RawClient:
        """Send a request, and return the one who listens."""
        path, body = client_request(client, model, self.canaries.prompt, streamed=streamed)
        return await self.post(path, json.dumps(body | more).encode())

    async def post(self, path: str, body: bytes, *headers: str) -> RawClient:
        """Post a body."""
        loop = asyncio.get_running_loop()
        _, raw_client = await loop.create_connection(RawClient, "127.0.0.1", self.port)
        head = [f"POST {path} HTTP/1.1", f"host: 127.0.0.1:{self.port}", f"content-length: {len(body)}"]
        head += ["content-type: application/json", *headers]
        if not any(header.startswith("x-api-key") for header in headers):
            head.append(f"authorization: Bearer {self.canaries.client_key}")
        head += ["", ""]
        raw_client.transport.write("\r\n".join(head).encode() + body)
        return raw_client

    async def read_response(self, raw_client: RawClient) -> RawResponse:
        """Wait for the end of an answer, and leave."""
        await wait_until(lambda: raw_client.finished, "an answer ends")
        raw_client.transport.abort()
        answer = raw_client.response()
        self.canaries.check_answers([answer.raw])
        return answer

    async def request(self, client: str, model: str, *, streamed: bool, **more: JSON) -> RawResponse:
        """Ask, and return the answer."""
        return await self.read_response(await self.start_request(client, model, streamed=streamed, **more))

    async def wait_for_upstream_requests(self, count: int = 1) -> None:
        """Wait until that many requests have reached the upstream."""
        await wait_until(lambda: len(self.upstream.requests) >= count, f"{count} requests reach the upstream")

    def access_log_line(self) -> JSONObject:
        """Return the one line in the access log."""
        assert len(self.access_log.lines) == 1, self.access_log.lines
        return self.access_log.lines[0]

    async def _run_scenario(self, scenario: Coroutine[object, object, object]) -> None:
        self._reset()
        try:
            await scenario
            await self._wait_until_idle()
        except BaseException:
            await self._abort_leftovers()
            raise
        self.canaries.check(self._captured.texts)
        assert self.loop_errors == []

    async def _abort_leftovers(self) -> None:
        """Break off what a failed case has left, so that the next one does not fail of it."""
        for upstream in self._upstreams:
            for connection in upstream.connections:
                connection.abort()
        await turns(200)
        for task in self._leftover_tasks():
            task.cancel()
        await turns(200)

    def _reset(self) -> None:
        self.addresses = (LISTENING,)
        self.gateway.dispatcher.ward = TargetRegistry(self.gateway.config)  # no key is out, and no breaker open
        self.access_log.lines.clear()
        self._captured.texts.clear()
        for upstream in self._upstreams:
            upstream.script()
            upstream.forget()
        self._count_open()

    async def _wait_until_idle(self) -> None:
        """Wait until nothing is left but idle connections; the invariants of section 5."""
        await wait_until(lambda: not self._leftover_tasks(), "tasks end")
        pools = self._pools()
        await wait_until(lambda: sum(len(one.connections) for one in pools) == len(self._idle()), "none is busy")
        await wait_until(lambda: not self._left_open(), "what was opened is closed")
        assert len(self.gateway.requests) == 0

    def _leftover_tasks(self) -> list[asyncio.Task[object]]:
        """Return tasks that were not there at first, but for those of the upstream's idle connections."""
        playing = {one.task for upstream in self._upstreams for one in upstream.connections}
        return list(asyncio.all_tasks() - self._tasks - {asyncio.current_task()} - playing)

    def _left_open(self) -> bool:
        """Say whether something is open that was not at the last count, but for connections kept for the next request.

        It looks at what is open, not at how much: the collector may close what other tests left behind at any moment.
        """
        opened, kept = open_descriptors(), self._idle()
        new, gone = opened - self._opened, self._opened - opened
        return new.total() != 2 * len(kept - self._kept) or gone.total() < 2 * len(self._kept - kept)

    def _idle(self) -> set[UpstreamConnection]:
        """Return the connections that are kept for the next request: two sockets each, as the upstream is here, too."""
        return {connection for pool in self._pools() for idle in pool._idle.values() for connection in idle}

    def _pools(self) -> list[ConnectionPool]:
        return [transport._pool for transport in self._transports if transport._pool is not None]
