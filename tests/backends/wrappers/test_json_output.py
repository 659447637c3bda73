"""Answers in JSON from models that are held to none: asked, checked, asked again, and read by the official SDKs."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import aclosing
from typing import TYPE_CHECKING, Literal

import anthropic
import msgspec
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from tests.gateway.running_gateway import run_gateway
from tests.laws.streams import MORE_HEADERS, streams
from xenoglot.backends.backend import ByteAnswer, Call, EventAnswer
from xenoglot.backends.callable import Callable
from xenoglot.backends.http.client import Transport
from xenoglot.backends.remote.backend import Remote
from xenoglot.backends.scripted import Scripted
from xenoglot.backends.wrappers.emulation_settings import Emulate
from xenoglot.backends.wrappers.json_output import JSONBackend
from xenoglot.codec.grammar import Grammar
from xenoglot.codec.loss import Loss, Losses
from xenoglot.codec.stage import through
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get
from xenoglot.errors import ConfigurationError, FailureError
from xenoglot.model.content import Reasoning, Refusal, Text, ToolCall, ToolResult
from xenoglot.model.events import (
    BlockEnded,
    BlockStarted,
    Event,
    Failed,
    Finished,
    OpaqueDelta,
    Ping,
    Started,
    TextDelta,
    UsageReported,
)
from xenoglot.model.failure import Failure
from xenoglot.model.fold import fold
from xenoglot.model.request import Message, OutputFormat, Prompt, Request, Sampling, Tool
from xenoglot.model.response import Candidate, Finish, Response, Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.gateway.running_gateway import RunningGateway
    from xenoglot.backends.scripted import Turn
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject

AGE = {
    "type": "object",
    "properties": {"age": {"type": "integer"}},
    "required": ["age"],
    "additionalProperties": False,
}
ASK = Message(role="user", content=(Text(text="How old?"),))
OUTPUT = OutputFormat(kind="json_schema", schema=AGE, name="age")
REQUEST = Request(model="m", messages=(ASK,), output=OUTPUT)
STOP = Finish(reason="stop")
CALLS = Finish(reason="tool_calls")
GOOD, BAD = '{"age": 7}', '{"age": "seven"}'
WRONG = "the model's answer is not what was asked for: $.age: expected integer, found a string of length 5"
TOLD = (
    "That is not valid:\n- $.age: expected integer, found a string of length 5\n\n"
    "Give the whole answer again, mended, and nothing else."
)
BY_TOOL = Loss("$.output", "kind", "emulated", "requested as a tool call")
BY_PROMPT = Loss("$.output", "kind", "emulated", "requested in the prompt")
USAGE = Usage(input_tokens=10, output_tokens=3)


def response_of(*parts: Part | str, finish: Finish = STOP, usage: Usage | None = USAGE, id: str = "r") -> Response:  # noqa: A002
    content = tuple(Text(text=part) if isinstance(part, str) else part for part in parts)
    return Response(id=id, model="m", candidates=(Candidate(content=content, finish=finish),), usage=usage)


def called(arguments: str, name: str = "age", id: str = "call_1") -> ToolCall:  # noqa: A002
    return ToolCall(id=id, name=name, arguments=arguments)


def failed(message: str, *, futile: bool = False) -> Failure:
    return Failure(kind="upstream", message=message, non_retryable=futile)


class RequestOutcome:
    """What came of a request, and what the model was asked for it."""

    def __init__(self, turns: Sequence[Turn], policy: Emulate) -> None:
        self.model = Scripted(*turns)
        self.backend = JSONBackend(self.model, policy)
        self.losses = Losses()

    async def events(self, request: Request = REQUEST) -> list[Event]:
        call = Call(request=request, losses=self.losses, dialect="chat", body=b"{}")
        answer = await self.backend.answer(call)
        assert isinstance(answer, EventAnswer)
        events = [event async for batch in answer.batches for event in batch]
        await answer.aclose()
        return list(through(events, Grammar()))

    async def outcome(self, request: Request = REQUEST) -> Response | Failure:
        return fold(await self.events(request))

    @property
    def turns(self) -> list[tuple[Message, ...]]:
        return [request.messages for request in self.model.requests]


@pytest.mark.parametrize("output", [None, OutputFormat(kind="text")], ids=["none", "text"])
async def test_a_request_for_words_passes_untouched(output: OutputFormat | None) -> None:
    asked = RequestOutcome([response_of("Seven.")], Emulate(schema="tool", check=True, retries=2))
    request = msgspec.structs.replace(REQUEST, output=output)
    assert await asked.outcome(request) == response_of("Seven.")
    assert (asked.model.requests, list(asked.losses)) == ([request], [])


async def test_without_a_policy_everything_passes_untouched() -> None:
    asked = RequestOutcome([response_of(BAD)], Emulate())
    assert await asked.outcome() == response_of(BAD)
    assert asked.model.requests == [REQUEST]


OUTCOMES: dict[str, tuple[Emulate, Turn, Response | Failure, list[Loss]]] = {
    "checked, valid": (Emulate(check=True), response_of(GOOD), response_of(GOOD), []),
    "checked, invalid": (Emulate(check=True), response_of(BAD), failed(WRONG), []),
    "checked, no JSON": (
        Emulate(check=True),
        response_of("Seven."),
        failed(
            "the model's answer is not what was asked for: "
            "$: expected JSON, found not valid JSON: invalid character (byte 0)"
        ),
        [],
    ),
    "checked, in two texts": (Emulate(check=True), response_of('{"age"', ": 7}"), response_of('{"age"', ": 7}"), []),
    "checked, behind a thought": (
        Emulate(check=True),
        response_of(Reasoning(text="Hm."), GOOD),
        response_of(Reasoning(text="Hm."), GOOD),
        [],
    ),
    "lenient": (
        Emulate(check=True, lenient=True),
        response_of(BAD),
        response_of(BAD),
        [
            Loss(
                "$.candidates[0]",
                "text",
                "approximated",
                "not in the requested format: $.age: expected integer, found a string of length 5",
            )
        ],
    ),
    "a refusal": (
        Emulate(check=True),
        response_of(Refusal(text="No."), finish=Finish(reason="refusal")),
        response_of(Refusal(text="No."), finish=Finish(reason="refusal")),
        [],
    ),
    "a filter": (
        Emulate(check=True),
        response_of("{", finish=Finish(reason="refusal")),
        response_of("{", finish=Finish(reason="refusal")),
        [],
    ),
    "a call": (
        Emulate(check=True),
        response_of("Wait.", called("{}", "look"), finish=CALLS),
        response_of("Wait.", called("{}", "look"), finish=CALLS),
        [],
    ),
    "cut": (
        Emulate(check=True),
        response_of('{"age": ', finish=Finish(reason="length")),
        failed(
            "the model's answer is not what was asked for: it was cut at `max_tokens` before its JSON was whole",
            futile=True,
        ),
        [],
    ),
    "cut behind the end": (
        Emulate(check=True),
        response_of(GOOD, finish=Finish(reason="length")),
        response_of(GOOD, finish=Finish(reason="length")),
        [],
    ),
    "as a tool": (Emulate(schema="tool"), response_of(called(GOOD), finish=CALLS), response_of(GOOD), [BY_TOOL]),
    "as a tool, not checked": (
        Emulate(schema="tool"),
        response_of(called(BAD), finish=CALLS),
        response_of(BAD),
        [BY_TOOL],
    ),
    "as a tool, invalid": (
        Emulate(schema="tool", check=True),
        response_of(called(BAD), finish=CALLS),
        failed(WRONG),
        [BY_TOOL],
    ),
    "as a tool, in words": (Emulate(schema="tool", check=True), response_of(GOOD), response_of(GOOD), [BY_TOOL]),
    "in the prompt": (Emulate(schema="prompt"), response_of(GOOD), response_of(GOOD), [BY_PROMPT]),
    "in the prompt, fenced": (
        Emulate(schema="prompt"),
        response_of(f"```json\n{GOOD}\n```"),
        response_of(GOOD),
        [BY_PROMPT, Loss("$.candidates[0]", "text", "approximated", "the code fence around it is taken off")],
    ),
    "in the prompt, invalid": (Emulate(schema="prompt"), response_of(BAD), failed(WRONG), [BY_PROMPT]),
    "a failed stream": (
        Emulate(check=True, retries=2),
        [Started(), Failed(failure=failed("gone"))],
        failed("gone"),
        [],
    ),
}


@pytest.mark.parametrize(("policy", "turn", "outcome", "lost"), OUTCOMES.values(), ids=OUTCOMES)
async def test_what_comes_of_an_answer(
    policy: Emulate, turn: Turn, outcome: Response | Failure, lost: list[Loss]
) -> None:
    asked = RequestOutcome([turn], policy)
    assert (await asked.outcome(), list(asked.losses)) == (outcome, lost)
    assert [request.stream for request in asked.model.requests] == [False]


FINAL = {name: case for name, case in OUTCOMES.items() if name in ("a refusal", "a filter", "a call", "cut")}


@pytest.mark.parametrize(("policy", "turn", "outcome", "lost"), FINAL.values(), ids=FINAL)
async def test_what_asking_again_does_not_mend_is_not_asked_again(
    policy: Emulate, turn: Turn, outcome: Response | Failure, lost: list[Loss]
) -> None:
    asked = RequestOutcome([turn, response_of(GOOD)], msgspec.structs.replace(policy, retries=3))
    assert (await asked.outcome(), list(asked.losses), len(asked.turns)) == (outcome, lost, 1)


async def test_a_stream_that_is_not_held_begins_at_once_and_ends_in_a_failure() -> None:
    asked = RequestOutcome([response_of(BAD)], Emulate(check=True))
    assert await asked.events() == [
        Started(id="r", model="m"),
        BlockStarted(part=Text(text="")),
        TextDelta(text=BAD),
        BlockEnded(),
        UsageReported(usage=USAGE),
        Failed(failure=failed(WRONG)),
    ]


async def test_a_model_is_told_what_is_wrong_and_asked_again() -> None:
    asked = RequestOutcome(
        [response_of(BAD), response_of("{}"), response_of(GOOD, usage=Usage(input_tokens=30, cache_read=20))],
        Emulate(retries=2),
    )
    total = Usage(input_tokens=50, output_tokens=6, cache_read=20)
    assert await asked.outcome() == response_of(GOOD, usage=total)
    first = (
        ASK,
        Message(role="assistant", content=(Text(text=BAD),)),
        Message(role="user", content=(Text(text=TOLD),)),
    )
    missing = TOLD.replace(
        "$.age: expected integer, found a string of length 5",
        "$: expected the property `age`, found an object without it",
    )
    second = (
        Message(role="assistant", content=(Text(text="{}"),)),
        Message(role="user", content=(Text(text=missing),)),
    )
    assert asked.turns == [(ASK,), first, (*first, *second)]
    assert list(asked.losses) == []


async def test_a_call_that_was_no_answer_is_answered() -> None:
    asked = RequestOutcome(
        [response_of("So:", called(BAD), finish=CALLS), response_of(called(GOOD), finish=CALLS)],
        Emulate(schema="tool", retries=1),
    )
    assert await asked.outcome() == response_of(GOOD, usage=Usage(input_tokens=20, output_tokens=6))
    result = ToolResult(call_id="call_1", content=(Text(text=TOLD),), is_error=True, name="age")
    again = (
        ASK,
        Message(role="assistant", content=(Text(text="So:"), called(BAD))),
        Message(role="tool", content=(result,)),
    )
    assert asked.turns == [(ASK,), again]
    assert asked.model.requests[0].tools == asked.model.requests[1].tools
    assert list(asked.losses) == [BY_TOOL]  # not the words before a call that was thrown away


async def test_an_answer_of_nothing_is_not_sent_back() -> None:
    asked = RequestOutcome([response_of(""), response_of(GOOD)], Emulate(retries=1))
    assert await asked.outcome() == response_of(GOOD, usage=Usage(input_tokens=20, output_tokens=6))
    told = TOLD.replace("$.age: expected integer, found a string of length 5", "$: expected JSON, found no JSON")
    assert asked.turns[1] == (ASK, Message(role="user", content=(Text(text=told),)))


async def test_a_model_that_does_not_learn_fails() -> None:
    asked = RequestOutcome([response_of(BAD)], Emulate(retries=2))
    assert await asked.events() == [
        Started(id="r", model="m"),
        UsageReported(usage=Usage(input_tokens=30, output_tokens=9)),
        Failed(failure=failed(WRONG + " (asked 3 times)", futile=True)),
    ]


async def test_its_last_answer_may_be_passed_on() -> None:
    asked = RequestOutcome([response_of("no"), response_of(BAD)], Emulate(retries=1, lenient=True))
    assert await asked.outcome() == response_of(BAD, usage=Usage(input_tokens=20, output_tokens=6))
    why = "not in the requested format: $.age: expected integer, found a string of length 5"
    assert list(asked.losses) == [Loss("$.candidates[0]", "text", "approximated", why)]


async def test_a_refusal_to_the_second_question_is_the_answer() -> None:
    refused = Finish(reason="refusal")
    asked = RequestOutcome([response_of(BAD), response_of(Refusal(text="No."), finish=refused)], Emulate(retries=3))
    total = Usage(input_tokens=20, output_tokens=6)
    assert await asked.outcome() == response_of(Refusal(text="No."), finish=refused, usage=total)


AGAIN: dict[str, tuple[Turn, Failure]] = {
    "refused": (Failure(kind="rate_limit", message="slow"), Failure(kind="rate_limit", message="slow")),
    "broken": ([Started(), Failed(failure=failed("gone"))], failed("gone")),
    "without an end": ([Started()], failed("connection lost: the answer ended without being complete")),
}


@pytest.mark.parametrize(("turn", "failure"), AGAIN.values(), ids=AGAIN)
async def test_a_second_try_that_fails_is_the_end(turn: Turn, failure: Failure) -> None:
    asked = RequestOutcome([response_of(BAD), turn, response_of(GOOD)], Emulate(retries=3))
    assert await asked.events() == [
        Started(id="r", model="m"),
        UsageReported(usage=USAGE),
        Failed(failure=failure),
    ]


async def test_what_is_held_comes_as_it_came() -> None:
    events: list[Event] = [
        Ping(),
        OpaqueDelta(dialect="d", data=1),
        Started(id="r"),
        UsageReported(usage=Usage(input_tokens=10)),
        BlockStarted(part=Text(text="")),
        TextDelta(text='{"age"'),
        OpaqueDelta(dialect="d", data=2),
        TextDelta(text=": 7}"),
        BlockEnded(),
        UsageReported(usage=Usage(output_tokens=3)),
        Finished(finish=STOP),
        OpaqueDelta(dialect="d", data=3),
    ]
    assert await RequestOutcome([events], Emulate(retries=1)).events() == [
        Started(id="r"),
        OpaqueDelta(dialect="d", data=1),
        *events[4:9],
        UsageReported(usage=USAGE),
        *events[10:],
    ]


async def test_each_candidate_is_asked_for_again_alone() -> None:
    both = Response(
        id="r",
        model="m",
        candidates=tuple(Candidate(content=(Text(text=text),), finish=STOP) for text in (BAD, GOOD, "no")),
        usage=USAGE,
    )
    asked = RequestOutcome([both, response_of('{"age": 1}'), response_of('{"age": 2}')], Emulate(retries=1))
    request = msgspec.structs.replace(REQUEST, sampling=Sampling(n=3, temperature=0.5))
    made = Response(
        id="r",
        model="m",
        candidates=tuple(
            Candidate(content=(Text(text=text),), finish=STOP) for text in ('{"age": 1}', GOOD, '{"age": 2}')
        ),
        usage=Usage(input_tokens=30, output_tokens=9),
    )
    assert await asked.outcome(request) == made
    assert [asked_.sampling.n for asked_ in asked.model.requests] == [3, None, None]
    assert [turn[1].content for turn in asked.turns[1:]] == [(Text(text=BAD),), (Text(text="no"),)]


async def test_a_text_to_be_continued_is_checked_but_not_asked_for_again() -> None:
    asked = RequestOutcome([response_of(BAD)], Emulate(schema="tool", retries=3))
    request = Request(model="m", prompt=Prompt(texts=("Age:",)), output=OUTPUT)
    assert await asked.outcome(request) == failed(WRONG)
    assert [message.role for message in asked.turns[0]] == ["system"]
    assert list(asked.losses) == [BY_PROMPT]


@given(
    streams(MORE_HEADERS, most=2), streams(MORE_HEADERS), st.sampled_from(["none", "tool", "prompt"]), st.integers(0, 2)
)
def test_whatever_lawful_streams_come_the_answer_is_lawful(
    first: list[Event], then: list[Event], way: Literal["none", "tool", "prompt"], retries: int
) -> None:
    asked = RequestOutcome([first, then], Emulate(schema=way, check=True, retries=retries))
    events = asyncio.run(asked.events())  # walks the grammar
    assert type(events[-1]) is Failed or not any(type(event) is Failed for event in events)


REFUSED: dict[str, tuple[JSON, str, str]] = {
    "an address": (
        {"$ref": "http://127.0.0.1:9/x"},
        "$.output.schema: it refers to what is not in it; nothing else is looked up",
        "$.output.schema",
    ),
    "no type": (
        {"properties": {"a": {"type": "x"}}},
        "$.output.schema.properties.a.type: no JSON Schema: expected one of 2 forms (`anyOf`)",
        "$.output.schema.properties.a.type",
    ),
}


@pytest.mark.parametrize(("schema", "message", "param"), REFUSED.values(), ids=REFUSED)
async def test_a_schema_that_is_none_is_refused(schema: JSON, message: str, param: str) -> None:
    asked = RequestOutcome([response_of(GOOD)], Emulate(check=True))
    request = msgspec.structs.replace(REQUEST, output=OutputFormat(kind="json_schema", schema=schema))
    with pytest.raises(FailureError) as error:
        await asked.outcome(request)
    assert error.value.failure == Failure(kind="invalid_request", message=message, param=param)
    assert asked.model.requests == []


async def test_a_model_that_refuses_is_heard_at_once() -> None:
    asked = RequestOutcome([Failure(kind="rate_limit", message="slow")], Emulate(retries=1))
    with pytest.raises(FailureError) as error:
        await asked.outcome()
    assert error.value.failure == Failure(kind="rate_limit", message="slow")


@pytest.mark.parametrize("policy", [Emulate(check=True), Emulate(retries=1)], ids=["checked", "asked again"])
async def test_who_leaves_stops_the_try_that_is_open(policy: Emulate) -> None:
    closed: list[str] = []

    class Open(Scripted):
        async def answer(self, call: Call) -> EventAnswer:
            answer = await super().answer(call)
            assert not isinstance(answer, ByteAnswer)

            async def aclose() -> None:
                closed.append("closed")
                await answer.aclose()

            return EventAnswer(batches=answer.batches, aclose=aclose)

    backend = JSONBackend(Open(response_of(GOOD)), policy)
    answer = await backend.answer(Call(request=REQUEST, losses=Losses()))
    await answer.aclose()
    assert closed == ["closed"]


async def test_tokens_are_counted_of_what_is_asked() -> None:
    class Counting(Scripted):
        async def count(self, call: Call) -> int | None:
            return len(call.request.tools) + 10 * len(call.request.messages)

    counts = [
        await JSONBackend(Counting(response_of(GOOD)), policy).count(Call(request=REQUEST, losses=Losses()))
        for policy in (Emulate(), Emulate(schema="tool"), Emulate(schema="prompt"))
    ]
    assert counts == [10, 11, 20]


def test_checks_need_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    JSONBackend(Scripted(response_of(GOOD)), Emulate(schema="tool"))
    with pytest.raises(
        ConfigurationError, match=r"^jsonschema_rs is not installed: pip install 'xenoglot\[structured\]'$"
    ):
        JSONBackend(Scripted(response_of(GOOD)), Emulate(check=True))


@pytest.mark.parametrize("said_", [{"retries": 6}, {"retries": -1}, {"schema": "grammar"}, {"tries": 1}], ids=str)
def test_a_policy_that_is_none_is_refused(said_: JSON) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(said_, Emulate)


WIRES: dict[str, JSON] = {
    "pitfall-47 chat": {
        "response_format": {"type": "json_schema", "json_schema": {"name": "age", "schema": AGE}},
        "messages": [{"role": "user", "content": "How old?"}],
    },
    "pitfall-66 responses": {
        "text": {"format": {"type": "json_schema", "name": "age", "schema": AGE}},
        "input": "How old?",
    },
    "pitfall-28 messages": {
        "output_config": {"format": {"type": "json_schema", "schema": AGE}},
        "messages": [{"role": "user", "content": "How old?"}],
        "max_tokens": 99,
    },
    "gemini": {
        "generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": AGE},
        "contents": [{"role": "user", "parts": [{"text": "How old?"}]}],
    },
    "ollama": {"format": AGE, "messages": [{"role": "user", "content": "How old?"}]},
}


@pytest.mark.parametrize("target", ["chat", "responses", "messages", "gemini", "ollama"])
@pytest.mark.parametrize("wire", WIRES)
async def test_every_dialect_asks_and_every_server_is_asked(wire: str, target: str) -> None:
    """What clients ask in their words, a server without schemas is asked in its own, once for each way."""
    request = get(wire.rpartition(" ")[2]).decode_request({"model": "m", **WIRES[wire]})
    bodies = {}
    for way in ("tool", "prompt"):
        model = Scripted(response_of(GOOD))
        await JSONBackend(model, Emulate(schema=way)).answer(Call(request=request, losses=Losses()))
        bodies[way] = json.dumps(get(target).encode_request(model.requests[0], Losses(), Target()))
    assert ["Answer with one JSON value" in bodies[way] for way in ("prompt", "tool")] == [True, False]
    assert ["Give the final answer by calling" in bodies[way] for way in ("prompt", "tool")] == [False, True]
    assert not any(
        name in body for name in ("response_format", "output_config", "responseJsonSchema") for body in bodies.values()
    )


SERVERS = {"chat": "/v1", "responses": "/v1", "messages": "", "gemini": "", "ollama": ""}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("dialect", SERVERS)
async def test_a_server_without_schemas_is_made_to_answer(dialect: str, stream: bool) -> None:  # noqa: FBT001
    """A gateway plays the server: the model behind it calls the tool wrongly first, and then as it is told to."""
    compact = GOOD.replace(" ", "")  # as dialects write arguments that are no text to them
    model = Scripted(response_of("So:", called(BAD), finish=CALLS), response_of(called(compact), finish=CALLS))
    request = msgspec.structs.replace(REQUEST, model="main", stream=stream, sampling=Sampling(max_tokens=99))
    with run_gateway({"main": model}) as server:
        async with aclosing(Transport()) as transport:
            remote = Remote("far", get(dialect), server.url + SERVERS[dialect], transport=transport)
            asked = RequestOutcome([response_of(GOOD)], Emulate(schema="tool", retries=1))
            asked.backend = JSONBackend(remote, Emulate(schema="tool", retries=1))
            outcome = await asked.outcome(request)
    assert isinstance(outcome, Response)
    assert [(candidate.content, candidate.finish) for candidate in outcome.candidates] == [
        ((Text(text=compact),), STOP)
    ]
    assert outcome.usage is not None
    assert (outcome.usage.input_tokens, outcome.usage.output_tokens) == (20, 6)
    result = model.requests[1].messages[-1].content[0]
    assert isinstance(result, ToolResult)
    assert TOLD in "".join(part.text for part in result.content if isinstance(part, Text))


def openai_client(gateway: RunningGateway) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="none", max_retries=0)


def anthropic_client(gateway: RunningGateway) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=gateway.url, api_key="none", max_retries=0)


class Person(BaseModel):
    """Somebody."""

    name: str
    age: int


ANN = Person(name="Ann", age=7)
WRITTEN = ANN.model_dump_json()
WAYS: dict[str, tuple[Emulate, list[Turn]]] = {
    "as a tool": (Emulate(schema="tool", check=True), [response_of(called(WRITTEN, "Person"), finish=CALLS)]),
    "in the prompt": (Emulate(schema="prompt"), [response_of(f"```json\n{WRITTEN}\n```")]),
    "checked": (Emulate(check=True), [response_of(WRITTEN)]),
    "asked again": (Emulate(retries=1), [response_of("Ann is 7."), response_of(WRITTEN)]),
}


@pytest.mark.parametrize(("policy", "turns"), WAYS.values(), ids=WAYS)
def test_the_openai_sdk_parses_it(policy: Emulate, turns: list[Turn]) -> None:
    with run_gateway({"main": JSONBackend(Scripted(*turns), policy)}) as gateway, openai_client(gateway) as client:
        ask: JSONObject = {
            "model": "main",
            "messages": [{"role": "user", "content": "Who?"}],
            "response_format": Person,
        }
        whole = client.chat.completions.parse(**ask).choices[0]
        with client.chat.completions.stream(**ask) as stream:
            streamed = stream.get_final_completion().choices[0]
        responded = client.responses.parse(model="main", input="Who?", text_format=Person)
    assert [(choice.message.parsed, choice.finish_reason) for choice in (whole, streamed)] == [(ANN, "stop")] * 2
    assert responded.output_parsed == ANN


def as_final_answer(turns: list[Turn]) -> list[Turn]:
    """The same calls under the name that the tool has where the dialect gives a schema none."""
    text = msgspec.json.encode(turns).replace(b'"Person"', b'"final_answer"')
    return list(msgspec.json.decode(text, type=list[Response]))


@pytest.mark.parametrize(("policy", "turns"), WAYS.values(), ids=WAYS)
def test_the_anthropic_sdk_parses_it(policy: Emulate, turns: list[Turn]) -> None:
    with (
        run_gateway({"main": JSONBackend(Scripted(*as_final_answer(turns)), policy)}) as gateway,
        anthropic_client(gateway) as client,
    ):
        ask: JSONObject = {"model": "main", "max_tokens": 99, "messages": [{"role": "user", "content": "Who?"}]}
        whole = client.messages.parse(**ask, output_format=Person)
        with client.messages.stream(**ask, output_format=Person) as stream:
            streamed = stream.get_final_message()
    assert [(message.parsed_output, message.stop_reason) for message in (whole, streamed)] == [(ANN, "end_turn")] * 2


INVALID = "the model's answer is not what was asked for: $.age: expected integer, found a string of length 1"


@pytest.mark.parametrize("policy", [Emulate(check=True), Emulate(retries=1)], ids=["checked", "asked again"])
def test_what_is_wrong_is_told_in_the_clients_dialect(policy: Emulate) -> None:
    message = INVALID + (" (asked 2 times)" if policy.retries else "")
    with (
        run_gateway({"main": JSONBackend(Scripted(response_of('{"name":"Ann","age":"7"}')), policy)}) as gateway,
        openai_client(gateway) as client,
    ):
        ask: JSONObject = {
            "model": "main",
            "messages": [{"role": "user", "content": "Who?"}],
            "response_format": Person,
        }
        with pytest.raises(openai.InternalServerError) as whole:
            client.chat.completions.parse(**ask)
        with pytest.raises(openai.APIError) as streamed, client.chat.completions.stream(**ask) as stream:
            stream.until_done()
    assert whole.value.status_code == 502
    assert message in str(whole.value)
    assert message in str(streamed.value)


def test_a_client_does_not_ask_again_for_what_was_asked_for_again() -> None:
    """The SDKs try three times at a 5xx: a model that was told what is wrong is not asked thrice as often."""
    model = Scripted(response_of('{"name":"Ann","age":"7"}'))
    with (
        run_gateway({"main": JSONBackend(model, Emulate(retries=1))}) as gateway,
        openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="none", max_retries=2) as client,
        pytest.raises(openai.InternalServerError),
    ):
        client.chat.completions.parse(
            model="main", messages=[{"role": "user", "content": "Who?"}], response_format=Person
        )
    assert [len(request.messages) for request in model.requests] == [1, 3]


def test_one_sees_whether_a_stream_was_held() -> None:
    """Held, a failure still has a status; else it comes behind what was streamed."""
    body = {
        "model": "main",
        "stream": True,
        "messages": [{"role": "user", "content": "Who?"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "age", "schema": AGE}},
    }
    statuses = []
    for policy in (Emulate(check=True), Emulate(retries=1)):
        with run_gateway({"main": JSONBackend(Scripted(response_of(BAD)), policy)}) as gateway:
            answer = gateway.request("POST", "/v1/chat/completions", body)
            statuses.append((answer.status, b"seven" in answer.body, answer.body.endswith(b"[DONE]\n\n")))
    assert statuses == [(200, True, False), (502, False, False)]


def test_a_model_that_writes_what_it_likes_is_brought_to_it() -> None:
    """A function as a model: it does as it is told on the second try."""

    def model(request: Request) -> str:
        return WRITTEN if len(request.messages) > 2 else "Ann, who is seven."

    with (
        run_gateway({"main": JSONBackend(Callable(model), Emulate(schema="prompt", retries=1))}) as gateway,
        openai_client(gateway) as client,
    ):
        ask: JSONObject = {
            "model": "main",
            "messages": [{"role": "user", "content": "Who?"}],
            "response_format": Person,
        }
        assert client.chat.completions.parse(**ask).choices[0].message.parsed == ANN


def test_tools_of_the_client_stand_beside_the_answer() -> None:
    look = Tool(name="look", parameters={"type": "object"})
    turns = [response_of(called("{}", "look"), finish=CALLS), response_of(called(WRITTEN, "Person"), finish=CALLS)]
    model = Scripted(*turns)
    with (
        run_gateway({"main": JSONBackend(model, Emulate(schema="tool", check=True))}) as gateway,
        openai_client(gateway) as client,
    ):
        function = {"name": "look", "strict": True, "parameters": {"type": "object", "properties": {}}}
        tools = [{"type": "function", "function": function}]
        ask: JSONObject = {"model": "main", "response_format": Person, "tools": tools}
        messages: list[JSON] = [{"role": "user", "content": "Who?"}]
        first = client.chat.completions.parse(messages=messages, **ask).choices[0]
        messages += [first.message, {"role": "tool", "tool_call_id": "call_1", "content": "Ann, 7"}]
        second = client.chat.completions.parse(messages=messages, **ask).choices[0]
    assert [(choice.finish_reason, choice.message.parsed) for choice in (first, second)] == [
        ("tool_calls", None),
        ("stop", ANN),
    ]
    assert [[tool.name for tool in request.tools if isinstance(tool, Tool)] for request in model.requests] == [
        [look.name, "Person"]
    ] * 2
