"""A model's server that says what it was told to say, over real HTTP, and remembers what it was asked."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from tests.gateway.running_gateway import TIMEOUT
from xenoglot.codec.json.json_io import decode_json, encode_json

if TYPE_CHECKING:
    from tests.backends.raw_server import Peer
    from xenoglot.model.json import JSON

VOLATILE = ("content-length", "host")
"""Headers of which the value says nothing: the length is checked by reading by it, the port is a free one."""


class Reply(Struct, frozen=True, kw_only=True):
    """What to answer: at once and whole, cut off after `body` (`cut`), or left open after it until the reader goes.

    `silent` answers nothing at all, and waits for the reader to go. `late` is the rest of the body, sent when the test
    says `Upstream.go_on`.
    """

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    media_type: str = "application/json"
    body: bytes = b""
    late: bytes | None = None
    ending: Literal["whole", "cut", "open", "silent"] = "whole"

    def encode(self) -> bytes:
        """Return the bytes of the response, as far as they are sent."""
        if self.ending == "silent":
            return b""
        framing = ("content-length", str(len(self.body) + len(self.late or b"")))
        body = self.body
        if self.ending != "whole":
            framing = ("transfer-encoding", "chunked")
            body = chunk(body)
        fields = (("content-type", self.media_type), framing, *self.headers)
        head = "".join(f"{name}: {value}\r\n" for name, value in fields)
        return f"HTTP/1.1 {self.status} Scripted\r\n{head}\r\n".encode() + body

    def encode_late(self) -> bytes:
        """Return the bytes that are sent later."""
        late = self.late or b""
        return late if self.ending == "whole" or not late else chunk(late)


def chunk(data: bytes) -> bytes:
    """Return one chunk of a body (RFC 9112 section 7.1)."""
    return b"%x\r\n%s\r\n" % (len(data), data)


class Received(Struct, frozen=True):
    """One request as it came; headers by lower-case names."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> JSON:
        """The body, decoded."""
        return decode_json(self.body)

    @property
    def lasting(self) -> dict[str, str]:
        """The headers that are the same on every run."""
        return {name: value for name, value in self.headers.items() if name not in VOLATILE}


class Upstream:
    """The script of one server, and what it saw. It is told and asked by the test's thread, and plays in another."""

    def __init__(self) -> None:
        self.url = ""
        self.asked = threading.Semaphore(0)
        """One for each request that has come."""
        self.left: queue.SimpleQueue[str] = queue.SimpleQueue()
        """The path of each request whose reader went before it was answered to the end."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._cue = asyncio.Event()
        self._replies: deque[Reply] = deque()
        self._received: list[Received] = []

    def script(self, *replies: Reply) -> None:
        """Answer the next requests so."""
        self._replies.extend(replies)

    def received(self) -> list[Received]:
        """Return the requests since the last time this was asked; every reply must have been wanted."""
        received, self._received = self._received, []
        unused = len(self._replies)
        self._replies.clear()
        assert unused == 0
        return received

    def forget(self) -> None:
        """Begin anew: no script, and nothing seen."""
        self._replies.clear()
        self._received = []
        while self.asked.acquire(blocking=False):
            pass
        while not self.left.empty():
            self.left.get()

    def wait_for_request(self) -> None:
        """Wait for the next request."""
        assert self.asked.acquire(timeout=TIMEOUT)

    def wait_for_disconnect(self) -> str:
        """Wait until a reader has gone, and return what it had asked for."""
        return self.left.get(timeout=TIMEOUT)

    def resume(self) -> None:
        """Have what is late sent."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._cue.set)

    async def serve_connection(self, peer: Peer) -> None:
        """Serve one connection."""
        self._loop = asyncio.get_running_loop()
        while True:
            request = _parse(await peer.request())
            self._received.append(request)
            reply = self._replies.popleft() if self._replies else UNSCRIPTED
            peer.send(reply.encode())
            self.asked.release()
            if reply.late is not None:
                await self._cue.wait()
                self._cue.clear()
                peer.send(reply.encode_late())
            if reply.ending == "cut":
                peer.close()
                return
            if reply.ending != "whole":
                await peer.gone()
                self.left.put(request.path)
                return


UNSCRIPTED = Reply(status=500, media_type="text/plain", body=b"nothing was scripted")


def json_reply(body: JSON, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> Reply:
    """Return a reply of JSON."""
    return Reply(status=status, headers=headers, body=encode_json(body))


def stream_reply(body: bytes, ending: Literal["whole", "cut", "open"] = "whole", *, late: bytes | None = None) -> Reply:
    """Return a reply of server-sent events."""
    return Reply(media_type="text/event-stream", body=body, ending=ending, late=late)


def _parse(raw: bytes) -> Received:
    head, _, body = raw.partition(b"\r\n\r\n")
    line, *fields = head.decode("latin-1").split("\r\n")
    method, path, _ = line.split(" ")
    pairs = [(name.lower(), value.strip()) for name, _, value in (field.partition(":") for field in fields)]
    assert len(dict(pairs)) == len(pairs), f"a header came twice: {pairs}"
    return Received(method, path, dict(pairs), body)
