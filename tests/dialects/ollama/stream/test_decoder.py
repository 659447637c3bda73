"""Reading streams: what each line becomes, as whole traces."""

from tests.dialects.ollama.wire import AT, CREATED, piece, read
from xenoglot.dialects.ollama import OLLAMA_GENERATE
from xenoglot.model.content import Extra, Image, Inline, Logprob, Reasoning, Text, ToolCall
from xenoglot.model.events import (
    ArgumentsDelta,
    BlockEnded,
    BlockStarted,
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
from xenoglot.model.response import Finish, Usage

START = Started(model="m", created=CREATED, extra=Extra(dialect="ollama", form={"created_at": AT}))
STOP = Finish(reason="stop", raw="stop", dialect="ollama")
LAST = {**piece(done=True), "done_reason": "stop"}


def failed(message: str) -> Failed:
    return Failed(failure=Failure(kind="upstream", message=message))


def test_thoughts_words_and_a_call() -> None:
    call = {"id": "c1", "function": {"index": 0, "name": "f", "arguments": {"b": 1, "a": 2.0}}}
    lines = [piece(thinking="H"), piece(thinking="m"), piece("Hi"), piece("!"), piece(tool_calls=[call])]
    cost = {"prompt_eval_count": 3, "eval_count": 5, "total_duration": 9}
    header = ToolCall(id="c1", name="f", extra=Extra(dialect="ollama", form={"index": 0}))
    assert read(*lines, {**LAST, **cost}) == [
        START,
        BlockStarted(part=Reasoning(text="")),
        ReasoningDelta(text="H"),
        ReasoningDelta(text="m"),
        BlockEnded(),
        BlockStarted(part=Text(text="")),
        TextDelta(text="Hi"),
        TextDelta(text="!"),
        BlockEnded(),
        BlockStarted(part=header),
        ArgumentsDelta(text='{"b":1,"a":2.0}'),
        BlockEnded(),
        UsageReported(usage=Usage(input_tokens=3, output_tokens=5)),
        Finished(
            finish=Finish(reason="tool_calls", raw="stop", dialect="ollama"),
            extra=Extra(dialect="ollama", fields={"total_duration": 9}),
        ),
    ]


def test_a_whole_answer_in_one_line() -> None:
    line = {**LAST, "message": {"role": "assistant", "content": "Hi", "thinking": "Hm", "images": ["iVBORw0KGgoAAAAN"]}}
    picture = Image(source=Inline(data="iVBORw0KGgoAAAAN", media_type="image/png"))
    assert read(line) == [
        START,
        BlockStarted(part=Reasoning(text="")),
        ReasoningDelta(text="Hm"),
        BlockEnded(),
        BlockStarted(part=picture),
        BlockEnded(),
        BlockStarted(part=Text(text="")),
        TextDelta(text="Hi"),
        BlockEnded(),
        Finished(finish=STOP),
    ]


def test_a_piece_that_says_nothing_is_a_proof_of_life() -> None:
    assert read(piece(), LAST) == [Ping(), START, Finished(finish=STOP)]


def test_what_nobody_knows_is_carried() -> None:
    assert read({**piece("a"), "x": 1}, piece(y=2), {**LAST, "z": 3}) == [
        START,
        BlockStarted(part=Text(text="")),
        TextDelta(text="a"),
        OpaqueDelta(dialect="ollama", data={"x": 1}),
        OpaqueDelta(dialect="ollama", data={"message": {"y": 2}}),
        BlockEnded(),
        Finished(finish=STOP, extra=Extra(dialect="ollama", fields={"z": 3})),
    ]


def test_probabilities_wait_for_words() -> None:
    first, second = {"token": "H", "logprob": -1.0}, {"token": "a", "logprob": -2.0}
    bare = Extra(dialect="ollama", form={"bare": True})
    assert read({**piece(thinking="H"), "logprobs": [first]}, {**piece("a"), "logprobs": [second]}, LAST)[3:] == [
        BlockEnded(),
        BlockStarted(part=Text(text="")),
        TextDelta(
            text="a",
            logprobs=(
                Logprob(token="H", logprob=-1.0, top=(), extra=bare),
                Logprob(token="a", logprob=-2.0, top=(), extra=bare),
            ),
        ),
        BlockEnded(),
        Finished(finish=STOP),
    ]


def test_the_last_piece_of_older_servers_has_no_message() -> None:
    assert read({"model": "m", "created_at": AT, "done": True}) == [
        START,
        Finished(finish=Finish(reason="stop", dialect="ollama")),
    ]


def test_without_its_last_piece_a_stream_is_broken() -> None:
    """pitfall-103, U13."""
    assert read(piece("a")) == [
        START,
        BlockStarted(part=Text(text="")),
        TextDelta(text="a"),
        failed("connection lost: the upstream's stream ended without being complete"),
    ]
    assert read() == [failed("connection lost: the upstream's stream ended without being complete")]


def test_an_error_ends_it() -> None:
    """pitfall-104."""
    failure = Failure(kind="upstream", message="no memory", dialect="ollama")
    assert read({"error": "no memory"}, LAST) == [Failed(failure=failure)]


def test_what_cannot_be_read_ends_it() -> None:
    """U17, U18."""
    cut = failed("server error: the upstream's stream cannot be read: $: not valid JSON: Input data was truncated")
    assert read(b'{"model', LAST) == [cut]
    assert read({**piece(), "message": 1}) == [
        failed("server error: the upstream's stream cannot be read: $.message: expected object, got int")
    ]


def test_the_other_endpoint_has_its_words_beside_the_rest() -> None:
    piece_ = {"model": "m", "created_at": AT, "response": "a", "done": False}
    start = Started(model="m", created=CREATED, extra=Extra(dialect="ollama_generate", form={"created_at": AT}))
    last = {**piece_, "response": "", "done": True, "done_reason": "length", "context": [1]}
    assert read(piece_, {**piece_, "response": "b"}, last, dialect=OLLAMA_GENERATE) == [
        start,
        BlockStarted(part=Text(text="")),
        TextDelta(text="a"),
        TextDelta(text="b"),
        BlockEnded(),
        Finished(
            finish=Finish(reason="length", raw="length", dialect="ollama"),
            extra=Extra(dialect="ollama_generate", fields={"context": [1]}),
        ),
    ]


def test_an_empty_reason_is_none() -> None:
    assert read(piece("Hi"), {**piece("", done=True), "done_reason": ""})[-1] == Finished(
        finish=Finish(reason="stop", dialect="ollama")
    )
