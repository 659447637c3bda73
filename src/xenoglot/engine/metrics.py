"""Metrics of the embedded model: counters and rates, updated by its requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable

NEWS: Final = 0.2
"""How much the latest request counts in the mean rates."""

MILLISECONDS: Final = 1000.0


class Timings(Struct, frozen=True):
    """The runtime's report on one answer: tokens read and generated, and milliseconds.

    `prompt_n` excludes the `cache_n` tokens found in its cache.
    """

    cache_n: int = 0
    prompt_n: int = 0
    prompt_ms: float = 0.0
    predicted_n: int = 0
    predicted_ms: float = 0.0


class EngineMetrics(Struct, frozen=True, kw_only=True):
    """A snapshot of the metrics. Counters count from the start of this process.

    Tokens and seconds are those of completed answers; tokens per second are moving averages over single requests,
    weighted towards recent ones. `starts` counts the child processes that became ready.
    """

    model: str
    slots: int
    running: int = 0
    waiting: int = 0
    refused: int = 0
    finished: int = 0
    broken_off: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    generated_tokens: int = 0
    prompt_seconds: float = 0.0
    generation_seconds: float = 0.0
    prompt_rate: float | None = None
    generation_rate: float | None = None
    starts: int = 0


@runtime_checkable
class MetricsSource(Protocol):
    """A backend that has these metrics."""

    def measures(self) -> EngineMetrics:
        """Return them, without a request to the runtime."""
        ...


@runtime_checkable
class AvailabilitySource(Protocol):
    """A backend that may be unable to answer."""

    def is_available(self) -> bool:
        """Return whether it answers now, or starts when it is called; without a request to the runtime."""
        ...


class Meter:
    """Accumulates the metrics of requests."""

    def __init__(self) -> None:
        self._finished = 0
        self._broken_off = 0
        self._total = Timings()
        self._prompt_rate: float | None = None
        self._generation_rate: float | None = None

    def add(self, timings: Iterable[Timings], *, finished: bool) -> None:
        """Note a request: the times of its answers, and whether all of them came to their end."""
        self._finished += finished
        self._broken_off += not finished
        for one in timings:
            self._total = _sum(self._total, one)
            self._prompt_rate = _mean(self._prompt_rate, one.prompt_n, one.prompt_ms)
            self._generation_rate = _mean(self._generation_rate, one.predicted_n, one.predicted_ms)

    def measures(self, model: str, slots: int, starts: int) -> EngineMetrics:
        """Return what was added up, for a model that has so many slots and was started so often."""
        return EngineMetrics(
            model=model,
            slots=slots,
            starts=starts,
            finished=self._finished,
            broken_off=self._broken_off,
            prompt_tokens=self._total.prompt_n + self._total.cache_n,
            cached_tokens=self._total.cache_n,
            generated_tokens=self._total.predicted_n,
            prompt_seconds=self._total.prompt_ms / MILLISECONDS,
            generation_seconds=self._total.predicted_ms / MILLISECONDS,
            prompt_rate=self._prompt_rate,
            generation_rate=self._generation_rate,
        )


def _sum(total: Timings, one: Timings) -> Timings:
    return Timings(*(getattr(total, name) + getattr(one, name) for name in Timings.__struct_fields__))


def _mean(before: float | None, tokens: int, milliseconds: float) -> float | None:
    """Return the mean of tokens per second with one more answer in it; one that took no time is ignored."""
    if not tokens or milliseconds <= 0:
        return before
    rate = tokens * MILLISECONDS / milliseconds
    return rate if before is None else before + NEWS * (rate - before)
