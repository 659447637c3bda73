"""Runs a gateway in a thread of this process, for the duration of one program."""

from __future__ import annotations

import asyncio
import logging
import secrets
import signal
import threading
from collections.abc import Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.gateway.observability.access_log import OURS, LineHandler
from xenoglot.gateway.process.build import build_gateway
from xenoglot.gateway.process.serve import GatewayServer, bind, loop_factory

if TYPE_CHECKING:
    import socket
    from collections.abc import Generator
    from typing import TextIO

    from xenoglot.gateway.app import Gateway
    from xenoglot.gateway.config.load import Config

HOST = "127.0.0.1"
KEY = "the key of this run"
"""What it is called among the secrets of a configuration; no variable can be."""

DRAIN_SECONDS = 1.0
"""For requests that are still in progress when the program has ended: their answers are not read."""


class GatewayEndpoint(Struct, frozen=True, kw_only=True):
    """URL of a gateway, the key that it accepts, and the models that it lists."""

    url: str
    key: str
    models: Sequence[str]


def private(config: Config, key: str) -> Config:
    """Return the configuration with a free port on the loopback interface, accepting only `key`."""
    server = replace(config.server, host=HOST, port=0, workers=1, watch=False, drain_seconds=DRAIN_SECONDS)
    return replace(config, server=server, keys=replace(config.keys, env=(KEY,)), secrets=config.secrets.plus(KEY, key))


@contextmanager
def run_gateway(config: Config, log: TextIO | None = None) -> Generator[GatewayEndpoint]:
    """Run a gateway of `config` on a free port, with a key created for this run; its log goes to `log`, or is dropped.

    Raises:
        ConfigurationError: the configuration is invalid.
        EngineError: the embedded model is not available.
    """
    key = f"xg-{secrets.token_urlsafe(32)}"
    with closing(bind(HOST, 0)) as listener:
        thread = _Thread(private(config, key), listener, log)
        thread.start()
        try:
            yield GatewayEndpoint(url=f"http://{HOST}:{listener.getsockname()[1]}", key=key, models=thread.ready())
        finally:
            thread.stop()


class _Thread:
    """The thread that runs the gateway, and its state for other threads."""

    def __init__(self, config: Config, listener: socket.socket, log: TextIO | None) -> None:
        self._config = config
        self._listener = listener
        self._log = log
        self._started = threading.Event()
        self._reported = False
        self._models: Sequence[str] = ()
        self._server: GatewayServer | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="xenoglot-gateway")

    def start(self) -> None:
        self._thread.start()

    def ready(self) -> Sequence[str]:
        """Wait until it lets clients in; return the names of its models. Raises what keeps it from that."""
        self._started.wait()
        if self._error is not None:
            raise self._error
        return self._models

    def stop(self) -> None:
        self._reported = True
        if self._server is not None:
            self._server.should_exit = True
        self._thread.join()

    def _run(self) -> None:
        if hasattr(signal, "pthread_sigmask"):
            # The thread that waits for the program has to be woken by them: what another takes, it would not notice.
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                runner.run(self._serve())
        except BaseException as error:  # noqa: BLE001  it is raised again where somebody waits
            self._error = error
        finally:
            self._started.set()

    async def _serve(self) -> None:
        async with build_gateway(self._config) as gateway:
            with _logging(gateway, self._log):
                self._models = tuple(gateway.router.names)
                self._server = GatewayServer(gateway)
                self._server.should_exit = self._reported
                await self._server.serve([self._listener], self._started.set)


@contextmanager
def _logging(gateway: Gateway, log: TextIO | None) -> Generator[None]:
    """Redirect the log, so that it does not disturb a program that draws on the terminal."""
    handler: logging.Handler = logging.NullHandler()
    if log is not None:
        handler = LineHandler(gateway.redact)
        handler.setStream(log)
    level, propagate = OURS.level, OURS.propagate
    OURS.addHandler(handler)
    OURS.propagate = False
    if log is not None:
        OURS.setLevel(logging.INFO)
    try:
        yield
    finally:
        OURS.removeHandler(handler)
        handler.close()
        OURS.setLevel(level)
        OURS.propagate = propagate
