"""Upstreams that cannot be reached, say nothing, or break off before a word: the error has a status, and nothing stays.

U01 to U08, U11, U12 and U46.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Literal

import pytest

from tests.faults.assertions import assert_completed, assert_refused
from tests.faults.client_view import error_codes, error_status
from tests.faults.fault_cases import (
    WHOLE,
    Fault,
    assert_fault_refused,
    assert_next_request_completes,
    each_dialect,
    every_pair,
    mode_of,
    wait_until_disconnected,
)
from tests.faults.harness import CONNECT, FIRST_BYTE, LISTENING, REFUSING, UNRESPONSIVE, GatewayHarness
from tests.faults.manual_clock import advance, wait_until
from tests.faults.upstream_steps import valid_response
from tests.faults.wire_responses import DIALECTS, HELLO
from xenoglot.testing.script import Close, Drip, Hang, Receive, Reset, Respond, ResponseHead, ScriptRule, Send

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.testing.script import Step

UNREACHABLE_MESSAGE = "connection error: the upstream cannot be reached"
TIMEOUT_MESSAGE = "connection timed out: the upstream did not answer in time"
CLOSED_MESSAGE = "connection lost: the upstream closed it"


def nothing(_upstream: str, _streamed: bool) -> Sequence[Step]:  # noqa: FBT001 - the shape of a script
    """Do nothing, for nobody comes."""
    return ()


def half_a_body(upstream: str, _streamed: bool) -> Sequence[Step]:  # noqa: FBT001 - the shape of a script
    """Begin to answer, and reset."""
    body = HELLO[upstream].whole
    head = ResponseHead(200, (("content-type", "application/json"),), length=len(body))
    return (head, Send(body[: len(body) // 2]), Reset())


UNREACHABLE = (
    Fault(name="U01-refused", steps=nothing, message=UNREACHABLE_MESSAGE, addresses=(REFUSING,), attempts=0),
    Fault(
        name="U01-refused-at-every-address",
        steps=nothing,
        message=UNREACHABLE_MESSAGE,
        addresses=(REFUSING, REFUSING),
        attempts=0,
    ),
    Fault(
        name="U02-silent",
        steps=nothing,
        message=UNREACHABLE_MESSAGE,
        addresses=(UNRESPONSIVE,),
        attempts=0,
        pauses=(4.0, 1.0),
    ),
    Fault(
        name="U03-no-such-name",
        steps=nothing,
        message=UNREACHABLE_MESSAGE,
        addresses=socket.gaierror(-2, "unknown"),
        attempts=0,
    ),
    Fault(
        name="U03-name-server-fails",
        steps=nothing,
        message=UNREACHABLE_MESSAGE,
        addresses=socket.gaierror(-3, "again"),
        attempts=0,
    ),
)
NO_RESPONSE = (
    Fault(
        name="U07-no-head", steps=lambda *_: (Hang(),), kind="timeout", message=TIMEOUT_MESSAGE, pauses=(FIRST_BYTE,)
    ),
    Fault(
        name="U08-a-byte-a-second",
        steps=lambda *_: (Drip(b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 99),),
        kind="timeout",
        message=TIMEOUT_MESSAGE,
        pauses=(1.0,) * 10,
    ),
    Fault(name="U11-reset", steps=lambda *_: (Reset(),), message=CLOSED_MESSAGE),
    Fault(name="U11-closed", steps=lambda *_: (Close(),), message=CLOSED_MESSAGE),
    Fault(
        name="U11-reset-in-the-head",
        steps=lambda *_: (Send(b"HTTP/1.1 200 OK\r\ncont"), Reset()),
        message=CLOSED_MESSAGE,
    ),
    Fault(name="U12-reset-in-the-body", steps=half_a_body, message=CLOSED_MESSAGE, modes=WHOLE, hidden=(b"Hel",)),
)
LARGE = "x" * 2_000_000


@pytest.mark.parametrize(
    ("fault", "client", "upstream", "streamed"), [*every_pair(UNREACHABLE[:1]), *each_dialect(UNREACHABLE[1:])]
)
def test_nobody_there(harness: GatewayHarness, fault: Fault, client: str, upstream: str, *, streamed: bool) -> None:
    async def scenario() -> None:
        await assert_fault_refused(harness, fault, client, upstream, streamed=streamed)
        await assert_next_request_completes(harness, client, upstream)

    harness.run(scenario())


@pytest.mark.parametrize(("fault", "client", "upstream", "streamed"), every_pair(NO_RESPONSE))
def test_no_answer(harness: GatewayHarness, fault: Fault, client: str, upstream: str, *, streamed: bool) -> None:
    async def scenario() -> None:
        await assert_fault_refused(harness, fault, client, upstream, streamed=streamed)
        await assert_next_request_completes(harness, client, upstream)

    harness.run(scenario())


@pytest.mark.parametrize("streamed", [False, True], ids=mode_of)
@pytest.mark.parametrize("client", DIALECTS, ids=[f"U03-slow-{client}" for client in DIALECTS])
def test_a_slow_name_server_holds_up_nobody_else(harness: GatewayHarness, client: str, *, streamed: bool) -> None:
    """U03-slow: the lookup ends at the connect deadline; meanwhile, other upstreams answer."""

    async def scenario() -> None:
        harness.addresses = slow = asyncio.get_running_loop().create_future()
        raw_client = await harness.start_request(client, "chat-small", streamed=streamed)
        await advance(CONNECT - 1)
        harness.addresses = (LISTENING,)
        harness.upstream.script(valid_response("messages", streamed=streamed))
        assert_completed(client, await harness.request(client, "messages-small", streamed=streamed), streamed=streamed)
        assert not raw_client.finished
        await advance(1)
        answer = await harness.read_response(raw_client)
        told = assert_refused(client, answer, error_codes(client, "upstream"), error_status(client, "upstream"))
        assert told.message == UNREACHABLE_MESSAGE
        slow.cancel()

    harness.run(scenario())


@pytest.mark.parametrize("client", DIALECTS, ids=[f"U04-{client}" for client in DIALECTS])
def test_a_name_that_leads_elsewhere(harness: GatewayHarness, client: str) -> None:
    """U04: what is open is used until it is old; then the new answer counts."""

    async def scenario() -> None:
        steps = (Respond(200, (("content-type", "application/json"),), HELLO["chat"].whole),)
        harness.upstream.script(steps)
        for _ in range(2):
            assert_completed(client, await harness.request(client, "chat-small", streamed=False), streamed=False)
            harness.addresses = (REFUSING,)
        assert len(harness.upstream.connections) == 1
        for _ in range(14):  # ... in which it never idles for long
            await advance(20)
            await harness.request(client, "chat-small", streamed=False)
        await advance(20)
        last = await harness.request(client, "chat-small", streamed=False)
        assert_refused(client, last, error_codes(client, "upstream"), error_status(client, "upstream"))
        assert len(harness.upstream.requests) == 2 + 14
        await wait_until_disconnected(harness)

    harness.run(scenario())


@pytest.mark.parametrize(
    ("fault", "client", "upstream", "streamed"),
    each_dialect(
        [Fault(name="U06-reset-amid-the-request", steps=lambda *_: ScriptRule(steps=(Reset(),), reads="head"))]
    ),
)
def test_a_request_that_is_cut(
    harness: GatewayHarness, fault: Fault, client: str, upstream: str, *, streamed: bool
) -> None:
    """U06: nobody knows what the upstream has done by then; on a fresh connection it is not asked again by itself."""

    async def scenario() -> None:
        harness.upstream.script(fault.steps(upstream, streamed))
        raw_client = await harness.start_request(client, f"{upstream}-small", streamed=streamed, **large(client))
        answer = await harness.read_response(raw_client)
        told = assert_refused(client, answer, error_codes(client, "upstream"), error_status(client, "upstream"))
        assert told.message == CLOSED_MESSAGE
        assert len(harness.upstream.requests) == 1
        await assert_next_request_completes(harness, client, upstream)

    harness.run(scenario())


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
def test_a_kept_connection_that_is_stale(
    harness: GatewayHarness, client: str, upstream: str, how: str, *, streamed: bool
) -> None:
    """U46: nobody notices but the log of the upstream."""

    async def scenario() -> None:
        kept = (Respond(200, (("content-type", "application/json"),), HELLO[upstream].whole),)
        harness.upstream.script(kept)
        assert_completed(client, await harness.request(client, f"{upstream}-small", streamed=False), streamed=False)
        steps = (Reset(),) if how == "U46-reset" else (Close(),)
        reads: Literal["head", "all"] = "head" if how == "U46-closed-unread" else "all"
        harness.upstream.script(
            ScriptRule(steps=steps, times=1, reads=reads), valid_response(upstream, streamed=streamed)
        )
        assert_completed(
            client, await harness.request(client, f"{upstream}-small", streamed=streamed), streamed=streamed
        )
        assert [len(one.requests) for one in harness.upstream.connections] == [2, 1]
        assert [line["failure"] for line in harness.access_log.lines] == [None, None]

    harness.run(scenario())


@pytest.mark.parametrize("client", DIALECTS, ids=[f"U46-{client}" for client in DIALECTS])
def test_a_kept_connection_that_closed_while_idle(harness: GatewayHarness, client: str) -> None:
    """U46: whoever closes first has told; the next request takes another connection."""

    async def scenario() -> None:
        ready = Respond(200, (("content-type", "application/json"),), HELLO["chat"].whole)
        harness.upstream.script((ready, Receive(0), Close()))
        for _ in range(2):
            assert_completed(client, await harness.request(client, "chat-small", streamed=False), streamed=False)
        assert [len(one.requests) for one in harness.upstream.connections] == [1, 1]
        await wait_until(lambda: harness.upstream.connections[1].closed is not None, "the second closes")

    harness.run(scenario())
