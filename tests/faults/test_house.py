"""The house itself does nothing at a time that the machine chooses."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from tests.backends.wire import turns
from tests.faults.house import House, fine, push, well
from xenoglot.gateway.http import heap
from xenoglot.testing.script import WaitEvent

if TYPE_CHECKING:
    import pytest


def test_no_thread_opens_files_while_descriptors_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway returns memory some seconds after its last request, in a thread that imports what it needs."""
    trimmed: list[None] = []
    monkeypatch.setattr(heap, "trim", lambda: trimmed.append(None))
    with ExitStack() as stack:
        house = House().start(stack)

        async def scene() -> None:
            house.upstream.script((WaitEvent("go on"), *well("chat", streamed=False)))
            caller = await house.call("chat", "chat-small", streamed=False)
            await house.asked()
            await push(1.0)
            house.upstream.release("go on")
            await house.finish(caller)
            for _ in range(int(heap.IDLE_SECONDS) * 4):
                await push(1.0)

        house.play(scene())
    assert trimmed == []


def test_a_slow_machine_is_never_late(monkeypatch: pytest.MonkeyPatch) -> None:
    with ExitStack() as stack:
        house = House().start(stack)

        async def scene() -> None:
            house.upstream.script((WaitEvent("go on"), *well("chat", streamed=True)))
            caller = await house.call("chat", "chat-small", streamed=True)
            await house.asked()
            now = time.monotonic()
            monkeypatch.setattr(time, "monotonic", lambda: now + 3600.0)
            await turns()
            house.upstream.release("go on")
            fine("chat", await house.finish(caller), streamed=True)

        house.play(scene())
