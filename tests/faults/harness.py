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
import time
import warnings
from collections import deque
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Self

import pytest
from msgspec import Struct

from tests.backends.raw_server import open_sockets, turns
from tests.faults.canaries import Canaries, LogCapture, capture_logs
from tests.faults.client_view import read_error, read_stream, response_text
from tests.faults.wire_responses import DIALECTS, HELLO
from xenoglot.backends.http.client import Transport
from xenoglot.gateway.config.load import check
from xenoglot.gateway.config.settings import UpstreamSettings as Settings
from xenoglot.gateway.http import heap
from xenoglot.gateway.process import build
from xenoglot.gateway.process.serve import GatewayServer, bind
from xenoglot.gateway.routing.target_health import TargetRegistry
from xenoglot.testing.raw_http import MessageReader
from xenoglot.testing.script import Body, End, Respond, ResponseHead
from xenoglot.testing.upstream import Upstream

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Coroutine, Mapping, Sequence
    from contextlib import ExitStack

    from tests.faults.client_view import ReceivedError, ReceivedStream
    from xenoglot.backends.http.connection import ConnectionPool
    from xenoglot.gateway.app import Gateway
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.testing.script import Step

HOST = "upstream.test"
LISTENING, REFUSING, UNRESPONSIVE = "127.0.0.1", "127.0.0.2", "127.0.0.3"
"""Where the upstream listens, where nobody does, and where nobody ever accepts."""

CONNECT, FIRST_BYTE, IDLE, TOTAL = 5.0, 10.0, 12.0, 60.0
PING = 14.0
"""Seconds: the deadlines of the usual upstreams, and what a client may hear nothing for."""

TIMEOUT = 120.0
"""Real seconds after which something that has to happen has not."""


class ManualClockLoop(asyncio.SelectorEventLoop):
    """A real loop with real sockets whose clock stands until it is pushed on: a slow machine is never late."""

    now = 1_000.0

    def time(self) -> float:
        """Return the seconds of the clock."""
        return self.now


async def advance(seconds: float) -> None:
    """Let that much time pass, and let what is due happen."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, ManualClockLoop)
    await turns()
    loop.now += seconds
    await turns()


class RawResponse(Struct):
    """What the client got: `complete` says that the framing of HTTP says so, `ending` how the connection ended."""

    status: int
    headers: dict[str, str]
    body: bytes
    complete: bool
    raw: bytes


class RawClient(asyncio.Protocol):
    """A client that sends bytes and keeps what comes."""

    def __init__(self) -> None:
        self.reader = MessageReader("response")
        self.closed = False
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the connection."""
        self.transport = transport  # type: ignore[assignment]  # TCP's

    def data_received(self, data: bytes) -> None:
        """Keep what came."""
        self.reader.feed(data)

    def connection_lost(self, _error: Exception | None) -> None:
        """Note the end."""
        self.closed = True

    @property
    def finished(self) -> bool:
        """Whether nothing more is to come."""
        return self.reader.complete or self.closed

    def response(self) -> RawResponse:
        """Return what came so far."""
        reader = self.reader
        headers = dict(reversed(reader.headers))
        return RawResponse(reader.status or 0, headers, reader.body, reader.complete, bytes(reader.raw))


async def wait_until(look: Callable[[], bool], what: str) -> None:
    """Let the loop turn until `look()` is true."""
    start = time.monotonic()
    while not look():
        await asyncio.sleep(0)
        assert time.monotonic() - start < TIMEOUT, f"it never came to this: {what}"


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
        patch.setattr(heap, "trim", lambda: True)  # in a thread, at a second of the machine's: it opens a file at first
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
        self._sockets = open_sockets()
        self._descriptors = len(os.listdir("/dev/fd"))  # noqa: PTH208 - no need of paths

    async def _ready(self) -> None:
        """Have one answer of the gateway, so that everything is there that stays."""
        _, raw_client = await asyncio.get_running_loop().create_connection(RawClient, "127.0.0.1", self.port)
        raw_client.transport.write(b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        await wait_until(lambda: raw_client.closed, "the gateway serves")
        assert raw_client.response().status == 200
        await turns()

    async def _end(self) -> None:
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
        for dialect in DIALECTS:
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

    async def _wait_until_idle(self) -> None:
        """Wait until nothing is left but idle connections; the invariants of section 5."""
        await wait_until(lambda: not self._leftover_tasks(), "tasks end")
        await wait_until(lambda: sum(len(one.connections) for one in self._pools()) == self._idle(), "none is busy")
        await wait_until(lambda: open_sockets() - 2 * self._idle() == self._sockets, "sockets close")
        assert len(os.listdir("/dev/fd")) - 2 * self._idle() == self._descriptors  # noqa: PTH208 - no need of paths
        assert b"xenoglot_gateway_requests_running 0" in self.gateway.metrics()

    def _leftover_tasks(self) -> list[asyncio.Task[object]]:
        """Return tasks that were not there at first, but for those of the upstream's idle connections."""
        playing = {one.task for upstream in self._upstreams for one in upstream.connections}
        return list(asyncio.all_tasks() - self._tasks - {asyncio.current_task()} - playing)

    def _idle(self) -> int:
        """Return how many connections are kept for the next request."""
        return sum(len(idle) for pool in self._pools() for idle in pool._idle.values())

    def _pools(self) -> list[ConnectionPool]:
        return [transport._pool for transport in self._transports if transport._pool is not None]


def client_request(client: str, model: str, prompt: str, *, streamed: bool) -> tuple[str, JSONObject]:  # noqa: PLR0911 - one for each dialect
    """Return where a client of the dialect posts its question, and the question."""
    turn: list[JSON] = [{"role": "user", "content": prompt}]
    match client:
        case "gemini":
            verb = "streamGenerateContent?alt=sse" if streamed else "generateContent"
            return f"/v1beta/models/{model}:{verb}", {"contents": [{"role": "user", "parts": [{"text": prompt}]}]}
        case "llama_stack":
            return PATHS[client], {"model_id": model, "messages": turn, "stream": streamed}
        case "llama_stack_completion":
            return PATHS[client], {"model_id": model, "content": prompt, "stream": streamed}
        case "messages":
            return PATHS[client], {"model": model, "messages": turn, "stream": streamed, "max_tokens": 64}
        case "responses":
            return PATHS[client], {"model": model, "input": turn, "stream": streamed, "store": False}
        case "completions" | "ollama_generate":
            return PATHS[client], {"model": model, "prompt": prompt, "stream": streamed} | usage_option(
                client, streamed
            )
        case _:
            return PATHS[client], {"model": model, "messages": turn, "stream": streamed} | usage_option(
                client, streamed
            )


def usage_option(client: str, streamed: bool) -> JSONObject:  # noqa: FBT001 - as it stands in the request
    """Return the field with which clients of OpenAI's ask what a stream cost."""
    return {"stream_options": {"include_usage": True}} if streamed and client in ("chat", "completions") else {}


CONNECTION_CLOSE = ("connection", "close")
PATHS = {
    "chat": "/v1/chat/completions",
    "completions": "/v1/completions",
    "llama_stack": "/v1/inference/chat-completion",
    "llama_stack_completion": "/v1/inference/completion",
    "messages": "/v1/messages",
    "ollama": "/api/chat",
    "ollama_generate": "/api/generate",
    "responses": "/v1/responses",
}


def whole_response(
    body: bytes, status: int = 200, media_type: str = "application/json", **headers: str
) -> tuple[Step, ...]:
    """Return the steps of an answer in one piece, on a connection that is not kept: each case begins with none."""
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return (Respond(status, (("content-type", media_type), CONNECTION_CLOSE, *named), body),)


def streamed_response(upstream: str, *frames: bytes, ending: Sequence[Step] = (End(),)) -> tuple[Step, ...]:
    """Return the steps of a stream of these frames, each in a segment of its own."""
    head = ResponseHead(200, (("content-type", HELLO[upstream].media_type), CONNECTION_CLOSE))
    return (head, *(Body(frame) for frame in frames), *ending)


def valid_response(upstream: str, *, streamed: bool) -> tuple[Step, ...]:
    """Return the steps of an answer that is as it should be."""
    wire = HELLO[upstream]
    if streamed:
        return streamed_response(upstream, *wire.first_frames, *wire.middle_frames, *wire.last_frames, *wire.end_mark)
    return whole_response(wire.whole)


def assert_refused(client: str, answer: RawResponse, words: tuple[JSON, ...], status: int) -> ReceivedError:
    """Assert that an answer is an error of that status in the client's words; return what it tells."""
    assert answer.status == status, answer.raw
    told = read_error(client, answer.body)
    assert told.codes == words, answer.raw
    assert answer.complete
    assert answer.headers["x-request-id"].startswith("req_")
    return told


def assert_aborted(client: str, answer: RawResponse, words: tuple[JSON, ...], text: str) -> ReceivedError:
    """Assert that a stream was broken off behind `text` with an error in the client's words; return what it tells."""
    assert answer.status == 200, answer.raw
    said = read_stream(client, answer.body)
    assert said.error is not None, answer.raw
    assert (said.text, said.ended, said.error.codes) == (text, False, words), answer.raw
    assert not answer.complete, answer.raw
    return said.error


def assert_completed(client: str, answer: RawResponse, *, streamed: bool, text: str = "Hello") -> None:
    """Assert that an answer is whole, and says `text`."""
    assert (answer.status, answer.complete) == (200, True), answer.raw
    if streamed:
        said: ReceivedStream = read_stream(client, answer.body)
        assert (said.text, said.error) == (text, None), answer.raw
        assert said.ended, answer.raw
    else:
        assert response_text(client, answer.body) == text, answer.raw
