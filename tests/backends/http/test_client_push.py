"""A body that is pushed: the same bytes and the same end as pulled, however it was cut, held or decoded."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import gzip
import weakref
import zlib
from contextlib import aclosing
from itertools import pairwise
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backends.http.responses import BROKEN, CHUNKED, WHOLE
from tests.backends.raw_server import (
    Peer,
    advance,
    becomes,
    leakless,
    on_each_loop,
    open_sockets,
    read,
    respond_with,
    response,
    serving,
    turns,
)
from xenoglot.backends.http.client import Deadlines, Transport, TransportError, TransportLimits, UpstreamResponse
from xenoglot.backends.http.connection import READ_BYTES, ConnectionPool, UpstreamConnection
from xenoglot.backends.http.exchange import HIGH_WATER, ExchangeDeadlines, UpstreamExchange
from xenoglot.backends.http.http1 import Origin, prepare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from _pytest.mark import ParameterSet

    from tests.backends.http.responses import Response

HEADED = [
    param for param in cast("list[ParameterSet]", [*WHOLE, *BROKEN]) if cast("Response", param.values[0]).seen.status
]
MUCH = 1_000
"""Bytes above which a response is not cut at each of them."""
LARGE = b"".join(b"%d" % number for number in range(600_000))


class Basin:
    """A sink that writes down what happens to it. `then` is called within each call, with how many there were."""

    def __init__(self, then: Callable[[int], None] = lambda _: None) -> None:
        self.told: list[bytes | str] = []
        self.causes: list[BaseException | None] = []
        self.then = then
        self._within = False

    def data_received(self, data: bytes) -> None:
        self._note(data)

    def closed(self, error: TransportError | None) -> None:
        self.causes.append(None if error is None else error.__cause__)
        self._note("whole" if error is None else f"{error.kind}/{error.stage}")

    @property
    def body(self) -> bytes:
        return b"".join([one for one in self.told if isinstance(one, bytes)])

    @property
    def ends(self) -> list[str]:
        return [one for one in self.told if isinstance(one, str)]

    def _note(self, what: bytes | str) -> None:
        assert what != b""
        assert not self._within
        self.told.append(what)
        self._within = True
        try:
            self.then(len(self.told))
        finally:
            self._within = False


class Still(asyncio.Transport):
    """A transport that writes nowhere."""

    reading = True

    def write(self, data: bytes | bytearray | memoryview) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def abort(self) -> None:
        pass


class ConnectionWithoutSocket:
    """A connection without a socket, upon which a request was sent."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.transport = Still()
        self.connection = UpstreamConnection(ConnectionPool(loop, TransportLimits()), Origin("http", "test", 80))
        self.connection.connection_made(self.transport)
        now = loop.time()
        self.exchange = UpstreamExchange(self.connection, ExchangeDeadlines(Deadlines()), now, now + 3600)
        self.connection.begin(prepare("POST", "http://test/", []).request(), self.exchange, now)

    def reply(self) -> UpstreamResponse:
        assert self.exchange.head is not None
        return UpstreamResponse(self.exchange.head, self.exchange, TransportLimits())


@pytest.fixture(name="loop", scope="module")
def a_loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


class ArrivingResponse:
    """A response that arrives, and a reader who comes `late` reads after its head and pauses in each `hold`th call."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, late: int, hold: int) -> None:
        self.basin = Basin(self._pause)
        self._stage = ConnectionWithoutSocket(loop)
        self._late = late
        self._hold = hold
        self._reply: UpstreamResponse | None = None

    def run(self, wire: bytes, cuts: Iterable[int], *, closes: bool) -> Basin:
        for start, end in pairwise([0, *sorted(cuts), len(wire)]):
            if start < end and self._arriving:
                read(self._stage.connection, wire[start:end])
            self._after()
        if closes and self._arriving:
            self._stage.connection.eof_received()
        for _ in range(len(wire) + self._late + 2):
            self._after()
        return self.basin

    @property
    def _arriving(self) -> bool:
        return self._stage.exchange.connection is not None

    def _pause(self, count: int) -> None:
        if self._hold and count % self._hold == 0 and self._reply is not None:
            self._reply.pause()

    def _after(self) -> None:
        if self._reply is not None:
            self._reply.resume()
        elif self._stage.exchange.head is not None:
            self._late -= 1
            if self._late < 0:
                self._reply = self._stage.reply()
                self._reply.push(self.basin)


@pytest.mark.parametrize("one", HEADED)
@pytest.mark.parametrize(("late", "hold"), [(0, 0), (0, 1), (1, 2), (99, 0), (99, 1)])
def test_every_cutting_gives_the_same(loop: asyncio.AbstractEventLoop, one: Response, late: int, hold: int) -> None:
    length = len(one.wire)
    every = [*([at] for at in range(length)), range(length)]
    for cuts in every if length < MUCH else [[100, 1_000, 60_000]]:
        basin = ArrivingResponse(loop, late=late, hold=hold).run(one.wire, cuts, closes=one.then == "closes")
        assert (basin.body, basin.ends) == (one.seen.body, [one.seen.end])
        assert basin.told[-1] == one.seen.end


TEXT = b'data: {"choices": [{"delta": {"content": "caf\xc3\xa9"}}]}\n\n' * 40


@given(
    coding=st.sampled_from([("gzip", gzip.compress(TEXT)), ("deflate", zlib.compress(TEXT)), ("identity", TEXT)]),
    cut=st.integers(0, 3),
    cuts=st.sets(st.integers(0, 400), max_size=12),
    manner=st.fixed_dictionaries({"late": st.integers(0, 12), "hold": st.integers(0, 4)}),
)
def test_coded_bodies_are_decoded_u27(
    loop: asyncio.AbstractEventLoop, coding: tuple[str, bytes], cut: int, cuts: set[int], manner: dict[str, int]
) -> None:
    name, body = coding
    wire = response(body, f"content-encoding: {name}")
    basin = ArrivingResponse(loop, **manner).run(wire[: len(wire) - cut], cuts, closes=True)
    assert basin.ends == ["closed/body" if cut else "whole"]
    assert TEXT.startswith(basin.body)
    assert cut or basin.body == TEXT


@pytest.mark.parametrize(
    ("body", "end"),
    [
        pytest.param(gzip.compress(LARGE), "whole", id="U27-more-than-a-piece"),
        pytest.param(gzip.compress(bytes(10_000_000)), "too_large/body", id="U27-bomb"),
        pytest.param(gzip.compress(LARGE)[:-1], "protocol/body", id="U27-truncated"),
        pytest.param(b"x", "protocol/body", id="U27-not-gzip"),
    ],
)
@pytest.mark.parametrize("hold", [0, 1, 2])
def test_large_and_wrong_codings(loop: asyncio.AbstractEventLoop, body: bytes, end: str, hold: int) -> None:
    coded = response(body, "content-encoding: gzip")
    basin = ArrivingResponse(loop, late=0, hold=hold).run(coded, [1_000, 50_000], closes=False)
    assert basin.ends == [end]
    assert end != "whole" or basin.body == LARGE


@on_each_loop
async def test_a_stream_is_pushed_as_it_comes() -> None:
    async with serving(respond_with(*[CHUNKED] * 2)) as wire, aclosing(Transport()) as transport:
        basin = Basin()
        for _ in range(2):
            basin.told = []
            reply = await transport.send("POST", wire.url, [], b"{}")
            reply.push(basin)
            for letter in (b"a", b"b"):
                wire.peers[0].send(b"1\r\n%b\r\n" % letter)
                await becomes(letter, lambda: basin.told[-1] if basin.told else None)
            wire.peers[0].send(b"0\r\n\r\n")
            await becomes([b"a", b"b", "whole"], lambda: basin.told)
            await reply.aclose()
        assert wire.requested() == [2]  # the connection went back, whole


@on_each_loop
async def test_closed_within_a_call_it_is_told_nothing_more_c02() -> None:
    async with serving(respond_with(CHUNKED + b"1\r\na\r\n1\r\nb\r\n")) as wire, aclosing(Transport()) as transport:
        before = open_sockets()
        reply = await transport.send("POST", wire.url, [], b"{}")
        basin = Basin(lambda _: reply.close())
        reply.push(basin)
        await becomes(before, open_sockets)
        assert basin.told in ([b"ab"], [b"a"])


@on_each_loop
async def test_held_a_stream_has_to_wait_c06() -> None:
    size = 40_000_000

    async def script(peer: Peer) -> None:
        await peer.request()
        peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size)
        for _ in range(size // 1_000_000):
            peer.send(b"x" * 1_000_000)
            await peer.drain()
            written.append(1_000_000)

    written: list[int] = []
    async with serving(script) as wire, aclosing(Transport()) as transport:
        reply = await transport.send("POST", wire.url, [], b"{}")
        basin = Basin(lambda _: reply.pause())
        reply.push(basin)
        await becomes(wanted=True, look=lambda: bool(basin.told))
        await turns(500)
        calls = len(basin.told)
        assert sum(written) < size // 2
        assert sum(map(len, reply._exchange.pieces)) <= HIGH_WATER + READ_BYTES
        reply.resume()
        assert len(basin.told) == calls + 1 or not reply._exchange.pieces
        basin.then = lambda _: None
        reply.resume()
        await becomes("whole", lambda: basin.told[-1])
        assert len(basin.body) == size


@leakless
async def test_held_the_end_is_kept_too_u13() -> None:
    async with serving(respond_with(CHUNKED + b"1\r\na\r\n")) as wire, aclosing(Transport()) as transport:
        reply = await transport.send("POST", wire.url, [], b"{}")
        basin = Basin(lambda _: reply.pause())
        reply.push(basin)
        await becomes([b"a"], lambda: basin.told)
        await transport.aclose()
        assert basin.told == [b"a"]
        reply.resume()
        assert basin.told == [b"a", "closed/body"]


@on_each_loop
async def test_the_rest_waits_for_work_of_the_sink_and_so_does_the_end_c06() -> None:
    go_on = asyncio.Event()

    async def work() -> None:
        await go_on.wait()
        basin.told.append("worked")

    async with serving(respond_with(CHUNKED + b"1\r\na\r\n", CHUNKED)) as wire, aclosing(Transport()) as transport:
        reply = await transport.send("POST", wire.url, [], b"{}")
        basin = Basin(lambda count: reply.wait_for(work()) if count == 1 else None)
        reply.push(basin)
        await becomes([b"a"], lambda: basin.told)
        wire.peers[0].send(b"1\r\nb\r\n0\r\n\r\n")
        reply.pause()
        reply.resume()
        await turns(50)
        assert basin.told == [b"a"]
        go_on.set()
        await becomes([b"a", "worked", b"b", "whole"], lambda: basin.told)


@on_each_loop
async def test_work_of_the_sink_waits_for_a_slow_client_c06() -> None:
    async def work() -> None:
        reply.pause()
        await reply.unpaused()
        basin.told.append("worked")

    async with serving(respond_with(CHUNKED + b"1\r\na\r\n0\r\n\r\n")) as wire, aclosing(Transport()) as transport:
        reply = await transport.send("POST", wire.url, [], b"{}")
        basin = Basin(lambda count: reply.wait_for(work()) if count == 1 else None)
        reply.push(basin)
        await becomes([b"a"], lambda: basin.told)
        await turns(50)
        assert basin.told == [b"a"]
        reply.resume()
        await becomes([b"a", "worked", "whole"], lambda: basin.told)


@on_each_loop
async def test_work_of_the_sink_is_cancelled_when_the_response_is_closed_c02() -> None:
    seen: list[str] = []

    async def work() -> None:
        seen.append("begun")
        try:
            await asyncio.Event().wait()
        finally:
            seen.append("cancelled")

    async with serving(respond_with(CHUNKED + b"1\r\na\r\n")) as wire, aclosing(Transport()) as transport:
        before = open_sockets()
        reply = await transport.send("POST", wire.url, [], b"{}")
        basin = Basin(lambda _: reply.wait_for(work()))
        reply.push(basin)
        await becomes(["begun"], lambda: seen)
        reply.close()
        await becomes(["begun", "cancelled"], lambda: seen)
        await becomes(before, open_sockets)
        assert basin.told == [b"a"]


@on_each_loop
async def test_work_of_a_sink_that_fails_ends_the_response() -> None:
    async def work() -> None:
        raise ValueError("no")

    async with serving(respond_with(CHUNKED + b"1\r\na\r\n")) as wire, aclosing(Transport()) as transport:
        reply = await transport.send("POST", wire.url, [], b"{}")
        basin = Basin(lambda count: reply.wait_for(work()) if count == 1 else None)
        reply.push(basin)
        await becomes([b"a", "closed/body"], lambda: basin.told)
        assert str(basin.causes) == "[ValueError('no')]"


@leakless
async def test_silence_is_u10_unless_held_c06() -> None:
    deadlines = Deadlines(idle=10, total=100)
    async with (
        serving(respond_with(CHUNKED + b"1\r\na\r\n", CHUNKED + b"1\r\na\r\n")) as wire,
        aclosing(Transport(deadlines=deadlines)) as transport,
    ):
        reply = await transport.send("POST", wire.url, [], b"{}")
        basin = Basin()
        reply.push(basin)
        await becomes([b"a"], lambda: basin.told)
        reply.pause()
        await advance(50)
        reply.resume()
        await advance(9)
        wire.peers[0].send(b"1\r\nb\r\n")
        await becomes([b"a", b"b"], lambda: basin.told)
        await advance(9)
        assert basin.told == [b"a", b"b"]
        await advance(2)
        assert basin.told == [b"a", b"b", "timeout/body"]

        reply = await transport.send("POST", wire.url, [], b"{}")
        basin = Basin()
        reply.push(basin)
        reply.pause()
        await advance(101)
        assert basin.told[-1:] != ["timeout/body"]
        reply.resume()
        assert basin.told == [b"a", "timeout/body"]


@on_each_loop
async def test_a_sink_that_fails_is_told_of_it() -> None:
    async with serving(respond_with(CHUNKED + b"1\r\na\r\n")) as wire, aclosing(Transport()) as transport:
        before = open_sockets()

        def stumble(count: int) -> None:
            if count == 2:
                raise ZeroDivisionError

        reply = await transport.send("POST", wire.url, [], b"{}")
        basin = Basin(stumble)
        reply.push(basin)
        await becomes([b"a"], lambda: basin.told)
        wire.peers[0].send(b"1\r\nb\r\n1\r\nc\r\n")
        await becomes(wanted="closed/body", look=lambda: basin.told[-1])
        assert [type(cause) for cause in basin.causes] == [ZeroDivisionError]
        await becomes(before, open_sockets)


def test_a_sink_that_fails_at_its_end_or_when_done_is_the_loops_affair(loop: asyncio.AbstractEventLoop) -> None:
    complaints: list[object] = []
    loop.set_exception_handler(lambda _, complaint: complaints.append(complaint["exception"]))

    def stumble(_: int) -> None:
        raise ZeroDivisionError

    def leave(_: int) -> None:
        reply.close()
        raise LookupError

    for then, told, body in (
        (stumble, ["whole"], b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
        (leave, [b"hi"], CHUNKED + b"2\r\nhi\r\n2\r\nho\r\n"),
    ):
        stage = ConnectionWithoutSocket(loop)
        read(stage.connection, body[: len(CHUNKED) + 7])
        reply = stage.reply()
        basin = Basin(then)
        reply.push(basin)
        assert basin.told == told
    loop.set_exception_handler(None)
    assert list(map(type, complaints)) == [ZeroDivisionError, LookupError]


@leakless
async def test_a_response_has_one_reader() -> None:
    async with serving(respond_with(CHUNKED)) as wire, aclosing(Transport()) as transport:
        reply = await transport.send("POST", wire.url, [], b"{}")
        reading = asyncio.create_task(anext(reply))
        await turns()
        with pytest.raises(RuntimeError, match="one reader"):
            reply.push(Basin())
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading


@leakless
async def test_a_response_is_pushed_once() -> None:
    async with (
        serving(respond_with(CHUNKED)) as wire,
        aclosing(Transport()) as transport,
        await transport.send("POST", wire.url, [], b"{}") as reply,
    ):
        reply.push(Basin())
        with pytest.raises(RuntimeError, match="one reader"):
            await anext(reply)
        with pytest.raises(RuntimeError, match="pushed already"):
            reply.push(Basin())


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("pushed", [False, True], ids=["pulled", "pushed"])
def test_what_is_broken_off_leaves_nothing_to_collect_r30(loop: asyncio.AbstractEventLoop, *, pushed: bool) -> None:
    stage = ConnectionWithoutSocket(loop)
    read(stage.connection, CHUNKED + b"1\r\na\r\n")
    reply = stage.reply()
    stage.connection.connection_lost(ConnectionResetError())
    seen: list[Callable[[], object]] = [weakref.ref(stage.exchange), weakref.ref(stage.connection)]
    basin = Basin()
    if pushed:
        reply.push(basin)
        assert basin.told == [b"a", "closed/body"]
    else:
        with pytest.raises(TransportError, match="broke"):
            pull(reply)
    del stage, reply
    assert [one() for one in seen] == [None, None]


def pull(reply: UpstreamResponse) -> None:
    """Read to the end, of which all is here."""
    with contextlib.suppress(StopIteration):
        reply.read().send(None)
