"""A program that serves a backend which says hello so many times and then waits, and says what it is asked. For a test.

Its arguments are the file of the store, how many answers there are, and how many seconds later it is there than here.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING

from tests.gateway.batches.batch_requests import PartlyAnsweringBackend
from xenoglot.gateway import app as gateways
from xenoglot.gateway.app import Gateway
from xenoglot.gateway.config.load import check
from xenoglot.gateway.config.local_models import EMBEDDED
from xenoglot.gateway.process.serve import GatewayServer, bind
from xenoglot.store.sqlite import SQLite

if TYPE_CHECKING:
    from xenoglot.backends.backend import Answer, Call


class ReportingBackend(PartlyAnsweringBackend):
    """Says on standard output what it is asked, and when all wait."""

    async def answer(self, call: Call) -> Answer:
        """Answer, or wait."""
        part = call.request.messages[0].content[0]
        print_line(f"asked {getattr(part, 'text', '')}")
        if self.remaining == 0:
            print_line("halted")
        return await super().answer(call)


def print_line(line: str) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def main(path: str, count: int, ahead: float) -> None:
    """Serve until stopped."""
    gateways.TAKE_UP_SECONDS = 0.0
    config = check({"server": {"port": 0, "drain_seconds": 0}}, {}, "the test")
    gateway = Gateway(config, {EMBEDDED: ReportingBackend(count)}, embedded_model="m", store=SQLite(path))
    assert gateway.keeper is not None
    gateway.keeper.now = lambda: time.time() + ahead
    with bind("127.0.0.1", 0) as listener:
        print_line(f"{listener.getsockname()[1]}")
        await GatewayServer(gateway).serve([listener])
        await gateway.aclose()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
