"""Steps of scripted upstreams: whole responses, streams, a valid response in each dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.faults.wire_responses import HELLO
from xenoglot.testing.script import Body, End, Respond, ResponseHead

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.testing.script import Step


CONNECTION_CLOSE = ("connection", "close")


def whole_response(
    body: bytes, status: int = 200, media_type: str = "application/json", **headers: str
) -> tuple[Step, ...]:
    """Return the steps of an answer in one piece, on a connection that is not kept: each case begins with none."""
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return (Respond(status, (("content-type", media_type), CONNECTION_CLOSE, *named), body),)


def streamed_response(upstream: str, *frames: bytes, ending: Sequence[Step] = (End(),)) -> tuple[Step, ...]:
    """Return the steps of a stream of these frames, each in a segment of its own."""
    head = ResponseHead(200, (("content-type", HELLO[upstream].media_type), CONNECTION_CLOSE))
    return (head, *(Body(frame) for frame in frames), *ending)


def valid_response(upstream: str, *, streamed: bool) -> tuple[Step, ...]:
    """Return the steps of an answer that is as it should be."""
    wire = HELLO[upstream]
    if streamed:
        return streamed_response(upstream, *wire.first_frames, *wire.middle_frames, *wire.last_frames, *wire.end_mark)
    return whole_response(wire.whole)
