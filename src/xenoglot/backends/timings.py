"""llama-server's `timings` in the answers of local models: tokens read and generated, and how long that took.

A request wants them with `timings_per_token: true`. What is measured is the time until the first words, a wait for
the model included, and the time from then on; tokens are those that the model counts.
Source: https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec.structs import replace

from xenoglot import dialect_registry as dialects
from xenoglot.backends.backend import EventAnswer
from xenoglot.codec.requests.prompt_echo import made_here
from xenoglot.errors import WireError
from xenoglot.model.events import PIECES, Finished, OpaqueDelta, Started, UsageReported

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from xenoglot.backends.backend import Answer, Call
    from xenoglot.model.events import Event
    from xenoglot.model.json import JSONObject

TIMINGS: Final = "timings_per_token"
"""The field of a request that asks for them."""

_MILLISECONDS: Final = 1000.0

Clock: TypeAlias = "Callable[[], float]"
"""Seconds since any moment."""


def timings_field(dialect: str) -> str:
    """Return the field of an answer of `dialect` that has them; empty where there is none."""
    return dialects.get(dialect).timings_field if dialect in dialects.names() else ""


async def timed(call: Call, answer: Callable[[Call], Awaitable[Answer]], clock: Clock = perf_counter) -> Answer:
    """Return the answer to `call`, with timings where the request wants them and its dialect has a field for them.

    A stream has them after each piece of text, a whole answer once. Where there is no field, it is left to `answer` to
    report the field of the request as a loss.

    Raises:
        WireError: the field is neither true nor false.
    """
    field = timings_field(call.dialect)
    wanted = _wanted(call)
    if wanted and not field:
        return await answer(call)
    began = clock()
    made = await answer(_without(call))
    if not wanted or not isinstance(made, EventAnswer):
        return made
    timer = _Timer(call.dialect, field, began, clock)
    batches = (_streamed if call.request.stream else _whole)(made, timer)
    return replace(made, batches=batches, aclose=batches.aclose)


def _wanted(call: Call) -> bool:
    extra = call.request.extra
    value = None if extra is None else extra.fields.get(TIMINGS)
    if value is None or type(value) is bool:
        return value is True
    raise WireError(f"$.{TIMINGS}", "expected true or false")


def _without(call: Call) -> Call:
    """Return the call without the field, which is understood."""
    extra = call.request.extra
    if extra is None or TIMINGS not in extra.fields:
        return call
    fields = {name: value for name, value in extra.fields.items() if name != TIMINGS}
    return replace(call, request=replace(call.request, extra=replace(extra, fields=fields)))


async def _streamed(answer: EventAnswer, timer: _Timer) -> AsyncGenerator[Sequence[Event], None]:
    try:
        async for batch in answer.batches:
            yield timer.feed(batch)
    finally:
        await answer.aclose()


async def _whole(answer: EventAnswer, timer: _Timer) -> AsyncGenerator[Sequence[Event], None]:
    """Yield all events at once: the timings of all of it stand at its start."""
    events: list[Event] = []
    try:
        async for batch in answer.batches:
            timer.feed(batch)
            events += batch
    finally:
        await answer.aclose()
    yield [timer.with_timings(event) if isinstance(event, Started) else event for event in events]


class _Timer:
    """Measures an answer, and adds what it measured to the events."""

    def __init__(self, dialect: str, field: str, began: float, clock: Clock) -> None:
        self._dialect = dialect
        self._field = field
        self._began = began
        self._clock = clock
        self._first: float | None = None  # when the first words came
        self._last = began
        self._read = self._generated = 0

    def feed(self, batch: Sequence[Event]) -> list[Event]:
        """Take events; return them with the timings so far after each piece, and before each end."""
        events: list[Event] = []
        for event in batch:
            match event:
                case UsageReported(usage=usage):
                    self._read = self._read if usage.input_tokens is None else usage.input_tokens
                    self._generated = self._generated if usage.output_tokens is None else usage.output_tokens
                    events.append(event)
                case Finished():
                    events += (self._measured(event.candidate), event)
                case _ if isinstance(event, PIECES):
                    events += (event, self._measured(event.candidate))
                case _:
                    events.append(event)
        return events

    def with_timings(self, started: Started) -> Started:
        """Return the start of a whole answer with the timings of all of it."""
        extra = started.extra or made_here(self._dialect, {})
        return replace(started, extra=replace(extra, fields={**extra.fields, **self._data()}))

    def _measured(self, candidate: int) -> OpaqueDelta:
        self._last = self._clock()
        if self._first is None:
            self._first = self._last
        return OpaqueDelta(dialect=self._dialect, data=self._data(), candidate=candidate)

    def _data(self) -> JSONObject:
        first = self._last if self._first is None else self._first
        read = _rates("prompt", self._read, first - self._began)
        return {self._field: {"cache_n": 0, **read, **_rates("predicted", self._generated, self._last - first)}}


def _rates(name: str, tokens: int, seconds: float) -> JSONObject:
    milliseconds = seconds * _MILLISECONDS
    return {
        f"{name}_n": tokens,
        f"{name}_ms": milliseconds,
        f"{name}_per_token_ms": milliseconds / tokens if tokens else 0.0,
        f"{name}_per_second": tokens / seconds if seconds > 0 else 0.0,
    }
