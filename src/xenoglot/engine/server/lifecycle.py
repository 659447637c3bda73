"""Lifecycle of the engine's child process: started on demand, restarted after a crash, stopped."""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Literal

from msgspec import Struct

from xenoglot.engine.errors import StartError, UnavailableError
from xenoglot.engine.server.server_process import COMMAND, Child, EngineEndpoint, Settings, launch
from xenoglot.engine.server.weights import Weights

LOGGER: Final = logging.getLogger("xenoglot.engine")

State = Literal["idle", "starting", "ready", "resting", "stopped"]


class Backoff(Struct, frozen=True, kw_only=True):
    """Delay between a crash and the next start, in seconds.

    `first` after the first crash, doubled after each further one, at most `longest`. After `stable` seconds without a
    crash it starts again at `first`.
    """

    first: float = 0.5
    longest: float = 30.0
    stable: float = 60.0

    def rest(self, crashes: int) -> float:
        """The rest after so many crashes in a row."""
        return min(self.longest, math.ldexp(self.first, min(crashes, 64) - 1)) if crashes else 0.0


class EngineHealth(Struct, frozen=True, kw_only=True):
    """State of the engine, read without a request.

    `starts` counts the children that became ready, `crashes` the consecutive failures, `problem` is the message of the
    last failure.
    """

    state: State
    pid: int | None
    starts: int
    crashes: int
    problem: str


class EngineProcess:
    """A child process that starts on demand, and again after a crash.

    It belongs to one event loop. `clock` and `sleep` are arguments, so that tests control time.
    """

    def __init__(  # noqa: PLR0913 - each has its default
        self,
        weights: Weights,
        settings: Settings | None = None,
        *,
        backoff: Backoff | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        command: Sequence[str] = COMMAND,
    ) -> None:
        self._weights = weights
        self._settings = settings or Settings()
        self._backoff = backoff or Backoff()
        self._clock = clock
        self._sleep = sleep
        self._command = command
        self._child: Child | None = None
        self._watch: asyncio.Task[None] | None = None
        self._starting: asyncio.Task[None] | None = None
        self._failure: StartError | None = None
        self._stopped = False
        self._starts = 0
        self._crashes = 0
        self._problem = ""
        self._since = 0.0

    async def ready(self, patience: float = 60.0) -> EngineEndpoint:
        """Give the address of the running engine, starting it where that is needed; all who wait share one start.

        Waits at most `patience` seconds. A failed start is not retried before its cooldown is over: until
        then all callers get the same error at once.

        Raises:
            StartError: it cannot start; the message has the remedy.
            UnavailableError: it will not be there in time, or was stopped.
        """
        if self._child is not None and self._child.running:
            return self._child.endpoint
        if self._watch is not None and self._child is not None:
            await asyncio.wait({self._watch}, timeout=patience)  # it has just ended; let that be noted first
        self._refuse(patience)
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
        starting = self._starting
        await asyncio.wait({starting}, timeout=patience)
        if self._child is not None:
            return self._child.endpoint
        if not starting.done():
            raise UnavailableError("the embedded model is still being loaded; retry later")
        self._refuse(0.0)
        raise UnavailableError("the embedded model's process ended as soon as it had started; retry later")

    async def lost(self, endpoint: EngineEndpoint, patience: float = 5.0) -> None:
        """Report that `endpoint` does not answer; return when its end is noted, or after `patience` seconds."""
        if self._watch is not None and self._child is not None and self._child.endpoint is endpoint:
            await asyncio.wait({self._watch}, timeout=patience)

    def hung(self) -> None:
        """Report that the running child has been silent for too long: it is killed, and restarted when needed."""
        if self._child is not None:
            LOGGER.warning("the engine is silent for too long, and is started again")
            self._child.kill()

    async def stop(self) -> None:
        """End the child and refuse all further requests; gives when nothing of it is left."""
        self._stopped = True
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait({self._starting})
        child, self._child = self._child, None
        if child is not None:
            await child.stop()
        if self._watch is not None:
            await self._watch

    def health(self) -> EngineHealth:
        """The current state, without a request to the runtime."""
        child = self._child
        return EngineHealth(
            state=self._state(),
            pid=child.pid if child else None,
            starts=self._starts,
            crashes=self._crashes,
            problem=self._problem,
        )

    def is_available(self) -> bool:
        """Return whether it runs, or would be started now."""
        return self._state() not in {"stopped", "resting"}

    def _state(self) -> State:
        if self._stopped:
            return "stopped"
        if self._child is not None:
            return "ready"
        if self._rest() > 0:
            return "resting"
        return "starting" if self._starting else "idle"

    def _rest(self) -> float:
        """Seconds until the next start is allowed."""
        return max(0.0, self._since + self._backoff.rest(self._crashes) - self._clock()) if self._crashes else 0.0

    def _refuse(self, patience: float) -> None:
        """Raise where waiting is in vain."""
        rest = self._rest()
        if self._stopped:
            raise UnavailableError("the embedded model was stopped")
        if self._failure is not None and rest > 0:
            raise StartError(str(self._failure), detail=self._failure.detail) from self._failure
        if rest > patience:
            raise UnavailableError("the embedded model is restarting after a crash; retry later", retry_after=rest)

    async def _start(self) -> None:
        """Rest, launch, and note how it went; never raises for a child that fails."""
        try:
            await self._sleep(self._rest())
            child = await launch(self._weights, self._settings, self._command)
        except StartError as error:
            self._failure = error
            self._note_crash(str(error), logging.INFO)  # whoever waits for it is told, too
            LOGGER.debug("%s", error.detail)
        else:
            self._failure = None
            self._child = child
            self._starts += 1
            self._since = self._clock()
            self._watch = asyncio.create_task(self._mourn(child))
        finally:
            self._starting = None

    async def _mourn(self, child: Child) -> None:
        """Wait for the end of a running child and note it, unless it was stopped on purpose."""
        status = await child.ended()
        if self._child is not child:
            return
        self._child = None
        if self._clock() - self._since >= self._backoff.stable:
            self._crashes = 0
        self._note_crash(f"the engine's process ended with status {status}")

    def _note_crash(self, problem: str, level: int = logging.WARNING) -> None:
        self._crashes += 1
        self._since = self._clock()
        self._problem = problem
        LOGGER.log(level, "%s (%d in a row)", problem, self._crashes)
