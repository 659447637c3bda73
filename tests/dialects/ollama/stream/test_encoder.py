"""Writing streams: the lines of each event, as whole traces."""

import pytest

from tests.dialects.ollama.wire import AT, CREATED, piece, read, written
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import through
from xenoglot.dialects.ollama import OLLAMA, OLLAMA_GENERATE
from xenoglot.model.content import Audio, Image, Inline, Logprob, Opaque, Reasoning, Refusal, Text, ToolCall
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
    SignatureDelta,
    Started,
    TextDelta,
    UsageReported,
)
from xenoglot.model.failure import Failure
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import Request
from xenoglot.model.response import Finish, Usage

START = Started(model="m", created=CREATED)
WHOLE = "2025-10-26T17:21:21Z"
STOP = Finished(finish=Finish(reason="stop"))


def line(content: str = "", **message: JSON) -> JSONObject:
    return {**piece(content, **message), "created_at": WHOLE}


def last(reason: str = "stop", **cost: JSON) -> JSONObject:
    return {**line(), "done": True, "done_reason": reason, **cost}


def test_words_thoughts_and_the_end_behind_the_usage() -> None:
    events: list[Event] = [
        START,
        BlockStarted(part=Reasoning(text="")),
        ReasoningDelta(text="Hm"),
        SignatureDelta(signature="s"),
        BlockEnded(),
        BlockStarted(part=Text(text="")),
        TextDelta(text="Hi"),
        TextDelta(text=""),
        BlockEnded(),
        STOP,
        UsageReported(usage=Usage(input_tokens=3, output_tokens=5, cache_read=1)),
    ]
    assert written(events) == (
        [line(thinking="Hm"), line("Hi"), last(prompt_eval_count=3, eval_count=5)],
        [
            "$.candidates[0].content[0] signature dropped (the dialect has no such field)",
            "$.usage cache_read dropped (the dialect has no such field)",
        ],
    )


def test_a_call_is_written_when_it_is_whole() -> None:
    events: list[Event] = [
        START,
        BlockStarted(part=ToolCall(id="c1", name="f")),
        ArgumentsDelta(text='{"a"'),
        ArgumentsDelta(text=": 1}"),
        BlockEnded(),
        BlockStarted(part=ToolCall(id="c2", name="g", arguments="{")),
        BlockEnded(),
        Finished(finish=Finish(reason="tool_calls")),
    ]
    assert written(events) == (
        [
            line(tool_calls=[{"id": "c1", "function": {"index": 0, "name": "f", "arguments": {"a": 1}}}]),
            line(tool_calls=[{"id": "c2", "function": {"index": 1, "name": "g", "arguments": {"_raw": "{"}}}]),
            last(),
        ],
        ["$.candidates[0].content[1] arguments approximated (no JSON object; written as `_raw`)"],
    )


def test_summaries_are_paragraphs() -> None:
    events: list[Event] = [
        START,
        BlockStarted(part=Reasoning(summary=())),
        ReasoningDelta(text="a", summary=0),
        ReasoningDelta(text="b", summary=0),
        ReasoningDelta(text="c", summary=1),
        BlockEnded(),
        STOP,
    ]
    assert written(events) == (
        [line(thinking="a"), line(thinking="b"), line(thinking="\n\nc"), last()],
        ["$.candidates[0].content[0] summary approximated (written as the reasoning itself)"],
    )


@pytest.mark.parametrize(
    ("whole", "said"),
    [(Text(text="Hi there"), " there"), (Text(text="Hi"), None)],
    ids=["more", "no-more"],
)
def test_what_a_block_says_at_its_end_is_written(whole: Text, said: str | None) -> None:
    begun = BlockStarted(part=Text(text=""))
    events: list[Event] = [START, begun, TextDelta(text="Hi"), BlockEnded(part=whole), STOP]
    assert written(events) == ([line("Hi"), *([line(said)] if said else []), last()], [])


def test_a_proof_of_life_is_a_piece_without_words() -> None:
    """Python's SDK and Go's client read an empty line as JSON that is broken."""
    assert written([Ping(), START, STOP])[0][0] == {**line(), "created_at": "1970-01-01T00:00:00Z"}


def test_what_ends_a_line_elsewhere_is_escaped() -> None:
    """U19: python's SDK ends lines as Unicode does."""
    said = TextDelta(text="a\u2028b\u2029c\x85d\U0001f600")
    events: list[Event] = [START, BlockStarted(part=Text(text="")), said, BlockEnded(), STOP]
    first, _ = through(events, OLLAMA.stream_encoder(Request(model="m"), Losses()))
    assert first.data.decode().splitlines() == [first.data.decode()]
    assert read(first.data, last())[2] == said


def test_probabilities_stand_beside_the_words() -> None:
    said = TextDelta(text="Hi", logprobs=(Logprob(token="Hi", logprob=-1.0, bytes=(72, 105)),))
    lines, _ = written([START, BlockStarted(part=Text(text="")), said, BlockEnded(), STOP])
    assert lines == [{**line("Hi"), "logprobs": [{"token": "Hi", "logprob": -1.0, "bytes": [72, 105]}]}, last()]


def test_what_the_wire_lacks_is_words_or_a_loss() -> None:
    events: list[Event] = [
        START,
        BlockStarted(part=Refusal(text="No")),
        BlockEnded(),
        BlockStarted(part=Opaque(dialect="x", data={"type": "map"})),
        BlockEnded(part=Opaque(dialect="x", data={"type": "map"}, text="Oslo")),
        BlockStarted(part=Audio(id="a", source=Inline(data=""))),
        AudioDelta(data="eA==", transcript="Hel"),
        AudioDelta(transcript="lo"),
        BlockEnded(),
        OpaqueDelta(dialect="x", data={}, name="event"),
        Finished(finish=Finish(reason="refusal", explanation="why")),
    ]
    assert written(events) == (
        [line("No"), line("Oslo"), line("Hello"), last()],
        [
            "$.candidates[0].content[0] refusal approximated (written as words)",
            "$.candidates[0].content[1] map approximated (written as its text)",
            "$.candidates[0].content[2] audio approximated (written as its transcript)",
            "$ event dropped (only x has it)",
            "$.candidates[0] finish approximated (`refusal` is written as `stop`)",
            "$.candidates[0].finish explanation dropped (there is no field for it)",
            "$.candidates[0] finish approximated (only the text shows that the model refused)",
        ],
    )


def test_pictures_go_to_clients_of_this_server_alone() -> None:
    picture = BlockStarted(part=Image(source=Inline(data="iVBORw0KGgoAAAAN")))
    own = [*read(piece(), {**piece(done=True, images=["iVBORw0KGgoAAAAN"]), "done_reason": "stop"})]
    assert written(own)[0][1] == piece(images=["iVBORw0KGgoAAAAN"])
    assert written([START, picture, BlockEnded(), STOP]) == (
        [last()],
        ["$.candidates[0].content[0] image dropped (clients fail on one in an answer)"],
    )


def test_one_answer_is_all_the_wire_holds() -> None:
    other: list[Event] = [
        BlockStarted(part=Text(text="b"), candidate=1),
        BlockEnded(candidate=1),
        Finished(finish=Finish(reason="stop"), candidate=1),
    ]
    assert written([START, *other, STOP]) == (
        [last()],
        ["$.candidates[1] candidate dropped (the wire holds one answer)"],
    )
    assert written([START, *other])[0] == [
        {"error": "connection lost: the upstream's stream ended without being complete"}
    ]


def test_a_failure_is_the_last_line() -> None:
    """pitfall-104."""
    broken = Failed(failure=Failure(kind="overloaded", message="busy"))
    events: list[Event] = [START, BlockStarted(part=Text(text="a")), broken]
    assert written(events) == ([line("a"), {"error": "busy"}], [])


def test_the_end_alone_ends_a_stream() -> None:
    """U13."""
    assert written([START])[0] == [{"error": "connection lost: the upstream's stream ended without being complete"}]


def test_the_time_goes_home_as_it_came() -> None:
    events = read(piece("Hi"), {**piece(done=True), "done_reason": "stop", "total_duration": 5})
    assert written(events)[0] == [piece("Hi"), {**piece(done=True), "done_reason": "stop", "total_duration": 5}]


def test_what_both_endpoints_know_goes_to_the_other() -> None:
    events = read(piece("Hi"), {**piece(done=True), "done_reason": "stop", "total_duration": 5, "x": 1})
    head = {"model": "m", "created_at": AT}
    assert written(events, dialect=OLLAMA_GENERATE) == (
        [
            {**head, "done": False, "response": "Hi"},
            {**head, "response": "", "done": True, "done_reason": "stop", "total_duration": 5},
        ],
        ["$.candidates[0] x dropped (only ollama has it)"],
    )
