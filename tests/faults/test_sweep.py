"""Fail-at-N: a request is broken off at each of its waits in turn, and after every one nothing is left of it.

Three things break it off: its client leaves (the task that serves it is cancelled); its client leaves twice (the task
is cancelled again while it cleans up); its upstream fails (each wait for an upstream in turn ends in an error).
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING

import pytest
from msgspec import Struct
from msgspec.structs import replace

from tests.backends.raw_server import becomes
from tests.faults.client_requests import client_request
from xenoglot.backends.http.client import Transport, TransportError
from xenoglot.backends.http.exchange import UpstreamExchange as Asked
from xenoglot.codec.json.json_io import encode_json
from xenoglot.gateway.config.load import check
from xenoglot.gateway.process import build
from xenoglot.model.json import JSONObject
from xenoglot.testing import END, Baseline, Respond, ScriptRule, Upstream, WaitEvent, answers, interrupt

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

    from xenoglot.backends.http.connection import ConnectionPool, UpstreamConnection
    from xenoglot.backends.http.http1 import Origin
    from xenoglot.gateway.app import Gateway

MAX_WAITS = 200
"""Waits that no request has."""


AT_ONCE = 1e-9
"""Seconds: a turn of the loop, in which what was sent is read."""


class ExchangeWithoutConnection:
    """An exchange without a connection: each of its steps is a wait, and what was written is kept.

    When it has seen all of the text it says so: until then the stream of an upstream does not end.
    """

    def __init__(self, path: str, body: bytes, seen: Callable[[], None]) -> None:
        self.method = "POST"
        self.path, _, self.query = path.partition("?")
        self.headers: Sequence[tuple[str, str]] = (("host", "localhost"), ("content-type", "application/json"))
        self.variables: Mapping[str, str] = {}
        self.peer = "127.0.0.1"
        self.reads_behind_upgrade = False
        self.unframed = False
        self.status: int | None = None
        self.body = b""
        self.ended = self.aborted = False
        self._asked = body
        self._seen = seen

    def header(self, name: str) -> str | None:
        """Return the first value of a header."""
        return dict(self.headers).get(name)

    async def read_body(self, _limit: int) -> bytes:
        """Return the body."""
        await asyncio.sleep(0)
        return self._asked

    async def start(self, status: int, _headers: Sequence[tuple[str, str]]) -> None:
        """Begin."""
        await asyncio.sleep(0)
        assert self.status is None
        self.status = status

    async def write(self, data: bytes) -> None:
        """Go on."""
        await asyncio.sleep(0)
        assert not self.ended
        self.body += data
        if b"lo." in self.body:
            self._seen()

    async def end(self, data: bytes = b"") -> None:
        """End."""
        await self.write(data)
        self.ended = True

    def abort(self) -> None:
        """Break off."""
        self.aborted = True


class RequestPath(Struct, frozen=True, kw_only=True):
    """What a request goes through: dialects, and what of the gateway is at work for it."""

    client: str
    upstream: str
    streamed: bool
    more: JSONObject = {}
    settings: JSONObject = {}
    model: JSONObject = {}
    store: str = "off"
    fails_first: bool = False

    def asked(self, scripted: Upstreams) -> ExchangeWithoutConnection:
        """Return a client that asks."""
        path, body = client_request(self.client, "m", "Hi.", streamed=self.streamed)
        return ExchangeWithoutConnection(path, encode_json(body | self.more), scripted.end)

    def config(self, url: str, other: str) -> JSONObject:
        """Return the configuration."""
        usual = {"dialect": self.upstream, "retry": {"base": 0.0}, **self.settings}
        return {
            "store": {"url": self.store},
            "upstreams": {"one": {"base_url": url, **usual}, "two": {"base_url": other, **usual}},
            "models": [{"name": "*", **({"upstream": "one"} | self.model)}],
        }


LIMITS = {"requests": ["1000/1m"], "tokens": ["1000000/1m"], "concurrency": 1, "queue": 0}
TWO = {"upstream": None, "targets": [{"upstream": "one"}, {"upstream": "two"}], "strategy": "ordered"}

REQUEST_PATHS = {
    "whole": RequestPath(client="messages", upstream="chat", streamed=False),
    "streamed": RequestPath(client="messages", upstream="chat", streamed=True),
    "verbatim": RequestPath(client="chat", upstream="chat", streamed=False),
    "verbatim-streamed": RequestPath(client="chat", upstream="chat", streamed=True),
    "lines": RequestPath(client="ollama", upstream="responses", streamed=True),
    "limits": RequestPath(
        client="chat",
        upstream="messages",
        streamed=True,
        settings={"limits": LIMITS},
        model={"limits": LIMITS},
    ),
    "fallback": RequestPath(client="messages", upstream="chat", streamed=True, model=TWO, fails_first=True),
    "fallback-whole": RequestPath(client="chat", upstream="chat", streamed=False, model=TWO, fails_first=True),
    "again": RequestPath(client="chat", upstream="messages", streamed=True, fails_first=True),
    "held-back": RequestPath(
        client="messages",
        upstream="chat",
        streamed=True,
        model=TWO | {"buffer": {"seconds": 0.01, "bytes": 300}},
    ),
    "goes-on": RequestPath(
        client="messages",
        upstream="chat",
        streamed=True,
        settings={"target": {"prefill": "native"}, "limits": LIMITS},
        model=TWO | {"continues": True, "limits": LIMITS},
    ),
    "kept": RequestPath(client="responses", upstream="chat", streamed=False, store="memory", more={"store": True}),
    "kept-streamed": RequestPath(
        client="responses", upstream="chat", streamed=True, store="memory", more={"store": True}
    ),
}


class SweptGateway:
    """A gateway of its own for one request, in front of upstreams that all share."""

    def __init__(self, gateway: Gateway, transports: list[Transport]) -> None:
        self.gateway = gateway
        self._transports = transports

    def running(self) -> int:
        """Return how many requests are under way."""
        return len(self.gateway.requests.tasks)

    def busy(self) -> int:
        """Return how many connections to upstreams are in use."""
        pools = [transport._pool for transport in self._transports if transport._pool is not None]
        return sum(len(pool.connections) for pool in pools) - sum(
            len(one) for pool in pools for one in pool._idle.values()
        )

    async def settled(self) -> None:
        """Wait until it is at rest."""
        await becomes((0, 0), lambda: (self.running(), self.busy()))


class Upstreams:
    """Two scripted servers: the first may refuse a request before it answers, as the way says."""

    def __init__(self, one: Upstream, two: Upstream) -> None:
        self.one = one
        self.two = two

    def end(self) -> None:
        """Let streams end."""
        self.one.release("end")
        self.two.release("end")

    def set(self, way: RequestPath) -> None:
        """Make ready for one more request."""
        made = answers(way.upstream)
        stream, whole, _ = made.rules()
        steps = made.streamed(pause=AT_ONCE, then=(WaitEvent("end"), *END))
        rules = (replace(stream, steps=steps), replace(whole, steps=made.complete(split=90)))
        for each in (self.one, self.two):
            each.forget()
            each.script(*rules)
        if way.fails_first:
            self.one.script(ScriptRule(steps=(Respond(status=503),), times=1), *rules)


@asynccontextmanager
async def upstreams() -> AsyncIterator[Upstreams]:
    async with Upstream() as one, Upstream() as two:
        yield Upstreams(one, two)


@asynccontextmanager
async def swept_gateway(
    way: RequestPath, scripted: Upstreams, patch: pytest.MonkeyPatch
) -> AsyncIterator[SweptGateway]:
    """Give a gateway, and let go of it."""
    transports: list[Transport] = []

    def transport(**settings: object) -> Transport:
        transports.append(Transport(**settings))  # type: ignore[arg-type]  # as it was called
        return transports[-1]

    patch.setattr(build, "Transport", transport)
    scripted.set(way)
    async with AsyncExitStack() as stack:
        config = check(way.config(scripted.one.url, scripted.two.url), {}, "the tests")
        gateway = await stack.enter_async_context(build.build_gateway(config))
        gateway.dispatcher.sleep = lambda _: asyncio.sleep(0)
        yield SweptGateway(gateway, transports)


class DiscardedLines(logging.Handler):
    """The lines of the access log, counted."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def emit(self, _record: logging.LogRecord) -> None:
        """Count one."""
        self.count += 1


@pytest.fixture
def lines() -> Iterator[DiscardedLines]:
    """Give the count of lines in the access log."""
    handler, logger = DiscardedLines(), logging.getLogger("xenoglot.access")
    before = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(before)


async def serve_one(here: SweptGateway, way: RequestPath, scripted: Upstreams) -> ExchangeWithoutConnection:
    """Ask, with nothing in the way."""
    client = way.asked(scripted)
    await here.gateway.handle(client)
    return client


@pytest.mark.parametrize("times", [pytest.param(1, id="K10-once"), pytest.param(2, id="K10-twice")])
@pytest.mark.parametrize("way", REQUEST_PATHS.values(), ids=REQUEST_PATHS)
async def test_a_client_that_leaves_at_any_wait_leaves_nothing_behind(
    way: RequestPath, times: int, lines: DiscardedLines, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with upstreams() as scripted:
        for at in count(1):
            assert at < MAX_WAITS
            lines.count = 0
            async with Baseline(), swept_gateway(way, scripted, monkeypatch) as here:
                client = way.asked(scripted)
                came_to_it = await interrupt(here.gateway.handle(client), at, times=times)
                await here.settled()
                assert lines.count == 1, at
                scripted.set(way)
                after = await serve_one(here, way, scripted)
                assert (after.status, after.ended, after.aborted) == (200, True, False), at
                await here.settled()
            if not came_to_it:
                assert (client.status, client.ended) == (200, True)
                assert at > 4
                return


class FailingWaits:
    """Has each wait for an upstream that comes to pass fail when it is the `at`-th."""

    def __init__(self, at: int, patch: pytest.MonkeyPatch) -> None:
        self.left = at
        news, connect = Asked.wait, Transport._open

        async def no_news(asked: Asked) -> None:
            if self._now():
                asked.fail(TransportError("closed", "body", "the upstream closed the connection"))
            else:
                await news(asked)

        async def no_way(
            transport: Transport, pool: ConnectionPool, origin: Origin, address: str
        ) -> UpstreamConnection:
            if self._now():
                raise ConnectionResetError
            return await connect(transport, pool, origin, address)

        patch.setattr(Asked, "wait", no_news)
        patch.setattr(Transport, "_open", no_way)

    def _now(self) -> bool:
        self.left -= 1
        return self.left == 0


@pytest.mark.parametrize("way", REQUEST_PATHS.values(), ids=[f"R61-{name}" for name in REQUEST_PATHS])
async def test_an_upstream_that_fails_at_any_wait_leaves_nothing_behind(
    way: RequestPath, lines: DiscardedLines, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = None
    async with upstreams() as scripted:
        for at in count(1):
            assert at < MAX_WAITS
            lines.count = 0
            async with Baseline(), swept_gateway(way, scripted, monkeypatch) as here:
                with monkeypatch.context() as patch:
                    breaks = FailingWaits(at, patch)
                    client = await serve_one(here, way, scripted)
                await here.settled()
                assert lines.count == 1, at
                assert client.status is not None, at
                assert client.ended is not client.aborted, at
                if client.ended and client.status == 200:
                    whole = whole or client.body
                    assert len(client.body) > len(whole) // 2, "half an answer is told as a whole one"
                else:
                    assert client.aborted or client.status >= 500, at
                scripted.set(way)
                after = await serve_one(here, way, scripted)
                assert (after.status, after.ended) == (200, True), at
                await here.settled()
            if breaks.left > 0:
                assert (client.status, client.ended) == (200, True)
                assert at > 2
                return
