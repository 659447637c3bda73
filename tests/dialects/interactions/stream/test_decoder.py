"""Reading a stream, as a script: these events come in, those come out."""

import json

import pytest

from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.stage import through
from xenoglot.dialects.interactions import INTERACTIONS
from xenoglot.model.content import HostedCall, Text, ToolCall
from xenoglot.model.events import ArgumentsDelta, BlockEnded, BlockStarted, Event, Failed, Finished, Started, TextDelta
from xenoglot.model.failure import Failure
from xenoglot.model.json import JSON
from xenoglot.model.response import Finish

CREATED: JSON = {"event_type": "interaction.created", "interaction": {"id": "v1_1", "model": "m"}}
COMPLETED: JSON = {"event_type": "interaction.completed", "interaction": {"id": "v1_1", "status": "completed"}}
DONE = Finished(finish=Finish(reason="stop", raw="completed", dialect="interactions"))


def read(*events: JSON) -> list[Event]:
    """Return the events between the start and the end of an answer."""
    frames = [ServerSentEvent(json.dumps(event).encode()) for event in (CREATED, *events, COMPLETED)]
    started, *middle = through(frames, INTERACTIONS.stream_decoder())
    assert isinstance(started, Started)
    return middle


def start(index: int, kind: str, **fields: JSON) -> JSON:
    return {"event_type": "step.start", "index": index, "step": {"type": kind, **fields}}


def grow(index: int, kind: str, **fields: JSON) -> JSON:
    return {"event_type": "step.delta", "index": index, "delta": {"type": kind, **fields}}


def stop(index: int) -> JSON:
    return {"event_type": "step.stop", "index": index}


def arguments(index: int, text: str) -> JSON:
    return grow(index, "arguments_delta", arguments=text)


def call(name: str, *texts: str) -> list[Event]:
    grown = [ArgumentsDelta(text=text) for text in texts]
    return [BlockStarted(part=ToolCall(id=name, name=name)), *grown, BlockEnded()]


def text(*texts: str) -> list[Event]:
    return [BlockStarted(part=Text(text="")), *(TextDelta(text=text) for text in texts), BlockEnded()]


def f(index: int, name: str) -> JSON:
    return start(index, "function_call", id=name, name=name)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param(
            [f(0, "a"), f(1, "b"), arguments(0, '{"x":'), arguments(1, "{}"), arguments(0, "1}"), stop(0), stop(1)],
            [*call("a", '{"x":', "1}"), *call("b", "{}")],
            id="two-calls",
        ),
        pytest.param(
            [f(0, "a"), f(1, "b"), f(2, "c"), arguments(2, "{}"), stop(2), arguments(1, "{}"), stop(1), stop(0)],
            [*call("a"), *call("b", "{}"), *call("c", "{}")],
            id="three-that-stop-from-the-last",
        ),
        pytest.param(
            [f(0, "a"), f(1, "b"), arguments(1, "{}"), arguments(0, "{}")],
            [*call("a", "{}"), *call("b", "{}")],
            id="without-stops",
        ),
        pytest.param(
            [
                start(0, "model_output"),
                grow(0, "text", text="Hi"),
                f(1, "a"),
                grow(0, "text", text=" you"),
                arguments(1, "{}"),
                stop(0),
                stop(1),
            ],
            [*text("Hi"), *call("a", "{}"), *text(" you")],
            id="text-next-to-a-call",
        ),
    ],
)
def test_each_delta_is_of_the_step_with_its_index(events: list[JSON], expected: list[Event]) -> None:
    assert read(*events) == [*expected, DONE]


def test_arguments_of_a_step_that_did_not_start_fail_the_stream() -> None:
    why = "$.delta: arguments of a step that did not start, or has stopped"
    failure = Failure(kind="upstream", message=f"the upstream's stream is malformed: {why}")
    assert read(f(0, "a"), arguments(0, "{}"), stop(0), arguments(0, "{}")) == [
        *call("a", "{}"),
        Failed(failure=failure),
    ]


def test_arguments_of_a_hosted_call_that_are_no_object_are_kept() -> None:
    found = read(start(0, "google_search_call", id="a"), arguments(0, '{"queries": ["x'), stop(0))
    part = HostedCall(id="a", kind="web_search")
    assert found == [BlockStarted(part=part), ArgumentsDelta(text='{"queries": ["x'), BlockEnded(), DONE]
