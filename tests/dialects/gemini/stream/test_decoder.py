"""Reading a stream, as a script: these chunks come in, these events come out."""

import pytest

from tests.dialects.gemini.wire import chunk
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.stage import through
from xenoglot.dialects.gemini import GEMINI
from xenoglot.model.content import Audio, Opaque, Origin, Reasoning, Text, ToolCall
from xenoglot.model.events import (
    ArgumentsDelta,
    AudioDelta,
    BlockEnded,
    BlockStarted,
    Event,
    Failed,
    Finished,
    OpaqueDelta,
    Ping,
    ReasoningDelta,
    Started,
    TextDelta,
    UsageReported,
)
from xenoglot.model.failure import Failure
from xenoglot.model.response import Finish

STARTED = Started(id="r", model="m")
STOP = Finished(finish=Finish(reason="stop", raw="STOP", dialect="gemini"))
EARLY = Failed(
    failure=Failure(kind="upstream", message="connection lost: the upstream's stream ended without being complete")
)


def read(*events: ServerSentEvent) -> list[Event]:
    return list(through(events, GEMINI.stream_decoder()))


def test_words_go_on_with_words_and_thoughts_with_thoughts() -> None:
    assert read(
        chunk({"text": "Hm", "thought": True}),
        chunk({"text": ".", "thought": True}),
        chunk({"text": "H"}, {"text": "i"}),
        chunk({"text": ""}),
        chunk({"text": "!"}, finish="STOP"),
    ) == [
        STARTED,
        BlockStarted(part=Reasoning(text="")),
        ReasoningDelta(text="Hm"),
        ReasoningDelta(text="."),
        BlockEnded(),
        BlockStarted(part=Text(text="")),
        TextDelta(text="H"),
        TextDelta(text="i"),
        TextDelta(text="!"),
        BlockEnded(),
        STOP,
    ]


def test_a_seal_ends_a_thought() -> None:
    """pitfall-106: a part with a signature is not joined with what follows."""
    whole = Reasoning(text="Hm.", signature="CiQB", origin=Origin(dialect="gemini"))
    assert read(
        chunk({"text": "Hm", "thought": True}),
        chunk({"text": ".", "thought": True, "thoughtSignature": "CiQB"}),
        chunk({"text": "So", "thought": True}, finish="STOP"),
    ) == [
        STARTED,
        BlockStarted(part=Reasoning(text="")),
        ReasoningDelta(text="Hm"),
        ReasoningDelta(text="."),
        BlockEnded(part=whole),
        BlockStarted(part=Reasoning(text="")),
        ReasoningDelta(text="So"),
        BlockEnded(),
        STOP,
    ]


def test_calls_come_whole() -> None:
    """pitfall-90, pitfall-52: the signature stays with the call."""
    events = read(
        chunk({"functionCall": {"id": "a", "name": "f", "args": {"x": 1}}, "thoughtSignature": "CiQB"}),
        chunk({"functionCall": {"id": "b", "name": "g"}}, finish="STOP"),
    )
    calls = [event.part for event in events if isinstance(event, BlockStarted)]
    assert [(one.id, one.name, one.extra and one.extra.fields) for one in calls if isinstance(one, ToolCall)] == [
        ("a", "f", {"thoughtSignature": "CiQB"}),
        ("b", "g", {}),
    ]
    assert [event.text for event in events if isinstance(event, ArgumentsDelta)] == ['{"x":1}']
    assert events[-1] == Finished(finish=Finish(reason="tool_calls", raw="STOP", dialect="gemini"))


def test_sound_grows_as_in_other_streams() -> None:
    assert read(chunk({"inlineData": {"mimeType": "audio/wav", "data": "eA=="}}, finish="STOP"))[1:4] == [
        BlockStarted(part=Audio(format="wav")),
        AudioDelta(data="eA=="),
        BlockEnded(),
    ]


def test_what_nobody_knows_is_carried_whole() -> None:
    part = {"somethingNew": 1}
    opaque = Opaque(dialect="gemini", data=part)
    assert read(chunk(part, finish="STOP")) == [STARTED, BlockStarted(part=opaque), BlockEnded(), STOP]


def test_words_after_a_reason_still_count() -> None:
    """pitfall-102: the first models said `STOP` in every chunk."""
    assert read(chunk({"text": "H"}, finish="STOP"), chunk({"text": "i"}, finish="STOP")) == [
        STARTED,
        BlockStarted(part=Text(text="")),
        TextDelta(text="H"),
        TextDelta(text="i"),
        BlockEnded(),
        STOP,
    ]


def test_usage_grows_and_is_told_once() -> None:
    """pitfall-98, C-W5."""
    first, last = {"promptTokenCount": 3}, {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5}
    events = read(
        chunk({"text": "H"}, usageMetadata=first),
        chunk({"text": "i"}, usageMetadata=first),
        chunk({"text": ""}, finish="STOP", usageMetadata=last),
    )
    counts = [
        (event.usage.input_tokens, event.usage.output_tokens) for event in events if isinstance(event, UsageReported)
    ]
    assert counts == [(3, 0), (3, 2)]


def test_a_late_field_is_carried() -> None:
    events = read(chunk({"text": "Hi"}), chunk({"text": ""}, finish="STOP", modelStatus={"modelStage": "STABLE"}))
    assert OpaqueDelta(dialect="gemini", data={"modelStatus": {"modelStage": "STABLE"}}) in events


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([], id="nothing"),
        pytest.param([chunk({"text": "Hi"})], id="no-reason"),
        pytest.param([ServerSentEvent(b"{}")], id="no-candidates"),
    ],
)
def test_without_a_reason_there_is_no_end(events: list[ServerSentEvent]) -> None:
    """pitfall-103, U13."""
    assert read(*events)[-1] == EARLY


def test_an_error_amid_the_answer() -> None:
    """pitfall-105, U22."""
    error = b'{"error": {"code": 503, "message": "Overloaded.", "status": "UNAVAILABLE"}}'
    failed = read(chunk({"text": "Hi"}), ServerSentEvent(error), chunk({"text": "!"}, finish="STOP"))[-1]
    assert isinstance(failed, Failed)
    assert (failed.failure.kind, failed.failure.status, failed.failure.message) == ("overloaded", 503, "Overloaded.")


def test_a_sign_of_life() -> None:
    silent = b'{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"index":0}]}'
    assert read(ServerSentEvent(silent), chunk({"text": ""}, finish="STOP")) == [Ping(), STARTED, STOP]


def test_an_index_beyond_all_measure() -> None:
    far = b'{"candidates":[{"index":4096,"content":{"parts":[]}}]}'
    failed = read(ServerSentEvent(far))[-1]
    assert isinstance(failed, Failed)
    assert "must be less than 128" in failed.failure.message


def test_a_chunk_of_nothing_is_a_sign_of_life() -> None:
    """pitfall-107: the answer begins with the first that says something."""
    decoder = GEMINI.stream_decoder()
    assert list(decoder.feed(ServerSentEvent(b"{}"))) == [Ping()]
    assert next(iter(decoder.feed(chunk({"text": "Hi"})))) == Started(id="r", model="m")
