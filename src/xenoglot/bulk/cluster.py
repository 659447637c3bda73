"""A batch on a Ray cluster: actors that each hold a client, or an engine, and answer the lines they are given.

The run itself stays where it was started: it reads the input, writes the journal and decides what is asked again, so
that every line stands in the output once whatever becomes of an actor. One that dies is started anew by Ray; the lines
that it was at have failed as if a connection had broken, and are asked again, of another first.

The configuration goes to the actors as it is, the keys of upstreams included: whoever rules the cluster can read them.
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
"""How long an actor may take to be placed, and to load its model."""

LISTENING_SECONDS: Final = 5.0
CLOSING_SECONDS: Final = 10.0
COOLDOWN_SECONDS: Final = 5.0
"""How long an actor that failed gets no line while there are others."""

_NAMED = "RAY_ADDRESS"

GONE = Failure(kind="upstream", message="the worker that was at this line is gone", cause="closed")


class Worker:
    """What an actor is: a client of its own."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._exits = AsyncExitStack()
        self._backend: Backend | None = None
        self._open_lock = asyncio.Lock()

    async def open(self) -> str | None:
        """Make ready to ask; return what is wrong where that cannot be."""
        try:
            await self._open()
        except XenoglotError as error:
            return str(error)
        return None

    async def answer(self, line: BatchLine) -> LineReport:
        """Ask a line, once."""
        return await answer_line(line, await self._open())

    async def close(self) -> None:
        """Let go of everything."""
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
    """The actors, and who of them gets the next line: the one with the fewest, and one that failed last of all."""

    def __init__(
        self, actors: list[Any], gone: tuple[type[Exception], ...], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._actors = actors
        self._gone = gone
        self._clock = clock
        self._busy = [0] * len(actors)
        self._cooling_until = [float("-inf")] * len(actors)

    async def answer(self, line: BatchLine) -> LineReport:
        """Ask a line, once, of one of them."""
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
    """Give what asks a line on the cluster at `address`; `auto` is that of this machine, which is started if need be.

    Each of the `actors` (without a number, one for each machine) may be at as many lines at once as are asked at all.

    Raises:
        ConfigurationError: there is no cluster, or an actor cannot begin.
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
    """Connect to a cluster; for `auto`, to the one that `find` tells of, or to one that is started.

    Raises:
        ConfigurationError: there is none.
    """
    where: str | None = find() if address == "auto" else address
    if where is not None and not _listens(where):
        if address != "auto" or os.environ.get(_NAMED):
            raise ConfigurationError(f"--ray: nobody listens at {where}")
        where = None  # that of a cluster which is gone
    dashboard = None if where else False
    try:
        ray.init(
            address=where or "local", log_to_driver=False, logging_level=logging.ERROR, include_dashboard=dashboard
        )
    except (ConnectionError, RuntimeError, ValueError):
        raise ConfigurationError("--ray: there is no cluster at that address that we could join") from None


def _of_this_machine() -> str | None:
    """Return where Ray's own commands find a cluster: the one that the environment names, or that of this machine."""
    from ray._private.services import get_ray_address_from_environment  # noqa: PLC0415  an extra; no public name has it

    try:
        found: str = get_ray_address_from_environment("auto", None)
    except ConnectionError:
        return None
    return found


def _listens(address: str) -> bool:
    """Whether anybody listens there: of an address where nobody does, Ray learns for minutes, and ends the process."""
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
    """Wait until all actors can be asked.

    Raises:
        ConfigurationError: one cannot.
    """
    try:
        async with asyncio.timeout(OPEN_SECONDS):
            said = await asyncio.gather(*(actor.open.remote() for actor in crew))
    except TimeoutError:
        raise ConfigurationError("--ray: the cluster has no room for all actors: take fewer with `--actors`") from None
    except broken as error:
        name = type(error).__name__
        raise ConfigurationError(f"--ray: an actor did not start ({name}): is xenoglot installed there?") from None
    for problem in said:
        if problem is not None:
            raise ConfigurationError(f"--ray: {problem}")
