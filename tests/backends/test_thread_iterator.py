"""What blocks, in a thread of its own: what comes of it, and what does not wait for it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from xenoglot.backends import thread_iterator
from xenoglot.backends.backend import Call, EventAnswer
from xenoglot.backends.callable import Callable
from xenoglot.backends.thread_iterator import ThreadLimitError, ThreadRunner
from xenoglot.codec.loss import Losses
from xenoglot.model.events import Failed
from xenoglot.model.failure import Failure
from xenoglot.model.request import Request

STUCK = """
import asyncio, threading
from xenoglot.backends.thread_iterator import ThreadRunner

async def main():
    begun = threading.Event()
    def stuck():
        begun.set()
        threading.Event().wait()
    waiting = asyncio.ensure_future(ThreadRunner().run(stuck))
    await asyncio.to_thread(begun.wait)
    waiting.cancel()

asyncio.run(main())
print("over")
"""


async def test_steps_are_taken_in_order_and_the_last_is_waited_for() -> None:
    steps, taken, over = ThreadRunner(), list[str](), threading.Event()
    for word in ("one", "two"):
        await steps.run(lambda word=word: taken.append(word))  # type: ignore[misc]
    await steps.end(over.set)
    assert (taken, over.is_set()) == (["one", "two"], True)


async def test_who_left_is_not_told() -> None:
    """The step goes on; what it returns is nobody's, and nobody waits for the end."""
    steps, begun, go_on, over = ThreadRunner(), threading.Event(), threading.Event(), threading.Event()

    def step() -> str:
        begun.set()
        assert go_on.wait(120)
        return "late"

    waiting = asyncio.ensure_future(steps.run(step))
    assert await asyncio.to_thread(begun.wait, 120)
    waiting.cancel()
    await steps.end(over.set)
    go_on.set()
    assert await asyncio.to_thread(over.wait, 120)
    assert waiting.cancelled()


async def test_there_are_only_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_iterator, "_threads", threading.BoundedSemaphore(1))
    first, over = ThreadRunner(), threading.Event()
    await first.run(lambda: None)
    with pytest.raises(ThreadLimitError):
        await ThreadRunner().run(lambda: None)
    answer = await Callable(lambda request: request.model).answer(Call(request=Request(model="m"), losses=Losses()))
    assert isinstance(answer, EventAnswer)
    failure = Failure(kind="overloaded", message="overloaded: the model is at work on too many answers")
    assert [batch async for batch in answer.batches] == [(Failed(failure=failure),)]
    await first.end(over.set)
    assert await asyncio.to_thread(over.wait, 120)


def test_a_step_that_never_ends_keeps_no_process_from_ending() -> None:
    made = subprocess.run([sys.executable, "-c", STUCK], capture_output=True, text=True, timeout=120, check=False)
    assert (made.returncode, made.stdout) == (0, "over\n")
