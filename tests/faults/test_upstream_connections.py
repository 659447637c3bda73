"""Upstreams that cannot be reached, say nothing, or break off before a word: the error has a status, and nothing stays.

U01 to U08, U11, U12 and U46.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Literal

import pytest

from tests.faults.cases import WHOLE, Fault, after, each, everywhere, gone, is_refused, mode_of
from tests.faults.heard import status_of, words_of
from tests.faults.house import (
    CONNECT,
    FIRST_BYTE,
    HERE,
    NOWHERE,
    SILENT,
    House,
    fine,
    push,
    refused,
    well,
    within_reason,
)
from tests.faults.wires import DIALECTS, HELLO
from xenoglot.testing.script import Close, Drip, Hang, Receive, Reset, Respond, ResponseHead, ScriptRule, Send

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.testing.script import Step

REACHED = "connection error: the upstream cannot be reached"
LATE = "connection timed out: the upstream did not answer in time"
BROKEN_OFF = "connection lost: the upstream closed it"


def nothing(_upstream: str, _streamed: bool) -> Sequence[Step]:  # noqa: FBT001 - the shape of a script
    """Do nothing, for nobody comes."""
    return ()


def half_a_body(upstream: str, _streamed: bool) -> Sequence[Step]:  # noqa: FBT001 - the shape of a script
    """Begin to answer, and reset."""
    body = HELLO[upstream].whole
    head = ResponseHead(200, (("content-type", "application/json"),), length=len(body))
    return (head, Send(body[: len(body) // 2]), Reset())


UNREACHABLE = (
    Fault(name="U01-refused", steps=nothing, said=REACHED, addresses=(NOWHERE,), asks=0),
    Fault(name="U01-refused-at-every-address", steps=nothing, said=REACHED, addresses=(NOWHERE, NOWHERE), asks=0),
    Fault(name="U02-silent", steps=nothing, said=REACHED, addresses=(SILENT,), asks=0, pauses=(4.0, 1.0)),
    Fault(name="U03-no-such-name", steps=nothing, said=REACHED, addresses=socket.gaierror(-2, "unknown"), asks=0),
    Fault(name="U03-name-server-fails", steps=nothing, said=REACHED, addresses=socket.gaierror(-3, "again"), asks=0),
)
SPEECHLESS = (
    Fault(name="U07-no-head", steps=lambda *_: (Hang(),), kind="timeout", said=LATE, pauses=(FIRST_BYTE,)),
    Fault(
        name="U08-a-byte-a-second",
        steps=lambda *_: (Drip(b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 99),),
        kind="timeout",
        said=LATE,
        pauses=(1.0,) * 10,
    ),
    Fault(name="U11-reset", steps=lambda *_: (Reset(),), said=BROKEN_OFF),
    Fault(name="U11-closed", steps=lambda *_: (Close(),), said=BROKEN_OFF),
    Fault(name="U11-reset-in-the-head", steps=lambda *_: (Send(b"HTTP/1.1 200 OK\r\ncont"), Reset()), said=BROKEN_OFF),
    Fault(name="U12-reset-in-the-body", steps=half_a_body, said=BROKEN_OFF, modes=WHOLE, unsaid=(b"Hel",)),
)
LARGE = "x" * 2_000_000


@pytest.mark.parametrize(
    ("fault", "client", "upstream", "streamed"), [*everywhere(UNREACHABLE[:1]), *each(UNREACHABLE[1:])]
)
def test_nobody_there(house: House, fault: Fault, client: str, upstream: str, *, streamed: bool) -> None:
    async def scene() -> None:
        await is_refused(house, fault, client, upstream, streamed=streamed)
        await after(house, client, upstream)

    house.play(scene())


@pytest.mark.parametrize(("fault", "client", "upstream", "streamed"), everywhere(SPEECHLESS))
def test_no_answer(house: House, fault: Fault, client: str, upstream: str, *, streamed: bool) -> None:
    async def scene() -> None:
        await is_refused(house, fault, client, upstream, streamed=streamed)
        await after(house, client, upstream)

    house.play(scene())


@pytest.mark.parametrize("streamed", [False, True], ids=mode_of)
@pytest.mark.parametrize("client", DIALECTS, ids=[f"U03-slow-{client}" for client in DIALECTS])
def test_a_slow_name_server_holds_up_nobody_else(house: House, client: str, *, streamed: bool) -> None:
    """U03-slow: the lookup ends at the connect deadline; meanwhile, other upstreams answer."""

    async def scene() -> None:
        house.addresses = slow = asyncio.get_running_loop().create_future()
        caller = await house.call(client, "chat-small", streamed=streamed)
        await push(CONNECT - 1)
        house.addresses = (HERE,)
        house.upstream.script(well("messages", streamed=streamed))
        fine(client, await house.ask(client, "messages-small", streamed=streamed), streamed=streamed)
        assert not caller.over
        await push(1)
        answer = await house.finish(caller)
        told = refused(client, answer, words_of(client, "upstream"), status_of(client, "upstream"))
        assert told.message == REACHED
        slow.cancel()

    house.play(scene())


@pytest.mark.parametrize("client", DIALECTS, ids=[f"U04-{client}" for client in DIALECTS])
def test_a_name_that_leads_elsewhere(house: House, client: str) -> None:
    """U04: what is open is used until it is old; then the new answer counts."""

    async def scene() -> None:
        steps = (Respond(200, (("content-type", "application/json"),), HELLO["chat"].whole),)
        house.upstream.script(steps)
        for _ in range(2):
            fine(client, await house.ask(client, "chat-small", streamed=False), streamed=False)
            house.addresses = (NOWHERE,)
        assert len(house.upstream.connections) == 1
        for _ in range(14):  # ... in which it never idles for long
            await push(20)
            await house.ask(client, "chat-small", streamed=False)
        await push(20)
        last = await house.ask(client, "chat-small", streamed=False)
        refused(client, last, words_of(client, "upstream"), status_of(client, "upstream"))
        assert len(house.upstream.requests) == 2 + 14
        await gone(house)

    house.play(scene())


@pytest.mark.parametrize(
    ("fault", "client", "upstream", "streamed"),
    each([Fault(name="U06-reset-amid-the-request", steps=lambda *_: ScriptRule(steps=(Reset(),), reads="head"))]),
)
def test_a_request_that_is_cut(house: House, fault: Fault, client: str, upstream: str, *, streamed: bool) -> None:
    """U06: nobody knows what the upstream has done by then; on a fresh connection it is not asked again by itself."""

    async def scene() -> None:
        house.upstream.script(fault.steps(upstream, streamed))
        caller = await house.call(client, f"{upstream}-small", streamed=streamed, **large(client))
        answer = await house.finish(caller)
        told = refused(client, answer, words_of(client, "upstream"), status_of(client, "upstream"))
        assert told.message == BROKEN_OFF
        assert len(house.upstream.requests) == 1
        await after(house, client, upstream)

    house.play(scene())


def large(client: str) -> dict[str, object]:
    """Return a field that makes a request large."""
    match client:
        case "gemini":
            return {"contents": [{"role": "user", "parts": [{"text": LARGE}]}]}
        case "responses":
            return {"input": LARGE}
        case "completions" | "ollama_generate":
            return {"prompt": LARGE}
        case "llama_stack_completion":
            return {"content": LARGE}
        case _:
            return {"messages": [{"role": "user", "content": LARGE}]}


@pytest.mark.parametrize("how", ["U46-closed", "U46-reset", "U46-closed-unread"])
@pytest.mark.parametrize("streamed", [False, True], ids=mode_of)
@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("client", DIALECTS)
def test_a_kept_connection_that_is_stale(house: House, client: str, upstream: str, how: str, *, streamed: bool) -> None:
    """U46: nobody notices but the log of the upstream."""

    async def scene() -> None:
        kept = (Respond(200, (("content-type", "application/json"),), HELLO[upstream].whole),)
        house.upstream.script(kept)
        fine(client, await house.ask(client, f"{upstream}-small", streamed=False), streamed=False)
        steps = (Reset(),) if how == "U46-reset" else (Close(),)
        reads: Literal["head", "all"] = "head" if how == "U46-closed-unread" else "all"
        house.upstream.script(ScriptRule(steps=steps, times=1, reads=reads), well(upstream, streamed=streamed))
        fine(client, await house.ask(client, f"{upstream}-small", streamed=streamed), streamed=streamed)
        assert [len(one.requests) for one in house.upstream.connections] == [2, 1]
        assert [line["failure"] for line in house.lines.lines] == [None, None]

    house.play(scene())


@pytest.mark.parametrize("client", DIALECTS, ids=[f"U46-{client}" for client in DIALECTS])
def test_a_kept_connection_that_closed_while_idle(house: House, client: str) -> None:
    """U46: whoever closes first has told; the next request takes another connection."""

    async def scene() -> None:
        ready = Respond(200, (("content-type", "application/json"),), HELLO["chat"].whole)
        house.upstream.script((ready, Receive(0), Close()))
        for _ in range(2):
            fine(client, await house.ask(client, "chat-small", streamed=False), streamed=False)
        assert [len(one.requests) for one in house.upstream.connections] == [1, 1]
        await within_reason(lambda: house.upstream.connections[1].closed is not None, "the second closes")

    house.play(scene())
