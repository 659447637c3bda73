"""Names to addresses: one thread a name, nobody held up by another's, and connections that follow what is answered."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from tests.backends.raw_server import Peer, advance, becomes, leakless, response, serving
from xenoglot.backends.http.client import Transport, TransportError, TransportLimits
from xenoglot.backends.http.connect import AddressLookup

if TYPE_CHECKING:
    from collections.abc import Sequence

NOBODY = "127.0.0.2"
"""A loopback address at which none of our servers listens."""


async def endless(peer: Peer) -> None:
    """Answer every request."""
    while True:
        await peer.request()
        peer.send(response(b"ok"))


async def fetch(transport: Transport, url: str) -> bytes:
    async with await transport.send("POST", url, [], b"{}") as reply:
        return await reply.read()


def named(url: str) -> str:
    """Return the URL with a name in it."""
    return url.replace("127.0.0.1", "upstream.test")


class Book:
    """Answers what it is told to."""

    def __init__(self, *addresses: str) -> None:
        self.addresses: Sequence[str] = addresses
        self.asked: list[str] = []

    async def __call__(self, host: str) -> Sequence[str]:
        self.asked.append(host)
        return self.addresses


@leakless
async def test_one_lookup_serves_all_who_ask_meanwhile() -> None:
    asked: list[str] = []
    go_on = threading.Event()

    def slowly(host: str) -> Sequence[str]:
        asked.append(host)
        go_on.wait()
        return ("192.0.2.1", "2001:db8::1")

    lookup = AddressLookup(slowly)
    tasks = [asyncio.ensure_future(lookup("slow.test")) for _ in range(3)]
    await becomes(["slow.test"], lambda: asked)
    go_on.set()
    assert await asyncio.gather(*tasks) == [("192.0.2.1", "2001:db8::1")] * 3
    assert asked == ["slow.test"]


@leakless
async def test_one_who_gives_up_leaves_the_others_waiting_u03() -> None:
    go_on = threading.Event()

    def slowly(host: str) -> Sequence[str]:
        if host == "slow.test":
            go_on.wait()
        return (f"of {host}",)

    lookup = AddressLookup(slowly)
    hasty, patient = asyncio.ensure_future(lookup("slow.test")), asyncio.ensure_future(lookup("slow.test"))
    assert await lookup("quick.test") == ("of quick.test",)
    hasty.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hasty
    go_on.set()
    assert await patient == ("of slow.test",)


@pytest.mark.parametrize("error", [socket.gaierror(socket.EAI_NONAME, "no"), UnicodeError("label too long")])
def test_a_name_that_is_none_u03(error: Exception) -> None:
    def refuse(_: str) -> Sequence[str]:
        raise error

    @leakless
    async def scene() -> None:
        with pytest.raises(socket.gaierror):
            await AddressLookup(refuse)("none.test")

    scene()


@leakless
async def test_an_address_needs_no_lookup() -> None:
    def never(_: str) -> Sequence[str]:
        raise AssertionError

    lookup = AddressLookup(never)
    assert [await lookup("127.0.0.1"), await lookup("::1")] == [("127.0.0.1",), ("::1",)]


@leakless
async def test_a_loop_that_has_ended_is_told_nothing() -> None:
    go_on, over = threading.Event(), threading.Event()

    def slowly(_: str) -> Sequence[str]:
        go_on.wait()
        return ()

    def ask_and_leave() -> None:
        lookup = AddressLookup(slowly)

        async def impatient() -> None:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await lookup("slow.test")

        asyncio.run(impatient())
        over.set()

    thread = threading.Thread(target=ask_and_leave)
    thread.start()
    thread.join()
    assert over.is_set()
    go_on.set()
    for other in threading.enumerate():
        if other.name == "name lookup":
            other.join()


@leakless
async def test_new_connections_follow_the_answer_and_old_ones_age_out_u04() -> None:
    book = Book("127.0.0.1")
    limits = TransportLimits(connection_seconds=60, idle_seconds=300)
    async with serving(endless) as old, aclosing(Transport(limits=limits, resolve=book)) as transport:
        url = named(old.url)
        assert await fetch(transport, url) == b"ok"
        book.addresses = (NOBODY,)
        await advance(59)
        assert await fetch(transport, url) == b"ok"
        assert (old.requested(), book.asked) == ([2], ["upstream.test"])
        await advance(1)
        with pytest.raises(TransportError) as caught:
            await fetch(transport, url)
        assert (caught.value.kind, caught.value.sent) == ("connect", False)
        assert book.asked == ["upstream.test"] * 2


@leakless
async def test_a_connection_that_ages_while_it_is_used_is_not_kept_u04() -> None:
    async with (
        serving(endless) as wire,
        aclosing(Transport(limits=TransportLimits(connection_seconds=60))) as transport,
    ):
        assert await fetch(transport, wire.url) == b"ok"
        reply = await transport.send("POST", wire.url, [], b"{}")
        await advance(61)
        await reply.aclose()
        assert await fetch(transport, wire.url) == b"ok"
        assert wire.requested() == [2, 1]


@leakless
async def test_the_next_address_is_tried_where_one_refuses_u01() -> None:
    book = Book(NOBODY, "127.0.0.1")
    async with serving(endless) as wire, aclosing(Transport(resolve=book)) as transport:
        assert await fetch(transport, named(wire.url)) == b"ok"


@leakless
async def test_the_next_address_is_tried_where_one_is_silent_u02(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    connect = loop.create_connection
    tried: list[str] = []

    async def connecting(factory: object, host: str, *arguments: object, **settings: object) -> object:
        tried.append(host)
        if host == NOBODY:
            await loop.create_future()
        return await connect(factory, host, *arguments, **settings)  # type: ignore[call-overload]  # passed on

    monkeypatch.setattr(loop, "create_connection", connecting)
    book = Book(NOBODY, "127.0.0.1")
    async with serving(endless) as wire, aclosing(Transport(resolve=book)) as transport:
        task = asyncio.create_task(fetch(transport, named(wire.url)))
        await advance(2.4)
        assert (tried, task.done()) == ([NOBODY], False)
        await advance(0.2)
        assert await task == b"ok"
        assert tried == [NOBODY, "127.0.0.1"]
