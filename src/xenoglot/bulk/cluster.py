"""A batch on a Ray cluster: actors with a client or engine each, which answer lines.

The run itself stays in the process that was started: it reads the input, writes the journal and decides about retries,
so every line is in the output once, whatever happens to an actor. Ray restarts an actor that dies; its lines fail like
a lost connection and are retried, first on another actor.

The actors get the complete configuration, upstream keys included: administrators of the cluster can read them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from xenoglot.bulk.line_request import answer_line, failed_line
from xenoglot.errors import ConfigurationError, XenoglotError
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from xenoglot.backends.backend import Backend
    from xenoglot.backends.batch_lines import BatchLine
    from xenoglot.bulk.line_request import LineReport
    from xenoglot.gateway.config.load import Config

OPEN_SECONDS: Final = 600.0
"""Most seconds for an actor to be placed and to load its model."""

LISTENING_SECONDS: Final = 5.0
CLOSING_SECONDS: Final = 10.0
COOLDOWN_SECONDS: Final = 5.0
"""Seconds that a failed actor gets no line while others are available."""

_NAMED = "RAY_ADDRESS"

GONE = Failure(kind="upstream", message="the worker that was at this line is gone", cause="closed")


class Worker:
    """The actor: a client of its own."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._exits = AsyncExitStack()
        self._backend: Backend | None = None
        self._open_lock = asyncio.Lock()

    async def open(self) -> str | None:
        """Open the backend; return the error if that fails."""
        try:
            await self._open()
        except XenoglotError as error:
            return str(error)
        return None

    async def answer(self, line: BatchLine) -> LineReport:
        """Attempt a line once."""
        return await answer_line(line, await self._open())

    async def close(self) -> None:
        """Close the backend."""
        await self._exits.aclose()

    async def _open(self) -> Backend:
        async with self._open_lock:
            if self._backend is not None:
                return self._backend
            from xenoglot.gateway.process.gateway_backend import open_gateway_backend  # noqa: PLC0415  on the cluster only

            backend: Backend = await self._exits.enter_async_context(open_gateway_backend(self._config))
            self._backend = backend
            return backend


class ActorPool:
    """The actors, and the choice of one for the next line: the least busy, and failed ones last."""

    def __init__(
        self, actors: list[Any], gone: tuple[type[Exception], ...], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._actors = actors
        self._gone = gone
        self._clock = clock
        self._busy = [0] * len(actors)
        self._cooling_until = [float("-inf")] * len(actors)

    async def answer(self, line: BatchLine) -> LineReport:
        """Attempt a line once, on one of the actors."""
        index = self._pick()
        self._busy[index] += 1
        try:
            answer: LineReport = await self._actors[index].answer.remote(line)
        except self._gone:
            self._cooling_until[index] = self._clock() + COOLDOWN_SECONDS
            return failed_line(line, GONE)
        else:
            return answer
        finally:
            self._busy[index] -= 1

    def _pick(self) -> int:
        now = self._clock()
        return min(range(len(self._actors)), key=lambda index: (self._cooling_until[index] > now, self._busy[index]))


@asynccontextmanager
async def cluster(
    config: Config, address: str, actors: int | None, concurrency: int
) -> AsyncGenerator[Callable[[BatchLine], Awaitable[LineReport]]]:
    """Open the cluster at `address` and yield the function that answers a line; `auto` starts a local one if needed.

    Each of the `actors` (by default one for each machine) may answer as many lines at once as the whole run.

    Raises:
        ConfigurationError: no cluster, or an actor cannot start.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray  # noqa: PLC0415  an extra, and slow to load
    from ray.exceptions import (  # noqa: PLC0415  as above
        NodeDiedError,
        ObjectLostError,
        RayActorError,
        RayError,
        WorkerCrashedError,
    )

    await asyncio.to_thread(connect, ray, address, _of_this_machine)
    crew: list[Any] = []
    try:
        made = ray.remote(Worker).options(
            max_concurrency=concurrency, max_restarts=-1, scheduling_strategy="SPREAD", num_cpus=1
        )
        nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]  # it has no types
        count = actors or len([node for node in nodes if node["Alive"]])
        crew = [made.remote(config) for _ in range(count)]
        await wait_until_open(crew, RayError)
        yield ActorPool(crew, (RayActorError, NodeDiedError, ObjectLostError, WorkerCrashedError)).answer
    finally:
        with suppress(RayError, TimeoutError):
            await asyncio.wait_for(asyncio.gather(*(actor.close.remote() for actor in crew)), CLOSING_SECONDS)
        for actor in crew:
            ray.kill(actor)
        await asyncio.to_thread(ray.shutdown)


def connect(ray: Any, address: str, find: Callable[[], str | None]) -> None:  # noqa: ANN401  a module without types
    """Connect to a cluster; for `auto`, to the one that `find` returns, or to a new one.

    Raises:
        ConfigurationError: no cluster.
    """
    where: str | None = find() if address == "auto" else address
    if where is not None and not _listens(where):
        if address != "auto" or os.environ.get(_NAMED):
            raise ConfigurationError(f"--ray: no cluster listens at {where}")
        where = None  # that of a cluster which is gone
    dashboard = None if where else False
    try:
        ray.init(
            address=where or "local", log_to_driver=False, logging_level=logging.ERROR, include_dashboard=dashboard
        )
    except (ConnectionError, RuntimeError, ValueError):
        raise ConfigurationError("--ray: there is no cluster at that address that we could join") from None


def _of_this_machine() -> str | None:
    """Return the address that Ray's own commands use: from the environment, or of this machine's cluster."""
    from ray._private.services import get_ray_address_from_environment  # noqa: PLC0415  an extra; no public name has it

    try:
        found: str = get_ray_address_from_environment("auto", None)
    except ConnectionError:
        return None
    return found


def _listens(address: str) -> bool:
    """Whether the address accepts connections: otherwise Ray retries for minutes and then ends the process."""
    host, _, digits = address.removeprefix("ray://").strip("/").rpartition(":")
    if not (host and digits.isdigit()):
        return True
    port = int(digits)
    try:
        family, kind, *_, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.settimeout(LISTENING_SECONDS)
            return probe.connect_ex(where) == 0
    except OSError:
        return False


async def wait_until_open(crew: list[Any], broken: type[Exception]) -> None:
    """Wait until all actors are open.

    Raises:
        ConfigurationError: an actor cannot start.
    """
    try:
        async with asyncio.timeout(OPEN_SECONDS):
            said = await asyncio.gather(*(actor.open.remote() for actor in crew))
    except TimeoutError:
        raise ConfigurationError(
            "--ray: the cluster has no resources for all actors: set fewer with `--actors`"
        ) from None
    except broken as error:
        name = type(error).__name__
        raise ConfigurationError(f"--ray: an actor did not start ({name}): is xenoglot installed there?") from None
    for problem in said:
        if problem is not None:
            raise ConfigurationError(f"--ray: {problem}")
