"""Limits that the workers of one machine share: the parent process keeps them, the workers ask it over a unix socket.

A frame is its length in four bytes, big-endian, and a message in MessagePack. A worker asks to come in under a number
of its own and receives the answer; it leaves, or wants in no more, without an answer. When the connection ends,
whatever it held is released: so a worker that dies holds nothing. A worker that cannot reach the parent
limits alone, logs that, and retries at intervals.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, TypeAlias

from msgspec import MsgspecError, Struct, msgpack

from xenoglot.errors import FailureError
from xenoglot.gateway.limits.limiter import UNLIMITED, LimiterMetrics, MemoryLimiter
from xenoglot.model.failure import Failure
from xenoglot.policy.limits.usage_ledger import Scope

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from xenoglot.gateway.limits.limiter import Lease, Limiter

HEAD = 4
LONGEST = 1024 * 1024
"""Bytes of a frame; names and limits are far shorter."""

CONNECT_SECONDS = 0.25
RETRY_SECONDS = 1.0

_logger = logging.getLogger("xenoglot.gateway")


class AcquireMessage(Struct, frozen=True, tag=True):
    """A request wants in."""

    number: int
    scopes: tuple[Scope, ...]
    owner: str
    tokens: int
    patience: float | None


class ReleaseMessage(Struct, frozen=True, tag=True):
    """A request is over, or, if it did not come in yet, wants in no more."""

    number: int
    used: int | None
    asked: bool


class AcquiredMessage(Struct, frozen=True, tag=True):
    """A request is in."""

    number: int


class RejectedMessage(Struct, frozen=True, tag=True):
    """A request is refused."""

    number: int
    failure: Failure


RequestMessage: TypeAlias = AcquireMessage | ReleaseMessage
ReplyMessage: TypeAlias = AcquiredMessage | RejectedMessage

_encoder = msgpack.Encoder()
_asked: msgpack.Decoder[RequestMessage] = msgpack.Decoder(RequestMessage)
_answered: msgpack.Decoder[ReplyMessage] = msgpack.Decoder(ReplyMessage)


def frame(message: RequestMessage | ReplyMessage) -> bytes:
    """Return a message as it is sent."""
    body = _encoder.encode(message)
    return len(body).to_bytes(HEAD, "big") + body


async def read(reader: asyncio.StreamReader) -> bytes:
    """Return the next message.

    Raises:
        EOFError: there is none, or what comes is none.
    """
    try:
        length = int.from_bytes(await reader.readexactly(HEAD), "big")
        if length > LONGEST:
            raise EOFError
        return await reader.readexactly(length)
    except OSError:
        raise EOFError from None


@asynccontextmanager
async def serve_limiter(limiter: Limiter, path: str) -> AsyncGenerator[None]:
    """Let workers share `limiter`, at a unix socket at `path`, until the end."""
    workers: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(_Worker(limiter, writer).serve(reader))
        workers.add(task)
        task.add_done_callback(workers.discard)

    server = await asyncio.start_unix_server(accept, path)
    try:
        yield
    finally:
        server.close()
        for task in tuple(workers):
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


class _Worker:
    """A connected worker, from the parent's side."""

    def __init__(self, limiter: Limiter, writer: asyncio.StreamWriter) -> None:
        self._limiter = limiter
        self._writer = writer
        self._leases: dict[int, Lease] = {}
        self._waiting: dict[int, asyncio.Task[None]] = {}

    async def serve(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                self._hear(_asked.decode(await read(reader)))
        except (EOFError, MsgspecError):
            pass  # it is gone, or talks nonsense, which ends in the same way
        finally:
            self._writer.transport.abort()
            await self._drop()

    def _hear(self, message: RequestMessage) -> None:
        match message:
            case AcquireMessage():
                task = asyncio.get_running_loop().create_task(self._enter(message))
                self._waiting[message.number] = task
                task.add_done_callback(lambda _: self._waiting.pop(message.number, None))
            case ReleaseMessage(number=number, used=used, asked=asked):
                lease = self._leases.pop(number, None)
                if lease is not None:
                    lease.drop(used, asked=asked)
                elif (task_ := self._waiting.get(number)) is not None:
                    task_.cancel()

    async def _enter(self, asked: AcquireMessage) -> None:
        try:
            lease = await self._limiter.enter(
                asked.scopes, owner=asked.owner, tokens=asked.tokens, patience=asked.patience
            )
        except FailureError as error:
            self._say(RejectedMessage(asked.number, error.failure))
        else:
            self._leases[asked.number] = lease
            self._say(AcquiredMessage(asked.number))

    def _say(self, message: ReplyMessage) -> None:
        if not self._writer.transport.is_closing():
            self._writer.write(frame(message))

    async def _drop(self) -> None:
        waiting = tuple(self._waiting.values())
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        leases, self._leases = self._leases, {}
        for lease in leases.values():
            lease.drop()


class SharedLease:
    """What a request of this worker holds at the parent."""

    __slots__ = ("_link", "_number")

    def __init__(self, link: _Link, number: int) -> None:
        self._link = link
        self._number = number

    async def leave(self, used: int | None, *, asked: bool = True) -> None:
        """Give it back."""
        self._link.leave(self._number, used, asked=asked)

    def drop(self, used: int | None = None, *, asked: bool = True) -> None:
        """Give it back."""
        self._link.leave(self._number, used, asked=asked)


class _Link:
    """A connection to the parent, from a worker's side."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._number = 0
        self._held: set[int] = set()
        self._waiting: dict[int, asyncio.Future[ReplyMessage | None]] = {}
        self._reading = asyncio.get_running_loop().create_task(self._read(reader))

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def is_broken(self) -> bool:
        return self._reading.done() or self._writer.transport.is_closing()

    async def enter(
        self, scopes: Sequence[Scope], owner: str, tokens: int, patience: float | None
    ) -> SharedLease | None:
        """Request admission; `None` if the parent is lost."""
        self._number = number = self._number + 1
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._held.add(number)
        self._writer.write(frame(AcquireMessage(number, tuple(scopes), owner, tokens, patience)))
        try:
            said = await answer
        except asyncio.CancelledError:
            self.leave(number, 0, asked=False)
            raise
        finally:
            del self._waiting[number]
        if said is None:
            return None
        if isinstance(said, RejectedMessage):
            self._held.discard(number)
            raise FailureError(said.failure)
        return SharedLease(self, number)

    def leave(self, number: int, used: int | None, *, asked: bool) -> None:
        """Leave, once."""
        if number in self._held and not self.is_broken:
            self._writer.write(frame(ReleaseMessage(number, used, asked)))
        self._held.discard(number)

    async def aclose(self) -> None:
        """Part."""
        with suppress(OSError):
            await self._writer.drain()
        self._writer.close()
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                said = _answered.decode(await read(reader))
                answer = self._waiting.get(said.number)
                if answer is not None and not answer.done():
                    answer.set_result(said)
        except (EOFError, MsgspecError):
            self._writer.transport.abort()
        finally:
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_result(None)


class SharedLimiter:
    """The parent's limits, in a worker; `path` is the parent's socket. `clock` gives seconds, and never goes back."""

    def __init__(self, path: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._alone = MemoryLimiter(clock=clock)
        self._link: _Link | None = None
        self._linking = asyncio.Lock()
        self._retry_at = 0.0
        self._is_lost = False
        self._refused: Counter[tuple[str, str]] = Counter()

    async def enter(self, scopes: Sequence[Scope], *, owner: str, tokens: int, patience: float | None = None) -> Lease:
        """Let a request in: see `Limiter`."""
        if not scopes:
            return UNLIMITED
        while (link := await self._linked()) is not None:
            try:
                lease = await link.enter(scopes, owner, tokens, patience)
            except FailureError as error:
                self._refused[scopes[0].kind, error.failure.kind] += 1
                raise
            if lease is not None:
                return lease
        return await self._alone.enter(scopes, owner=owner, tokens=tokens, patience=patience)

    def try_enter(self, scopes: Sequence[Scope], *, owner: str, tokens: int) -> Lease | None:  # noqa: ARG002  as above
        """Let in what nothing limits; all else needs the parent."""
        return None if scopes else UNLIMITED

    def measures(self) -> LimiterMetrics:
        """Return who waits, and who was refused, of this worker; all under the word `shared`."""
        alone = self._alone.measures()
        waiting = 0 if self._link is None else self._link.waiting
        return LimiterMetrics({**alone.waiting, "shared": waiting}, self._refused + Counter(alone.refused))

    async def aclose(self) -> None:
        """Part from the parent."""
        link, self._link = self._link, None
        if link is not None:
            await link.aclose()
        await self._alone.aclose()

    async def _linked(self) -> _Link | None:
        """Return the connection to the parent, `None` where there is none to be had."""
        async with self._linking:
            if self._link is not None and not self._link.is_broken:
                return self._link
            if self._clock() < self._retry_at:
                return None
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    reader, writer = await asyncio.open_unix_connection(self._path)
            except OSError as error:  # a `TimeoutError` is one
                self._lose(error)
                return None
            if self._is_lost:
                self._is_lost = False
                _logger.warning("the process that keeps the limits is back")
            self._link = _Link(reader, writer)
            return self._link

    def _lose(self, error: OSError) -> None:
        self._retry_at = self._clock() + RETRY_SECONDS
        if not self._is_lost:
            self._is_lost = True
            told = type(error).__name__
            _logger.error("the process that keeps the limits is lost, so this worker limits alone: %s", told)
