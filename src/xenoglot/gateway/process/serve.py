"""The gateway in a process of its own, from the first line it prints to the last.

Theory of operation. The address is bound first, so that a program that reads the line with the URL can connect.
A signal (SIGTERM, SIGINT) stops accepting; requests in progress have `drain_seconds`. Then, or at a second signal,
streams end in an error event, and requests without a response yet get an error status. The exit code is 0.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from xenoglot.errors import ConfigurationError
from xenoglot.gateway.http.server import HTTPServer
from xenoglot.gateway.observability.access_log import configure_logging
from xenoglot.gateway.observability.loop_lag import watch_loop
from xenoglot.gateway.process.build import build_gateway
from xenoglot.gateway.process.greeting import greeting, panel
from xenoglot.gateway.process.reload import Reloader
from xenoglot.gateway.process.shared_resources import SharedResources

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from contextlib import AbstractAsyncContextManager
    from typing import TypeAlias

    from xenoglot.gateway.app import Gateway
    from xenoglot.gateway.config.load import Config
    from xenoglot.gateway.process.reload import Source

    Assembly: TypeAlias = Callable[[Config], AbstractAsyncContextManager[Gateway]]

BACKLOG = 2048
GRACE_SECONDS = 5.0
"""After the drain, how long a client that reads nothing may keep the process from ending."""

COLLECTOR = (5_000, 10, 10)
"""Objects more than before at which the collector looks at the newest, and how many such looks make one further."""

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

_logger = logging.getLogger("xenoglot.gateway")


class GatewayServer:
    """Serves a gateway in the current event loop until a signal, or until `should_exit` is set.

    A second signal of `at_once` ends the drain.
    """

    def __init__(self, gateway: Gateway, at_once: Sequence[signal.Signals] = STOP_SIGNALS) -> None:
        self.native = HTTPServer(gateway)
        self._at_once = at_once
        self.reload: Callable[[], object] = lambda: None
        """What SIGHUP does."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._told: asyncio.Event | None = None
        self._should_exit = False

    @property
    def should_exit(self) -> bool:
        """Whether it stops; any thread may set it."""
        return self._should_exit

    @should_exit.setter
    def should_exit(self, value: bool) -> None:
        self._should_exit = value
        if value and self._loop is not None and self._told is not None:
            self._call(self._told.set)

    async def serve(self, sockets: Sequence[socket.socket], begun: Callable[[], object] = bool) -> None:
        """Serve until it is stopped; `begun` is called when connections are accepted and signals handled."""
        self._loop = asyncio.get_running_loop()
        self._told = asyncio.Event()
        with self._signals():
            self.native.open(sockets)
            begun()
            if not self.should_exit:
                await self._told.wait()
            await self.shutdown()

    async def shutdown(self) -> None:
        """Stop accepting; let what is being answered end, in time."""
        drain = self.native.application.config.server.drain_seconds
        self.native.stop_accepting()
        timer = asyncio.get_running_loop().call_later(drain, self.native.stop_now)
        try:
            await self.native.drained(drain + GRACE_SECONDS)
        finally:
            timer.cancel()

    def handle_exit(self, sig: int, frame: object = None) -> None:  # noqa: ARG002  a signal handler's
        """Begin to stop; at the second signal, stop at once."""
        if self.should_exit and sig in self._at_once:
            self._call(self.native.stop_now)
        self.should_exit = True

    def _call(self, function: Callable[[], object]) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function)

    @contextlib.contextmanager
    def _signals(self) -> Generator[None]:
        """Take the signals, where this is the thread that gets them."""
        loop = self._loop
        if threading.current_thread() is not threading.main_thread() or loop is None:
            yield
            return
        if sys.platform == "win32":  # its loops know no signals
            before = {sign: signal.signal(sign, self.handle_exit) for sign in STOP_SIGNALS}
            yield
            for sign, handler in before.items():
                signal.signal(sign, handler)
            return
        for sign in STOP_SIGNALS:
            loop.add_signal_handler(sign, self.handle_exit, sign)
        loop.add_signal_handler(signal.SIGHUP, self.reload)
        try:
            yield
        finally:
            for sign in STOP_SIGNALS:
                loop.remove_signal_handler(sign)
            loop.add_signal_handler(signal.SIGHUP, bool)  # nothing is read anew, nor does it end what is let go of


def serve(
    config: Config,
    say: Callable[[str], object] = print,
    assemble: Assembly | None = None,
    source: Source | None = None,
    *,
    terminal: bool = False,
) -> None:
    """Serve `config` until a signal ends it. `say` gets the line with the URL; `assemble` gives the gateway.

    With `terminal`, `say` gets a panel for a person instead.

    A configuration from a `source` is reloaded at SIGHUP, and if `watch` is set whenever its file changes.

    Raises:
        ConfigurationError: the address cannot be used, or a backend cannot be made.
    """
    listener = bind(config.server.host, config.server.port)
    with contextlib.closing(listener):
        make = assemble or partial(build_gateway, shelf=SharedResources())
        serve_at(listener, config, say, ServeOptions(make, source, terminal=terminal))


class ServeOptions(NamedTuple):
    """How a process serves: `assemble` makes gateways, `source` is reloaded, `at_once` is as in `GatewayServer`.

    With `terminal` it greets with a panel instead of a line; `closes` is whether it stops when the terminal is closed.
    `reloaded` is called after a client had it reload.
    """

    assemble: Assembly
    source: Source | None = None
    at_once: Sequence[signal.Signals] = STOP_SIGNALS
    terminal: bool = False
    closes: bool = True
    reloaded: Callable[[], object] = bool


def serve_at(listener: socket.socket, config: Config, say: Callable[[str], object], setup: ServeOptions) -> None:
    """Serve at an address that is bound.

    Raises:
        ConfigurationError: a backend cannot be made.
    """
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_serve(config, listener, say, setup))


async def _serve(config: Config, listener: socket.socket, say: Callable[[str], object], setup: ServeOptions) -> None:
    assemble, source, at_once, terminal, closes, reloaded = setup
    reload_asked = _hear_reloads()
    async with contextlib.AsyncExitStack() as stack:
        server = GatewayServer(await stack.enter_async_context(assemble(config)), at_once)
        reloader = Reloader(server.native, source, assemble, stack.pop_all())
        stack.push_async_callback(reloader.aclose)
        if source is not None:
            server.native.application.reload = partial(_reload, reloader, reloaded)
        server.reload = partial(_hang_up, server, reloader) if terminal and closes else reloader.reload
        configure_logging(server.native.redact, config.log.format)
        if config.server.watch:
            reloader.watch()
        _settle()

        def begun() -> None:
            say((panel if terminal else greeting)(server.native.application, listener))
            if reload_asked.is_set():
                reloader.reload()

        with watch_loop(server.native.application.lag):
            await server.serve([listener], begun)


async def _reload(reloader: Reloader, reloaded: Callable[[], object]) -> str | None:
    """Reload because a client requests it, and return the problem if that changed nothing."""
    problem = await reloader.reload_now()
    if problem is None:
        reloaded()
    return problem


def _hang_up(server: GatewayServer, reloader: Reloader) -> None:
    """Handle SIGHUP of a gateway that was started at a terminal: stop if the terminal was closed, else reload."""
    if is_at_terminal():
        reloader.reload()
    else:
        server.should_exit = True


def is_at_terminal() -> bool:
    """Whether standard output is a terminal; it is not any more after that was closed."""
    return sys.stdout is not None and sys.stdout.isatty()


def _settle() -> None:
    """Have the collector of cycles leave alone what is here now, and look seldom at what comes.

    What requests make goes with its last reference; only connections and requests that are broken off leave cycles, a
    few hundred objects each. Python's own bounds are for programs that make many: with them the collector took 10 % of
    the time of 1,000 streams, in pauses of up to 0.1 s, to find next to nothing. With these it takes 3 %.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTOR)


def _hear_reloads() -> asyncio.Event:
    """Note a SIGHUP that comes while there is nothing to exchange yet, and that would end the process."""
    asked = asyncio.Event()
    if sys.platform != "win32" and threading.current_thread() is threading.main_thread():
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, asked.set)
    return asked


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens at the address; port 0 takes a free one.

    Raises:
        ConfigurationError: it cannot be had.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=BACKLOG)
    except (OSError, UnicodeError) as error:
        number = error.errno if isinstance(error, OSError) else None
        reason = str(error) if number is None or number < 0 else os.strerror(number)
        message = f"cannot listen at {host}:{port}: {reason}; choose another with `--host` and `--port`"
        raise ConfigurationError(message) from None


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's maker of event loops where uvloop is installed, else the standard one."""
    try:
        import uvloop  # noqa: PLC0415  it is not there on Windows
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
