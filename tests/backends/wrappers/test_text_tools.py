"""A model that writes calls and thoughts as text, read."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from xenoglot.backends.backend import Call
from xenoglot.backends.scripted import Scripted
from xenoglot.backends.wrappers.text_tools import TextBackend, TextPolicy
from xenoglot.codec.grammar import Grammar
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import through
from xenoglot.errors import FailureError
from xenoglot.model.content import Opaque, Reasoning, Text, ToolCall
from xenoglot.model.events import BlockEnded, BlockStarted, Finished, Started, TextDelta, UsageReported
from xenoglot.model.fold import fold
from xenoglot.model.request import Message, OutputFormat, Prompt, Request, Sampling, Thinking, Tool, ToolChoice
from xenoglot.model.response import Candidate, Finish, Response, Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.backends.backend import Backend
    from xenoglot.model.events import Event

NOW = Tool(name="now", parameters={"type": "object", "properties": {}})
HI = Message(role="user", content=(Text(text="Hi"),))
ASKED = Request(model="qwen3-8b", messages=(HI,), tools=(NOW,))
SAID = '<think>\nTime.\n</think>\n\nLet me see.\n<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
CALL = ToolCall(id="call_0", name="now", arguments="{}")


def pieces(*texts: str, finish: str = "stop") -> list[Event]:
    """An answer in a delta for each text."""
    return [
        Started(id="1", model="m"),
        BlockStarted(part=Text(text="")),
        *(TextDelta(text=text) for text in texts),
        BlockEnded(),
        UsageReported(usage=Usage(output_tokens=3)),
        Finished(finish=Finish(reason=finish, raw=finish, dialect="chat")),  # type: ignore[arg-type]
    ]


def textual(backend: Backend, **policy: object) -> TextBackend:
    """The backend, read; calls are numbered."""
    number = count()
    return TextBackend(backend, TextPolicy(**policy), identify=lambda: f"call_{next(number)}")  # type: ignore[arg-type]


async def events(backend: Backend, request: Request, losses: Losses | None = None) -> list[Event]:
    """The events of an answer, which are lawful."""
    answer = await backend.answer(
        Call(request=request, losses=Losses() if losses is None else losses, body=b"{}", dialect="chat")
    )
    made = [event async for batch in answer.batches for event in batch]  # type: ignore[union-attr]
    await answer.aclose()
    return list(through(made, Grammar()))


async def parts(backend: Backend, request: Request) -> Sequence[object]:
    """The parts of an answer, and why it ended."""
    response = fold(await events(backend, request))
    assert isinstance(response, Response)
    (candidate,) = response.candidates
    return [*candidate.content, candidate.finish]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
async def test_calls_and_thoughts_become_blocks(size: int) -> None:
    texts = [SAID[at : at + size] for at in range(0, len(SAID), size)]
    made = fold(await events(textual(Scripted(pieces(*texts))), ASKED))
    expected = Candidate(
        content=(Reasoning(text="Time."), Text(text="Let me see.\n"), CALL), finish=Finish(reason="tool_calls")
    )
    assert made == Response(id="1", model="m", usage=Usage(output_tokens=3), candidates=(expected,))


async def test_what_has_nothing_in_it_leaves_as_it_came() -> None:
    came = pieces("Hello ", "world")
    assert await events(textual(Scripted(came)), ASKED) == came


async def test_off_reads_nothing() -> None:
    came = pieces(SAID)
    assert await events(textual(Scripted(came), syntax="off"), ASKED) == came


@pytest.mark.parametrize(
    "asked",
    [
        replace(ASKED, tools=()),
        replace(ASKED, tools=(replace(NOW, name="other"),)),
        replace(ASKED, tool_choice=ToolChoice(mode="none")),
        replace(ASKED, tools=(NOW, replace(NOW, name="x")), tool_choice=ToolChoice(mode="auto", names=("x",))),
    ],
    ids=["none declared L11", "undeclared L11", "none allowed", "not this one"],
)
async def test_only_what_may_be_called_is_a_call(asked: Request) -> None:
    told = SAID.partition("</think>\n\n")[2]
    finish = Finish(reason="stop", raw="stop", dialect="chat")
    assert await parts(textual(Scripted(pieces(SAID))), asked) == [Reasoning(text="Time."), Text(text=told), finish]


async def test_a_text_that_is_continued_is_not_read() -> None:
    came = pieces(SAID)
    asked = Request(model="m", prompt=Prompt(texts=("Once",)))
    assert await events(textual(Scripted(came)), asked) == came


@pytest.mark.parametrize("size", [1, 3, 1000])
async def test_a_text_that_is_continued_loses_the_tokens_at_its_end(size: int) -> None:
    """L9: as chat answers do; nothing else of it is parsed."""
    said = 'once <think>a</think><tool_call>{"name": "now"}</tool_call><|eot_id|>'
    texts = [said[at : at + size] for at in range(0, len(said), size)]
    asked = Request(model="llama3.1:8b", prompt=Prompt(texts=("Once",)))
    (text, finish) = await parts(textual(Scripted(pieces(*texts))), asked)
    assert text == Text(text=said.removesuffix("<|eot_id|>"))
    assert finish == Finish(reason="stop", raw="stop", dialect="chat")


async def test_an_output_in_json_is_no_call() -> None:
    """A-W10: not even where its name is that of a tool."""
    said = '{"name": "now", "arguments": {}}'
    asked = replace(ASKED, model="unknown", output=OutputFormat(kind="json"))
    finish = Finish(reason="stop", raw="stop", dialect="chat")
    assert await parts(textual(Scripted(pieces(said)), syntax="auto"), asked) == [Text(text=said), finish]
    assert await parts(textual(Scripted(pieces(said)), syntax="auto"), replace(asked, output=None)) == [
        CALL,
        Finish(reason="tool_calls"),
    ]


async def test_a_limit_stays_a_limit() -> None:
    finish = Finish(reason="length", raw="length", dialect="chat")
    made = await parts(textual(Scripted(pieces('<tool_call>{"name": "now", "arguments": {"a', finish="length"))), ASKED)
    assert made == [replace(CALL, arguments='{"a'), finish]


@pytest.mark.parametrize(
    ("thinking", "first"),
    [
        (None, Reasoning(text="So.")),
        (Thinking(mode="disabled"), Text(text="So.")),
        (Thinking(effort="none"), Text(text="So.")),
    ],
    ids=["not said", "disabled", "effort none"],
)
async def test_a_thought_that_the_prompt_began(thinking: Thinking | None, first: object) -> None:
    asked = replace(ASKED, model="deepseek-r1", thinking=thinking)
    made = await parts(textual(Scripted(pieces("So."))), asked)
    assert made[0] == first


async def test_tools_of_free_text_and_in_namespaces() -> None:
    said = '<tool_call>{"name": "files__patch", "arguments": {"input": "a\\nb"}}</tool_call>'
    tool = Tool(name="patch", kind="custom", namespace="files")
    made = await parts(textual(Scripted(pieces(said))), replace(ASKED, tools=(tool,)))
    call = ToolCall(id="call_0", name="patch", namespace="files", kind="custom", arguments="a\nb")
    assert made == [call, Finish(reason="tool_calls")]


async def test_tools_told_in_the_prompt() -> None:
    scripted = Scripted(pieces("Hello"))
    losses = Losses()
    await events(textual(scripted, tools=True), ASKED, losses)
    (asked,) = scripted.requests
    assert (asked.tools, [turn.role for turn in asked.messages]) == ((), ["system", "user"])
    assert [str(loss) for loss in losses] == ["$ tools emulated (described in the system turn, in the form `hermes`)"]


async def test_tools_that_only_another_server_runs_are_refused() -> None:
    hosted = Opaque(dialect="responses", data={"type": "web_search"})
    with pytest.raises(FailureError) as caught:
        await events(textual(Scripted(pieces("Hi")), tools=True), replace(ASKED, tools=(hosted,)))
    assert (caught.value.failure.kind, caught.value.failure.param) == ("invalid_request", "$.tools")


BROKEN = '<tool_call>{"name": "now", "arguments": {\'zone\': \'x\',}}</tool_call>'
UNREADABLE = "<tool_call>{name: 'now', arguments: {}}</tool_call>"


@pytest.mark.parametrize(
    ("said", "repair", "expected", "lost"),
    [
        (BROKEN, "off", replace(CALL, arguments="{'zone': 'x',}"), []),
        (BROKEN, "on", replace(CALL, arguments='{"zone":"x"}'), []),
        (BROKEN, "loss", replace(CALL, arguments='{"zone":"x"}'), ["$.candidates[0] arguments approximated"]),
        (UNREADABLE, "off", Text(text=UNREADABLE), []),
        (UNREADABLE, "loss", CALL, ["$.candidates[0] tool_call approximated"]),
    ],
    ids=["broken off", "broken on", "broken loss", "unreadable off", "unreadable loss"],
)
async def test_repair(said: str, repair: str, expected: object, lost: list[str]) -> None:
    losses = Losses()
    response = fold(await events(textual(Scripted(pieces(*said)), repair=repair), ASKED, losses))
    assert isinstance(response, Response)
    assert response.candidates[0].content == (expected,)
    assert [f"{loss.where} {loss.what} {loss.how}" for loss in losses] == lost


async def test_the_rest_is_the_backend() -> None:
    scripted = Scripted(pieces("Hi"), name="mine")
    backend = textual(scripted)
    assert (backend.name, await backend.models()) == ("mine", await scripted.models())
    assert await backend.count(Call(request=ASKED, losses=Losses())) is None
    await backend.aclose()


async def test_leaving_closes_the_backend() -> None:
    answer = await textual(Scripted(pieces(SAID))).answer(Call(request=ASKED, losses=Losses()))
    await anext(answer.batches)  # type: ignore[union-attr]
    await answer.aclose()
    assert [batch async for batch in answer.batches] == []  # type: ignore[union-attr]


async def test_stop_strings_end_words_and_neither_calls_nor_thoughts() -> None:
    """A3, A11: the server is told of none, for it would find them in what is no words."""
    scripted = Scripted(pieces(*SAID, " Time is up."))
    asked = replace(ASKED, sampling=Sampling(stop=("now", "Time", " is")))
    finish = Finish(reason="tool_calls", stop_sequence="Time")
    made = await parts(textual(scripted), asked)
    assert made == [Reasoning(text="Time."), Text(text="Let me see.\n"), CALL, Text(text=" "), finish]
    assert [request.sampling.stop for request in scripted.requests] == [None]


@pytest.mark.parametrize(
    ("model", "thinking", "begun"),
    [
        ("deepseek-r1", None, True),
        ("deepseek-r1", Thinking(mode="enabled"), True),
        ("deepseek-v3.1", None, False),
        ("deepseek-v3.1", Thinking(effort="low"), False),
        ("deepseek-v3.1", Thinking(mode="disabled"), False),
        ("deepseek-v3.1", Thinking(display="omitted"), False),
    ],
)
async def test_where_an_answer_begins(model: str, thinking: Thinking | None, *, begun: bool) -> None:
    """Claude Code always asks for thoughts, and servers of DeepSeek V3.1 know no such field."""
    asked = replace(ASKED, model=model, thinking=thinking)
    made = await parts(textual(Scripted(pieces("Hm.\n</think>\nYes."))), asked)
    finish = Finish(reason="stop", raw="stop", dialect="chat")
    said = [Reasoning(text="Hm."), Text(text="Yes.")] if begun else [Text(text="Hm.\nYes.")]
    assert made == [*said, finish]


async def test_a_thought_that_the_server_told_apart_is_not_begun_again() -> None:
    whole = (Reasoning(text="Hm."), Text(text="Yes."))
    told = Response(candidates=(Candidate(content=whole, finish=Finish(reason="stop")),))
    made = await parts(textual(Scripted(told)), replace(ASKED, model="deepseek-r1"))
    assert made == [*whole, Finish(reason="stop")]
