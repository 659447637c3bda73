"""The record for texts to be continued: requests, answers and streams."""

import pytest

from tests.dialects.llama_stack.wire import answered, encoded, message_of, read, written
from xenoglot.dialects.llama_stack import LLAMA_STACK_COMPLETION
from xenoglot.errors import WireError
from xenoglot.model.content import Extra, Reasoning, Refusal, Text, ToolCall
from xenoglot.model.events import (
    BlockEnded,
    BlockStarted,
    Failed,
    Finished,
    OpaqueDelta,
    Ping,
    Started,
    TextDelta,
    UsageReported,
)
from xenoglot.model.failure import Failure
from xenoglot.model.fold import unfold
from xenoglot.model.json import JSON
from xenoglot.model.request import Prompt, Request, Sampling, Tool
from xenoglot.model.response import Candidate, Finish, Response, Usage

NAME = "llama_stack_completion"
RECORD = LLAMA_STACK_COMPLETION


def decoded_request(content: JSON) -> Request:
    return RECORD.decode_request({"model_id": "m", "content": content})


def test_prompts_are_read() -> None:
    assert decoded_request("Once").prompt == Prompt(texts=("Once",))
    assert decoded_request([{"type": "text", "text": "On"}, {"type": "text", "text": "ce"}]).prompt == Prompt(
        texts=("Once",)
    )
    image = [{"type": "image", "image": {"data": "QUJD"}}, {"type": "text", "text": "is"}]
    assert decoded_request(image) == Request(
        model="m",
        prompt=Prompt(texts=("is",)),
        extra=Extra(dialect=NAME, fields={"content": image}),
    )
    with pytest.raises(WireError, match=r"\$.content: required, expected str, object or list"):
        decoded_request(None)


def test_prompts_are_written() -> None:
    prompt = Prompt(texts=("Once",), echo=True)
    request = Request(model="m", prompt=prompt, messages=(message_of("system", "Be brief."),), tools=(Tool(name="t"),))
    body, losses = encoded(request, dialect=RECORD)
    assert body == {"model_id": "m", "content": "Be brief.\n\nOnce"}
    assert losses == [
        "$.prompt echo emulated (the client's own dialect puts the text before the answer)",
        "$ messages emulated (the system turns are put before the text)",
        "$.prompt texts emulated (the system turns are put before it)",
        "$ tools dropped (the dialect has no such field)",
    ]


def test_turns_become_a_transcript() -> None:
    alone, _ = encoded(Request(model="m", messages=(message_of("user", "Hi"),)), dialect=RECORD)
    several, losses = encoded(
        Request(model="m", messages=(message_of("system", "Brief."), message_of("user", "Hi"))), dialect=RECORD
    )
    assert alone == {"model_id": "m", "content": "Hi"}
    assert several == {
        "model_id": "m",
        "content": "System: Brief.\n\nUser: Hi\n\nAssistant:",
        "sampling_params": {"stop": ["\n\nUser:"]},
    }
    assert losses == [
        "$.messages turns emulated (written as a transcript)",
        "$.sampling stop emulated (the model stops where the user would speak next)",
    ]


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        (
            Request(model="m", messages=(message_of("user", "Hi"),), prompt=Prompt(texts=("a",))),
            r"\$.messages: the target model takes messages or a prompt, not both",
        ),
        (
            Request(model="m", prompt=Prompt(texts=("a",), suffix="b")),
            r"\$.suffix: the target model cannot complete text",
        ),
        (Request(model="m", prompt=Prompt(texts=("a", "b"))), r"\$.prompt: .* one text at a time, found 2"),
        (
            Request(model="m", prompt=Prompt(texts=("a",), best_of=2)),
            r"\$.best_of: the target model generates one answer",
        ),
        (
            Request(model="m", prompt=Prompt(texts=("a",), echo=True), sampling=Sampling(logprobs=True)),
            r"\$.echo: the target model returns no log probabilities",
        ),
        (Request(model="m", prompt=Prompt(texts=((1, 2),))), r"\$.prompt: the target model does not accept token ids"),
    ],
)
def test_what_is_no_text(request_: Request, problem: str) -> None:
    with pytest.raises(WireError, match=problem):
        encoded(request_, dialect=RECORD)


CALL = ToolCall(id="1", name="t")
ANSWER = Response(
    candidates=(
        Candidate(
            content=(Text(text="a"), Reasoning(text="hm"), Refusal(text="b"), CALL), finish=Finish(reason="tool_calls")
        ),
    ),
    usage=Usage(input_tokens=1),
)
LOSSES = [
    "$.candidates[0].content[1] reasoning dropped (the dialect has no field for reasoning)",
    "$.candidates[0].content[2] refusal approximated (written as text)",
    "$.candidates[0] content approximated (its other content is written as text)",
    "$.candidates[0].finish reason approximated (only the text shows that the model refused)",
    "$.candidates[0].content[3] tool_call dropped (the dialect holds texts and images only)",
    "$.candidates[0].finish reason approximated (`tool_calls` is written as `end_of_message`)",
]
METRICS = [{"metric": "prompt_tokens", "value": 1, "unit": "tokens"}]


def test_answers_are_written() -> None:
    """L-W12: text alone."""
    body, losses = answered(ANSWER, RECORD)
    assert body == {"content": "ab", "stop_reason": "end_of_message", "metrics": METRICS}
    assert losses == LOSSES


def test_streams_are_written() -> None:
    """L16: pieces, and the reason with an empty one."""
    frames, losses = written(unfold(ANSWER), RECORD)
    assert frames == [
        {"delta": "a"},
        {"delta": "b"},
        {"delta": "", "stop_reason": "end_of_message", "metrics": METRICS},
    ]
    assert losses == LOSSES
    assert written([Started(), Ping()], RECORD)[0] == [
        ": ping",
        {"error": {"message": "502: connection lost: the upstream's stream ended without being complete"}},
    ]


def test_l16_streams_are_read() -> None:
    """L14, L16: the reason may come before the last piece; the answer is over when the stream is."""
    metrics = [{"metric": "completion_tokens", "value": 2}]
    events = read(
        {"delta": "a", "stop_reason": "end_of_turn"},
        {"delta": "b", "stop_reason": None, "x_new": 1},
        {"delta": "", "stop_reason": "out_of_tokens", "metrics": metrics},
        dialect=RECORD,
    )
    usage = events[5]
    assert isinstance(usage, UsageReported)
    assert usage.usage.output_tokens == 2
    assert events == [
        Started(),
        BlockStarted(part=Text(text="")),
        TextDelta(text="a"),
        TextDelta(text="b"),
        OpaqueDelta(dialect=NAME, data={"delta": "", "x_new": 1}, name="chunk"),
        usage,
        BlockEnded(),
        Finished(finish=Finish(reason="length", raw="out_of_tokens", dialect=NAME)),
    ]


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([{"delta": "a"}], "connection lost: the upstream's stream ended without being complete"),
        ([{"text": "a"}], "the upstream's stream is malformed: $.delta: required, expected str"),
        ([[]], "the upstream's stream is malformed: $: expected object, got list"),
    ],
)
def test_broken_streams_fail(items: list[JSON], message: str) -> None:
    """C-W11, pitfall-103."""
    assert read(*items, dialect=RECORD)[-1] == Failed(failure=Failure(kind="upstream", message=message))
