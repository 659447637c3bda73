"""Our own server held against another reader of HTTP (h11), and against itself however the bytes are cut.

No sockets: a connection is given its bytes as a loop would give them, and what it has served is written down.
"""

from __future__ import annotations

import asyncio
import re
from itertools import pairwise
from math import isfinite
from typing import TYPE_CHECKING, TypeAlias

import h11
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Struct

from tests.backends.raw_server import ManualClockLoop
from tests.gateway.running_gateway import config_for
from tests.gateway.scripted_backends import HELLO
from xenoglot.backends.scripted import Scripted
from xenoglot.gateway.app import Gateway
from xenoglot.gateway.http.application import InvalidBodyError
from xenoglot.gateway.http.connection import ClientConnection
from xenoglot.gateway.http.server import HTTPServer
from xenoglot.gateway.http.write_side import LINGER_SECONDS

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    from xenoglot.gateway.http.application import Exchange

Heard: TypeAlias = "tuple[str, str, tuple[tuple[str, str], ...], bytes]"
"""A request: method, target, header fields, body."""

TURNS = 12
"""Turns of the loop in which a request is served."""

STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")


class Outcome(Struct, frozen=True):
    """What came of some bytes: the requests served, the statuses said, whether the connection has ended."""

    heard: tuple[Heard, ...]
    statuses: tuple[bytes, ...]
    ended: bool


class Memory(asyncio.Transport):
    """A transport that keeps what is written, and whose client takes everything at once."""

    def __init__(self, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self.written = b""
        self.over = False
        self.told_end = False
        self._protocol = protocol

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Keep."""
        assert not self.over
        assert not self.told_end
        self.written += data

    def write_eof(self) -> None:
        """Note it."""
        self.told_end = True

    def can_write_eof(self) -> bool:
        """Like a socket."""
        return True

    def get_write_buffer_size(self) -> int:
        """Nothing waits."""
        return 0

    def pause_reading(self) -> None:
        """Nobody sends so much here."""
        raise AssertionError

    def resume_reading(self) -> None:
        """Nothing was paused."""

    def is_closing(self) -> bool:
        """Tell."""
        return self.over

    def close(self) -> None:
        """End, once."""
        if not self.over:
            self.over = True
            asyncio.get_running_loop().call_soon(self._protocol.connection_lost, None)

    abort = close


class Recording(HTTPServer[Gateway]):
    """Writes down what it is asked, and answers that there is nothing to say."""

    heard: list[Heard]

    async def handle(self, exchange: Exchange) -> None:
        """Answer."""
        try:
            body = await exchange.read_body(1_000_000)
        except InvalidBodyError as error:
            status = error.status
        else:
            status = 204
            target = f"{exchange.path}?{exchange.query}" if exchange.query else exchange.path
            self.heard.append((exchange.method, target, tuple(exchange.headers), body))
        await exchange.start(status, [] if status == 204 else [("content-length", "0")])
        await exchange.end()


class ServerWithoutSocket:
    """A server without a door."""

    def __init__(self, loop: ManualClockLoop) -> None:
        self._loop = loop
        self._server = Recording(Gateway(config_for("scripted"), {"scripted": Scripted(HELLO)}))
        self._server.loop = loop

    def outcome(self, pieces: Iterable[bytes]) -> Outcome:
        """Return what comes of bytes in pieces."""
        return self._loop.run_until_complete(self._read(pieces))

    async def _read(self, pieces: Iterable[bytes]) -> Outcome:
        self._server.heard = []
        connection = ClientConnection(self._server)
        self._server.connections.add(connection)
        transport = Memory(connection)
        connection.connection_made(transport)
        for piece in pieces:
            if transport.over:
                break
            connection.data_received(piece)
            await asyncio.sleep(0)
        await _turns(transport)
        assert transport.over or isfinite(connection.due), "nothing would ever end it"
        ended = transport.over or transport.told_end
        if transport.told_end:
            connection.look(self._loop.now + LINGER_SECONDS)
        elif not transport.over and not connection.eof_received():
            transport.close()
        await _turns(transport)
        assert transport.over
        assert self._server.connections == set()
        assert self._server.tasks == set()
        return Outcome(tuple(self._server.heard), tuple(STATUS.findall(transport.written)), ended)


async def _turns(transport: Memory) -> None:
    """Let everything happen that can: as long as answers come there may be more of them."""
    before = -1
    while len(transport.written) != before:
        before = len(transport.written)
        for _ in range(TURNS):
            await asyncio.sleep(0)


@pytest.fixture(scope="module")
def server() -> Generator[ServerWithoutSocket]:
    """Give a server."""
    loop = ManualClockLoop()
    yield ServerWithoutSocket(loop)
    loop.close()


def oracle(data: bytes) -> list[Heard]:
    """Return the requests that h11 reads in `data`, up to the first that it refuses."""
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=1_000_000)
    connection.receive_data(data)
    heard: list[Heard] = []
    try:
        while (request := connection.next_event()) is not h11.PAUSED and isinstance(request, h11.Request):
            body = b""
            while isinstance(event := connection.next_event(), h11.Data):
                body += event.data
            if not isinstance(event, h11.EndOfMessage):
                break
            fields = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers)
            heard.append((request.method.decode(), request.target.decode("latin-1"), fields, body))
            connection.send(h11.Response(status_code=204, headers=[]))
            connection.send(h11.EndOfMessage())
            connection.start_next_cycle()
    except h11.ProtocolError:
        pass
    return heard


# What clients send.

NAMES = st.sampled_from(["X-A", "accept", "X_b", "Content-Type", "x!#$%&'*+-.^`|~"])
VALUES = st.text(st.sampled_from("aé;,\t :\"='0"), max_size=6).map(lambda value: value.strip(" \t"))
BODIES = st.one_of(st.binary(max_size=40), st.sampled_from([b"", b"0\r\n\r\n", b"GET /smuggled HTTP/1.1\r\n\r\n"]))
METHODS = st.sampled_from(["POST", "PUT", "GET", "DELETE", "M-SEARCH"])
TARGETS = st.sampled_from(["/", "/v1/messages?beta=true", "/a%2fb", "//x", "/..;/"])


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """Draw a lawful request, its body by length or in chunks."""
    body = draw(BODIES)
    lines = [f"{draw(METHODS)} {draw(TARGETS)} HTTP/1.1", "Host: localhost"]
    lines += [f"{name}: {value}" for name, value in draw(st.lists(st.tuples(NAMES, VALUES), max_size=3))]
    data = body
    if draw(st.booleans()):
        lines.append("Transfer-Encoding: chunked")
        data = _chunked(body, draw(st.integers(1, 20)), draw(st.sampled_from([b"", b";a=b", b';q="x;y"'])))
        data += draw(st.sampled_from([b"0\r\n\r\n", b"000;last\r\nX-Sum: 1\r\n\r\n"]))
    elif body or draw(st.booleans()):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + data


def _chunked(body: bytes, size: int, extension: bytes) -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%X%b\r\n%b\r\n" % (len(piece), extension, piece) for piece in pieces)


NASTY = st.sampled_from(
    [
        *(b"\r", b"\n", b"\r\n", b"\0", b" ", b"\t", b"\x0b", b"\x85", b"\xa0", b":", b",", b";", b"0", b"5", b"F"),
        *(b"0x", b"+", b"-", b"_", b"\r\n ", b"\r\n\r\n", b"0\r\n\r\n", b"#", b"*", b"HTTP/1.0", b"chunked"),
        *(b"Content-Length: 3\r\n", b"Content-Length: 3, 3\r\n", b"Content-Length:\r\n", b"content-length : 3\r\n"),
        *(b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: identity\r\n", b"Transfer-Encoding : chunked\r\n"),
        *(b"Transfer-Encoding:\x0bchunked\r\n", b"Connection: close\r\n", b"Expect: 100-continue\r\n", b"Host: x\r\n"),
        *(b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01"),
    ]
)
MUTATIONS = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 4), st.one_of(NASTY, st.binary(max_size=3))),
    min_size=1,
    max_size=3,
)
CUTS = st.lists(st.floats(0, 1), max_size=5)
QUICK = settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def mutated(data: bytes, mutations: Sequence[tuple[float, int, bytes]]) -> bytes:
    """Return `data` with some bytes in the place of others."""
    for place, gone, new in mutations:
        at = int(place * len(data))
        data = data[:at] + new + data[at + gone :]
    return data


def cut(data: bytes, cuts: Sequence[float]) -> list[bytes]:
    """Return `data` in pieces, none of them empty."""
    places = [0, *sorted(int(place * len(data)) for place in cuts), len(data)]
    return [data[begin:end] for begin, end in pairwise(places) if end > begin]


@QUICK
@given(st.lists(requests(), min_size=1, max_size=4), CUTS)
def test_c27_lawful_requests_are_what_h11_reads_however_they_are_cut(
    server: ServerWithoutSocket, asked: list[bytes], cuts: list[float]
) -> None:
    data = b"".join(asked)
    wanted = tuple(oracle(data))
    assert len(wanted) == len(asked)
    outcome = Outcome(wanted, (b"204",) * len(asked), ended=False)
    assert server.outcome([data]) == outcome
    assert server.outcome(cut(data, cuts)) == outcome


@given(st.lists(requests(), min_size=2, max_size=2))
@settings(QUICK, max_examples=25)
def test_c27_lawful_requests_byte_by_byte(server: ServerWithoutSocket, asked: list[bytes]) -> None:
    data = b"".join(asked)
    assert server.outcome([data]) == server.outcome(data[at : at + 1] for at in range(len(data)))


@QUICK
@given(st.lists(requests(), min_size=1, max_size=3), MUTATIONS, CUTS)
def test_c26_no_mutation_smuggles_anything(
    server: ServerWithoutSocket, asked: list[bytes], mutations: list[tuple[float, int, bytes]], cuts: list[float]
) -> None:
    data = mutated(b"".join(asked), mutations)
    outcome = server.outcome([data])
    assert server.outcome(cut(data, cuts)) == outcome
    for ours, theirs in zip(outcome.heard, oracle(data), strict=False):
        assert ours == theirs


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(b"Content-Length: 44\r\nTransfer-Encoding: chunked\r\n", id="CL.TE"),
        pytest.param(b"Transfer-Encoding: chunked\r\nContent-Length: 44\r\n", id="TE.CL"),
        pytest.param(b"Transfer-Encoding: chunked\r\nTransfer-encoding: cow\r\n", id="TE.TE"),
        pytest.param(b"Transfer-Encoding: chunked\r\n\tidentity\r\n", id="obs-fold"),
        pytest.param(b"Transfer-Encoding\t: chunked\r\n", id="blank-before-the-colon"),
        pytest.param(b"Transfer-Encoding:\xa0chunked\r\n", id="no-break-space"),
        pytest.param(b"X: y\nTransfer-Encoding: chunked\r\n", id="bare-LF"),
        pytest.param(b"X: y\rTransfer-Encoding: chunked\r\n", id="bare-CR"),
        pytest.param(b'Transfer-Encoding: "chunked"\r\n', id="quoted"),
        pytest.param(b"Transfer-Encoding: chunked;a=b\r\n", id="parameter"),
        pytest.param(b"Transfer-Encoding: ,chunked\r\n", id="empty-member"),
        pytest.param(b"Content-Length: 4\r\nContent-Length: 4\r\n", id="the-same-length-twice"),
        pytest.param(b"Content-Length: 4,4\r\n", id="the-same-length-in-a-list"),
        pytest.param(b"Content-Length: +4\r\n", id="signed"),
        pytest.param(b"Content-Length: 4 4\r\n", id="two-numbers"),
        pytest.param(b"Content-Length: \xb9\r\n", id="a-digit-of-unicode"),
    ],
)
def test_c26_what_follows_a_doubtful_length_is_not_served(server: ServerWithoutSocket, fields: bytes) -> None:
    head = b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n" + fields + b"\r\n"
    data = head + b"0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
    assert server.outcome([data]) == Outcome((), (b"400",), ended=True)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"0x5\r\nhello\r\n0\r\n\r\n", id="prefix"),
        pytest.param(b"-5\r\nhello\r\n0\r\n\r\n", id="negative"),
        pytest.param(b" 5\r\nhello\r\n0\r\n\r\n", id="blank"),
        pytest.param(b"10000000000000005\r\nhello\r\n0\r\n\r\n", id="beyond-64-bits"),
        pytest.param(b"5\nhello\r\n0\r\n\r\n", id="bare-LF"),
        pytest.param(b"5\r\nhello0\r\n\r\n", id="no-end"),
        pytest.param(b"5\r\nhello\r\n0\r\nX : y\r\n\r\n", id="unlawful-trailer"),
        pytest.param(b"5;" + b"a" * 300 + b"\r\nhello\r\n0\r\n\r\n", id="long-extension"),
        pytest.param(b"5;a\n0\r\n\r\nhello\r\n0\r\n\r\n", id="LF-in-an-extension"),
    ],
)
def test_c26_what_follows_a_malformed_body_is_not_served(server: ServerWithoutSocket, body: bytes) -> None:
    head = b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    data = head + body + b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
    assert server.outcome([data]) == Outcome((), (b"400",), ended=True)


def test_c26_a_trailer_changes_nothing(server: ServerWithoutSocket) -> None:
    head = b"POST /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    trailer = b"Content-Length: 40\r\nHost: evil\r\nAuthorization: Bearer x\r\nTransfer-Encoding: chunked\r\n\r\n"
    fields = (("host", "localhost"), ("transfer-encoding", "chunked"))
    wanted = ("POST", "/a", fields, b"hello")
    assert server.outcome([head + b"5\r\nhello\r\n0\r\n" + trailer]) == Outcome((wanted,), (b"204",), ended=False)
