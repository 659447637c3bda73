"""The runtime's stream becomes lawful events; one that was cut, or is broken, becomes a failure."""

import json

import pytest

from tests.engine.shared_engine import assert_valid
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.engine.decoding.completion_stream import CompletionContext, CompletionDecoder
from xenoglot.engine.decoding.text_output import PlainTextStage
from xenoglot.engine.errors import BROKEN, CRASHED
from xenoglot.model.content import Logprob, Text
from xenoglot.model.events import BlockEnded, BlockStarted, Event, Failed, Finished, Started, TextDelta, UsageReported
from xenoglot.model.json import JSONObject
from xenoglot.model.response import Finish, Usage

STARTED = Started(model="m")
PROGRESS = {"index": 0, "content": "", "tokens": [0], "prompt_progress": {"total": 9, "cache": 4, "processed": 9}}


def plan(candidates: int = 1, *, bounded: bool = False, tops: int | None = None) -> CompletionContext:
    speeches = tuple(PlainTextStage(index) for index in range(candidates))
    return CompletionContext(model="m", prompt_tokens=9, speeches=speeches, bounded=bounded, tops=tops)


def item(content: str, predicted: int, index: int = 0, **more: object) -> JSONObject:
    return {"index": index, "content": content, "stop": False, "tokens_predicted": predicted, **more}


def end(kind: str, predicted: int, index: int = 0, **more: object) -> JSONObject:
    return {"content": "", "stop": True, "stop_type": kind, "tokens_predicted": predicted, "index": index, **more}


def read(plan: CompletionContext, *items: JSONObject) -> list[Event]:
    stage = CompletionDecoder(plan)
    found = [event for each in items for event in stage.feed(ServerSentEvent(json.dumps(each).encode()))]
    return assert_valid([*found, *stage.close()])


def used(predicted: int, cached: int | None = None) -> UsageReported:
    return UsageReported(usage=Usage(input_tokens=9, output_tokens=predicted, cache_read=cached))


def block(text: str, candidate: int = 0) -> list[Event]:
    start = BlockStarted(part=Text(text=""), candidate=candidate)
    return [start, TextDelta(text=text, candidate=candidate), BlockEnded(candidate=candidate)]


@pytest.mark.parametrize(
    ("last", "bounded", "finish"),
    [
        pytest.param(end("eos", 2), False, Finish(reason="stop"), id="eos"),
        pytest.param(end("none", 2), False, Finish(reason="stop"), id="none"),
        pytest.param(
            end("word", 2, stopping_word="x"), False, Finish(reason="stop_sequence", stop_sequence="x"), id="word"
        ),
        pytest.param(end("limit", 2), False, Finish(reason="length"), id="limit"),
        pytest.param(end("limit", 2), True, Finish(reason="context"), id="limit-of-the-context"),
        pytest.param(end("limit", 2, truncated=True), False, Finish(reason="context"), id="truncated"),
    ],
)
def test_why_it_ended(last: JSONObject, bounded: bool, finish: Finish) -> None:  # noqa: FBT001 (a case)
    found = read(plan(bounded=bounded), PROGRESS, item("Hi", 1), last)
    assert found == [STARTED, used(1, 4), *block("Hi"), used(2, 4), Finished(finish=finish)]


def test_nothing_said_is_an_answer() -> None:
    found = read(plan(), PROGRESS, end("eos", 1))
    assert found == [STARTED, used(1, 4), used(1, 4), Finished(finish=Finish(reason="stop"))]


def test_several_candidates() -> None:
    found = read(plan(2), item("A", 1, 1), item("B", 1, 0), end("eos", 2, 1), end("limit", 1, 0))
    one, two = block("A", 1), block("B", 0)
    assert found == [
        STARTED,
        used(1),
        *one[:2],
        *two[:2],
        *one[2:],
        used(3),
        Finished(finish=Finish(reason="stop"), candidate=1),
        *two[2:],
        used(3),
        Finished(finish=Finish(reason="length")),
    ]


@pytest.mark.parametrize(("tops", "kept"), [(0, 0), (1, 1), (5, 2)], ids=str)
def test_likelihoods(tops: int, kept: int) -> None:
    others = [
        {"token": "Hi", "logprob": -0.5, "bytes": [72, 105]},
        {"token": "Ho", "logprob": -1.5, "bytes": [72, 111]},
    ]
    held_back = {"token": "", "logprob": -9.0, "bytes": [], "top_logprobs": []}
    chosen = {**others[0], "id": 5, "top_logprobs": others}
    found = read(plan(tops=tops), item("Hi", 1, completion_probabilities=[held_back, chosen]), end("eos", 2))
    hi = Logprob(token="Hi", logprob=-0.5, bytes=(72, 105))
    ho = Logprob(token="Ho", logprob=-1.5, bytes=(72, 111))
    whole = Logprob(token="Hi", logprob=-0.5, bytes=(72, 105), top=(hi, ho)[:kept])
    assert found[3] == TextDelta(text="Hi", logprobs=(whole,))


@pytest.mark.parametrize(
    ("items", "failure"),
    [
        pytest.param([], CRASHED, id="nothing"),
        pytest.param([PROGRESS], CRASHED, id="cut-in-the-prompt"),
        pytest.param([item("Hi", 1)], CRASHED, id="cut-in-the-text"),
        pytest.param([{"error": {"code": 500, "message": "Context size has been exceeded."}}], BROKEN, id="error"),
        pytest.param([{"index": "x"}], BROKEN, id="not-understood"),
    ],
)
def test_a_broken_stream_fails(items: list[JSONObject], failure: object) -> None:
    stage = CompletionDecoder(plan())
    found = [event for each in items for event in stage.feed(ServerSentEvent(json.dumps(each).encode()))]
    if not isinstance(found[-1] if found else None, Failed):
        found += stage.close()
    assert assert_valid(found)[-1] == Failed(failure=failure)  # type: ignore[arg-type]  # a case
    assert not stage.complete
