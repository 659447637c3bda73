"""Access to the response store: timeouts, job leases, periodic cleanup."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from msgspec.structs import replace

from xenoglot.codec.framing.sse import encode_event
from xenoglot.errors import FailureError, whereabouts
from xenoglot.model.failure import Failure
from xenoglot.store.records import UNDONE, Retention, StoreError
from xenoglot.store.sqlite import Memory

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable

    from xenoglot.codec.features.stored_responses import StoredResponseCodec, StoreOptions
    from xenoglot.store.records import Stored
    from xenoglot.store.store import Store

T = TypeVar("T")

NOT_KEPT: Final = ("x-xenoglot-state", "not kept")
"""Response header: the client wanted the answer kept, and it is not."""

PATIENCE = 10.0
"""Seconds that the store has for one thing ..."""

SILENT_PATIENCE = 1.0
"""... and that it has after it failed to answer in time, until it does: a request may need several things of it."""

LEASE = 30.0
"""Seconds of a job's lease; a lease that is not renewed means that its process is gone."""

SWEEP_SECONDS = 60.0
SWEEP_BATCH = 100
"""How often, and in what portions, the old is forgotten."""

SWEEP_SHARE = 16
"""It is forgotten sooner where one such part of all that may be kept has come since."""

HELD_SHARE = 2
"""One client's batches in progress and unfinished files, which cannot be forgotten, take at most such a part."""

UNREACHABLE = Failure(
    kind="overloaded",
    message="service unavailable: the gateway's store cannot be used now, and the request needs it",
    retry_after=5.0,
)
OFF = Failure(kind="not_found", message="the gateway keeps nothing: its store is off")
ABANDONED = Failure(kind="internal", message="connection lost: the gateway that was making this answer is gone")

_ALL = 2**31 - 1
_ID = re.compile(r"[\x21-\x7e]{1,256}")
_logger = logging.getLogger("xenoglot.gateway")


def is_id(name: str) -> bool:
    """Whether anything could have this id."""
    return _ID.fullmatch(name) is not None


class StoredJob(Protocol):
    """Work on a stored answer, registered in `StoreService.jobs` while it lasts."""

    @property
    def changed(self) -> asyncio.Event:
        """Set when there is more of the answer, or its end; another event takes its place then."""
        ...

    def cancel(self) -> None:
        """Stop it."""
        ...

    async def wait(self) -> None:
        """Wait until it has ended."""
        ...


class StoreService:
    """Keeps what clients want kept. `now` gives Unix seconds."""

    def __init__(self, store: Store, retention: Retention, *, now: Callable[[], float] = time.time) -> None:
        self.store = store
        self.now = now
        self.process = secrets.token_hex(12)
        self.jobs: dict[tuple[str, str], StoredJob] = {}
        self.alone = isinstance(store, Memory)
        """Whether nothing can be stored but what this process stores."""
        self.stored: set[str] = set()
        """The upstreams of whose answers this process has stored what clients strip."""
        self.storing: set[asyncio.Task[None]] = set()
        """What is being stored of such answers."""
        self._bare: Hashable | None = None
        """The version of the store in which no answer had anything stored of it."""
        self._looked_at: Hashable | None = None
        self._retention = retention
        self._held: set[tuple[str, str, str]] = set()
        self._asking: set[asyncio.Future[Any]] = set()
        """Calls of the store in progress."""
        self._silent = False
        """Whether the store did not answer in time when it was last asked."""
        self._swept: float | None = None
        self._grown = 0
        """Bytes that have come since."""
        self._beating: asyncio.Task[None] | None = None
        self._sweeping: asyncio.Task[None] | None = None

    def holds_nothing(self, place: str) -> bool:
        """Whether it is known, without asking the store, that nothing is stored of the answers of `place`."""
        if self.alone:
            return place not in self.stored
        return self._bare is not None and not self.stored and self._bare == self.store.version()

    async def look(self) -> None:
        """See whether anything is stored of any answer, once in each version of the store.

        Raises:
            StoreError: the store fails, or does not answer in time.
        """
        version = None if self.alone or self.stored else self.store.version()
        if version is not None and version != self._looked_at:
            self._looked_at = version
            self._bare = None if await self.within(self.store.has_cached()) else version

    async def within(self, asked: Awaitable[T]) -> T:
        """Return the answer of the store.

        Raises:
            StoreError: it cannot, or does not.
        """
        patience = SILENT_PATIENCE if self._silent else PATIENCE
        asking = asyncio.ensure_future(asked)
        self._asking.add(asking)
        asking.add_done_callback(self._asked)
        try:
            await asyncio.wait({asking}, timeout=patience)
        finally:
            if not asking.done():
                asking.cancel()  # not waited for: a driver may take as long again to clean up after a silent server
        if asking.cancelled() or not asking.done():
            self._silent = True
            message = f"the store did not answer within {patience:g} seconds"
            raise StoreError(message)
        self._silent = False
        return asking.result()

    def _asked(self, asking: asyncio.Future[Any]) -> None:
        self._asking.discard(asking)
        if not asking.cancelled():
            asking.exception()  # whoever gave up does not need it

    async def works(self) -> bool:
        """Return whether the store can be used now."""
        try:
            await self.within(self.store.ready())
        except StoreError:
            return False
        return True

    async def need(self, asked: Awaitable[T]) -> T:
        """Return the store's result for a request that cannot be answered without it.

        Raises:
            FailureError: it cannot, or does not.
        """
        try:
            return await self.within(asked)
        except StoreError as error:
            _logger.error("the store is needed and fails: %s", error)  # noqa: TRY400  no texts
            raise FailureError(UNREACHABLE) from None

    async def get(self, owner: str, name: str, state: StoredResponseCodec) -> Stored | None:
        """Return a kept answer; one whose job has no lease any more has failed."""
        answer = await self.need(self.store.get(owner, name)) if is_id(name) else None
        if answer is None or not name.startswith(state.id_prefix):
            return None
        lapsed = answer.status in UNDONE and (answer.lease or 0.0) < self.now() and (owner, name) not in self.jobs
        if not lapsed:
            return answer
        return await self._give_up(answer, state)

    async def _give_up(self, answer: Stored, state: StoredResponseCodec) -> Stored:
        """Settle an answer whose job has no lease, and return it; clients that follow it receive the end, too."""
        failed = settled(answer, state, "failed", ABANDONED)
        frames: list[bytes] = []
        number = 0
        if answer.streamed and state.background is not None:
            said = await self.need(self.store.frames(answer.owner, answer.id, -1, _ALL))
            number = said[-1][0] + 1 if said else 0
            frames = [encode_event(event) for event in state.background.ending(failed.response, number)]
        if await self.need(self.store.settle(failed, number, frames)):
            return failed
        return await self.need(self.store.get(answer.owner, answer.id)) or failed

    @asynccontextmanager
    async def holding(
        self, owner: str, wish: StoreOptions, holder: str, state: StoredResponseCodec
    ) -> AsyncGenerator[None]:
        """Hold the conversation of a request, if it has one that it will add to.

        Raises:
            FailureError: there is no such conversation, or another request holds it.
        """
        conversations = state.conversations
        if wish.conversation is None or conversations is None:
            yield
            return
        found = await self.need(self.store.conversation(owner, wish.conversation)) if is_id(wish.conversation) else None
        if found is None:
            raise FailureError(conversations.unknown(wish.conversation))
        if not wish.keep:
            yield
            return
        now = self.now()
        if not await self.need(self.store.lock(owner, wish.conversation, holder, now, now + LEASE)):
            raise FailureError(conversations.locked())
        held = (owner, wish.conversation, holder)
        self._held.add(held)
        self.beat()
        try:
            yield
        finally:
            if holder not in {name for _, name in self.jobs}:
                await self.release(held)

    async def release(self, held: tuple[str, str, str]) -> None:
        """Let go of a conversation."""
        self._held.discard(held)
        with suppress(StoreError):  # it lapses
            await self.within(self.store.unlock(*held))

    def forget(self, answer: Stored) -> None:
        """Vouch no more for an answer, nor for its conversation: where neither could be settled, both lapse."""
        self.jobs.pop((answer.owner, answer.id), None)
        if answer.conversation is not None:
            self._held.discard((answer.owner, answer.conversation, answer.id))

    def beat(self) -> None:
        """Vouch, from now on, for what is being worked on."""
        if self._beating is None or self._beating.done():
            self._beating = asyncio.get_running_loop().create_task(self._beat())

    async def _beat(self) -> None:
        while self.jobs or self._held:
            await asyncio.sleep(LEASE / 3)
            try:
                await self._vouch()
            except StoreError as error:
                _logger.error("the store fails, and work is not vouched for: %s", error)  # noqa: TRY400  no texts

    async def _vouch(self) -> None:
        now = self.now()
        for owner, conversation, holder in tuple(self._held):
            await self.within(self.store.lock(owner, conversation, holder, now, now + LEASE))
        known = set(self.jobs)
        undone = await self.within(self.store.renew(self.process, now + LEASE))
        for key in known - undone:  # somebody else cancelled or deleted it
            if (job := self.jobs.get(key)) is not None:
                job.cancel()

    async def check_room(self, owner: str, size: int) -> None:
        """See whether a client may bring so many bytes more that cannot be forgotten for a while.

        Raises:
            FailureError: it has too many already, or the store cannot be used.
        """
        most = self._retention.max_bytes // HELD_SHARE
        held = await self.need(self.store.protected_bytes(owner))
        if held + size > most:
            message = f"rate limit: your unfinished files and batches would take more than {most} bytes of the store"
            raise FailureError(Failure(kind="rate_limit", message=message))

    def sweep(self, grown: int = 0) -> None:
        """Delete what is too old or too much, in the background, if that was not done recently.

        Sooner where much has `grown` since, in bytes.
        """
        now = self.now()
        self._grown += grown
        if self._sweeping is not None and not self._sweeping.done():
            return
        due = self._swept is None or now - self._swept >= SWEEP_SECONDS
        if due or self._grown > self._retention.max_bytes // SWEEP_SHARE:
            self._swept, self._grown = now, 0
            self._sweeping = asyncio.get_running_loop().create_task(self._sweep(now))

    async def _sweep(self, now: float) -> None:
        try:
            gone = 1
            while gone:
                gone = await self.within(self.store.sweep(now, self._retention, SWEEP_BATCH))
        except StoreError as error:
            _logger.error("the store fails, and nothing is forgotten: %s", error)  # noqa: TRY400  no texts

    async def aclose(self) -> None:
        """Break off all work, and close the store."""
        if self.storing:
            await asyncio.wait(tuple(self.storing))
        jobs = list(self.jobs.values())
        for job in jobs:
            job.cancel()
        for job in jobs:
            await job.wait()
        for task in (self._beating, self._sweeping):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
        try:
            await self.within(self.store.aclose())
        except Exception as error:  # noqa: BLE001  whatever it is, the rest has to be closed too
            _logger.error("the store was not closed: %s", whereabouts(error))  # noqa: TRY400  no texts


def settled(answer: Stored, state: StoredResponseCodec, status: str, failure: Failure | None = None) -> Stored:
    """Return an answer as it is with another status."""
    return replace(
        answer, status=status, response=state.mark(answer.response, status, failure), process=None, lease=None
    )
