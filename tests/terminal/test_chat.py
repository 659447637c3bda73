"""A conversation without a terminal: what is typed, what is drawn, what the model is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.terminal.drawn import Clock, Drawn
from xenoglot.backends.scripted import Scripted
from xenoglot.client.async_ import AsyncClient
from xenoglot.model.content import Reasoning, Text, ToolCall
from xenoglot.model.failure import Failure
from xenoglot.model.response import Candidate, Finish, Response, Usage
from xenoglot.terminal.chat import EXIT_HINT, Chat
from xenoglot.terminal.conversation import Conversation
from xenoglot.terminal.counts import ConversationUsage, format_tokens
from xenoglot.tools.tool import tool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.terminal.display.renderer import Renderer


class Typing:
    """A face at which somebody types what was said before; an exception is a key."""

    def __init__(self, *typed: str | type[BaseException], interactive: bool = False) -> None:
        self.renderer: Renderer = Drawn()
        self.interactive = interactive
        self._typed = list(typed)

    async def read(self) -> str | None:
        """The next of it."""
        if not self._typed:
            return None
        line = self._typed.pop(0)
        if isinstance(line, str):
            return line
        raise line

    async def choose(self, _: str) -> str:
        """Whatever is asked, yes."""
        return "y"


def answer(*parts: object, reason: str = "stop", usage: Usage | None = None) -> Response:
    content = tuple(Text(text=part) if isinstance(part, str) else part for part in parts)
    finish = Finish(reason=reason)  # type: ignore[arg-type]
    return Response(model="m", candidates=(Candidate(content=content, finish=finish),), usage=usage)  # type: ignore[arg-type]


async def talk(
    typed: Sequence[str | type[BaseException]],
    *said: Response | Failure,
    tools: Sequence[object] = (),
    interactive: bool = False,
) -> tuple[list[tuple[str, str]], Scripted, bool]:
    """Type all of it; what was drawn, the model, and whether the last question was answered."""
    face, model = Typing(*typed, interactive=interactive), Scripted(*(said or (answer("Yes."),)))
    async with AsyncClient(model, on_loss="ignore") as client:
        made = [tool(one) for one in tools]  # type: ignore[call-overload]
        chat = Chat(client, face, Conversation(model="m"), tools=made, clock=Clock(0.5))
        answered = await chat.run()
    assert isinstance(face.renderer, Drawn)
    return face.renderer.lines, model, answered


COMMANDS = [
    pytest.param("/model", [("quiet", "the model is m")], id="model"),
    pytest.param("/model other\x1b", [("quiet", "the model is other�")], id="another-model"),
    pytest.param("/models", [("said", "scripted")], id="models"),
    pytest.param("/system", [("quiet", "instructions: none")], id="no-instructions"),
    pytest.param("/set", [("quiet", "nothing is set; there are ")], id="nothing-set"),
    pytest.param("/set top_k", [("problem", "`/set top_k` needs a value, or `off`")], id="set-without-a-value"),
    pytest.param(
        "/set top_k x", [("problem", "`top_k`: found `x`; expected a whole number, or `off`")], id="set-badly"
    ),
    pytest.param("/retry", [("problem", "there is no question yet")], id="nothing-to-retry"),
    pytest.param("/file", [("problem", "name a file")], id="no-file"),
    pytest.param(
        "/load /nowhere/at/all", [("problem", "`/nowhere/at/all` cannot be read: No such file")], id="no-load"
    ),
    pytest.param("/save", [("problem", "name a file: one that ends in .md")], id="no-save"),
    pytest.param("/save .", [("problem", "`.` already exists")], id="save-a-folder"),
    pytest.param("/load /dev/zero", [("problem", "`/dev/zero` is no regular file")], id="load-a-device"),
    pytest.param("/thoughts", [("quiet", "the last answer has no thoughts that are shown")], id="no-thoughts"),
    pytest.param("/thoughts on", [("quiet", "thoughts are shown")], id="thoughts-on"),
    pytest.param("/tools", [("quiet", "no tools: ")], id="no-tools"),
    pytest.param("/tools show", [("quiet", "no tool was called")], id="no-results"),
    pytest.param("/usage", [("quiet", "0 answers, 0 tokens in, 0 out")], id="no-usage"),
    pytest.param("   ", [], id="blank"),
    pytest.param("/", [("problem", "there is no command `/`; /help lists what there is")], id="slash"),
]


@pytest.mark.parametrize(("typed", "drawn"), COMMANDS)
async def test_commands(typed: str, drawn: list[tuple[str, str]]) -> None:
    lines, model, answered = await talk([typed])
    assert [(look, text[: len(start)]) for (look, text), (_, start) in zip(lines, drawn, strict=True)] == drawn
    assert (model.requests, answered) == ([], True)


async def test_help_names_every_command() -> None:
    lines, _, _ = await talk(["/help", "/exit", "never read"])
    assert [line.split()[0] for line in lines[0][1].splitlines()][:3] == ["/help", "/model", "/models"]
    assert len(lines) == 2


@pytest.mark.parametrize("word", ["/exit", "/quit", "/bye", "/q", "exit", " quit "])
async def test_words_that_leave(word: str) -> None:
    """first-minutes-22: people type what other programs accept."""
    assert (await talk([word, "never read"]))[:1] == ([],)


async def test_a_sentence_with_exit_is_a_question() -> None:
    _, model, _ = await talk(["exit codes?", "quit it"])
    assert len(model.requests) == 2


async def test_settings_and_instructions_go_with_each_question() -> None:
    typed = ["/system Be brief.", "/set max_tokens 9", "one", "/system off", "/set max_tokens off", "two"]
    _, model, _ = await talk(typed, answer("Yes."), answer("No."))
    first, second = model.requests
    assert [message.role for message in first.messages] == ["system", "user"]
    assert first.sampling.max_tokens == 9
    assert [message.role for message in second.messages] == ["user", "assistant", "user"]
    assert second.sampling.max_tokens is None


async def test_thoughts_are_those_of_the_last_answer() -> None:
    said = (answer(Reasoning(text="Hm."), "One."), answer(Reasoning(text="Ah."), "Two."))
    lines, _, _ = await talk(["one", "two", "/thoughts"], *said)
    assert lines[-1] == ("thought", "Ah.")


async def test_a_failure_leaves_the_conversation_as_it_was() -> None:
    failure = Failure(kind="invalid_request", message="not\nthis")
    lines, model, answered = await talk(["one", "two", "three"], answer("Yes."), failure, answer("No."))
    assert ("problem", "not this") in lines
    assert [len(request.messages) for request in model.requests] == [1, 3, 3]
    assert answered
    assert (await talk(["one"], failure))[2] is False


async def test_a_run_that_failed_is_asked_again() -> None:
    def double(number: int) -> int:
        """Double it."""
        return 2 * number

    failure = Failure(kind="invalid_request", message="not this")
    lines, model, answered = await talk(["one", "/retry"], failure, answer("No."), tools=[double], interactive=True)
    assert lines[:2] == [("problem", "failed: not this"), ("quiet", "/retry asks again")]
    assert [len(request.messages) for request in model.requests] == [1, 1]
    assert answered
    assert (await talk(["one"], failure, tools=[double]))[2] is False


async def test_keys_leave() -> None:
    lines, model, _ = await talk([KeyboardInterrupt, "/usage", KeyboardInterrupt, KeyboardInterrupt, "never read"])
    assert [line for _, line in lines if line == EXIT_HINT] == [EXIT_HINT, EXIT_HINT]
    assert model.requests == []


async def test_tools_run_and_their_results_go_along() -> None:
    def double(number: int) -> int:
        """Double it."""
        return 2 * number

    call = ToolCall(id="1", name="double", arguments='{"number": 4}')
    said = (answer(call, reason="tool_calls"), answer("It is 8."), answer("Yes."))
    lines, model, _ = await talk(["Twice 4?", "/tools", "/tools show", "Sure?"], *said, tools=[double])
    assert lines[:3] == [("call", "● double(number=4)"), ("quiet", "  └ 8"), ("words", "It is 8.")]
    assert lines[3:5] == [("said", "double  Double it."), ("quiet", "● double(number=4)\n8")]
    assert [message.role for message in model.requests[-1].messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]


async def test_the_last_line_tells_what_an_answer_took() -> None:
    usage = Usage(input_tokens=1000, output_tokens=5, cache_read=900)
    lines, _, _ = await talk(["one", "/usage"], answer("Yes.", usage=usage), interactive=True)
    assert lines[1] == ("quiet", "m · 1000 in, 5 out, 900 of it cached · 0.5 s")
    assert lines[2] == ("quiet", "1 answer, 1000 tokens in, 5 out")


@pytest.mark.parametrize(
    ("usage", "said"),
    [
        pytest.param(None, "", id="nothing"),
        pytest.param(Usage(), "", id="nothing-said"),
        pytest.param(Usage(input_tokens=0, output_tokens=3), "0 in, 3 out", id="zero"),
        pytest.param(Usage(output_tokens=3, reasoning=2), "3 out, 2 thought", id="half"),
        pytest.param(Usage(input_tokens=7, output_tokens=3, estimated=True), "about 7 in, 3 out", id="estimated"),
    ],
)
def test_what_is_not_known_is_not_counted(usage: Usage | None, said: str) -> None:
    assert format_tokens(usage) == said


def test_sums_tell_what_is_missing() -> None:
    spent = ConversationUsage()
    spent.add(Usage(input_tokens=7, output_tokens=3), 0.25)
    spent.add(None, None)
    assert str(spent) == "2 answers, 7 tokens in, 3 out, 1 not counted, $0.2500 and 1 without a price"
