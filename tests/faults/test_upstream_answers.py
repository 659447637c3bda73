"""Answers that are none, or not of the kind that was asked for, or in a coding; and heads that HTTP does not allow.

U23 to U25, U27, U43 to U45 and U47.
"""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from typing import TYPE_CHECKING

import pytest

from tests.faults.assertions import assert_aborted, assert_completed
from tests.faults.client_view import error_codes
from tests.faults.fault_cases import (
    BOTH,
    STREAMED,
    Fault,
    assert_fault_refused,
    assert_next_request_completes,
    each_dialect,
    every_pair,
    mode_of,
)
from tests.faults.test_upstream_breaks import break_after_first_text, error_event_kind
from tests.faults.upstream_steps import CONNECTION_CLOSE, valid_response, whole_response
from tests.faults.wire_responses import DIALECTS, FIRST, HELLO, OVERLOADED, error_body, json_bytes, response_object
from xenoglot.backends.http.client import Transport
from xenoglot.testing.script import Body, Close, End, Respond, ResponseHead, Send, WaitEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.faults.fault_cases import Made
    from tests.faults.harness import GatewayHarness
    from xenoglot.testing.script import Step

NOT_UNDERSTOOD = "server error: the upstream's answer was not understood"
NO_HTTP = "the upstream's answer is not lawful HTTP"
TOO_LARGE = "the upstream's answer is larger than allowed"
PAGE = b"<html><title>canary-of-the-wire</title></html>"
HIDDEN = (b"canary-of-the-wire",)


def error_with_status_200(upstream: str, _streamed: bool) -> Sequence[Step]:  # noqa: FBT001 - the shape of a script
    """Tell of an error with the status of an answer."""
    match upstream:
        case "responses":
            error = {"code": "service_unavailable", "message": OVERLOADED}
            return whole_response(json_bytes(response_object("failed", []) | {"error": error}))
        case "chat" | "completions":
            return whole_response(error_body(upstream, OVERLOADED, "server_error", "service_unavailable"))
        case "llama_stack" | "llama_stack_completion":
            return whole_response(json_bytes({"error": {"message": f"503: {OVERLOADED}"}}))
        case "messages":
            return whole_response(error_body(upstream, OVERLOADED, "overloaded_error"))
        case _:
            return whole_response(error_body(upstream, OVERLOADED, "UNAVAILABLE", status=503))


def bare(body: bytes, media_type: str) -> Made:
    """Answer with this."""
    return lambda *_: whole_response(body, 200, media_type)


NO_ANSWERS = (
    Fault(name="U23-error-with-the-status-of-an-answer", steps=error_with_status_200, kind=error_event_kind),
    Fault(name="U24-page", steps=bare(PAGE, "text/html"), message=NOT_UNDERSTOOD, hidden=HIDDEN),
    Fault(name="U24-nothing", steps=bare(b"", "application/json"), message=NOT_UNDERSTOOD),
    Fault(name="U24-text", steps=bare(b"canary-of-the-wire", "text/plain"), message=NOT_UNDERSTOOD, hidden=HIDDEN),
    Fault(name="U24-empty-object", steps=bare(b"{}", "application/json"), message=NOT_UNDERSTOOD),
    Fault(name="U24-list", steps=bare(b"[1]", "application/json"), message=NOT_UNDERSTOOD),
)


@pytest.mark.parametrize(("fault", "client", "upstream", "streamed"), every_pair(NO_ANSWERS))
def test_what_is_no_answer(
    harness: GatewayHarness, fault: Fault, client: str, upstream: str, *, streamed: bool
) -> None:
    async def scenario() -> None:
        await assert_fault_refused(harness, fault, client, upstream, streamed=streamed)
        await assert_next_request_completes(harness, client, upstream)

    harness.run(scenario())


def opposite_mode(upstream: str, streamed: bool) -> Sequence[Step]:  # noqa: FBT001 - the shape of a script
    """Answer as was not asked."""
    return valid_response(upstream, streamed=not streamed)


def packed_response(upstream: str, *, streamed: bool) -> tuple[Step, ...]:
    """Answer in a coding that nobody asked for."""
    wire = HELLO[upstream]
    if not streamed:
        return (Respond(200, (("content-type", "application/json"), CONNECTION_CLOSE), wire.whole, coding="gzip"),)
    head = ResponseHead(200, (("content-type", wire.media_type), CONNECTION_CLOSE), coding="gzip")
    return (
        head,
        *(Body(frame) for frame in (*wire.first_frames, *wire.middle_frames, *wire.last_frames, *wire.end_mark)),
        End(),
    )


ODD: dict[str, Callable[[str, bool], Sequence[Step]]] = {
    "U25-the-other-kind": opposite_mode,
    "U27-gzip": lambda upstream, streamed: packed_response(upstream, streamed=streamed),
}


@pytest.mark.parametrize("streamed", BOTH, ids=mode_of)
@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("client", DIALECTS)
@pytest.mark.parametrize("case", ODD)
def test_an_answer_that_was_not_asked_for_so(
    harness: GatewayHarness, case: str, client: str, upstream: str, *, streamed: bool
) -> None:
    async def scenario() -> None:
        harness.upstream.script(tuple(ODD[case](upstream, streamed)))
        answer = await harness.request(client, f"{upstream}-small", streamed=streamed)
        assert_completed(client, answer, streamed=streamed)
        line = harness.access_log_line()
        assert (line["finish"], line["failure"], line["usage"]["output_tokens"]) == ("stop", None, 2)

    harness.run(scenario())


BOMB = gzip.compress(b" " * 60_000_000, 9)


def encoded_response(body: bytes, coding: str, media_type: str = "application/json") -> Sequence[Step]:
    """Answer with a body of which the head says that coding."""
    return whole_response(body, 200, media_type, content_encoding=coding)


CODED = (
    Fault(name="U27-br", steps=lambda *_: encoded_response(b"\x1b\x00", "br"), message=NO_HTTP),
    Fault(name="U27-zstd", steps=lambda *_: encoded_response(b"\x28\xb5\x2f\xfd", "zstd"), message=NO_HTTP),
    Fault(name="U27-twice", steps=lambda *_: encoded_response(b"\x1f\x8b", "gzip, gzip"), message=NO_HTTP),
    Fault(
        name="U27-plain-called-gzip", steps=lambda name, _: encoded_response(HELLO[name].whole, "gzip"), message=NO_HTTP
    ),
    Fault(
        name="U27-cut",
        steps=lambda name, _: encoded_response(gzip.compress(HELLO[name].whole)[:-12], "gzip"),
        message=NO_HTTP,
    ),
    Fault(name="U27-bomb", steps=lambda *_: encoded_response(BOMB, "gzip"), message=TOO_LARGE),
    Fault(
        name="U27-bomb-in-a-stream",
        steps=lambda name, _: encoded_response(BOMB, "gzip", HELLO[name].media_type),
        message=TOO_LARGE,
        modes=STREAMED,
    ),
)


@pytest.mark.parametrize(("fault", "client", "upstream", "streamed"), each_dialect(CODED))
def test_a_body_that_cannot_be_decoded(
    harness: GatewayHarness, fault: Fault, client: str, upstream: str, *, streamed: bool
) -> None:
    async def scenario() -> None:
        await assert_fault_refused(harness, fault, client, upstream, streamed=streamed)
        await assert_next_request_completes(harness, client, upstream)

    harness.run(scenario())


@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("client", DIALECTS, ids=[f"U27-cut-stream-{client}" for client in DIALECTS])
def test_a_coded_stream_that_is_cut(harness: GatewayHarness, client: str, upstream: str) -> None:
    """U27: what could be decoded is told."""

    async def scenario() -> None:
        wire = HELLO[upstream]
        head = ResponseHead(200, (("content-type", wire.media_type), ("content-encoding", "gzip"), CONNECTION_CLOSE))
        packer = zlib.compressobj(wbits=31)
        data = packer.compress(b"".join(wire.first_frames)) + packer.flush(zlib.Z_SYNC_FLUSH)
        harness.upstream.script((head, Body(data), WaitEvent("heard"), End()))
        answer = await break_after_first_text(harness, client, f"{upstream}-small")
        assert_aborted(client, answer, error_codes(client, "upstream", streamed=True), FIRST)

    harness.run(scenario())


OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
HEADS: dict[str, bytes] = {
    "U43-no-http": b"SSH-2.0-OpenSSH_9.9\r\n\r\n",
    "U43-no-colon": OK + b"canary-of-the-wire\r\n\r\n",
    "U43-blank-before-the-colon": OK + b"x : y\r\n\r\n",
    "U43-nul": OK + b"x: a\0canary-of-the-wire\r\n\r\n",
    "U43-bare-cr": OK + b"x: a\rcanary-of-the-wire: b\r\n\r\n",
    "U43-large-field": OK + b"x: " + b"a" * 70_000 + b"\r\n\r\n",
    "U43-thousand-fields": OK + b"x: y\r\n" * 1_000 + b"\r\n",
    "U43-two-lengths": OK + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}",
    "U43-length-and-chunks": OK + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "U43-no-length": OK + b"content-length: -1\r\n\r\n{}",
    "U43-unknown-coding": OK + b"transfer-encoding: xchunked\r\n\r\n{}",
    "U43-no-chunk": OK + b"transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    "U44-storm-of-100": b"HTTP/1.1 100 Continue\r\n\r\n" * 50,
    "U44-storm-of-103": b"HTTP/1.1 103 Early Hints\r\nlink: </canary-of-the-wire>\r\n\r\n" * 50,
    "U44-switches-unasked": b"HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n",
    "U44-204": b"HTTP/1.1 204 No Content\r\n\r\n",
    "U44-304": b"HTTP/1.1 304 Not Modified\r\n\r\n",
    "U45-shorter": OK + b"content-length: 9999\r\n\r\n{}",
    "U45-cut-by-its-length": OK + b"content-length: 20\r\n\r\n" + HELLO["chat"].whole,
    "U47-h2": bytes.fromhex("00001204000000000000030000008000040001000000050000ffff"),
}


@pytest.mark.parametrize(
    ("fault", "client", "upstream", "streamed"),
    each_dialect([Fault(name=name, steps=lambda *_, head=head: (Send(head), Close())) for name, head in HEADS.items()]),
)
def test_what_http_does_not_allow(
    harness: GatewayHarness, fault: Fault, client: str, upstream: str, *, streamed: bool
) -> None:
    async def scenario() -> None:
        answer, _ = await assert_fault_refused(harness, fault, client, upstream, streamed=streamed)
        assert b"canary-of-the-wire" not in answer.raw
        await assert_next_request_completes(harness, client, upstream)

    harness.run(scenario())


@pytest.mark.parametrize("streamed", BOTH, ids=mode_of)
@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("client", DIALECTS, ids=[f"U44-hints-{client}" for client in DIALECTS])
def test_an_interim_response_before_the_answer(
    harness: GatewayHarness, client: str, upstream: str, *, streamed: bool
) -> None:
    """U44: a few are lawful, and passed over."""

    async def scenario() -> None:
        hints = Send(b"HTTP/1.1 103 Early Hints\r\nlink: </canary-of-the-wire>\r\n\r\n")
        harness.upstream.script((hints, hints, *valid_response(upstream, streamed=streamed)))
        answer = await harness.request(client, f"{upstream}-small", streamed=streamed)
        assert_completed(client, answer, streamed=streamed)
        assert b"canary-of-the-wire" not in answer.raw

    harness.run(scenario())


@pytest.mark.parametrize("client", DIALECTS, ids=[f"U45-longer-{client}" for client in DIALECTS])
def test_what_follows_an_answer(harness: GatewayHarness, client: str) -> None:
    """U45: the answer is as long as it says; what comes behind it belongs to no answer of ours, nor the connection."""

    async def scenario() -> None:
        wire = HELLO["chat"]
        smuggled = b"HTTP/1.1 200 OK\r\ncontent-length: 18\r\n\r\ncanary-of-the-wire"
        kept = Respond(200, (("content-type", "application/json"),), wire.whole)
        harness.upstream.script((Send(_bytes(kept) + smuggled),))
        for _ in range(2):
            answer = await harness.request(client, "chat-small", streamed=False)
            assert_completed(client, answer, streamed=False)
        assert [len(one.requests) for one in harness.upstream.connections] == [1, 1]

    harness.run(scenario())


def _bytes(response: Respond) -> bytes:
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(response.body)}\r\n\r\n"
    return head.encode() + response.body


def test_u47_no_other_protocol_is_offered() -> None:
    """U47: frames of HTTP/2 cannot come, for nobody agreed to them."""
    offered: list[list[str]] = []

    class Context:
        def set_alpn_protocols(self, protocols: list[str]) -> None:
            offered.append(protocols)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ssl.create_default_context", Context)
        Transport()._tls()
    assert offered == [["http/1.1"]]


def test_a_bomb_costs_little(harness: GatewayHarness) -> None:
    """U27-memory: sixty megabytes of blanks are not held at once."""
    tracemalloc.start()
    try:

        async def scenario() -> None:
            harness.upstream.script(tuple(encoded_response(BOMB, "gzip")))
            answer = await harness.request("chat", "messages-small", streamed=False)
            assert answer.status == 502

        harness.run(scenario())
        assert tracemalloc.get_traced_memory()[1] < 16_000_000
    finally:
        tracemalloc.stop()
