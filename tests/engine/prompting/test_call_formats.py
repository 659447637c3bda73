"""What a grammar made of a family's row lets pass, the family's own parser reads: calls, and nothing else."""

import json
from itertools import count

import pytest
from msgspec.structs import replace

from tests.engine.grammar.derive import Grammar
from tests.engine.grammar.match import matches
from tests.engine.shared_engine import call_of
from xenoglot.codec.loss import Losses
from xenoglot.engine.backend import Engine
from xenoglot.engine.decoding.text_output import ParsedTextStage
from xenoglot.engine.prompting.call_formats import PLAIN, CallFormat, form_of
from xenoglot.engine.prompting.constrain import Constraint, constrain
from xenoglot.engine.server.model_traits import ModelTraits
from xenoglot.model.content import Part, Text, ToolCall
from xenoglot.model.events import Finished, Started
from xenoglot.model.fold import fold
from xenoglot.model.request import Tool, ToolChoice
from xenoglot.model.response import Finish, Response
from xenoglot.text import registry
from xenoglot.text.syntax import ReasoningSyntax, Syntax

CITY = {"type": "object", "properties": {"city": {"enum": ["Paris", "a < b"]}}, "required": ["city"]}
WEATHER = Tool(name="get_weather", parameters=CITY)
CLOCK = Tool(name="get")
SHELL = Tool(name="shell", kind="custom")
TOOLS = (WEATHER, CLOCK)

HELD = {
    f"{name}-{index}": (name, index, form)
    for name in registry.names()
    for index, calls in enumerate(registry.get(name).calls)
    if (form := form_of(calls)) is not None
}


def speech(manner: ModelTraits, call: object, *, held: bool = True) -> ParsedTextStage:
    numbers = count(1)
    return ParsedTextStage(0, manner, call, lambda: f"call_{next(numbers)}", Losses(), held=held)  # type: ignore[arg-type]


def parts(
    manner: ModelTraits, text: str, finish: Finish, tools: tuple[Tool, ...] = TOOLS
) -> tuple[tuple[Part, ...], Finish]:
    """What the text of an answer becomes, and how it ended."""
    stage = speech(manner, call_of("x", tools=tools).request)
    events = [*stage.feed(text, ())]
    ending, ended = stage.close(finish)
    response = fold([Started(), *events, *ending, Finished(finish=ended)])
    assert isinstance(response, Response)
    return response.candidates[0].content, ended


def manner_of(name: str, index: int, form: CallFormat) -> ModelTraits:
    row = registry.get(name)
    alone = Syntax(name=row.name, title=row.title, source=row.source, calls=(row.calls[index],))
    return ModelTraits(tools=True, syntax=alone, form=form)


def held(manner: ModelTraits, mode: str, **fields: object) -> Constraint:
    choice = ToolChoice(mode=mode)  # type: ignore[arg-type]
    found = constrain(call_of("x", tools=TOOLS, tool_choice=choice, **fields).request, Losses(), manner)
    assert found is not None
    return found


def calls(content: tuple[Part, ...]) -> list[tuple[str, object]]:
    return [(part.name, json.loads(part.arguments)) for part in content if isinstance(part, ToolCall)]


POSSIBLE: list[tuple[str, object]] = [
    ("get_weather", {"city": "Paris"}),
    ("get_weather", {"city": "a < b"}),
    ("get", {}),
]


@pytest.mark.parametrize("row", [pytest.param(row, id=name) for name, row in HELD.items()])
def test_forced_calls_are_read_by_the_family(row: tuple[str, int, CallFormat]) -> None:
    manner = manner_of(*row)
    grammar = Grammar(held(manner, "required").grammar)
    for text in {grammar.derive(seed) for seed in range(30)}:
        content, finish = parts(manner, text, Finish(reason="stop"))
        assert [type(part) for part in content] == [ToolCall] * max(1, len(content)), text
        assert [call for call in calls(content) if call not in POSSIBLE] == []
        assert finish == Finish(reason="tool_calls")


@pytest.mark.parametrize("row", [pytest.param(row, id=name) for name, row in HELD.items()])
def test_one_call_is_one_call(row: tuple[str, int, CallFormat]) -> None:
    manner = manner_of(*row)
    grammar = Grammar(held(manner, "required", parallel_tool_calls=False).grammar)
    for text in {grammar.derive(seed) for seed in range(20)}:
        content, _ = parts(manner, text, Finish(reason="stop"))
        assert [calls(content)] == [[call] for call in POSSIBLE if [call] == calls(content)], text


@pytest.mark.parametrize("row", [pytest.param(row, id=name) for name, row in HELD.items()])
def test_a_model_may_write_words_or_calls(row: tuple[str, int, CallFormat]) -> None:
    manner, form = manner_of(*row), row[2]
    call = Grammar(held(manner, "required", parallel_tool_calls=False).grammar).derive(1)
    grammar = held(manner, "auto").grammar
    before = "Let me see.\n" if form.marker and form.place != "start" else ""
    assert [matches(grammar, text) for text in ("Let me see.", before + call, f"{call} So?")] == [True, True, False]
    content, finish = parts(manner, before + call, STOP)
    words = [Text(text=before)] if before else []
    assert [*words, ToolCall] == [*content[: len(words)], *map(type, content[len(words) :])]
    assert finish == Finish(reason="tool_calls")


@pytest.mark.parametrize("row", [pytest.param(row, id=name) for name, row in HELD.items() if row[2].marker])
def test_a_call_once_begun_is_held_to_the_tools(row: tuple[str, int, CallFormat]) -> None:
    form = row[2]
    grammar = held(manner_of(*row), "auto").grammar
    head, foot = form.spell("get_weather")
    begun = "".join(form.lead) + head
    assert [matches(grammar, f"{begun}{arguments}{foot}{''.join(form.tail)}") for arguments in ARGUMENTS] == HOLDS


async def test_the_runtime_reads_every_grammar(engine: Engine) -> None:
    unread = []
    for name, row in HELD.items():
        for mode in ("auto", "required"):
            grammar = held(replace(manner_of(*row), thoughts=THINK), mode).grammar
            reply = await engine._runtime.complete({"prompt": [1], "n_predict": 1, "grammar": grammar})
            unread += [] if json.loads(await reply.read())["tokens_predicted"] == 1 else [(name, mode)]
    assert unread == []


THINK = ReasoningSyntax(open=("<think>",), close=("</think>",))
ARGUMENTS = ('{"city": "Paris"}', '{"city": "Rome"}', '{"town": "Paris"}', "{}", "5")
HOLDS = [True, False, False, False, False]
STOP = Finish(reason="stop")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param(
            "hermes",
            (
                ("<tool_call>",),
                ("</tool_call>", "<tool_call>"),
                ("</tool_call>",),
                "<tool_call>",
                ('{"name": "f", "arguments": ', "}"),
            ),
            id="hermes",
        ),
        pytest.param(
            "granite",
            (
                ("<|tool_call|>", "["),
                (",",),
                ("]", "</tool_call>"),
                "<|tool_call|>",
                ('{"name": "f", "arguments": ', "}"),
            ),
            id="list",
        ),
        pytest.param(
            "apertus",
            (
                ("<|tools_prefix|>", "["),
                (",",),
                ("]", "<|tools_suffix|>"),
                "<|tools_prefix|>",
                ('{"f": ', "}"),
            ),
            id="keyed",
        ),
    ],
)
def test_what_stands_around_calls(name: str, expected: tuple[object, ...]) -> None:
    form = form_of(registry.get(name).calls[0])
    assert form is not None
    assert (form.lead, form.joint, form.tail, form.marker, form.spell("f")) == expected


def test_ours_is_an_object_in_a_line() -> None:
    assert PLAIN.spell('a "b"') == ('{"name": "a \\"b\\"", "arguments": ', "}")


def test_arguments_that_are_no_json_cannot_be_held() -> None:
    assert {form_of(calls) for calls in registry.get("qwen3_coder").calls} == {None}
