"""Freed memory is returned to the system after a peak of requests, and never within one."""

from __future__ import annotations

import ctypes
import threading
from typing import TYPE_CHECKING

import pytest

from tests.backends.raw_server import advance, becomes, leakless
from tests.gateway.scripted_backends import CHAT, HELLO, BlockingBackend
from tests.gateway.server_on_loop import post_bytes, serve_on_loop
from xenoglot.backends.scripted import Scripted
from xenoglot.gateway.http import process_resources
from xenoglot.gateway.http.process_resources import IDLE_SECONDS, TRIM_SECONDS, PeakDetector

if TYPE_CHECKING:
    from collections.abc import Iterable


def trims(loads: Iterable[int]) -> list[int]:
    """Return the seconds at which memory is returned, with so many requests in progress in each second."""
    watch = PeakDetector()
    return [second for second, running in enumerate(loads) if watch.ended(running, float(second))]


IDLE = int(IDLE_SECONDS)
MINUTE = int(TRIM_SECONDS)


@pytest.mark.parametrize(
    ("loads", "wanted"),
    [
        pytest.param([0] * 500, [], id="never-without-requests"),
        pytest.param([1, *[0] * 500], [1 + IDLE], id="once-after-the-last"),
        pytest.param([1, 0] * 200, [], id="not-between-two-requests"),
        pytest.param([80, *[1] * 200], [], id="not-while-one-is-in-progress"),
        pytest.param([*[1, *[0] * 9] * 30], [6 + minute * MINUTE for minute in range(5)], id="rarely"),
    ],
)
def test_memory_is_returned_when_a_peak_has_ended(loads: list[int], wanted: list[int]) -> None:
    assert trims(loads) == wanted


def test_only_glibc_can_return_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: object())
    assert not process_resources.trim()


@leakless
async def test_c06_a_server_returns_memory_in_a_thread_once_its_requests_are_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trimmed: list[bool] = []
    monkeypatch.setattr(
        process_resources, "trim", lambda: trimmed.append(threading.current_thread() is threading.main_thread())
    )
    async with serve_on_loop(BlockingBackend()) as stage:
        client = await stage.connect()
        client.send(post_bytes("/v1/chat/completions", CHAT))
        for _ in range(20):
            await advance(1.0)
        assert trimmed == []
        await client.close()
        for _ in range(20):
            await advance(1.0)
        await becomes([False], lambda: trimmed)
    async with serve_on_loop(Scripted(HELLO)):
        for _ in range(20):
            await advance(1.0)
    assert trimmed == [False]
