"""The whole gateway in one process, its sockets replaced by calls: what is left is our own code and the loop.

Theory of operation. The event loop is the one that `xenoglot serve` runs on, but a connection to an upstream ends at
`Upstream`, which answers with bytes that are ready, and clients are `Client`s that hand requests to the server's
protocol and take its writes. What either side sends arrives in a turn of the loop of its own, as from a socket. No
system call is left but that of the log's line, so a measurement repeats within a few per cent on a busy machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

from xenoglot.gateway.config.load import check
from xenoglot.gateway.http.connection import ClientConnection
from xenoglot.gateway.http.server import HTTPServer
from xenoglot.gateway.process.build import build_gateway
from xenoglot.gateway.process.serve import loop_factory

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from xenoglot.gateway.app import Gateway
    from xenoglot.gateway.config.load import Config

KEY = "xg-" + "0123456789abcdef" * 2
END_OF_HEAD = b"\r\n\r\n"
LENGTH = b"content-length: "
LAST_CHUNK = b"0\r\n\r\n"
STDERR = 2
PATIENCE = 10.0


class Answer(Struct, frozen=True):
    """What an upstream sends: each of `reads` arrives by itself."""

    reads: tuple[bytes, ...]


def whole(body: bytes) -> Answer:
    """Return an answer in one piece."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
    return Answer((head + body,))


def streamed(media_type: str, reads: Sequence[bytes]) -> Answer:
    """Return an answer in chunks, one for each read."""
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {media_type}\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    chunks = [b"%x\r\n%b\r\n" % (len(data), data) for data in reads]
    chunks[0] = head + chunks[0]
    chunks[-1] += LAST_CHUNK
    return Answer(tuple(chunks))


class Wire(asyncio.Transport):
    """A socket's stand-in, whose other end is a function that gets what is written."""

    def __init__(self, protocol: asyncio.BaseProtocol, taken: Callable[[bytes], object]) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self._protocol = protocol
        self._taken = taken
        self._closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Hand over at once."""
        self._taken(cast("bytes", data))

    def writelines(self, list_of_data: Any) -> None:  # noqa: ANN401  asyncio's own signature is as wide
        """Hand over what belongs together as one."""
        self._taken(b"".join(list_of_data))

    def is_closing(self) -> bool:
        """Whether it was closed."""
        return self._closing

    def close(self) -> None:
        """Close; nothing is unwritten."""
        if not self._closing:
            self._closing = True
            asyncio.get_running_loop().call_soon(self._protocol.connection_lost, None)

    def abort(self) -> None:
        """Close."""
        self.close()

    def get_write_buffer_size(self) -> int:
        """Nothing ever waits."""
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing ever waits."""

    def pause_reading(self) -> None:
        """What comes is never too much."""

    def resume_reading(self) -> None:
        """The same."""


class Upstream:
    """The other end of one connection to a server: it counts a request's bytes, and sends its answer."""

    def __init__(self, loop: asyncio.AbstractEventLoop, protocol: asyncio.BufferedProtocol, answer: Answer) -> None:
        self._loop = loop
        self._protocol = protocol
        self._reads = answer.reads
        self._missing = 0
        self._next = 0
        protocol.connection_made(Wire(protocol, self._take))

    def _take(self, data: bytes) -> None:
        if self._missing:
            self._missing -= len(data)
        else:
            self._missing = _size(data) - len(data)
        if self._missing <= 0:
            self._missing = self._next = 0
            self._loop.call_soon(self._send)

    def _send(self) -> None:
        read = self._reads[self._next]
        self._next += 1
        if self._next < len(self._reads):
            self._loop.call_soon(self._send)
        while read:
            buffer = memoryview(self._protocol.get_buffer(-1))
            part, read = read[: len(buffer)], read[len(buffer) :]
            buffer[: len(part)] = part
            self._protocol.buffer_updated(len(part))


def _size(data: bytes) -> int:
    """Return the bytes of the message whose head `data` begins with."""
    begin = data.index(LENGTH) + len(LENGTH)
    return data.index(END_OF_HEAD) + len(END_OF_HEAD) + int(data[begin : data.index(b"\r", begin)])


class Client:
    """Asks the same again and again over one connection, as often as it is told to."""

    def __init__(self, server: HTTPServer[Gateway], request: bytes, *, stream: bool) -> None:
        self._loop = server.loop
        self._request = request
        self._stream = stream
        self._left = 0
        self._missing = 0
        self._done: asyncio.Future[None] | None = None
        self.last = b""
        """What came last."""
        self._connection = ClientConnection(server, "127.0.0.1")
        server.connections.add(self._connection)
        self._connection.connection_made(Wire(self._connection, self._take))

    def ask(self, times: int) -> asyncio.Future[None]:
        """Begin; the future is done when all is answered."""
        self._left = times
        self._done = self._loop.create_future()
        self._loop.call_soon(self._send)
        return self._done

    def _send(self) -> None:
        self._connection.data_received(self._request)

    def _take(self, data: bytes) -> None:
        self.last = data
        if not self._stream:
            self._missing += (-len(data)) if self._missing > 0 else _size(data) - len(data)
        ended = data.endswith(LAST_CHUNK) if self._stream else self._missing <= 0
        if not ended or self._done is None:
            return
        self._missing = 0
        self._left -= 1
        if self._left:
            self._loop.call_soon(self._send)
        else:
            self._done.set_result(None)


def configured(upstream: str) -> Config:
    """Return a configuration as operators have it: a key, limits, log and metrics; `upstream` is a dialect."""
    limits = {"requests": ["100000000/1m"], "tokens": ["100000000000/1m"], "concurrency": 10000}
    value = {
        "server": {"port": 0, "metrics": True},
        "keys": {"env": ["BENCH_KEYS"], "limits": limits},
        "store": {"url": "off"},
        "upstreams": {"main": {"dialect": upstream, "base_url": "http://127.0.0.1:9", "key_env": "BENCH_UPSTREAM_KEY"}},
        "models": [{"name": "*", "upstream": "main"}],
    }
    environ = {"BENCH_KEYS": KEY, "BENCH_UPSTREAM_KEY": "sk-upstream"}
    return check(value, environ, "the benchmark")


def asked(path: str, body: bytes, method: str = "POST") -> bytes:
    """Return a request as a client of our day sends it, with a dozen header fields."""
    fields = {
        "host": "127.0.0.1:8080",
        "user-agent": "bench/1.0 (Linux; x86_64)",
        "accept": "application/json",
        "accept-encoding": "identity",
        "accept-language": "*",
        "content-type": "application/json",
        "authorization": f"Bearer {KEY}",
        "x-stainless-lang": "python",
        "x-stainless-package-version": "1.0.0",
        "x-stainless-retry-count": "0",
        "connection": "keep-alive",
        "content-length": str(len(body)),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body


class Load(Struct, frozen=True):
    """What is measured: who asks what of whom, at how many connections."""

    upstream: str
    request: bytes
    answer: Answer
    stream: bool = False
    connections: int = 16


def spent(load: Load, times: int, rounds: int) -> list[float]:
    """Return the seconds of CPU that an answer took, for each of `rounds`, in which every connection asks `times`."""
    with _log_to_nowhere(), contextlib.closing(_loop(load.answer)) as loop:
        return loop.run_until_complete(_spent(load, times, rounds))


async def _spent(load: Load, times: int, rounds: int) -> list[float]:
    async with build_gateway(configured(load.upstream)) as gateway:
        server = HTTPServer(gateway)
        server.open([])
        clients = [Client(server, load.request, stream=load.stream) for _ in range(load.connections)]
        taken = []
        broken = _broken(server.loop)
        for number in range(rounds + 1):
            begun = time.process_time()
            await _all([client.ask(times if number else 2) for client in clients], broken)
            taken.append((time.process_time() - begun) / (times * len(clients)))
            if not number:
                _must_be_well(gateway.metrics(), clients[0].last)
        return taken[1:]


def _broken(loop: asyncio.AbstractEventLoop) -> asyncio.Future[None]:
    """Return what fails when a callback of the loop does: nobody else would hear of it."""
    broken: asyncio.Future[None] = loop.create_future()

    def note(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not broken.done():
            broken.set_exception(context.get("exception") or RuntimeError(context["message"]))

    loop.set_exception_handler(note)
    return broken


async def _all(asked: Sequence[asyncio.Future[None]], broken: asyncio.Future[None]) -> None:
    """Wait until all that is asked is answered.

    Raises:
        RuntimeError: it is not, for a long time.
    """
    answered: asyncio.Future[Any] = asyncio.gather(*asked)
    await asyncio.wait({answered, broken}, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
    if not answered.done():
        answered.cancel()
        if broken.done():
            broken.result()
        raise RuntimeError(f"the gateway did not answer within {PATIENCE} seconds")


def _must_be_well(metrics: bytes, last: bytes) -> None:
    """Refuse to measure what is no answer."""
    wrong = [line for line in metrics.splitlines() if b"requests_total{" in line and b'status="200"' not in line]
    if wrong:
        raise RuntimeError(f"the gateway did not answer as it should: {wrong} {last[-500:]!r}")


def _loop(answer: Answer) -> asyncio.AbstractEventLoop:
    """Return a loop as `xenoglot serve` has it, all of whose connections lead to an `Upstream`."""
    make = loop_factory() or asyncio.new_event_loop
    usual = type(make_once := make())
    make_once.close()

    class Loop(usual):  # type: ignore[misc, valid-type]  # whichever there is
        """One without sockets."""

        async def create_connection(
            self, factory: Callable[[], asyncio.BufferedProtocol], *_: object, **__: object
        ) -> object:
            """Connect to the scripted upstream."""
            protocol = factory()
            Upstream(self, protocol, answer)
            return None, protocol

    return Loop()


@contextlib.contextmanager
def _log_to_nowhere() -> Generator[None]:
    """Have the access log written as always, to where nobody reads it."""
    kept = os.dup(STDERR)
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        os.dup2(nowhere.fileno(), STDERR)
    # Wherever the function comes from: another tree than this may be measured.
    import_module("xenoglot.gateway.process.serve").configure_logging(str)
    try:
        yield
    finally:
        os.dup2(kept, STDERR)
        os.close(kept)
