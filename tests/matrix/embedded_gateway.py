"""A gateway with the embedded models behind it, as `xenoglot serve` makes it, in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Self

from tests.gateway.running_gateway import TIMEOUT
from xenoglot.gateway.config.load import check
from xenoglot.gateway.process.build import build_gateway
from xenoglot.gateway.process.serve import GatewayServer, bind, loop_factory

if TYPE_CHECKING:
    from xenoglot.model.json import JSONObject

START_SECONDS = TIMEOUT * 2
"""Weights may have to be fetched."""


class EmbeddedGateway:
    """What listens at `url`; `embedded` is the table of that name in its configuration. Models start when asked."""

    def __init__(self, **embedded: object) -> None:
        self.url = ""
        self._plain: JSONObject = {
            "server": {"port": 0, "drain_seconds": 0.0},
            "embedded": {"context": 1024, **embedded},
        }
        self._ready = threading.Event()
        self._server: GatewayServer | None = None
        self._thread = threading.Thread(target=self._run, name="embedded")

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(START_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.should_exit = True
        self._thread.join(TIMEOUT)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        async with AsyncExitStack() as stack:
            configured = build_gateway(check(self._plain, {}, "the tests"), ready=False)
            self._server = GatewayServer(await stack.enter_async_context(configured))
            listener = stack.enter_context(bind("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            self._ready.set()
            await self._server.serve([listener])
