"""Reading a stream, as a script: these messages come in, these events come out."""

import json
from base64 import b64encode

import pytest

from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.stage import through
from xenoglot.dialects.converse import CONVERSE
from xenoglot.model.content import Extra, Image, Inline, Origin, Part, Reasoning, Text
from xenoglot.model.events import BlockEnded, BlockStarted, Event, Failed, Finished, Started, TextDelta
from xenoglot.model.failure import Failure
from xenoglot.model.json import JSON
from xenoglot.model.response import Finish

STARTED = Started()
STOP = Finished(finish=Finish(reason="stop", raw="end_turn", dialect="converse"))
BEGUN = ("messageStart", {"role": "assistant"})
STOPPED = ("messageStop", {"stopReason": "end_turn"})
CLOSED = ("contentBlockStop", {"contentBlockIndex": 0})


def read(*messages: tuple[str, JSON]) -> list[Event]:
    events = [ServerSentEvent(json.dumps(data).encode(), name) for name, data in messages]
    return list(through(events, CONVERSE.stream_decoder()))


def started(start: JSON) -> tuple[str, JSON]:
    return "contentBlockStart", {"contentBlockIndex": 0, "start": start}


def delta(value: JSON) -> tuple[str, JSON]:
    return "contentBlockDelta", {"contentBlockIndex": 0, "delta": value}


def base64(data: bytes) -> str:
    return b64encode(data).decode()


@pytest.mark.parametrize("start", [{}, {"toolUse": None}], ids=["empty", "null"])
def test_start_without_a_kind_begins_nothing(start: JSON) -> None:
    text = [BlockStarted(part=Text(text="")), TextDelta(text="Hi"), BlockEnded()]
    assert read(BEGUN, started(start), delta({"text": "Hi"}), CLOSED, STOPPED) == [STARTED, *text, STOP]


@pytest.mark.parametrize("cut", [1, 3, 4, 7])
def test_image_is_all_of_its_pieces(cut: int) -> None:
    """`ImageBlockDelta.source`: the incremental data of this delta, each in base64 of its own."""
    data = b"an image"
    pieces = [delta({"image": {"source": {"bytes": base64(part)}}}) for part in (data[:cut], data[cut:])]
    image = Image(
        source=Inline(data=base64(data), media_type="image/png"),
        extra=Extra(dialect="converse", form={"format": "png"}),
    )
    whole = [BlockStarted(part=image), BlockEnded()]
    assert read(BEGUN, started({"image": {"format": "png"}}), *pieces, CLOSED, STOPPED) == [STARTED, *whole, STOP]


def test_redacted_reasoning_is_all_of_its_pieces() -> None:
    pieces = [delta({"reasoningContent": {"redactedContent": base64(part)}}) for part in (b"a", b"bc")]
    part: Part = Reasoning(encrypted=base64(b"abc"), redacted=True, origin=Origin(dialect="converse"))
    assert read(BEGUN, *pieces, CLOSED, STOPPED) == [STARTED, BlockStarted(part=part), BlockEnded(), STOP]


def test_pieces_that_are_no_base64_fail_the_stream() -> None:
    pieces = [delta({"image": {"source": {"bytes": data}}}) for data in ("YQ==", "?")]
    failure = Failure(kind="upstream", message="the upstream's stream is malformed: $.delta: expected base64")
    assert read(BEGUN, started({"image": {"format": "png"}}), *pieces, CLOSED) == [STARTED, Failed(failure=failure)]


@pytest.mark.parametrize("data", [b"", b"{}"], ids=["empty", "object"])
@pytest.mark.parametrize("before", [(), (STOPPED,)], ids=["before-the-end", "after-it"])
def test_exception_without_a_text_fails_the_stream(data: bytes, before: tuple[tuple[str, JSON], ...]) -> None:
    decoder = CONVERSE.stream_decoder()
    messages = [ServerSentEvent(json.dumps(body).encode(), name) for name, body in (BEGUN, *before)]
    events = through([*messages, ServerSentEvent(data, "throttlingException", "exception")], decoder)
    failure = Failure(
        kind="rate_limit", message="the server failed", dialect="converse", raw_type="throttlingException"
    )
    assert list(events)[-1] == Failed(failure=failure)
