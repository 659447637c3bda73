"""Streams, read: what chunks of one and of several choices become."""

import pytest

from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.grammar import Grammar
from xenoglot.codec.json.json_io import encode_json
from xenoglot.codec.stage import Pipeline, through
from xenoglot.dialect_registry import get
from xenoglot.model.content import Text
from xenoglot.model.events import (
    BlockEnded,
    BlockStarted,
    Event,
    Failed,
    Finished,
    OpaqueDelta,
    Started,
    TextDelta,
    UsageReported,
)
from xenoglot.model.failure import Failure
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.response import Candidate, Finish, Usage

COMPLETIONS = get("completions")
DONE = b"[DONE]"
EARLY = Failed(
    failure=Failure(kind="upstream", message="connection lost: the upstream's stream ended without being complete")
)


def read(*items: JSON | bytes) -> list[Event]:
    """Return the events of a stream, each checked against the grammar."""
    events = [ServerSentEvent(item if isinstance(item, bytes) else encode_json(item)) for item in items]
    return list(through(events, Pipeline(COMPLETIONS.stream_decoder(), Grammar())))


def chunk(text: str, finish: str | None = None, index: int = 0) -> JSONObject:
    return {"choices": [{"text": text, "index": index, "logprobs": None, "finish_reason": finish}]}


def words(*texts: str, candidate: int = 0) -> list[Event]:
    deltas = [TextDelta(text=text, candidate=candidate) for text in texts]
    return [BlockStarted(part=Text(text=""), candidate=candidate), *deltas]


def ends(reason: str = "stop", candidate: int = 0) -> list[Event]:
    finish = Finish(reason=reason, raw=reason, dialect="completions")  # type: ignore[arg-type]
    return [BlockEnded(candidate=candidate), Finished(finish=finish, candidate=candidate)]


def bare(events: list[Event]) -> list[Event]:
    """Return the events without what came beside them."""
    kept = [event for event in events if not isinstance(event, OpaqueDelta)]
    return [
        Started()
        if isinstance(event, Started)
        else Finished(finish=event.finish, candidate=event.candidate)
        if isinstance(event, Finished)
        else event
        for event in kept
    ]


@pytest.mark.parametrize("key", ["delta", "message"])
def test_words_where_a_turn_would_have_them(key: str) -> None:
    """L8: some servers answer in the shape of a turn; the text is where the choice says it is."""
    turn = {"role": "assistant", "content": "Hi"}
    events = read({"choices": [{"index": 0, key: turn}]}, chunk("", "stop"), DONE)
    assert bare(events) == [Started(), *words("Hi"), *ends()]
    whole = COMPLETIONS.decode_response({"choices": [{"index": 0, "finish_reason": "stop", key: turn}]})
    assert [candidate.content for candidate in whole.candidates] == [(Text(text="Hi"),)]


def test_the_text_itself_comes_first() -> None:
    """L8: a text is the text, whatever stands beside it."""
    whole = COMPLETIONS.decode_response({"choices": [{"index": 0, "text": "a", "message": {"content": "b"}}]})
    assert [candidate.content for candidate in whole.candidates] == [(Text(text="a"),)]
    assert whole.candidates[0] == Candidate(content=(Text(text="a"),), extra=whole.candidates[0].extra)


def test_the_reason_is_not_forgotten() -> None:
    """L-W1, L-W2, L-W3: words beside the reason and behind it are words; a chunk without choices ends nothing."""
    usage = {"prompt_tokens": 1, "completion_tokens": 3, "total_tokens": 4}
    events = read(chunk("a"), chunk("b", "length"), chunk("c"), {"choices": [], "usage": usage}, DONE)
    counted = UsageReported(usage=Usage(input_tokens=1, output_tokens=3))
    assert bare(events) == [Started(), *words("a", "b", "c"), counted, *ends("length")]


def test_choices_grow_side_by_side() -> None:
    """L-W12: each text goes to the choice it names; where none is named the place counts."""
    both = {"choices": [{"text": "c", "finish_reason": "stop"}, {"text": "d", "finish_reason": "length"}]}
    events = read(chunk("a", index=1), chunk("b", index=0), both, DONE)
    assert bare(events) == [
        Started(),
        *words("a", candidate=1),
        *words("b"),
        TextDelta(text="c"),
        TextDelta(text="d", candidate=1),
        *ends("length", candidate=1),
        *ends(),
    ]


@pytest.mark.parametrize(
    "stream",
    [
        pytest.param([DONE], id="nothing"),
        pytest.param([chunk(""), DONE], id="no-reason-and-no-words"),
        pytest.param([chunk("a", "stop"), chunk("b", index=1)], id="one-of-two"),
    ],
)
def test_what_nobody_ended_failed(stream: list[JSON | bytes]) -> None:
    """pitfall-71: a polite end is none without a reason for each choice."""
    assert read(*stream)[-1] == EARLY


def test_u15_done_ends_words_without_a_reason() -> None:
    """findings-A4."""
    finish = Finish(reason="stop", dialect="completions", assumed=True)
    assert read(chunk("a"), DONE)[-1] == Finished(finish=finish)


def test_a_choice_out_of_all_bounds() -> None:
    assert read(chunk("a", index=1 << 40))[-1] == Failed(
        failure=Failure(
            kind="upstream",
            message="server error: the upstream's stream cannot be read: $.choices[0].index: must be less than 16384",
        )
    )
