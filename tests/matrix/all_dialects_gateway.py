"""A gateway with a server of each dialect behind it: `<dialect>-*` leads to that one."""

from __future__ import annotations

import asyncio
import threading
from contextlib import AsyncExitStack, ExitStack
from typing import TYPE_CHECKING, Self

from tests.gateway.running_gateway import TIMEOUT
from tests.matrix.dialect_server import DialectServer
from xenoglot import dialect_registry as dialects
from xenoglot.gateway.config.load import check
from xenoglot.gateway.process.build import build_gateway
from xenoglot.gateway.process.serve import GatewayServer, bind, loop_factory

if TYPE_CHECKING:
    from xenoglot.model.json import JSON


class AllDialectsGateway:
    """What listens at `url`, and the `speakers` by the names of their dialects; of each upstream more may be said.

    A stream of theirs has its words in pieces of `piece` characters, where that is said.
    """

    def __init__(self, *, piece: int | None = None, **said: JSON) -> None:
        self.speakers = {name: DialectServer(dialects.get(name), piece=piece) for name in dialects.names()}
        self._said = said
        self.url = ""
        self._stack = ExitStack()
        self._ready = threading.Event()
        self._server: GatewayServer | None = None
        self._thread = threading.Thread(target=self._run, name="all-dialects-gateway")

    def __enter__(self) -> Self:
        for speaker in self.speakers.values():
            self._stack.enter_context(speaker)
        self._thread.start()
        assert self._ready.wait(TIMEOUT)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.should_exit = True
        self._thread.join(TIMEOUT)
        self._stack.close()
        assert not self._thread.is_alive()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        speakers = self.speakers.items()
        upstreams = {
            name: {"dialect": name, "also": [], "base_url": speaker.url, **self._said} for name, speaker in speakers
        }
        plain = {
            "server": {"port": 0, "drain_seconds": 0.0},
            "upstreams": upstreams,
            "models": [{"name": f"{name}-*", "upstream": name} for name in upstreams],
        }
        async with AsyncExitStack() as stack:
            gateway = await stack.enter_async_context(build_gateway(check(plain, {}, "the tests")))
            self._server = GatewayServer(gateway)
            listener = stack.enter_context(bind("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            self._ready.set()
            await self._server.serve([listener])
