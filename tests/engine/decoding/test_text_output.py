"""What a model writes by the habits of its family, as the blocks of an answer."""

from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from tests.engine.shared_engine import call_of
from xenoglot.codec.loss import Losses
from xenoglot.engine.decoding.text_output import ParsedTextStage
from xenoglot.engine.server.model_traits import ModelTraits
from xenoglot.model.content import Part, Reasoning, Text, ToolCall
from xenoglot.model.events import Finished, Started
from xenoglot.model.fold import fold
from xenoglot.model.request import Tool
from xenoglot.model.response import Finish, Response
from xenoglot.text import registry
from xenoglot.text.syntax import ReasoningSyntax

THINK = ReasoningSyntax(open=("<think>",), close=("</think>",))
TAUGHT = ModelTraits(tools=True, syntax=registry.get("hermes"), thoughts=THINK)
TOOLS = (Tool(name="clock"), Tool(name="shell", kind="custom"))
CLOCK = '<tool_call>\n{"name": "clock", "arguments": {}}\n</tool_call>'
SHELL = '<tool_call>\n{"name": "shell", "arguments": {"input": "ls \\"a\\""}}\n</tool_call>'
STOP, LENGTH = Finish(reason="stop"), Finish(reason="length")


def written(
    pieces: list[str], finish: Finish = STOP, *, tools: tuple[Tool, ...] = TOOLS, held: bool = True
) -> tuple[tuple[Part, ...], Finish]:
    numbers = count(1)
    request = call_of("x", tools=tools).request
    speech = ParsedTextStage(0, TAUGHT, request, lambda: f"call_{next(numbers)}", Losses(), held=held)
    events = [event for piece in pieces for event in speech.feed(piece, ())]
    ending, ended = speech.close(finish)
    response = fold([Started(), *events, *ending, Finished(finish=ended)])
    assert isinstance(response, Response)
    return response.candidates[0].content, ended


def test_thoughts_words_and_calls() -> None:
    text = f"<think>\nHm.\n</think>\n\nLet me see.\n{CLOCK}\n{SHELL}"
    assert written([text]) == (
        (
            Reasoning(text="Hm."),
            Text(text="Let me see.\n"),
            ToolCall(id="call_1", name="clock", arguments="{}"),
            ToolCall(id="call_2", name="shell", arguments='ls "a"', kind="custom"),
        ),
        Finish(reason="tool_calls"),
    )


def test_without_tools_only_thoughts_are_looked_for() -> None:
    text = f"<think>\nHm.\n</think>\n\n{CLOCK}"
    assert written([text], tools=()) == ((Reasoning(text="Hm."), Text(text=CLOCK)), STOP)


def test_a_marker_that_was_cut_is_no_word_where_no_words_may_stand() -> None:
    call = ToolCall(id="call_1", name="clock", arguments="{}")
    assert written([f"{CLOCK}\n<tool_c"], LENGTH) == ((call,), LENGTH)
    assert written([f"{CLOCK}\n<tool_c"], LENGTH, held=False)[0][1:] == (Text(text="\n<tool_c"),)
    assert written(["So <tool_c"], LENGTH) == ((Text(text="So <tool_c"),), LENGTH)


@given(st.data())
def test_however_it_is_cut(data: st.DataObject) -> None:
    text = f"<think>\nHm.\n</think>\n\nLet me see.\n{CLOCK}\n{SHELL}"
    at = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pieces = [text[first:last] for first, last in zip([0, *at], [*at, len(text)], strict=True)]
    assert written(pieces) == written([text])
