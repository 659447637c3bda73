"""A gateway as it is run, and the scripted servers behind it, on real sockets in one thread."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import AsyncExitStack, closing
from typing import TYPE_CHECKING, Self

from tests.backends.raw_server import serving
from tests.gateway.running_gateway import TIMEOUT
from tests.matrix.upstream import Upstream
from xenoglot.gateway.config.load import check
from xenoglot.gateway.observability.access_log import configure_logging
from xenoglot.gateway.process.build import build_gateway
from xenoglot.gateway.process.serve import GatewayServer, bind, loop_factory

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.model.json import JSONObject

CLIENT_KEY = "key-of-a-client-0123456789"
UPSTREAM_KEYS = {"chat": "key-for-chat-9876543210", "messages": "key-for-messages-9876543210"}
ENVIRON = {
    "CLIENTS": f"another-key-0000000000 {CLIENT_KEY}",
    "CHAT_KEY": UPSTREAM_KEYS["chat"],
    "MESSAGES_KEY": UPSTREAM_KEYS["messages"],
}

DIALECTS = ("chat", "messages")
PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages"}


def model(upstream: str) -> str:
    """Return the name of a model that `upstream` answers for."""
    return f"{upstream}-small"


ONCE: JSONObject = {"retry": {"attempts": 1}, "breaker": {"failures": 1_000_000}}
"""An upstream that is asked once for each request, however often it has failed."""


class ManualClockLoop(asyncio.SelectorEventLoop):
    """A real loop with real sockets whose clock stands until it is pushed on."""

    now = 1_000.0

    def time(self) -> float:
        """Return the seconds of the clock."""
        return self.now

    def advance(self, seconds: float) -> None:
        """Let that much time pass."""
        self.now += seconds


class MatrixGateway:
    """What listens at `url`: `<dialect>-*` leads to the upstream of that dialect, `gone-<dialect>-*` to nobody at all.

    `renamed` leads to `chat-small` at the chat upstream, with a default for `max_tokens`; `strict-<dialect>-*` refuses
    whatever would be lost.
    """

    def __init__(self, make_loop: Callable[[], asyncio.AbstractEventLoop] | None = None) -> None:
        self.upstreams = {dialect: Upstream() for dialect in DIALECTS}
        self.url = ""
        self._make_loop = loop_factory() if make_loop is None else make_loop
        self._ready = threading.Event()
        self._server: GatewayServer | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="matrix-gateway")

    def advance(self, seconds: float) -> None:
        """Let that much time pass in the gateway; it must have a `ManualClockLoop`."""
        assert isinstance(self._loop, ManualClockLoop)
        self._loop.call_soon_threadsafe(self._loop.advance, seconds)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(TIMEOUT)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.should_exit = True
        self._thread.join(TIMEOUT)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        with closing(_refusing()) as refusing, asyncio.Runner(loop_factory=self._make_loop) as runner:
            self._loop = runner.get_loop()
            runner.run(self._serve(f"http://127.0.0.1:{refusing.getsockname()[1]}"))

    async def _serve(self, nobody: str) -> None:
        async with AsyncExitStack() as stack:
            for upstream in self.upstreams.values():
                wire = await stack.enter_async_context(serving(upstream.serve_connection))
                upstream.url = wire.url
            gateway = await stack.enter_async_context(build_gateway(check(self._plain(nobody), ENVIRON, "the tests")))
            configure_logging(gateway.redact)
            self._server = GatewayServer(gateway)
            listener = stack.enter_context(bind("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            self._ready.set()
            await self._server.serve([listener])

    def _plain(self, nobody: str) -> JSONObject:
        """Return the configuration, as a file would give it."""
        upstreams: JSONObject = {}
        models: list[JSONObject] = [
            {"name": "renamed", "upstream": "chat", "model": model("chat"), "defaults": {"max_tokens": 77}},
            {"name": "alias", "upstream": "messages", "model": model("messages")},
        ]
        for dialect, upstream in self.upstreams.items():
            # nothing is preserved: each case stands for itself, and many are answered `Hello` to `Hi`
            key = {"dialect": dialect, "also": [], "preserve_reasoning": False, "key_env": f"{dialect.upper()}_KEY"}
            upstreams[dialect] = {
                **key,
                **ONCE,
                "base_url": upstream.url,
                "headers": {"X-Tenant": f"tenant-of-{dialect}"},
            }
            upstreams[f"gone-{dialect}"] = {**key, **ONCE, "base_url": nobody}
            models += [
                {"name": f"{dialect}-*", "upstream": dialect},
                {"name": f"gone-{dialect}-*", "upstream": f"gone-{dialect}"},
                {"name": f"strict-{dialect}-*", "upstream": dialect, "on_loss": "refuse"},
            ]
        server = {"port": 0, "drain_seconds": 0.0, "log_losses": "all"}
        return {"server": server, "keys": {"env": ["CLIENTS"]}, "upstreams": upstreams, "models": models}


def _refusing() -> socket.socket:
    """Return a socket at whose address nobody listens, for as long as it is kept."""
    reserved = socket.socket()
    reserved.bind(("127.0.0.1", 0))
    return reserved
