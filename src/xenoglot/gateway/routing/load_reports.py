"""Load that servers report in their metrics, read in the background; the choice of a target goes by it.

A gateway knows the requests that it sent itself. Those of other gateways and clients are in the gauges of inference
servers, in the text format of Prometheus (https://prometheus.io/docs/instrumenting/exposition_formats/). The names of
the gauges are those of the provider's row, or of the configuration.
"""

from __future__ import annotations

import asyncio
import logging
import re
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit, urlunsplit

from xenoglot.backends.http.timeouts import TransportError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from xenoglot.backends.http.client import Transport
    from xenoglot.gateway.config.settings import LoadMetrics

MOST_BYTES: Final = 4_194_304
"""The longest exposition; a longer one is not read to its end, and counts as none."""
MOST_REQUESTS: Final = 1_000_000
"""A sum above this is a mistake."""
OK: Final = 200

_logger = logging.getLogger("xenoglot.gateway")


def requests_of(exposition: bytes, gauges: tuple[str, ...]) -> int | None:
    """Return the sum of the samples of `gauges`, over all of their labels; `None` if there is no sample of any."""
    names = b"|".join(re.escape(name.encode()) for name in gauges)
    samples = re.findall(rb"^(?:" + names + rb")(?:\{[^\n]*\})?[ \t]+([^ \t\n]+)", exposition, re.MULTILINE)
    total = 0.0
    for sample in samples:
        try:
            total += float(sample)
        except ValueError:
            return None
    return int(total) if samples and 0 <= total <= MOST_REQUESTS else None


class LoadReader:
    """Reads the load of one server, and gives it to `report`; `None` is unknown."""

    def __init__(
        self,
        name: str,
        base_url: str,
        settings: LoadMetrics,
        transport: Transport,
        report: Callable[[int | None], None],
    ) -> None:
        scheme, host, *_ = urlsplit(base_url)
        self._name = name
        self._url = urlunsplit((scheme, host, settings.path, "", ""))
        self._settings = settings
        self._transport = transport
        self._report = report
        self._well = True

    async def read(self) -> int | None:
        """Return the requests in progress and waiting at the server; `None` if it does not report them in time."""
        try:
            async with asyncio.timeout(max(1.0, self._settings.seconds)):
                response = await self._transport.send("GET", self._url, (("accept", "text/plain"),))
                async with response:
                    if response.status != OK:
                        return None
                    return requests_of(await response.read(MOST_BYTES), self._settings.gauges)
        except (TransportError, TimeoutError):
            return None

    async def step(self) -> None:
        """Read once, and report; the log has the first failure in a row."""
        found = await self.read()
        self._report(found)
        if found is None and self._well:
            gauges, path = ", ".join(self._settings.gauges), self._settings.path
            _logger.warning("the load of upstream %r is unknown: none of the gauges %s at %s", self._name, gauges, path)
        self._well = found is not None

    async def run(self) -> None:
        """Read again and again."""
        while True:
            await self.step()
            await asyncio.sleep(self._settings.seconds)


@asynccontextmanager
async def reading(readers: list[LoadReader]) -> AsyncGenerator[None]:
    """Have all of the `readers` read until the end."""
    tasks = [asyncio.get_running_loop().create_task(reader.run()) for reader in readers]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
