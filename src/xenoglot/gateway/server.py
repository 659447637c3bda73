"""The gateway in a process of its own: uvicorn around the ASGI application, from the first line it prints to the last.

Theory of operation. The address is bound first, so that whoever reads the line that says where it serves can connect.
A signal (SIGTERM, SIGINT) stops the accepting; what is being answered goes on for `drain_seconds`. Then, or at a
second signal, streams end in an error event, and what has not begun to be answered gets a status. The exit code is 0.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import math
import os
import signal
import socket
import sys
import threading
from typing import TYPE_CHECKING

import uvicorn

from xenoglot.errors import ConfigurationError
from xenoglot.gateway.asgi import Application
from xenoglot.gateway.assembly import assembled

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from contextlib import AbstractAsyncContextManager
    from types import FrameType
    from typing import TypeAlias

    from xenoglot.backends.redaction import Redactor
    from xenoglot.gateway.config import Config
    from xenoglot.gateway.gateway import Gateway

    Assembly: TypeAlias = Callable[[Config], AbstractAsyncContextManager[Gateway]]

BACKLOG = 2048
GRACE_SECONDS = 5.0
"""After the drain, how long a client that reads nothing may keep the process from ending."""

EXPECTED = frozenset(
    {
        "ASGI callable returned without completing response.",  # a stream was broken off, on purpose
        "Invalid HTTP request received.",
        "Unsupported upgrade request.",
    }
)
"""What uvicorn would write to the log, and nobody can do anything about."""

_logger = logging.getLogger("xenoglot.gateway")


class Server(uvicorn.Server):
    """uvicorn, with our end: signals end it with exit code 0, and streams are told before they are broken off."""

    def __init__(self, gateway: Gateway) -> None:
        drain = gateway.config.server.drain_seconds
        super().__init__(
            uvicorn.Config(
                Application(gateway, owned=False),
                http="httptools",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                backlog=BACKLOG,
                timeout_graceful_shutdown=math.ceil(drain + GRACE_SECONDS),
            )
        )
        self._gateway = gateway
        self._drain = drain
        self._loop: asyncio.AbstractEventLoop | None = None

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until told to stop."""
        self._loop = asyncio.get_running_loop()
        await super().serve(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting; let what is being answered end, in time."""
        timer = asyncio.get_running_loop().call_later(self._drain, self._gateway.stop_now)
        try:
            await super().shutdown(sockets)
        finally:
            timer.cancel()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Take the signals, and do not raise them again at the end: to be told to stop is no failure."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {sign: signal.signal(sign, self.handle_exit) for sign in uvicorn.server.HANDLED_SIGNALS}
        try:
            yield
        finally:
            for sign, handler in before.items():
                signal.signal(sign, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002  a signal handler's
        """Begin to stop; at the second signal, stop at once."""
        if self.should_exit and self._loop is not None:
            self._loop.call_soon_threadsafe(self._gateway.stop_now)
        self.should_exit = True


def serve(config: Config, say: Callable[[str], object] = print, assemble: Assembly = assembled) -> None:
    """Serve `config` until a signal ends it. `say` gets the line that says where; `assemble` gives the gateway.

    Raises:
        ConfigurationError: the address cannot be used, or a backend cannot be made.
    """
    listener = bind(config.server.host, config.server.port)
    with contextlib.closing(listener), asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_serve(assemble(config), listener, say))


async def _serve(
    assembly: AbstractAsyncContextManager[Gateway], listener: socket.socket, say: Callable[[str], object]
) -> None:
    async with assembly as gateway:
        configure_logging(gateway.redact)
        server = Server(gateway)
        gc.collect()
        gc.freeze()  # what is here now stays: the collector need not look at it again
        say(greeting(gateway, listener))
        await server.serve([listener])


def greeting(gateway: Gateway, listener: socket.socket) -> str:
    """Return the one line that says where and what the gateway serves."""
    host, port, *_ = listener.getsockname()
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    names = [*gateway.router.names, *(rule.name for rule in gateway.router.patterns)]
    served = ", ".join("every model" if name == "*" else name for name in dict.fromkeys(names))
    return f"Xenoglot serves {served} at http://{place}"


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


def configure_logging(redact: Redactor) -> None:
    """Write our logs to stderr, one line each, without any of our keys; leave a logging that is configured alone."""
    logger = logging.getLogger("xenoglot")
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    if logger.hasHandlers():
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(RedactingFormatter(redact))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)


class RedactingFormatter(logging.Formatter):
    """Formats records as usual, and takes secrets out of what is made of them."""

    def __init__(self, redact: Redactor) -> None:
        super().__init__("%(message)s")
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of one record."""
        return self._redact(super().format(record))


def _is_news(record: logging.LogRecord) -> bool:
    return record.msg not in EXPECTED and not str(record.msg).startswith("No supported WebSocket library")
