"""Scripted server: plays a script byte by byte, and records requests and connections.

`async with Upstream(...)` serves in the running event loop, so that a test has both ends in one clock; `with
Upstream(...)` serves in a thread of its own, for a blocking client. The server adds no HTTP logic: it sends what the
script contains.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from typing import TYPE_CHECKING, Literal, Self, TypeAlias

from msgspec.structs import replace

from xenoglot.testing.connection import numbered
from xenoglot.testing.script import Respond, ScriptRule

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from xenoglot.testing.connection import ScriptedConnection
    from xenoglot.testing.raw_http import Received
    from xenoglot.testing.script import Step, Steps

Door: TypeAlias = Literal["open", "refuse", "stall"]
"""`open` accepts, `refuse` has no listener at the port, `stall` completes no connection."""

PATIENCE = 20.0
"""Default timeout of blocking waits, in seconds."""
BACKLOG = 1024
CROWD = 16
"""Connections that are opened to fill the queue of a server that accepts none."""

NO_RULE = ScriptRule(
    steps=(Respond(501, (("content-type", "text/plain"),), b"no rule of the script meets this request\n"),)
)


class Upstream:
    """A scripted server, made of rules, or of bare steps that answer every request.

    `greeting` is played on each connection before anything is read; `tls` enables TLS, while `scheme` only changes the
    `url`. `connections` are in the order of acceptance; `requests` in order of arrival. `half_close` continues to
    answer a client that has sent FIN, which TLS cannot. `say` is called with a line for each event.
    """

    def __init__(  # noqa: PLR0913  each is one thing that servers do
        self,
        *rules: ScriptRule | Sequence[Step],
        greeting: Steps = (),
        door: Door = "open",
        tls: ssl.SSLContext | None = None,
        scheme: Literal["http", "https"] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        half_close: bool = False,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self.rules = tuple(rule if isinstance(rule, ScriptRule) else ScriptRule(steps=tuple(rule)) for rule in rules)
        self.greeting = greeting
        self.half_close = half_close and tls is None
        self.connections: list[ScriptedConnection] = []
        self.port = port
        self._host = host
        self._door = door
        self._tls = tls
        self._scheme = scheme or ("http" if tls is None else "https")
        self._say = say
        self._used = [0] * len(self.rules)
        self._received: list[Received] = []
        self._events: dict[str, asyncio.Event] = {}
        self._waiting: list[asyncio.Future[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._exits = contextlib.AsyncExitStack()
        self._thread: _Thread | None = None

    @property
    def url(self) -> str:
        """The base URL."""
        return f"{self._scheme}://{self._host}:{self.port}"

    @property
    def requests(self) -> list[Received]:
        """All requests, in the order in which they were read."""
        return list(self._received)

    def script(self, *rules: ScriptRule | Sequence[Step]) -> None:
        """Replace the rules from the next request on; records stay."""
        self.rules = tuple(rule if isinstance(rule, ScriptRule) else ScriptRule(steps=tuple(rule)) for rule in rules)
        self._used = [0] * len(self.rules)

    def forget(self) -> None:
        """Delete the recorded requests, ended connections and released events."""
        self._received.clear()
        self.connections[:] = [connection for connection in self.connections if not connection.lost.is_set()]
        self._events.clear()

    def release(self, event: str) -> None:
        """Release all waits for `event`, now and later. Thread-safe."""
        if self._loop is None:
            self._event(event).set()
        else:
            self._loop.call_soon_threadsafe(self._event(event).set)

    async def until(self, look: Callable[[], bool]) -> None:
        """Wait until `look()` is true; it is called after each event of the server."""
        while not look():
            future = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            await future

    def wait(self, look: Callable[[], bool], timeout: float = PATIENCE) -> None:
        """Wait from another thread than the server's.

        Raises:
            TimeoutError: not true within `timeout` seconds.
        """
        if self._loop is None or self._thread is None:
            raise RuntimeError("`wait` is for `with Upstream(...)`; in `async with`, await `until`")
        asyncio.run_coroutine_threadsafe(self.until(look), self._loop).result(timeout)

    def choose(self, request: Received, *, whole: bool) -> ScriptRule | None:
        """Return the rule for `request`, and count its use; without one, a rule that answers with an error."""
        for index, rule in enumerate(self.rules):
            if rule.times is not None and self._used[index] >= rule.times:
                continue
            if whole or (rule.reads == "head" and rule.when.by_head):
                if rule.when.meets(request):
                    return self._chosen(index, rule, request)
            elif _may_meet(rule, request):
                return None
        if not whole:
            return None
        self._received.append(request)
        return NO_RULE

    def _chosen(self, index: int, rule: ScriptRule, request: Received) -> ScriptRule:
        self._used[index] += 1
        request.rule = index
        self._received.append(request)
        return rule

    async def released(self, event: str) -> None:
        """Wait until `event` is released."""
        await self._event(event).wait()

    def changed(self, what: str) -> None:
        """Wake waiting callers after an event."""
        if self._say is not None:
            self._say(what)
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def __aenter__(self) -> Self:
        """Start listening, by `door`.

        Raises:
            OSError: the port is in use, or not an address of this machine.
        """
        self._loop = asyncio.get_running_loop()
        async with contextlib.AsyncExitStack() as exits:
            listener = exits.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((self._host, self.port))
            self.port = listener.getsockname()[1]
            match self._door:
                case "open":
                    make = numbered(self, self.connections)
                    server = await self._loop.create_server(make, sock=listener, ssl=self._tls, backlog=BACKLOG)
                    exits.push_async_callback(self._stop, server)
                case "stall":
                    listener.listen(0)
                    for _ in range(CROWD):
                        other = exits.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
                        other.setblocking(False)  # noqa: FBT003 - a socket's own spelling
                        other.connect_ex((self._host, self.port))
                case "refuse":
                    pass  # bound, so that nobody else gets the port, and not listening
            self._exits = exits.pop_all()
        return self

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        """Stop listening, and end every connection."""
        await self._exits.aclose()
        self._loop = None

    def __enter__(self) -> Self:
        """Serve in a thread of its own."""
        self._thread = _Thread(self)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the thread."""
        if self._thread is not None:
            self._thread.stop()
            self._thread = None

    async def _stop(self, server: asyncio.Server) -> None:
        server.close()
        for connection in self.connections:
            if connection.task is not None:
                connection.task.cancel()
            connection.abort()
        tasks = [connection.task for connection in self.connections if connection.task is not None]
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        for connection in self.connections:
            if connection.task is not None:  # of one that failed in its TLS handshake nobody says that it is lost
                await connection.lost.wait()
        await server.wait_closed()
        for failure in ended:  # a script that failed fails whoever plays it
            if isinstance(failure, Exception):
                raise failure

    def _event(self, name: str) -> asyncio.Event:
        return self._events.setdefault(name, asyncio.Event())


class _Thread:
    """An event loop in a thread, in which a server serves."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._ready = threading.Event()
        self._stop = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="scripted upstream", daemon=True)

    def start(self) -> None:
        """Start; return when the server listens.

        Raises:
            OSError: it cannot.
        """
        self._thread.start()
        self._ready.wait()
        self._raise()

    def stop(self) -> None:
        """Stop, and wait until everything is closed. Raises the error of a script."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE)
        self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            with asyncio.Runner() as runner:
                runner.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - it is raised where somebody waits for it
            self._error = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        async with self._upstream:
            self._ready.set()
            await self._stop.wait()


def _may_meet(rule: ScriptRule, request: Received) -> bool:
    """Whether a request of which only the head is known may be meant."""
    return replace(rule.when, contains=None, body=None, stream=None).meets(request)
