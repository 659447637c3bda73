"""A gateway with the embedded models as it is configured and run, in a thread of its own."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING, Self

from xenoglot.gateway.config.load import check
from xenoglot.gateway.observability.access_log import configure_logging
from xenoglot.gateway.process.build import build_gateway
from xenoglot.gateway.process.serve import GatewayServer, bind, loop_factory

if TYPE_CHECKING:
    from xenoglot.model.json import JSONObject

PATIENCE = 120.0
"""Seconds after which something that has to happen has not."""


class Serving:
    """What serves at `url`, by a configuration as a file would give it."""

    def __init__(self, plain: JSONObject) -> None:
        self._plain = {"server": {"port": 0, "drain_seconds": 0.0}, "store": {"url": "off"}, **plain}
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gateway")
        self._server: GatewayServer | None = None
        self.url = ""

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(PATIENCE)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.should_exit = True
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        async with build_gateway(check(self._plain, os.environ, "the tests")) as gateway:
            configure_logging(gateway.redact)
            self._server = GatewayServer(gateway)
            with bind("127.0.0.1", 0) as listener:
                self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
                self._ready.set()
                await self._server.serve([listener])
