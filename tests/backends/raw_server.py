"""A raw TCP server that does what a script says, and a decorator that checks that a test leaves nothing open.

Nothing here sleeps. Scripts wait for the other side or an event; time passes when a test advances `ManualClockLoop`.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import inspect
import os
import re
import socket
import stat
import struct
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

import pytest
import uvloop

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine

    Script = Callable[["Peer"], Awaitable[None]]
    Scenario = Callable[..., Coroutine[object, object, None]]

LENGTH = re.compile(rb"content-length: (\d+)")
LINGER_NOT = struct.pack("ii", 1, 0)
PATIENCE = 100_000
"""Turns of the loop within which something expected to happen at once must have happened."""


class ManualClockLoop(asyncio.SelectorEventLoop):
    """A real loop with real sockets whose clock stands until it is pushed on: an hour's deadline passes at once."""

    now = 1_000.0

    def time(self) -> float:
        return self.now


async def advance(seconds: float) -> None:
    """Let that much time pass on the running `ManualClockLoop`, and let what is due happen."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, ManualClockLoop)
    await turns()
    loop.now += seconds
    await turns()


def read(protocol: asyncio.BufferedProtocol, data: bytes) -> None:
    """Have a protocol read `data`, in as many reads as its buffer takes."""
    while data:
        buffer = memoryview(protocol.get_buffer(-1))
        part, data = data[: len(buffer)], data[len(buffer) :]
        buffer[: len(part)] = part
        protocol.buffer_updated(len(part))


async def turns(count: int = 20) -> None:
    """Let everything that is ready happen."""
    for _ in range(count):
        await asyncio.sleep(0)


async def becomes(wanted: object, look: Callable[[], object]) -> None:
    """Assert that `look()` gives `wanted` within some turns of the loop; on the way, the kernel may have its say."""
    for _ in range(PATIENCE):
        if look() == wanted:
            return
        await asyncio.sleep(0)
    assert look() == wanted


def open_sockets() -> int:
    """How many sockets this process has open."""
    count = 0
    for descriptor in os.listdir("/dev/fd"):  # noqa: PTH208 - no need of paths, and looked at after every fault
        try:
            count += stat.S_ISSOCK(os.fstat(int(descriptor)).st_mode)
        except OSError:  # the descriptor with which the folder itself was read
            continue
    return count


def open_descriptors() -> Counter[str]:
    """What this process has open, by what each descriptor leads to: sockets and pipes have a number of their own."""
    leads: Counter[str] = Counter()
    for descriptor in os.listdir("/dev/fd"):  # noqa: PTH208 - no need of paths, and looked at after every fault
        try:
            leads[os.readlink(f"/dev/fd/{descriptor}")] += 1  # noqa: PTH115 - likewise
        except OSError:  # the descriptor with which the folder itself was read
            continue
    return leads


class Peer:
    """One accepted connection, from the server's side."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.requests: list[bytes] = []
        self._reader = reader
        self._writer = writer

    async def request(self) -> bytes:
        """The next whole request. Raises `EOFError` where the client has closed the connection."""
        head = await self.head()
        sized = LENGTH.search(head.lower())
        body = await self._reader.readexactly(int(sized[1])) if sized else b""
        self.requests.append(head + body)
        return head + body

    async def head(self) -> bytes:
        """The head of the next request, leaving its body unread."""
        return await self._reader.readuntil(b"\r\n\r\n")

    def send(self, data: bytes) -> None:
        """Write; to a client that has gone, nothing."""
        if not self._writer.is_closing():
            self._writer.write(data)

    def close(self) -> None:
        """FIN, after what was sent."""
        self._writer.close()

    def reset(self) -> None:
        """RST, at once; to a client that has gone, nothing."""
        if not self._writer.is_closing():
            self._writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
            self._writer.transport.abort()

    async def drain(self) -> None:
        """Wait until the kernel has taken what was sent: for ever, where the client does not read."""
        await self._writer.drain()

    async def gone(self) -> None:
        """Wait until the client has closed the connection."""
        try:
            while await self._reader.read(65_536):
                pass
        except ConnectionError:
            pass


class RawServer:
    """A listening server and whoever connected."""

    def __init__(self, script: Script) -> None:
        self.peers: list[Peer] = []
        self.url = ""
        self.server: asyncio.Server
        self._script = script
        self._scenes: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []

    @property
    def requests(self) -> list[list[bytes]]:
        """What each connection asked."""
        return [peer.requests for peer in self.peers]

    def requested(self) -> list[int]:
        """How many requests each connection has brought."""
        return [len(peer.requests) for peer in self.peers]

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._scenes.add(asyncio.create_task(self._play(reader, writer)))

    async def _play(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        self.peers.append(peer)
        self._writers.append(writer)
        try:
            await self._script(peer)
            await peer.gone()
        except (EOFError, ConnectionError):  # the client went before the script's end
            pass
        finally:
            writer.transport.abort()

    def stop_listening(self) -> None:
        """Take no more connections; those that are there go on."""
        self.server.close()

    async def stop(self) -> None:
        """End every script; one that failed fails the test."""
        for scene in self._scenes:
            scene.cancel()
        for outcome in await asyncio.gather(*self._scenes, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome
        # how each connection ended is taken, or the collector may come upon it first and complain
        await asyncio.gather(*(writer.wait_closed() for writer in self._writers), return_exceptions=True)


@asynccontextmanager
async def serving(
    script: Script, *, tls: ssl.SSLContext | None = None, path: str | None = None
) -> AsyncIterator[RawServer]:
    """Play `script` for every connection, on a port of the loopback interface or a unix socket."""
    wire = RawServer(script)
    if path is None:
        wire.server = await asyncio.start_server(wire.accept, "127.0.0.1", 0, ssl=tls)
        wire.url = f"{'https' if tls else 'http'}://127.0.0.1:{wire.server.sockets[0].getsockname()[1]}"
    else:
        wire.server = await asyncio.start_unix_server(wire.accept, path, ssl=tls)
        wire.url = "http://local"
    try:
        yield wire
    finally:
        wire.stop_listening()
        await wire.stop()
        await turns()


def respond_with(*responses: bytes) -> Script:
    """One response per request, then silence."""

    async def script(peer: Peer) -> None:
        for response in responses:
            await peer.request()
            peer.send(response)

    return script


def response(body: bytes, *fields: str) -> bytes:
    """A plain 200 with a length."""
    head = "\r\n".join(["HTTP/1.1 200 OK", *fields, f"content-length: {len(body)}", "", ""])
    return head.encode("latin-1") + body


async def collect(body: AsyncIterator[bytes], pieces: list[bytes]) -> None:
    """Read on to the end, or to an error; what came before it is in `pieces`."""
    async for piece in body:
        pieces.append(piece)  # noqa: PERF401 - a comprehension would lose them with the error


def leakless(test: Scenario) -> Callable[..., None]:
    """Run an async test on a `ManualClockLoop` of its own; then no task, socket or unhandled error may be left."""

    @functools.wraps(test)
    def run(*, make_loop: Callable[[], asyncio.AbstractEventLoop] = ManualClockLoop, **arguments: object) -> None:
        complaints: list[object] = []

        async def scene() -> None:
            before = open_sockets()
            asyncio.get_running_loop().set_exception_handler(lambda _, complaint: complaints.append(complaint))
            await test(**arguments)
            await becomes(before, open_sockets)
            await becomes(1, lambda: len(asyncio.all_tasks()))

        with asyncio.Runner(loop_factory=make_loop) as runner:
            runner.run(scene())
        gc.collect()  # what was never awaited, retrieved or closed complains as it is collected
        assert complaints == []

    return run


def on_each_loop(test: Scenario) -> Callable[..., None]:
    """The same, once on asyncio's own loop and once on uvloop's."""
    run = leakless(test)
    parameters = [*inspect.signature(test).parameters.values(), MAKE_LOOP]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # where pytest reads them
    return cast("Callable[..., None]", pytest.mark.parametrize("make_loop", LOOPS.values(), ids=LOOPS)(run))


LOOPS = {"asyncio": asyncio.SelectorEventLoop, "uvloop": uvloop.new_event_loop}
MAKE_LOOP = inspect.Parameter("make_loop", inspect.Parameter.KEYWORD_ONLY)
