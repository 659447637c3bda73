"""Fan-out: sends one request as several, and merges their answers as they arrive.

A server that answers one text at a time gets one request per text, one that makes one answer at a time one per answer.
The candidates keep the numbers that they would have had in one answer, and the counts of tokens are added. The first
part that fails fails the whole, and closing the whole closes all parts.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.backends.backend import ByteAnswer, Call, EventAnswer
from xenoglot.errors import FailureError, LossError, WireError
from xenoglot.model.events import Failed, OpaqueDelta, Ping, Started, UsageReported
from xenoglot.model.failure import Failure
from xenoglot.model.fold import merge_usage
from xenoglot.model.response import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence

    from xenoglot.backends.backend import Answer
    from xenoglot.codec.loss import Losses
    from xenoglot.model.events import Event
    from xenoglot.model.limits import RateLimits
    from xenoglot.model.request import Request

AT_ONCE: Final = 8
"""The most parts in progress at a time."""

MOST_PARTS: Final = 2048
"""The most parts of one request, and answers they may make together: each costs a call, and memory."""

_COUNTS: Final = (
    "input_tokens",
    "output_tokens",
    "cache_read",
    "cache_write",
    "reasoning",
    "input_audio",
    "output_audio",
    "cache_write_1h",
    "web_searches",
    "page_fetches",
)
_REFUSALS: Final = (FailureError, WireError, LossError)


class CallShare(Struct, frozen=True, kw_only=True):
    """A part of a request; `first` is the number that its first candidate has in the whole."""

    call: Call
    first: int


_Item: TypeAlias = "tuple[int, Sequence[Event]] | Exception | None"
"""Message of a worker: events of its part, its failure, or `None` for its end."""

_FIRST_BLOCK: Final[_Item] = (0, ())
"""That a worker has its first answer: no events, of whichever share."""


def shares_of(call: Call, *, texts: bool, candidates: bool) -> list[CallShare]:
    """Return the parts of a request: one for each of its `texts`, one for each of its `candidates`, or the whole.

    Raises:
        WireError: they would be too many.
    """
    requests = [call.request]
    prompt, each = call.request.prompt, call.request.sampling.n or 1
    several = texts and prompt is not None and len(prompt.texts) > 1
    if several or (candidates and each > 1):
        _check_size(call.request, each)
    if prompt is not None and several:
        requests = [replace(call.request, prompt=replace(prompt, texts=(text,))) for text in prompt.texts]
    if candidates and each > 1:
        call.losses.emulated("$.sampling", "n", "the server makes one answer at a time: one request for each")
        requests = [one for request in requests for one in _one_by_one(request, each)]
        each = 1
    if len(requests) == 1:
        return [CallShare(call=call, first=0)]
    whole = replace(call, body=None)
    return [CallShare(call=replace(whole, request=one), first=place * each) for place, one in enumerate(requests)]


def _check_size(request: Request, each: int) -> None:
    texts = 1 if request.prompt is None else len(request.prompt.texts)
    if texts > MOST_PARTS:
        raise WireError("$.prompt", f"found {texts} texts, expected at most {MOST_PARTS}")
    if texts * each > MOST_PARTS:
        raise WireError("$.n", f"{texts * each} answers are requested, expected at most {MOST_PARTS}")


def _one_by_one(request: Request, count: int) -> Iterator[Request]:
    """Yield requests for one answer each; with one seed for all they would be the same answer."""
    sampling = request.sampling
    for number in range(count):
        seed = None if sampling.seed is None else sampling.seed + number
        yield replace(request, sampling=replace(sampling, n=None, seed=seed))


async def fan_out(shares: Sequence[CallShare], ask: Callable[[Call], Awaitable[Answer]]) -> EventAnswer:
    """Ask for all `shares` and return their one answer, when those that run first have begun, or enough has come.

    Raises:
        FailureError: one of these was refused; the others are stopped. `WireError` and `LossError` alike.
    """
    merger = _Merger(shares, ask)
    try:
        await merger.begin()
    except BaseException:
        await merger.aclose()
        raise
    return EventAnswer(batches=merger.batches(), aclose=merger.aclose, limits=merger.limits)


async def _call_backend(ask: Callable[[Call], Awaitable[Answer]], call: Call) -> EventAnswer:
    answer = await ask(call)
    if isinstance(answer, ByteAnswer):  # only a call with a `body` has one
        await answer.aclose()
        raise TypeError("bytes cannot be merged")
    return answer


class _Merger:
    """The workers, and what they bring."""

    def __init__(self, shares: Sequence[CallShare], ask: Callable[[Call], Awaitable[Answer]]) -> None:
        self.limits: RateLimits | None = None
        self._shares = shares
        self._call_backend = ask
        self._waiting = deque(range(len(shares)))
        self._queue: asyncio.Queue[_Item] = asyncio.Queue(maxsize=AT_ONCE)
        self._pending: deque[_Item] = deque()
        self._workers: list[asyncio.Task[None]] = []
        self._merge = _Merge([share.first for share in shares], shares[0].call.losses)

    async def begin(self) -> None:
        """Start the workers, and wait until each has its first answer; but not longer than their queues have capacity.

        Where answers wait for each other's end, as those of one small machine do, some must be read meanwhile.
        """
        expected = min(AT_ONCE, len(self._shares))
        self._workers = [asyncio.create_task(self._work()) for _ in range(expected)]
        while expected and len(self._pending) < AT_ONCE:
            item = await self._queue.get()
            if isinstance(item, Exception):
                raise item
            if item is _FIRST_BLOCK:
                expected -= 1
            else:
                self._pending.append(item)

    async def batches(self) -> AsyncGenerator[Sequence[Event], None]:
        """Yield what each read of a part made."""
        working = len(self._workers)
        try:
            while working:
                item = self._pending.popleft() if self._pending else await self._queue.get()
                if item is None:
                    working -= 1
                elif isinstance(item, Exception):
                    if not isinstance(item, _REFUSALS):
                        raise item
                    yield (Failed(failure=failure_of(item)),)
                    return
                elif events := self._merge.feed(*item):
                    yield events
                    if type(events[-1]) is Failed:
                        return
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """Stop all parts at once; does nothing the second time."""
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    async def _work(self) -> None:
        """Ask for a share and read its answer, and then the next that waits."""
        begun = False
        try:
            while self._waiting:
                number = self._waiting.popleft()
                answer = await _call_backend(self._call_backend, self._shares[number].call)
                self.limits = self.limits or answer.limits
                try:
                    if not begun:
                        begun = True
                        await self._queue.put(_FIRST_BLOCK)
                    async for batch in answer.batches:
                        await self._queue.put((number, batch))
                finally:
                    await answer.aclose()
        except Exception as error:  # noqa: BLE001  whatever it is, whoever waits for this worker must hear of it
            await self._queue.put(error)
        else:
            await self._queue.put(None)


class _Merge:
    """Events of several answers to those of one."""

    def __init__(self, firsts: Sequence[int], losses: Losses) -> None:
        self._firsts = firsts
        self._losses = losses
        self._started = False
        self._counts = UsageSum()

    def feed(self, number: int, batch: Iterable[Event]) -> list[Event]:
        """Take events of the answer `number`; return them as events of the whole."""
        events: list[Event] = []
        for event in batch:
            events += self._feed(number, event)
            if type(event) is Failed:
                break
        return events

    def _feed(self, number: int, event: Event) -> Sequence[Event]:
        first = self._firsts[number]
        match event:
            case Started():
                begun, self._started = self._started, True
                return () if begun else (event,)
            case UsageReported(usage=usage):
                for name in usage.extra.fields if usage.extra is not None else ():
                    self._losses.dropped("$.usage", name, "it belongs to one answer of several")
                return (UsageReported(usage=self._counts.put(number, usage)),)
            case Failed() | Ping():
                return (event,)
            case OpaqueDelta() if first:  # what is in it names a candidate of its own answer
                self._losses.dropped("$", event.name or "event", "it belongs to one answer of several")
                return ()
            case _:
                return (replace(event, candidate=first + event.candidate),) if first else (event,)


class UsageSum:
    """The sum of the counts of all answers; counts that none reported stay `None`."""

    def __init__(self) -> None:
        self._usages: dict[int, Usage] = {}
        self._sums: Counter[str] = Counter()
        self._reported: Counter[str] = Counter()  # how many say a count

    def put(self, number: int, usage: Usage) -> Usage:
        """Take a snapshot of the answer `number`; return the sum of the last of each."""
        earlier = self._usages.get(number)
        self._usages[number] = usage = merge_usage(earlier, usage)
        if earlier is not None:
            self._add(earlier, -1)
        self._add(usage, 1)
        counts = {name: self._sums[name] for name in _COUNTS if self._reported[name]}
        total = self._sums["total"] if self._reported["total"] else None
        return replace(Usage(total=total, estimated=self._reported["estimated"] > 0), **counts)

    def _add(self, usage: Usage, sign: int) -> None:
        for name in _COUNTS:
            if (count := getattr(usage, name)) is not None:
                self._sums[name] += sign * count
                self._reported[name] += sign
        self._sums["total"] += sign * _total(usage)
        self._reported["total"] += sign * (usage.total is not None)
        self._reported["estimated"] += sign * usage.estimated


def _total(usage: Usage) -> int:
    return (usage.input_tokens or 0) + (usage.output_tokens or 0) if usage.total is None else usage.total


def failure_of(error: Exception) -> Failure:
    """Return why a part that came late was refused."""
    if isinstance(error, FailureError):
        return error.failure
    if isinstance(error, WireError):
        return Failure(kind="invalid_request", message=str(error), param=error.path)
    return Failure(kind="invalid_request", message=str(error))
