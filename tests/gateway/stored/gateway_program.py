"""A program that serves a backend which says hello, and hangs when asked in the background. For a test."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from tests.gateway.scripted_backends import HELLO, Backend
from xenoglot.backends.scripted import Scripted
from xenoglot.gateway.app import Gateway
from xenoglot.gateway.config.load import check
from xenoglot.gateway.config.local_models import EMBEDDED
from xenoglot.gateway.process.serve import GatewayServer, bind
from xenoglot.store.sqlite import SQLite

if TYPE_CHECKING:
    from xenoglot.backends.backend import Answer, Call


class StreamBlockingBackend(Backend):
    """Says hello to whoever asks for a whole answer; to others nothing, ever."""

    hello = Scripted(HELLO)

    async def answer(self, call: Call) -> Answer:
        """Say hello, or hang."""
        if call.request.stream:
            await asyncio.Event().wait()
        return await self.hello.answer(call)


async def main(path: str) -> None:
    """Serve until killed."""
    config = check({"server": {"port": 0}}, {}, "the test")
    gateway = Gateway(config, {EMBEDDED: StreamBlockingBackend()}, embedded_model="m", store=SQLite(path))
    with bind("127.0.0.1", 0) as listener:
        sys.stdout.write(f"{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        await GatewayServer(gateway).serve([listener])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
