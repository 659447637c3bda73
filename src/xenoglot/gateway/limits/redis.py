"""Limits that many gateways share, exact by a server of the Redis kind (Valkey, Redis). Needs the extra `redis`.

Theory of operation. A request passes the limits of this process first, where it waits for its turn among those of this
process; then the server decides. If a limit is reached there, the request gives back what it held here and stands where
it stood, and the scopes that are full are shut here until they may have capacity. What the server grants is noted here,
too: so when the server is lost, the limits of this process apply at once, and know what this process used. One log line
reports that, as is the server's return. No request fails since the server does.

A place is leased, and the lease renewed while it is held: the places of a gateway that was killed come back.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import deque
from math import ceil
from typing import TYPE_CHECKING, Any, TypeVar

from xenoglot.errors import ConfigurationError, missing_extra
from xenoglot.gateway.limits import redis_scripts as script
from xenoglot.gateway.limits.limiter import UNLIMITED, MemoryLimiter
from xenoglot.gateway.limits.redis_timeout import SilenceTimeout

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from xenoglot.gateway.limits.limiter import Lease, LimiterMetrics
    from xenoglot.gateway.limits.redis_scripts import LimitRequest
    from xenoglot.policy.limits.admission_queue import QueueEntry
    from xenoglot.policy.limits.usage_ledger import Scope, ScopeReservation, Shortage

T = TypeVar("T")

TIMEOUT = 0.25
"""Seconds of silence; after two such periods without any answer the server is lost."""

CONNECTIONS = 8
LEASE_SECONDS = 30.0
RETRY_SECONDS = 1.0
POLL_SECONDS = 0.05
"""How often to check whether another gateway has released capacity; it sends no notice."""

MOST_OWED = 10_000
"""Leases that are reported to a lost server when it is back; those beyond lapse."""

BATCH = 500

_logger = logging.getLogger("xenoglot.gateway")


class RedisLease:
    """What a request holds here and, if the server knows of it, there; `since` is the server's microseconds."""

    __slots__ = ("asked", "limiter", "name", "since", "taken", "tokens")

    def __init__(
        self, limiter: RedisLimiter, name: str, one: QueueEntry, asked: LimitRequest, taken: ScopeReservation
    ) -> None:
        self.limiter = limiter
        self.name = name
        self.asked = asked
        self.taken = taken
        self.tokens = one.tokens
        self.since: int | None = None

    async def leave(self, used: int | None, *, asked: bool = True) -> None:
        """Give it back, and see to it that the server knows."""
        telling = self.limiter.give_back(self, used, asked=asked)
        if telling is not None:
            await asyncio.shield(telling)

    def drop(self, used: int | None = None, *, asked: bool = True) -> None:
        """Give it back."""
        self.limiter.give_back(self, used, asked=asked)


class RedisLimiter:
    """Limits shared by all who use the server at `url` (`redis://`, `rediss://`, `valkey://`, `unix://`).

    `clock` gives seconds, and never goes back; `server_clock`, for tests, microseconds in place of the server's own.

    Raises:
        ConfigurationError: redis-py is not installed, or the URL is none.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        server_clock: Callable[[], int] = int,
        retry_seconds: float = RETRY_SECONDS,
        timeout: float = TIMEOUT,
    ) -> None:
        self._server = RedisClient(url, timeout)
        self._local = MemoryLimiter(clock=clock)
        self._server_clock = server_clock
        self._retry_seconds = retry_seconds
        self._lasts = ceil(LEASE_SECONDS * script.MICROSECONDS)
        self._process = secrets.token_hex(8)
        self._number = 0
        self._leases: dict[str, RedisLease] = {}
        self._owed: deque[tuple[str, LimitRequest]] = deque(maxlen=MOST_OWED)
        self._is_lost = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self._returning: asyncio.Task[None] | None = None
        self._renewing: asyncio.Task[None] | None = None

    @property
    def is_lost(self) -> bool:
        """Whether this process limits alone."""
        return self._is_lost

    async def enter(self, scopes: Sequence[Scope], *, owner: str, tokens: int, patience: float | None = None) -> Lease:
        """Let a request in: see `Limiter`."""
        if not scopes:
            return UNLIMITED
        one = self._local.applicant(scopes, owner, tokens, patience)
        taken = await self._local.admit(one)
        asked = script.limit_request(scopes, tokens)
        self._number += 1
        lease = RedisLease(self, f"{self._process}-{self._number}", one, asked, taken)
        while not self._is_lost:
            try:
                lacks = await self._ask(lease, one)
            except BaseException:
                self._local.give_back(lease.taken, 0, asked=False)
                raise
            if not lacks:
                break
            lease.taken = await self._local.admit_again(one, lacks)
        self._leases[lease.name] = lease
        if asked.place_keys and (self._renewing is None or self._renewing.done()):
            self._renewing = asyncio.get_running_loop().create_task(self._renew())
        return lease

    def try_enter(self, scopes: Sequence[Scope], *, owner: str, tokens: int) -> Lease | None:  # noqa: ARG002  as above
        """Let in what nothing limits; all else needs the server."""
        return None if scopes else UNLIMITED

    def give_back(self, lease: RedisLease, used: int | None, *, asked: bool) -> asyncio.Task[None] | None:
        """Give back what a request held, once; what is returned is done when the server knows of it."""
        if self._leases.pop(lease.name, None) is None:
            return None
        self._local.give_back(lease.taken, used, asked=asked)
        changed = [] if lease.since is None else lease.asked.owed(lease.tokens, used, asked=asked)
        if not changed and not lease.asked.place_keys:
            return None
        if self._is_lost:
            self._owe(lease.name, lease.asked)
            return None
        return self._start(self._leave(lease, changed))

    def measures(self) -> LimiterMetrics:
        """Return who waits here, and who was refused."""
        return self._local.measures()

    async def aclose(self) -> None:
        """Send the server what it does not know yet, and disconnect."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)
        lasting = [task for task in (self._returning, self._renewing) if task is not None]
        for task in lasting:
            task.cancel()
        await asyncio.gather(*lasting, return_exceptions=True)
        await self._local.aclose()
        await self._server.aclose()

    async def _ask(self, lease: RedisLease, one: QueueEntry) -> list[Shortage]:
        """Ask the server for what was taken here; nothing is lacking where it grants it, or is lost."""
        asking = self._start(self._server.enter(lease.asked.enter(lease.name, self._server_clock(), self._lasts)))
        try:
            answer = await asyncio.shield(asking)
        except asyncio.CancelledError:
            asking.add_done_callback(lambda asking: self._granted_in_vain(lease, asking))
            raise
        except self._server.errors as error:
            self._lose(error)
            return []  # should the server have granted it after all, that stands there
        if len(answer) == 1:
            lease.since = int(answer[0])
            return []
        return script.read_shortages(answer, one, self._local.clock(), POLL_SECONDS)

    def _granted_in_vain(self, lease: RedisLease, asking: asyncio.Task[list[Any]]) -> None:
        """Have the server take back what it granted to a request that was cancelled."""
        try:
            answer = asking.result()
        except asyncio.CancelledError:
            return
        except self._server.errors as error:
            self._owe(lease.name, lease.asked)
            self._lose(error)
            return
        if len(answer) == 1:
            lease.since = int(answer[0])
            changed = lease.asked.owed(lease.tokens, 0, asked=False)
            _ = self._start(self._leave(lease, changed))

    async def _leave(self, lease: RedisLease, changed: list[tuple[int, int]]) -> None:
        try:
            said = lease.asked.leave(lease.name, self._server_clock(), lease.since or 0, changed)
            await self._server.leave(said)
        except self._server.errors as error:
            self._owe(lease.name, lease.asked)
            self._lose(error)

    def _owe(self, name: str, asked: LimitRequest) -> None:
        """Note a place to report to the server when it is back."""
        if asked.place_keys:
            self._owed.append((name, asked))

    async def _renew(self) -> None:
        """Have the leases last, as long as there are any."""
        while any(lease.asked.place_keys for lease in self._leases.values()):
            await asyncio.sleep(LEASE_SECONDS / 3)
            if self._is_lost:
                continue
            try:
                await self._vouch()
            except self._server.errors as error:
                self._lose(error)

    async def _vouch(self) -> None:
        """Report all places that are held to the server, in portions."""
        held = [(key, lease.name) for lease in self._leases.values() for key in lease.asked.place_keys]
        for start in range(0, len(held), BATCH):
            still = [(key, name) for key, name in held[start : start + BATCH] if name in self._leases]
            await self._server.renew(script.renew(still, self._server_clock(), self._lasts))
            for key, name in still:
                if name not in self._leases:  # it left while it was vouched for
                    self._owe(name, script.LimitRequest((), (), (), (key,)))
        await self._settle()

    async def _settle(self) -> None:
        """Report all places that are not held any more to the server; what was reserved with them stands."""
        while self._owed:
            name, asked = self._owed[0]
            await self._server.leave(asked.leave(name, self._server_clock(), 0, ()))
            self._owed.popleft()

    def _lose(self, error: BaseException) -> None:
        if not self._is_lost:
            self._is_lost = True
            _logger.error(
                "the server of the limits does not answer, so this process limits alone: %s", type(error).__name__
            )
            self._returning = asyncio.get_running_loop().create_task(self._return())

    async def _return(self) -> None:
        """Retry, at intervals, until the server is back and knows what it must."""
        while self._is_lost:
            await asyncio.sleep(self._retry_seconds)
            try:
                await self._server.ping()
                await self._vouch()
            except self._server.errors:
                continue
            self._is_lost = False
            _logger.warning("the server of the limits is back")

    def _start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


class RedisClient:
    """The questions to the server, each answered or raising one of `errors`; `timeout` is for `SilenceTimeout`."""

    def __init__(self, url: str, timeout: float) -> None:
        try:
            from redis import asyncio as redis  # noqa: PLC0415  an extra
            from redis.asyncio.retry import Retry  # noqa: PLC0415
            from redis.backoff import NoBackoff  # noqa: PLC0415
            from redis.exceptions import RedisError  # noqa: PLC0415
        except ImportError:
            raise ConfigurationError(missing_extra("redis")) from None
        self.errors: tuple[type[Exception], ...] = (RedisError, OSError, TimeoutError)
        pool = redis.BlockingConnectionPool.from_url(
            spelled(url),
            max_connections=CONNECTIONS,
            timeout=None,  # how long to wait is for us to say: see `SilenceTimeout`
            socket_timeout=None,
            socket_connect_timeout=None,
            retry=Retry(NoBackoff(), 0),
        )
        self._patience = SilenceTimeout(timeout)
        self._redis = redis.Redis.from_pool(pool)
        self._enter, self._leave, self._renew = (
            self._redis.register_script(text) for text in (script.ENTER, script.LEAVE, script.RENEW)
        )

    async def enter(self, said: tuple[Sequence[str], bytes]) -> list[Any]:
        """Ask to be let in."""
        answer: list[Any] = await self._patience.within(self._enter(list(said[0]), [said[1]]))
        return answer

    async def leave(self, said: tuple[Sequence[str], bytes]) -> None:
        """Give back."""
        await self._patience.within(self._leave(list(said[0]), [said[1]]))

    async def renew(self, said: tuple[Sequence[str], bytes]) -> None:
        """Have leases last."""
        await self._patience.within(self._renew(list(said[0]), [said[1]]))

    async def ping(self) -> None:
        """Check whether it answers."""
        await self._patience.within(self._ping())

    async def _ping(self) -> None:
        await self._redis.ping()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._redis.aclose()


def spelled(url: str) -> str:
    """Return the URL as redis-py knows it: Valkey's own schemes mean the same."""
    for theirs, known in (("valkeys://", "rediss://"), ("valkey://", "redis://")):
        if url.startswith(theirs):
            return known + url.removeprefix(theirs)
    return url
