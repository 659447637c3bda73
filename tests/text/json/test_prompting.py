"""What a model is asked where JSON is wanted of it, and what its answer becomes, at every cut."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws.strategies import NAMES
from tests.laws.streams import MORE_HEADERS, streams
from xenoglot.codec.grammar import Grammar
from xenoglot.codec.loss import Loss, Losses
from xenoglot.codec.stage import Pipeline, through
from xenoglot.errors import WireError
from xenoglot.model.content import Citation, Extra, Logprob, Opaque, Reasoning, Refusal, Text, ToolCall
from xenoglot.model.events import (
    ArgumentsDelta,
    BlockEnded,
    BlockStarted,
    CitationDelta,
    Event,
    Failed,
    Finished,
    Ping,
    Started,
    TextDelta,
    UsageReported,
)
from xenoglot.model.failure import Failure
from xenoglot.model.fold import fold, unfold
from xenoglot.model.request import Message, OutputFormat, Request, Tool, ToolChoice
from xenoglot.model.response import Candidate, Finish, Response, Usage
from xenoglot.text.json.prompting import DEEPEST_SCHEMA, JSONPrompt, as_prompt, as_tool, check_depth
from xenoglot.text.json.unwrap import MOST_HELD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON

PERSON = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
NUMBERS = {"type": "array", "items": {"type": "integer"}}
ENVELOPE = {"type": "object", "properties": {"answer": NUMBERS}, "required": ["answer"], "additionalProperties": False}
ASK = Message(role="user", content=(Text(text="Who?"),))
SYSTEM = Message(role="system", content=(Text(text="Be brief."),))
WEATHER = Tool(name="weather", parameters={"type": "object"})
CALLS = Finish(reason="tool_calls", raw="tool_use", dialect="messages")
STOP = Finish(reason="stop")
USAGE = Usage(input_tokens=3, output_tokens=4)
SAYS = "Give the final answer by calling this tool: its arguments are the answer."


def request_with(**fields: object) -> Request:
    return Request(**{"model": "m", "messages": (ASK,), **fields})  # type: ignore[arg-type]


def schema(of: JSON = PERSON, name: str | None = "person") -> OutputFormat:
    return OutputFormat(kind="json_schema", schema=of, name=name, strict=True)


def tool(parameters: JSON = PERSON, name: str = "person", *, strict: bool | None = True) -> Tool:
    return Tool(name=name, description=SAYS, parameters=parameters, strict=strict)


def forced(*names: str) -> ToolChoice:
    return ToolChoice(mode="required", names=names)


TOOLS = {
    "no other tools": (
        request_with(output=schema()),
        request_with(tools=(tool(),), tool_choice=forced("person"), parallel_tool_calls=False),
        ("person", False),
    ),
    "pitfall-28 no name": (
        request_with(output=schema(name=None)),
        request_with(tools=(tool(name="final_answer"),), tool_choice=forced("final_answer"), parallel_tool_calls=False),
        ("final_answer", False),
    ),
    "a name that no server takes": (
        request_with(output=schema(name="a person")),
        request_with(
            tools=(tool(name="a_person_df381eb4"),), tool_choice=forced("a_person_df381eb4"), parallel_tool_calls=False
        ),
        ("a_person_df381eb4", False),
    ),
    "pitfall-47 no object": (
        request_with(output=schema(NUMBERS)),
        request_with(tools=(tool(ENVELOPE),), tool_choice=forced("person"), parallel_tool_calls=False),
        ("person", True),
    ),
    "any JSON": (
        request_with(output=OutputFormat(kind="json")),
        request_with(
            tools=(tool({"type": "object"}, "final_answer", strict=None),),
            tool_choice=forced("final_answer"),
            parallel_tool_calls=False,
        ),
        ("final_answer", False),
    ),
    "a description": (
        request_with(output=OutputFormat(kind="json_schema", schema=PERSON, name="p", description="Whoever it was.")),
        request_with(
            tools=(Tool(name="p", description=f"{SAYS}\n\nWhoever it was.", parameters=PERSON),),
            tool_choice=forced("p"),
            parallel_tool_calls=False,
        ),
        ("p", False),
    ),
    "other tools": (
        request_with(output=schema(), tools=(WEATHER,)),
        request_with(tools=(WEATHER, tool()), tool_choice=forced()),
        ("person", False),
    ),
    "other tools, of which some may be called": (
        request_with(output=schema(), tools=(WEATHER,), tool_choice=ToolChoice(mode="auto", names=("weather",))),
        request_with(tools=(WEATHER, tool()), tool_choice=forced("weather", "person")),
        ("person", False),
    ),
    "other tools, of which none may be called": (
        request_with(output=schema(), tools=(WEATHER,), tool_choice=ToolChoice(mode="none")),
        request_with(tools=(WEATHER, tool()), tool_choice=forced("person")),
        ("person", False),
    ),
    "another tool of that name": (
        request_with(output=schema(name="weather"), tools=(WEATHER,)),
        request_with(tools=(WEATHER, tool(name="weather_2")), tool_choice=forced()),
        ("weather_2", False),
    ),
}


@pytest.mark.parametrize(("request_", "made", "reading"), TOOLS.values(), ids=TOOLS)
def test_the_schema_becomes_a_tool(request_: Request, made: Request, reading: tuple[str, bool]) -> None:
    losses = Losses()
    tool_, envelope = reading
    assert as_tool(request_, losses) == JSONPrompt(request=made, tool=tool_, envelope=envelope, unfenced=True)
    assert list(losses) == [Loss("$.output", "kind", "emulated", "requested as a tool call")]


@pytest.mark.parametrize("ask", [as_tool, as_prompt])
def test_what_only_the_dialect_knows_of_the_output_is_told(ask: Callable[[Request, Losses], JSONPrompt]) -> None:
    losses = Losses()
    ask(request_with(output=OutputFormat(kind="json", extra=Extra(dialect="chat", fields={"lazy": True}))), losses)
    assert next(iter(losses)) == Loss("$.output", "lazy", "dropped", "only chat has it")


def test_a_client_that_demands_a_call_gets_one_of_its_own_tools() -> None:
    losses = Losses()
    request = request_with(output=schema(), tools=(WEATHER,), tool_choice=forced("weather"))
    made = request_with(tools=(WEATHER,), tool_choice=forced("weather"))
    assert as_tool(request, losses) == JSONPrompt(request=made, judged=False)
    why = "the request demands a tool call, so no JSON answer is requested"
    assert list(losses) == [Loss("$.output", "kind", "emulated", why)]


TOLD = (
    "Answer with one JSON value that is valid under the JSON Schema below, and with nothing else: "
    "no words around it, no code fence.\n\nperson\n\n" + json.dumps(PERSON, separators=(",", ":"))
)
TOLD_JSON = "Answer with one JSON object, and with nothing else: no words around it, no code fence."
PROMPTS = {
    "no system turn": (
        request_with(output=schema()),
        (Message(role="system", content=(Text(text=TOLD),)), ASK),
        {"$.messages[1].content[0]": "$.messages[0].content[0]", "$.messages[0].content[0]": None},
    ),
    "a system turn": (
        request_with(output=schema(), messages=(SYSTEM, ASK)),
        (Message(role="system", content=(*SYSTEM.content, Text(text=TOLD))), ASK),
        {"$.messages[0].content[1]": None},
    ),
    "system turns alone": (
        request_with(output=OutputFormat(kind="json"), messages=(SYSTEM, SYSTEM)),
        (SYSTEM, Message(role="system", content=(*SYSTEM.content, Text(text=TOLD_JSON)))),
        {"$.messages[1].content[1]": None},
    ),
}


@pytest.mark.parametrize(("request_", "messages", "moved"), PROMPTS.values(), ids=PROMPTS)
def test_the_schema_is_told(request_: Request, messages: tuple[Message, ...], moved: dict[str, str | None]) -> None:
    losses = Losses()
    made = request_with(messages=messages)
    assert as_prompt(request_, losses) == JSONPrompt(request=made, unfenced=True, moved=moved)
    assert list(losses) == [Loss("$.output", "kind", "emulated", "requested in the prompt")]


def test_a_schema_that_is_too_deep_is_refused() -> None:
    fits: JSON = {}
    for _ in range(DEEPEST_SCHEMA // 2 - 1):
        fits = {"allOf": [fits]}
    check_depth(fits)
    with pytest.raises(WireError, match="nested too deeply, expected at most 128 levels"):
        check_depth({"allOf": [{"allOf": [fits]}]})


def read(events: Iterable[Event], *, envelope: bool = False) -> tuple[Response | Failure, list[Loss]]:
    """What comes of an answer that was asked for as a tool, and what it lost."""
    losses = Losses()
    reading = JSONPrompt(request=request_with(), tool="person", envelope=envelope, unfenced=True).reading(losses)
    return fold(through(events, Pipeline(Grammar(), reading, Grammar()))), list(losses)


def answer(*parts: Part, finish: Finish = CALLS) -> Response:
    return Response(id="r", model="m", candidates=(Candidate(content=parts, finish=finish),), usage=USAGE)


def call(arguments: str, name: str = "person") -> ToolCall:
    return ToolCall(id="call_1", name=name, arguments=arguments)


def dropped(what: str, why: str = "an answer in JSON is JSON alone") -> Loss:
    return Loss("$.candidates[0]", what, "dropped", why)


THOUGHT = Reasoning(text="Ann, surely.")
ANSWERS: dict[str, tuple[Sequence[Part], Finish, Sequence[Part], Finish, list[Loss]]] = {
    "the call": ([call('{"name":"Ann"}')], CALLS, [Text(text='{"name":"Ann"}')], STOP, []),
    "a thought before it": (
        [THOUGHT, call('{"name":"Ann"}')],
        CALLS,
        [THOUGHT, Text(text='{"name":"Ann"}')],
        STOP,
        [],
    ),
    "words before it": (
        [Text(text="Here:"), THOUGHT, Text(text="So:"), call("{}")],
        CALLS,
        [THOUGHT, Text(text="{}")],
        STOP,
        [dropped("words before the answer")],
    ),
    "words behind it": (
        [call("{}"), Text(text="There.")],
        CALLS,
        [Text(text="{}")],
        STOP,
        [dropped("words behind the answer")],
    ),
    "two of them": ([call("{}"), call("[]")], CALLS, [Text(text="{}")], STOP, [dropped("a second answer")]),
    "no arguments": ([call("")], CALLS, [Text(text="")], STOP, []),
    "cut": ([call('{"na')], Finish(reason="length"), [Text(text='{"na')], Finish(reason="length"), []),
    "a call of the client's": (
        [Text(text="Let me look."), call("{}", "weather")],
        CALLS,
        [Text(text="Let me look."), call("{}", "weather")],
        CALLS,
        [],
    ),
    "a call of the client's beside it": (
        [call("{}", "weather"), call("{}")],
        CALLS,
        [call("{}", "weather"), Text(text="{}")],
        CALLS,
        [],
    ),
    "words in its place": ([Text(text='{"name":"Ann"}')], STOP, [Text(text='{"name":"Ann"}')], STOP, []),
    "words with a fence in its place": (
        [Text(text='```json\n{"name":"Ann"}\n```')],
        STOP,
        [Text(text='{"name":"Ann"}')],
        STOP,
        [Loss("$.candidates[0]", "text", "approximated", "the code fence around it is taken off")],
    ),
    "a refusal": (
        [Refusal(text="No.")],
        Finish(reason="refusal"),
        [Refusal(text="No.")],
        Finish(reason="refusal"),
        [],
    ),
    "something else": (
        [Opaque(dialect="d", data={}), call("{}")],
        CALLS,
        [Opaque(dialect="d", data={}), Text(text="{}")],
        STOP,
        [],
    ),
}


@pytest.mark.parametrize(("parts", "finish", "made", "ended", "lost"), ANSWERS.values(), ids=ANSWERS)
def test_pitfall_47_the_call_becomes_the_answer(
    parts: Sequence[Part], finish: Finish, made: Sequence[Part], ended: Finish, lost: list[Loss]
) -> None:
    assert read(unfold(answer(*parts, finish=finish))) == (answer(*made, finish=ended), lost)


def test_what_is_beside_the_value_in_an_envelope_is_told() -> None:
    got = read(unfold(answer(call('{"answer": [1], "why": "so"}'))), envelope=True)
    lost = dropped("what is not the answer", "the arguments hold more than that")
    assert got == (answer(Text(text="[1]"), finish=STOP), [lost])


VALUES = st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=6) | st.lists(st.booleans()), max_size=4)


def growing(text: str, cuts: list[int]) -> list[Event]:
    """The events of a call whose arguments come in pieces."""
    pieces = [text[start:end] for start, end in pairwise([0, *sorted(min(cut, len(text)) for cut in cuts), len(text)])]
    return [
        Started(id="r", model="m"),
        BlockStarted(part=call("")),
        *(ArgumentsDelta(text=piece) for piece in pieces),
        BlockEnded(),
        UsageReported(usage=USAGE),
        Finished(finish=CALLS),
    ]


@given(VALUES, st.booleans(), st.lists(st.integers(0, 80), max_size=6))
def test_every_cut_gives_the_same_answer(value: JSON, envelope: bool, cuts: list[int]) -> None:  # noqa: FBT001
    text = json.dumps(value)
    written = json.dumps({"answer": value}) if envelope else text
    assert read(growing(written, cuts), envelope=envelope) == (answer(Text(text=text), finish=STOP), [])


def test_the_answer_is_passed_on_as_it_comes() -> None:
    losses = Losses()
    reading = JSONPrompt(request=request_with(), tool="person", envelope=True, unfenced=True).reading(losses)
    arrived = [list(reading.feed(event)) for event in growing('{"answer":[1,2]}', [3, 10, 11, 13])]
    assert arrived == [
        [Started(id="r", model="m")],
        [BlockStarted(part=Text(text=""))],
        [],
        [],
        [TextDelta(text="[")],
        [TextDelta(text="1,")],
        [TextDelta(text="2]")],
        [BlockEnded()],
        [UsageReported(usage=USAGE)],
        [Finished(finish=STOP)],
    ]


def test_a_wire_that_says_the_arguments_at_the_end_is_heard() -> None:
    events: list[Event] = [
        Started(id="r", model="m"),
        BlockStarted(part=call("")),
        ArgumentsDelta(text='{"a'),
        BlockEnded(part=call('{"a":1}')),
        UsageReported(usage=USAGE),
        Finished(finish=CALLS),
    ]
    assert read(events) == (answer(Text(text='{"a":1}'), finish=STOP), [])


PERSONS = st.one_of(MORE_HEADERS, st.builds(ToolCall, id=NAMES, name=st.just("person")))


@given(streams(PERSONS, most=2), st.booleans())
def test_whatever_lawful_stream_comes_stays_lawful(events: list[Event], envelope: bool) -> None:  # noqa: FBT001
    reading = JSONPrompt(request=request_with(), tool="person", envelope=envelope, unfenced=True).reading(Losses())
    made = list(through(events, Pipeline(Grammar(), reading, Grammar())))
    kinds = (Started, UsageReported, Ping, Finished, Failed)
    assert [type(event) for event in made if type(event) in kinds] == [
        type(event) for event in events if type(event) in kinds
    ]
    assert not any(isinstance(event, BlockStarted) and _is_answer(event.part) for event in made)


def _is_answer(part: Part) -> bool:
    return isinstance(part, ToolCall) and part.name == "person"


def test_words_without_end_are_not_held_for_ever() -> None:
    reading = JSONPrompt(request=request_with(), tool="person").reading(Losses())
    start, delta = BlockStarted(part=Text(text="")), TextDelta(text="a" * MOST_HELD)
    assert [list(reading.feed(event)) for event in (start, delta, delta)] == [[], [start, delta], [delta]]


def test_candidates_are_read_apart() -> None:
    events: list[Event] = [
        Started(id="r", model="m"),
        BlockStarted(part=call("{", "person")),
        BlockStarted(part=Text(text="words"), candidate=1),
        ArgumentsDelta(text="}"),
        BlockEnded(candidate=1),
        BlockEnded(),
        Ping(),
        Finished(finish=CALLS),
        Finished(finish=STOP, candidate=1),
        UsageReported(usage=USAGE),
    ]
    parts = ((Text(text="{}"),), (Text(text="words"),))
    made = Response(
        id="r", model="m", candidates=tuple(Candidate(content=part, finish=STOP) for part in parts), usage=USAGE
    )
    assert read(events) == (made, [])


FAILURE = Failure(kind="upstream", message="gone")


HELD = {
    "ticks": (Text(text="``"), [BlockStarted(part=Text(text="")), TextDelta(text="``")]),
    "words": (Text(text="Here"), [BlockStarted(part=Text(text="")), TextDelta(text="Here")]),
    "a call": (call('{"answer"'), [BlockStarted(part=Text(text=""))]),
}


@pytest.mark.parametrize(("begun", "made"), HELD.values(), ids=HELD)
def test_a_failed_stream_stays_one_and_gives_the_words_that_were_held(begun: Part, made: list[Event]) -> None:
    reading = JSONPrompt(request=request_with(), tool="person", envelope=True, unfenced=True).reading(Losses())
    events: list[Event] = [Started(), BlockStarted(part=begun), Failed(failure=FAILURE)]
    assert list(through(events, Pipeline(reading, Grammar()))) == [Started(), *made, Failed(failure=FAILURE)]


def unfenced(events: Iterable[Event]) -> tuple[list[Event], list[Loss]]:
    losses = Losses()
    reading = JSONPrompt(request=request_with(), unfenced=True).reading(losses)
    return list(through(events, Pipeline(reading, Grammar()))), list(losses)


def words(*deltas: Event, whole: str | None = None) -> list[Event]:
    ended = BlockEnded(part=None if whole is None else Text(text=whole))
    return [Started(), BlockStarted(part=Text(text="")), *deltas, ended, Finished(finish=STOP)]


def test_words_without_a_fence_pass_as_they_came() -> None:
    likely = (Logprob(token="a", logprob=-0.1),)
    cited = CitationDelta(citation=Citation(kind="url_citation", start=0, end=1))
    events = words(TextDelta(text="``", logprobs=likely), cited, TextDelta(text="a", logprobs=likely), whole="``a")
    assert unfenced(events) == (events, [])


def test_what_counts_the_fence_goes_with_it() -> None:
    likely = (Logprob(token="a", logprob=-0.1),)
    cited = CitationDelta(citation=Citation(kind="url_citation", start=8, end=9))
    events = words(
        TextDelta(text="```json\n[", logprobs=likely), cited, TextDelta(text="]\n```"), whole="```json\n[]\n```"
    )
    assert unfenced(events) == (
        words(TextDelta(text="["), TextDelta(text="]")),
        [
            dropped("logprobs", "they cover the code fence too"),
            dropped("citations", "their places are counted with the code fence"),
            Loss("$.candidates[0]", "text", "approximated", "the code fence around it is taken off"),
        ],
    )


@given(st.text(st.sampled_from("` \njson{}a"), max_size=24), st.lists(st.integers(0, 24), max_size=4))
def test_words_are_read_alike_at_every_cut(text: str, cuts: list[int]) -> None:
    pieces = [text[start:end] for start, end in pairwise([0, *sorted(min(cut, len(text)) for cut in cuts), len(text)])]
    one, _ = unfenced(words(TextDelta(text=text)))
    cut, _ = unfenced(words(*(TextDelta(text=piece) for piece in pieces)))
    assert fold(cut) == fold(one)
