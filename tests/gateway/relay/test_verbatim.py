"""Bytes passed on untouched: what the client hears where the decoder beside them sees that they are no whole answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gateway.scripted_backends import CHAT, Backend
from xenoglot import dialect_registry as dialects
from xenoglot.backends.backend import ByteAnswer, monitored
from xenoglot.backends.stream_guard import PassthroughMonitor

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from tests.gateway.running_gateway import AccessLines, RunningGateway
    from xenoglot.backends.backend import Answer, Call

HEL = b'data: {"id":"c1","choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\n'
VOID = b'data: {"id":"c1","choices":[{"index":0,"delta":{"role":"assistant"}}]}\n\n'
STOP = b'data: {"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
BUSY = b'data: {"error":{"message":"busy","type":"overloaded_error"}}\n\n'
EARLY = (
    b'{"error":{"message":"connection lost: the upstream\'s stream ended without being complete",'
    b'"type":"server_error","param":null,"code":"upstream_error"}}'
)
EARLY_FRAME = b"data: " + EARLY + b"\n\n"


class Bytes(Backend):
    """Answers in the client's own dialect, one chunk at a time."""

    def __init__(self, chunks: Sequence[bytes]) -> None:
        super().__init__()
        self._chunks = chunks

    async def answer(self, _call: Call) -> Answer:
        """Give the chunks."""
        chunks = self._said()
        watch = PassthroughMonitor(dialects.get("chat"), lambda failure: failure)
        return ByteAnswer(pieces=monitored(chunks, watch), aclose=chunks.aclose, media_type="text/event-stream")

    async def _said(self) -> AsyncGenerator[bytes, None]:
        for chunk in self._chunks:
            yield chunk


@pytest.mark.parametrize(
    ("chunks", "status", "body", "broken_off", "failure"),
    [
        pytest.param([HEL, STOP + DONE], 200, HEL + STOP + DONE, False, None, id="whole"),
        pytest.param([HEL, STOP], 200, HEL + STOP + DONE, False, None, id="U14-no-done"),
        pytest.param([HEL, STOP[:-1]], 200, HEL + STOP[:-1] + b"\n\n" + DONE, False, None, id="U14-no-blank-line"),
        pytest.param([HEL, DONE], 200, HEL + DONE, False, None, id="U15-done-without-a-reason"),
        pytest.param([VOID, DONE], 200, VOID + EARLY_FRAME, True, "upstream", id="U15-no-done-after-a-failure"),
        pytest.param([VOID + DONE], 502, EARLY, False, "upstream", id="U15-in-one-read"),
        pytest.param([HEL], 200, HEL + EARLY_FRAME, True, "upstream", id="U14-clean-end"),
        pytest.param(
            [VOID + VOID[:-9], VOID[-9:] + DONE], 200, VOID + VOID[:-9], True, "upstream", id="U15-behind-half-a-frame"
        ),
        pytest.param(
            [VOID[:-9], VOID[-9:] + DONE], 502, EARLY, False, "upstream", id="U15-half-a-frame-begins-nothing"
        ),
        pytest.param([HEL, BUSY], 200, HEL + BUSY, True, "overloaded", id="U22-the-upstreams-own-words"),
    ],
)
def test_a_stream_passed_on(  # noqa: PLR0913, PLR0917  the cases, and two fixtures
    gateway_server: Callable[..., RunningGateway],
    access_lines: AccessLines,
    chunks: Sequence[bytes],
    status: int,
    body: bytes,
    broken_off: bool,  # noqa: FBT001  a case
    failure: str | None,
) -> None:
    running = gateway_server({"bytes": Bytes(chunks)})
    answer = running.request("POST", "/v1/chat/completions", {**CHAT, "stream": True})
    line = access_lines.next()
    assert (answer.status, answer.body, answer.truncated) == (status, body, broken_off)
    assert (line["status"], line["failure"]) == (status, failure)
