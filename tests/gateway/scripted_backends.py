"""Backends and answers that the tests of the gateway share."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from xenoglot import dialect_registry as dialects
from xenoglot.backends.backend import ByteAnswer, EventAnswer, monitored
from xenoglot.backends.stream_guard import PassthroughMonitor
from xenoglot.errors import FailureError
from xenoglot.model.catalog import ModelInfo
from xenoglot.model.content import Text
from xenoglot.model.events import BlockStarted, Started, TextDelta
from xenoglot.model.failure import Failure
from xenoglot.model.fold import unfold
from xenoglot.model.response import Candidate, Finish, Response, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from xenoglot.backends.backend import Answer, Call
    from xenoglot.model.events import Event
    from xenoglot.model.json import JSONObject
    from xenoglot.model.limits import RateLimits

HELLO = Response(
    id="answer-1",
    model="m",
    created=1_700_000_000,
    candidates=(Candidate(content=(Text(text="Hello"),), finish=Finish(reason="stop")),),
    usage=Usage(input_tokens=5, output_tokens=2),
)

CHAT: JSONObject = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
MESSAGES: JSONObject = {**CHAT, "max_tokens": 16}
PATHS: dict[str, JSONObject] = {"/v1/chat/completions": CHAT, "/v1/messages": MESSAGES}

FIRST_EVENTS = (Started(id="answer-1", model="m", created=1), BlockStarted(part=Text(text="")), TextDelta(text="Hel"))


class Backend:
    """A backend that answers nothing; what follows overrides a part of it."""

    def __init__(self, name: str = "scripted") -> None:
        self.name = name

    async def answer(self, _call: Call) -> Answer:
        """Refuse."""
        raise FailureError(Failure(kind="overloaded", message="no answer"))

    async def count(self, _call: Call) -> int | None:
        """Not know."""
        return None

    async def models(self) -> Sequence[ModelInfo]:
        """Have one model."""
        return (ModelInfo(id="m", created=1_700_000_000, owned_by="tests"),)

    async def aclose(self) -> None:
        """Hold nothing."""


class BlockingBackend(Backend):
    """Says `begun`, if anything, and waits until it is told to `go_on`; it notices when it is stopped."""

    def __init__(self, begun: Sequence[Event] = (), ending: Sequence[Event] = ()) -> None:
        super().__init__()
        self.called = threading.Event()
        self.cancelled = threading.Event()
        self._begun = begun
        self._ending = ending
        self._resumed: asyncio.Future[None] | None = None

    def resume(self) -> None:
        """Say the ending; to be called from another thread, after `asked` is set."""
        assert self._resumed is not None
        self._resumed.get_loop().call_soon_threadsafe(self._resumed.set_result, None)

    async def answer(self, _call: Call) -> Answer:
        """Begin, and hang; or hang at once."""
        if not self._begun:
            await self._hang()
        batches = self._batches()
        return EventAnswer(batches=batches, aclose=batches.aclose)

    async def _batches(self) -> AsyncGenerator[Sequence[Event], None]:
        yield self._begun
        await self._hang()
        yield self._ending

    async def _hang(self) -> None:
        self._resumed = asyncio.get_running_loop().create_future()
        self.called.set()
        try:
            await self._resumed
        finally:
            self.cancelled.set()


class BlockingBytesBackend(BlockingBackend):
    """Passes `data` on, in the dialect of the client, and waits."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self._data = data

    async def answer(self, call: Call) -> Answer:
        """Begin, and hang."""
        dialect = dialects.get(call.dialect)
        chunks = self._chunks()
        watch = PassthroughMonitor(dialect, lambda failure: failure)
        return ByteAnswer(pieces=monitored(chunks, watch), aclose=chunks.aclose, media_type=dialect.framing.media_type)

    async def _chunks(self) -> AsyncGenerator[bytes, None]:
        yield self._data
        await self._hang()


class EndlessBackend(Backend):
    """Talks for as long as it is asked for more; `said` is how many pieces that were."""

    sent = 0

    async def answer(self, _call: Call) -> Answer:
        """Begin."""
        batches = self._batches()
        return EventAnswer(batches=batches, aclose=batches.aclose)

    async def _batches(self) -> AsyncGenerator[Sequence[Event], None]:
        yield FIRST_EVENTS
        while True:
            self.sent += 1
            yield (TextDelta(text="x"),)


class FailingBackend(Backend):
    """Fails as only a bug fails, with words that nobody should see."""

    async def answer(self, call: Call) -> Answer:
        """Raise."""
        raise RuntimeError(f"canary-of-the-prompt: {call.request.messages}")


class RateLimitedBackend(Backend):
    """Answers, or refuses, with rate limits."""

    def __init__(self, limits: RateLimits, *, failing: bool) -> None:
        super().__init__()
        self._limits = limits
        self._failing = failing

    async def answer(self, _call: Call) -> Answer:
        """Say hello."""
        if self._failing:
            raise FailureError(Failure(kind="overloaded", message="no answer"), self._limits)
        batches = _once(list(unfold(HELLO)))
        return EventAnswer(batches=batches, aclose=batches.aclose, limits=self._limits)


async def _once(events: Sequence[Event]) -> AsyncGenerator[Sequence[Event], None]:
    yield events


class CountingBackend(Backend):
    """Knows its tokens."""

    async def count(self, _call: Call) -> int | None:
        """Say a number."""
        return 42
