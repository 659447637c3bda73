"""Writing a stream, as a script: these events come in, these chunks come out."""

import pytest

from tests.dialects.gemini.wire import event_data
from xenoglot.codec.framing.formats import JSON_ARRAY
from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import through
from xenoglot.dialects.gemini import GEMINI
from xenoglot.model.content import Audio, Citation, Opaque, Reasoning, Refusal, Text, ToolCall
from xenoglot.model.events import (
    ArgumentsDelta,
    AudioDelta,
    BlockEnded,
    BlockStarted,
    CitationDelta,
    Event,
    Failed,
    Finished,
    OpaqueDelta,
    Ping,
    ReasoningDelta,
    SignatureDelta,
    Started,
    TextDelta,
    UsageReported,
)
from xenoglot.model.failure import Failure
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import Request
from xenoglot.model.response import Finish, Usage

ASKED = Request(model="m", stream=True)
STARTED = Started(id="r", model="m")
STOP = Finished(finish=Finish(reason="stop"))
TAIL: JSONObject = {"responseId": "r", "modelVersion": "m"}


def write(*events: Event) -> tuple[list[JSON], list[str]]:
    losses = Losses()
    chunks = event_data(list(through(events, GEMINI.stream_encoder(ASKED, losses))))
    return chunks, [str(loss) for loss in losses]


def piece(*parts: JSON, **fields: JSON) -> JSONObject:
    return {"candidates": [{"content": {"parts": list(parts), "role": "model"}, "index": 0, **fields}], **TAIL}


END = piece({"text": ""}, finishReason="STOP")


def test_words_as_they_come_and_the_rest_at_the_end() -> None:
    """pitfall-102: usage may come after the reason of the end."""
    assert write(
        STARTED,
        BlockStarted(part=Text(text="")),
        TextDelta(text="H"),
        TextDelta(text="i"),
        BlockEnded(),
        STOP,
        UsageReported(usage=Usage(input_tokens=3, output_tokens=2)),
    ) == (
        [
            piece({"text": "H"}),
            piece({"text": "i"}),
            END | {"usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5}},
        ],
        [],
    )


def test_a_call_when_it_is_whole() -> None:
    """pitfall-94, pitfall-95."""
    assert write(
        STARTED,
        BlockStarted(part=ToolCall(id="a", name="f")),
        ArgumentsDelta(text='{"x"'),
        ArgumentsDelta(text=":1}"),
        BlockEnded(),
        BlockStarted(part=ToolCall(id="b", name="g")),
        BlockEnded(),
        Finished(finish=Finish(reason="tool_calls")),
    )[0] == [
        piece({"functionCall": {"id": "a", "name": "f", "args": {"x": 1}}}),
        piece({"functionCall": {"id": "b", "name": "g", "args": {}}}),
        END,
    ]


def test_the_last_piece_of_a_thought_waits_for_its_seal() -> None:
    chunks, losses = write(
        STARTED,
        BlockStarted(part=Reasoning(text="")),
        ReasoningDelta(text="H"),
        ReasoningDelta(text="m"),
        SignatureDelta(signature="x"),
        BlockEnded(),
        STOP,
    )
    wrapped = "eGVub2dsb3Q6c2VhbGVkOltudWxsLG51bGwsIngiLG51bGwsbnVsbF0="
    assert chunks == [
        piece({"text": "H", "thought": True}),
        piece({"text": "m", "thought": True, "thoughtSignature": wrapped}),
        END,
    ]
    assert losses == [
        "$.candidates[0].content[0] signature emulated (only its maker can open it; wrapped to come back)"
    ]


def test_summaries_are_paragraphs() -> None:
    chunks, _ = write(
        STARTED,
        BlockStarted(part=Reasoning(summary=())),
        ReasoningDelta(text="a", summary=0),
        ReasoningDelta(text="b", summary=1),
        BlockEnded(),
        STOP,
    )
    assert chunks == [piece({"text": "a", "thought": True}), piece({"text": "\n\nb", "thought": True}), END]


def test_sound_when_it_is_whole() -> None:
    chunks, losses = write(
        STARTED,
        BlockStarted(part=Audio(format="wav")),
        AudioDelta(data="eA==", transcript="Hi"),
        BlockEnded(),
        STOP,
    )
    assert chunks == [piece({"inlineData": {"mimeType": "audio/wav", "data": "eA=="}}), END]
    assert losses == ["$.candidates[0].content[0] transcript dropped (a sound of the dialect has none)"]


def test_words_of_a_refusal() -> None:
    """pitfall-72."""
    chunks, _ = write(STARTED, BlockStarted(part=Refusal(text="")), TextDelta(text="No."), BlockEnded(), STOP)
    assert chunks == [piece({"text": "No."}), piece({"text": ""}, finishReason="SAFETY")]


def test_what_others_alone_understand() -> None:
    opaque = Opaque(dialect="alien", data={}, text="[beep]")
    chunks, losses = write(
        STARTED,
        OpaqueDelta(dialect="alien", data={}, name="x"),
        BlockStarted(part=opaque),
        BlockEnded(),
        STOP,
    )
    assert chunks == [piece({"text": "[beep]"}), END]
    assert losses == [
        "$ x dropped (only alien has it)",
        "$.candidates[0].content[0] part approximated (only alien understands it; its words are written)",
    ]


def test_a_sign_of_life_is_no_comment() -> None:
    """pitfall-107: the SDK for Python reads a comment as a broken line."""
    (event,) = GEMINI.stream_encoder(ASKED, Losses()).feed(Ping())
    assert event.comment is None
    assert decode_json(event.data) == {
        "candidates": [{"content": {"parts": [{"text": ""}], "role": "model"}, "index": 0}]
    }


@pytest.mark.parametrize(
    ("events", "code", "status"),
    [
        ((STARTED, Failed(failure=Failure(kind="overloaded", message="Busy."))), 503, "UNAVAILABLE"),
        ((STARTED,), 502, "UNAVAILABLE"),
        ((STARTED, BlockStarted(part=Text(text=""))), 502, "UNAVAILABLE"),
    ],
)
def test_a_failure_is_the_last_word(events: tuple[Event, ...], code: int, status: str) -> None:
    """pitfall-104, U13."""
    (error,) = write(*events, TextDelta(text="late"))[0] if isinstance(events[-1], Failed) else write(*events)[0]
    assert (error["error"]["code"], error["error"]["status"]) == (code, status)


def test_an_array_for_who_asks_for_no_events() -> None:
    events: list[Event] = [STARTED, BlockStarted(part=Text(text="")), TextDelta(text="Hi"), BlockEnded(), STOP]
    chunks = through(events, GEMINI.stream_encoder(ASKED, Losses()))
    assert decode_json(b"".join(through(chunks, JSON_ARRAY.encoder()))) == [piece({"text": "Hi"}), END]


def test_many_citations_take_no_more_time_for_each() -> None:
    """Long answers cite a lot; a citation of all that was said does not say it again."""
    cited = Citation(kind="url_citation", url="http://x")
    grown = [event for _ in range(50) for event in (TextDelta(text="word"), CitationDelta(citation=cited))]
    chunks, _ = write(STARTED, BlockStarted(part=Text(text="")), *grown, BlockEnded(), STOP)
    supports = chunks[-1]["candidates"][0]["groundingMetadata"]["groundingSupports"]
    assert (
        supports == [{"segment": {"partIndex": 0, "startIndex": 0, "endIndex": 200}, "groundingChunkIndices": [0]}] * 50
    )
