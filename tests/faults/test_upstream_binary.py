"""Streams of binary messages (Bedrock's Converse) that break, and errors, for their clients and for those of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pytest
from msgspec import Struct

from tests.faults.assertions import assert_aborted
from tests.faults.client_view import error_codes
from tests.faults.fault_cases import (
    STREAMED,
    Fault,
    assert_fault_refused,
    assert_next_request_completes,
    case_of,
    wait_until_disconnected,
)
from tests.faults.test_upstream_breaks import (
    ENDED_EARLY,
    FIRST_TEXT_RECEIVED,
    break_after_first_text,
)
from tests.faults.upstream_steps import streamed_response, whole_response
from tests.faults.wire_responses import FIRST, HELLO, OVERLOADED, WireResponse, converse_event, error_body
from xenoglot.testing.script import Body, Hang, WaitEvent

if TYPE_CHECKING:
    from tests.faults.harness import GatewayHarness
    from xenoglot.testing.script import Step

PAIRS = (("converse", "converse"), ("messages", "converse"), ("chat", "converse"))
WIRE = HELLO["converse"]


class BinaryBreak(Struct, frozen=True, kw_only=True):
    """A way to break after the first word: what comes, on a connection that stays open, and what the client gets.

    `torn` says that a message never ends whose bytes are passed on, where they pass untouched: nothing can be said.
    """

    name: str
    frames: Callable[[WireResponse], Sequence[bytes]] = lambda _: ()
    kind: str = "upstream"
    message: str = ""
    torn: bool = False


def damaged(wire: WireResponse) -> Sequence[bytes]:
    """Return a message with a byte that was changed on its way."""
    frame = bytearray(wire.middle_frames[0])
    frame[-8] ^= 1
    return (bytes(frame),)


BREAKS = (
    BinaryBreak(name="U17-checksum", frames=damaged, message="checksum", torn=True),
    BinaryBreak(
        name="U17-length",
        frames=lambda _: (b"\xff\xff\xff\xff" + bytes(12),),
        torn=True,
    ),
    BinaryBreak(
        name="U22-throttled",
        frames=lambda _: (converse_event("throttlingException", {"message": OVERLOADED}),),
        kind="rate_limit",
    ),
)
CASES = [
    pytest.param(case, client, upstream, id=f"{case.name}-{client}-to-{upstream}")
    for case in BREAKS
    for client, upstream in PAIRS
]


@pytest.mark.parametrize(("case", "client", "upstream"), CASES)
def test_a_broken_binary_stream(harness: GatewayHarness, case: BinaryBreak, client: str, upstream: str) -> None:
    async def scenario() -> None:
        wire = HELLO[upstream]
        late: tuple[Step, ...] = (WaitEvent(FIRST_TEXT_RECEIVED), *(Body(frame) for frame in case.frames(wire)), Hang())
        harness.upstream.script(streamed_response(upstream, *wire.first_frames, ending=late))
        answer = await break_after_first_text(harness, client, f"{upstream}-small")
        if client == upstream and case.torn:  # the very bytes
            assert not answer.complete
        else:
            told = assert_aborted(client, answer, error_codes(client, case.kind, streamed=True), FIRST)
            assert case.message in told.message
        said = harness.access_log_line()
        assert (said["status"], said["finish"], said["failure"]) == (200, None, case.kind)
        await wait_until_disconnected(harness)
        await assert_next_request_completes(harness, client, upstream)

    harness.run(scenario())


def refused(kind: str, name: str, status: int) -> Fault:
    """Return an error of Bedrock, whole or before a stream."""
    body = error_body("converse", OVERLOADED, name)
    return Fault(
        name=f"U30-{status}-{kind}",
        steps=lambda *_: whole_response(body, status),
        kind=kind,
        status=status,
        retry_after="5" if kind == "rate_limit" else None,
    )


FAULTS = (
    refused("rate_limit", "ThrottlingException", 429),
    refused("overloaded", "ServiceUnavailableException", 503),
    Fault(
        name="U22-exception-at-once",
        steps=lambda *_: streamed_response("converse", WIRE.error),
        kind="overloaded",
        modes=STREAMED,
    ),
    Fault(
        name="U14-nothing-in-it",
        steps=lambda *_: streamed_response("converse"),
        message=ENDED_EARLY,
        modes=STREAMED,
    ),
)


@pytest.mark.parametrize(
    ("fault", "client", "upstream", "streamed"),
    [
        case_of(fault, client, "converse", streamed=streamed)
        for fault in FAULTS
        for client in ("converse", "messages", "chat")
        for streamed in fault.modes
    ],
)
def test_a_binary_upstream_refuses(
    harness: GatewayHarness, fault: Fault, client: str, upstream: str, *, streamed: bool
) -> None:
    async def scenario() -> None:
        await assert_fault_refused(harness, fault, client, upstream, streamed=streamed)
        await assert_next_request_completes(harness, client, upstream)

    harness.run(scenario())
