"""Streams that break, in every dialect: what came is told, then the error, then nothing; and never a mark of the end.

U13 to U15, U17 and U22.
"""

from __future__ import annotations

import json
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
    every_pair,
    wait_until_disconnected,
)
from tests.faults.manual_clock import wait_until
from tests.faults.upstream_steps import streamed_response
from tests.faults.wire_responses import (
    ALL_DIALECTS,
    DIALECTS,
    DONE,
    FIRST,
    HELLO,
    MESSAGE_STOP,
    OVERLOADED,
    WireResponse,
    sse_event,
    typed_event,
)
from xenoglot.testing.script import Body, Close, End, Hang, Reset, Step, WaitEvent

if TYPE_CHECKING:
    from tests.faults.harness import GatewayHarness
    from tests.faults.raw_client import RawResponse

ERROR = HELLO["chat"].error
FIRST_TEXT_RECEIVED = "heard"
LINE_FRAMED = ("ollama", "ollama_generate")
"""Dialects whose events are lines."""
ENDED_EARLY, CONNECTION_CLOSED = (
    "connection lost: the upstream's stream ended without being complete",
    "connection lost: the upstream closed it",
)


class Break(Struct, frozen=True, kw_only=True):
    """A way to break: what comes behind the first word, once that was heard, and how the connection ends.

    `torn` says that a frame never ends whose bytes are passed on, where they pass untouched: then nothing can be said.
    """

    name: str
    frames: Callable[[str, WireResponse], Sequence[bytes]] = lambda *_: ()
    ending: tuple[Step, ...] = (End(),)
    kind: str = "upstream"
    message: str = ""
    hidden: str = "canary-of-the-wire"
    upstreams: tuple[str, ...] = ALL_DIALECTS
    torn: bool = False


def without_finish_reason(upstream: str, wire: WireResponse) -> Sequence[bytes]:
    """Return all that there is but the reason of the end: the mark comes without it."""
    match upstream:
        case "messages":
            return (*wire.middle_frames, wire.last_frames[0], MESSAGE_STOP)
        case _:
            return (*wire.middle_frames, DONE)


def cut_json(upstream: str, _wire: WireResponse) -> Sequence[bytes]:
    """Return an event whose JSON is cut."""
    if upstream in LINE_FRAMED:
        return (b'{"model":"canary-of-the-wire","mes\n',)
    return (b'data: {"id":"canary-of-the-wire","cho\n\n',)


def half_a_frame(_upstream: str, wire: WireResponse) -> Sequence[bytes]:
    """Return the beginning of a frame."""
    return (wire.middle_frames[0][:-9],)


def other_errors(upstream: str, _wire: WireResponse) -> Sequence[bytes]:
    """Return an error in another form than the usual one, as servers and what stands before them tell it."""
    told = {"message": OVERLOADED, "type": "server_error", "param": None, "code": "service_unavailable"}
    match upstream:
        case "chat" | "completions":
            return (sse_event({"error": told}, "error"),)
        case "responses":
            return (typed_event(told | {"type": "error"}),)
        case "messages":
            return (sse_event({"error": {"type": "overloaded_error", "message": OVERLOADED}}),)
        case "interactions":
            return (sse_event({"error": {"code": 503, "message": OVERLOADED, "status": "UNAVAILABLE"}}, "error"),)
        case "gemini":
            error = {"code": 503, "message": OVERLOADED, "status": "UNAVAILABLE"}
            return (json.dumps([{"error": error}]).encode() + b"\n\n",)
        case _:
            return (sse_event({"error": {"message": f"503: {OVERLOADED}"}}, "error"),)


def error_event_kind(upstream: str) -> str:
    """Return the kind that an upstream's error event tells: Ollama has but a sentence."""
    return "upstream" if upstream in LINE_FRAMED else "overloaded"


BREAKS = (
    Break(name="U13-reset", ending=(Reset(),), message=CONNECTION_CLOSED),
    Break(name="U13-closed-without-the-final-chunk", ending=(Close(),), message=CONNECTION_CLOSED),
    Break(name="U13-cut-inside-a-frame", frames=half_a_frame, ending=(Reset(),), message=CONNECTION_CLOSED, torn=True),
    Break(name="U14-ended-early", message=ENDED_EARLY),
    Break(
        name="U15-no-reason",
        frames=without_finish_reason,
        upstreams=("gemini", "messages"),
        message=ENDED_EARLY,
    ),
    Break(name="U17-cut-json", frames=cut_json, ending=(Hang(),)),
    Break(name="U22-error-event", frames=lambda _, wire: (wire.error,), ending=(Hang(),), kind="said"),
    Break(
        name="U22-error-event-in-another-form",
        frames=other_errors,
        ending=(Hang(),),
        kind="said",
        upstreams=tuple(name for name in DIALECTS if name not in LINE_FRAMED),
    ),
)


def cases() -> list[object]:
    """Return every break at every upstream, for every client."""
    return [
        pytest.param(case, client, upstream, id=f"{case.name}-{client}-to-{upstream}")
        for case in BREAKS
        for client in ALL_DIALECTS
        for upstream in case.upstreams
    ]


@pytest.mark.parametrize(("case", "client", "upstream"), cases())
def test_a_broken_stream(harness: GatewayHarness, case: Break, client: str, upstream: str) -> None:
    async def scenario() -> None:
        wire = HELLO[upstream]
        late = (WaitEvent(FIRST_TEXT_RECEIVED), *(Body(frame) for frame in case.frames(upstream, wire)), *case.ending)
        harness.upstream.script(streamed_response(upstream, *wire.first_frames, ending=late))
        answer = await break_after_first_text(harness, client, f"{upstream}-small")
        kind = error_event_kind(upstream) if case.kind == "said" else case.kind
        if client == upstream and (case.torn or case.name.endswith("in-another-form")):  # the very bytes
            assert not answer.complete
            assert answer.body.endswith(case.frames(upstream, wire)[-1])
        else:
            more = (
                wire.middle_frames[0] in case.frames(upstream, wire) and client != upstream
            )  # else it is held back with the end
            text = FIRST + ("lo" if more else "")
            told = assert_aborted(client, answer, error_codes(client, kind, streamed=True), text)
            assert case.message in told.message
        assert case.hidden.encode() not in answer.body
        said = harness.access_log_line()
        assert (said["status"], said["finish"], said["failure"]) == (200, None, kind)
        await wait_until_disconnected(harness)
        await assert_next_request_completes(harness, client, upstream)

    harness.run(scenario())


async def break_after_first_text(harness: GatewayHarness, client: str, model: str) -> RawResponse:
    """Ask for a stream, let the upstream go on once its first word has been heard, and return all that came."""
    raw_client = await harness.start_request(client, model, streamed=True)
    await wait_until(lambda: FIRST.encode() in raw_client.reader.body or raw_client.finished, "the first word is heard")
    harness.upstream.release(FIRST_TEXT_RECEIVED)
    return await harness.read_response(raw_client)


AT_ONCE = (
    Fault(
        name="U22-error-event-at-once",
        steps=lambda upstream, _: streamed_response(upstream, HELLO[upstream].error),
        kind=error_event_kind,
        modes=STREAMED,
    ),
    Fault(
        name="U14-nothing-in-it",
        steps=lambda upstream, _: streamed_response(upstream),
        message=ENDED_EARLY,
        modes=STREAMED,
    ),
)


@pytest.mark.parametrize(("fault", "client", "upstream", "streamed"), every_pair(AT_ONCE))
def test_a_stream_that_fails_before_its_first_word(
    harness: GatewayHarness, fault: Fault, client: str, upstream: str, *, streamed: bool
) -> None:
    """Nothing was sent by then: the client gets a status, and may ask again."""

    async def scenario() -> None:
        await assert_fault_refused(harness, fault, client, upstream, streamed=streamed)
        await assert_next_request_completes(harness, client, upstream)

    harness.run(scenario())
