"""The beginning of an answer: what is read ahead of it, and what is left of that when nobody wants the rest."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.gateway.scripted_backends import FIRST_EVENTS
from xenoglot.backends.backend import EventAnswer
from xenoglot.errors import FailureError
from xenoglot.gateway.config.targets import StreamBuffer
from xenoglot.gateway.upstream.first_event import begun
from xenoglot.model.events import Failed
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from xenoglot.model.events import Event

CUT = Failure(kind="upstream", message="connection lost: the upstream closed it", cause="closed")


class Source:
    """Says `first`, and waits to be told `then`."""

    def __init__(self, first: Sequence[Event], then: Sequence[Event] = ()) -> None:
        self.ends: list[str] = []
        self.more = asyncio.Event()
        self._first = first
        self._then = then

    @property
    def answer(self) -> EventAnswer:
        """It as an answer, that is closed as a generator is."""
        batches = self._batches()
        return EventAnswer(batches=batches, aclose=batches.aclose)

    async def _batches(self) -> AsyncGenerator[Sequence[Event]]:
        try:
            yield self._first
            await self.more.wait()
            yield self._then
        finally:
            self.ends.append("closed")


async def test_what_is_still_being_read_is_closed_with_the_rest() -> None:
    source = Source(FIRST_EVENTS)
    answer = await begun(source.answer, StreamBuffer(seconds=0.001))
    before = asyncio.all_tasks()
    assert isinstance(answer, EventAnswer)
    assert await anext(answer.batches) == FIRST_EVENTS
    await answer.aclose()
    await answer.aclose()
    assert (source.ends, len(asyncio.all_tasks()) < len(before)) == (["closed"], True)


async def test_what_was_still_being_read_is_read_on() -> None:
    source = Source(FIRST_EVENTS, (Failed(failure=CUT),))
    answer = await begun(source.answer, StreamBuffer(seconds=0.001))
    source.more.set()
    assert isinstance(answer, EventAnswer)
    assert [batch async for batch in answer.batches] == [FIRST_EVENTS, (Failed(failure=CUT),)]
    await answer.aclose()
    assert source.ends == ["closed"]


async def test_u13_what_fails_while_it_is_held_back_has_not_begun() -> None:
    source = Source(FIRST_EVENTS, (Failed(failure=CUT),))
    source.more.set()
    with pytest.raises(FailureError) as caught:
        await begun(source.answer, StreamBuffer(seconds=3600.0))
    assert caught.value.failure == CUT
