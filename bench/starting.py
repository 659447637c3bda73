"""How long a gateway takes to start, what it holds when idle, and how long the library takes to import."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from bench.gateways import CLIENT_KEY, Gateway
from bench.measuring import site_for
from bench.processes import family, memory_mb, on_core, running, wait_for
from bench.wires import question, small

if TYPE_CHECKING:
    from bench.gateways import Site
    from bench.measuring import Settings

TIMES: Final = 7
IDLE_SECONDS: Final = 1.0
"""After the first answer, before the memory is read."""

_IMPORT: Final = "import time; t = time.perf_counter(); import xenoglot; print(time.perf_counter() - t)"


class Begun(Struct, frozen=True):
    """A start: seconds from spawning the process to its first answer of 200, and megabytes when idle after it."""

    gateway: str
    seconds: float
    idle_mb: float


def begun(gateway: Gateway, shared: Site, settings: Settings, times: int = TIMES) -> Begun:
    """Start `gateway` so many times; return the medians."""
    starts = [_start(gateway, shared, settings) for _ in range(times)]
    return Begun(gateway.name, statistics.median(s for s, _ in starts), statistics.median(m for _, m in starts))


def imported(times: int = TIMES) -> float:
    """Return how many milliseconds `import xenoglot` takes in a fresh interpreter, which is itself not counted."""
    command = (sys.executable, "-c", _IMPORT)
    found = [subprocess.run(command, capture_output=True, check=True) for _ in range(times)]  # noqa: S603  our own
    return statistics.median(float(done.stdout) for done in found) * 1000


def _start(gateway: Gateway, shared: Site, settings: Settings) -> tuple[float, float]:
    site = site_for(f"{gateway.name}-start", shared)
    if gateway.start is None:
        raise ValueError(f"{gateway.name} is not started")
    start = gateway.start(site)
    model = gateway.models.get("chat", "chat")
    asked = question("chat", small("chat", model=model), CLIENT_KEY)
    command = on_core(settings.cores.gateway, start.command)
    spawned = time.perf_counter()
    with running(command, site.folder / "output.log", start.environment) as process:
        wait_for(site.port, asked, gateway.headers)
        seconds = time.perf_counter() - spawned
        time.sleep(IDLE_SECONDS)
        return seconds, memory_mb(family(process.pid))
