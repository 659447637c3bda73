"""K16, R51: a loop that stands still is noticed, and where."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING

from tests.gateway.running_gateway import TIMEOUT
from xenoglot.gateway.api.metrics import lag_exposition
from xenoglot.gateway.observability.loop_lag import (
    LATE_SECONDS,
    LoopLag,
    Watchdog,
    current_location,
    watch_loop,
)

if TYPE_CHECKING:
    import pytest

PROBES = 20


class StallReported(logging.Handler):
    """Says when the log has told of a stall."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.told = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the line."""
        self.lines.append(record.getMessage())
        self.told.set()


class CountedProbes(LoopLag, kw_only=True, dict=True):
    """Counts probes; `probed` is set after some."""

    probes: int = 0

    def __post_init__(self) -> None:
        """Wait for probes."""
        self.probed = threading.Event()

    def note(self, seconds: float, place: str) -> None:
        """Count one."""
        super().note(seconds, place)
        self.probes += 1
        if self.probes >= PROBES:
            self.probed.set()


async def test_k16_a_loop_that_stands_still_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = threading.Event()
    lag, handler = LoopLag(), StallReported()

    def place(_frame: object) -> str:
        seen.set()
        return "xenoglot.somewhere:7"

    monkeypatch.setattr("xenoglot.gateway.observability.loop_lag.current_location", place)
    logger = logging.getLogger("xenoglot.gateway")
    logger.addHandler(handler)
    try:
        with watch_loop(lag):
            assert seen.wait(TIMEOUT)  # the loop stands still, until that is seen
            assert await asyncio.to_thread(handler.told.wait, TIMEOUT)
    finally:
        logger.removeHandler(handler)
    assert handler.lines[0].endswith(" ms at xenoglot.somewhere:7")
    assert (lag.stalls >= 1, lag.worst > LATE_SECONDS) == (True, True)


async def test_a_loop_that_turns_has_no_stalls_and_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xenoglot.gateway.observability.loop_lag.PROBE_SECONDS", 0.0)
    monkeypatch.setattr("xenoglot.gateway.observability.loop_lag.LATE_SECONDS", TIMEOUT)
    lag = CountedProbes()
    watchdog = Watchdog(lag)
    watchdog.start()
    assert await asyncio.to_thread(lag.probed.wait, TIMEOUT)
    watchdog.stop()
    watchdog.join(TIMEOUT)
    assert not watchdog.is_alive()
    assert (lag.stalls, lag.probes >= PROBES) == (0, True)
    await asyncio.sleep(0)  # the answer to the last probe comes when it is not awaited any more


def test_the_place_is_that_of_our_own_code() -> None:
    frames = []
    space = {"__name__": "xenoglot.gateway.made_up", "look": lambda: frames.append(__import__("sys")._getframe())}
    exec("look()", space)  # noqa: S102  a frame of our own code
    assert current_location(frames[0]) == "xenoglot.gateway.made_up:1"
    assert current_location(None) == ""


def test_k16_it_is_among_the_metrics() -> None:
    lag = LoopLag()
    lag.note(0.5, "")
    lag.note(0.001, "")
    told = [row for row in lag_exposition(lag).decode().splitlines() if not row.startswith("#")]
    assert told == [
        "xenoglot_gateway_loop_lag_seconds 0.001",
        "xenoglot_gateway_loop_worst_lag_seconds 0.5",
        "xenoglot_gateway_loop_stalls_total 1",
    ]
