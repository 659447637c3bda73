"""A gateway exchanged for another while it serves: the configuration reloaded, at a signal or when its file changes.

Theory of operation. The new gateway is built next to the old one. Only when it is whole does it take the next
request; the old one answers what it has begun, and its backends go when the last of that is over. A mistake anywhere
changes nothing, and is reported. What both are configured alike for is shared (see `shelf`).

Where a configuration comes from, so that it can be read again: a file, or nothing that could change.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.errors import XenoglotError, whereabouts
from xenoglot.gateway.config.discovery import FoundConfig, check_found
from xenoglot.gateway.config.load import Config, load

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from xenoglot.gateway.app import Gateway
    from xenoglot.gateway.http.server import HTTPServer


FIXED: Final = ("host", "port", "workers")
"""What of `[server]` stays as it is until the next start."""

WATCH_SECONDS: Final = 1.0

_logger = logging.getLogger("xenoglot.gateway")


class Source(Protocol):
    """Where the configuration comes from."""

    @property
    def path(self) -> str | None:
        """The file, if it is one."""
        ...

    def load(self, *, host: str | None = None, port: int | None = None) -> Config:
        """Read it again; `host` and `port` override its own.

        Raises:
            ConfigurationError: something in it is wrong.
        """
        ...


class Reloader:
    """Exchanges the gateway of `server`; `former` are those before it that are still at work."""

    def __init__(
        self,
        server: HTTPServer[Gateway],
        source: Source | None,
        assemble: Callable[[Config], AbstractAsyncContextManager[Gateway]],
        stack: AsyncExitStack,
    ) -> None:
        self._server = server
        self._source = source
        self._assemble = assemble
        self._stack = stack
        self._task: asyncio.Task[None] | None = None
        self._again = False
        self._problem: str | None = None
        """Why the last reload changed nothing."""
        self._retiring: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._seen = _state(source)

    def reload(self) -> None:
        """Begin to exchange the gateway; if that is being done, do it again afterwards."""
        if self._source is None:
            _logger.warning("there is no configuration file to reload")
        elif self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._reload())
        else:
            self._again = True

    async def reload_now(self) -> str | None:
        """Reload, and return the problem if that changed nothing."""
        self.reload()
        if self._task is not None:
            await asyncio.shield(self._task)
        return self._problem

    def watch(self) -> None:
        """Look, from now on, whether the file changes."""
        self._timer = asyncio.get_running_loop().call_later(WATCH_SECONDS, self._look)

    def _look(self) -> None:
        state = _state(self._source)
        if state != self._seen:
            self._seen = state
            self.reload()
        self.watch()

    async def aclose(self) -> None:
        """Look no more, and let go of every gateway."""
        if self._timer is not None:
            self._timer.cancel()
        for task in (self._task, *self._retiring):
            if task is not None:
                task.cancel()
        await asyncio.gather(*self._retiring, *(() if self._task is None else (self._task,)), return_exceptions=True)
        await self._stack.aclose()

    async def _reload(self) -> None:
        self._again = True
        while self._again and self._source is not None:
            self._again, self._problem = False, None
            try:
                await self._exchange(self._source)
            except XenoglotError as error:
                self._problem = str(error)
                _logger.error("configuration not reloaded: %s", error)  # noqa: TRY400  it is the reader's mistake
            except Exception as error:  # noqa: BLE001  whatever it is: what serves goes on serving
                self._problem = "an internal error; the log has it"
                _logger.error("configuration not reloaded: %s", whereabouts(error))  # noqa: TRY400  no texts

    async def _exchange(self, source: Source) -> None:
        old = self._server.application
        config = _read(source, old.config)
        stack = AsyncExitStack()
        new = await stack.enter_async_context(self._assemble(config))
        new.inherit(old)  # from here on nothing waits, and nothing fails
        self._server.exchange(new)
        before, self._stack = self._stack, stack
        retiring = asyncio.get_running_loop().create_task(self._retire(old, before))
        self._retiring.add(retiring)
        retiring.add_done_callback(self._retiring.discard)
        _logger.info("configuration reloaded")

    async def _retire(self, gateway: Gateway, stack: AsyncExitStack) -> None:
        """Close a gateway when no request is in progress in it."""
        try:
            await gateway.over()
        finally:
            self._server.former.discard(gateway)
            await stack.aclose()


def _read(source: Source, now: Config) -> Config:
    """Return the configuration that can be changed to, and report what cannot change."""
    wanted = source.load()
    for name in FIXED:
        was = getattr(now.server, name)
        if getattr(wanted.server, name) != was:
            _logger.warning("server.%s: stays %s until the gateway is restarted", name, was)
    # Read with the address that stays: whether keys are needed goes by that.
    kept = source.load(host=now.server.host, port=now.server.port)
    return replace(kept, server=replace(kept.server, workers=now.server.workers))


def _state(source: Source | None) -> tuple[int, ...]:
    """Return what changes when the file does; nothing where it cannot be looked at."""
    try:
        found = Path((source and source.path) or "").stat()
    except OSError:
        return ()
    return (found.st_mtime_ns, found.st_size, found.st_ino)


class FileSource(Struct, frozen=True):
    """A file, and the command line's overrides."""

    path: str
    environ: Mapping[str, str]
    host: str | None = None
    port: int | None = None
    workers: int | None = None
    found: FoundConfig | None = None
    """Set if the file was found, not named: it needs trust again each time it is read."""

    def load(self, *, host: str | None = None, port: int | None = None) -> Config:
        """Read the file; `host` and `port` stand before its own, and before the command line's.

        Raises:
            ConfigurationError: it cannot be read, something in it is wrong, or it is no longer trusted.
        """
        if self.found is not None:
            check_found(self.found, self.environ)
        port = self.port if port is None else port
        return load(self.path, self.environ, host=host or self.host, port=port, workers=self.workers)
