"""Chat templates: what they are found to know, and conversations that come out whole however little it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.backends.local_models import tiny
from tests.backends.local_models.requests import lost, request_of, turn
from xenoglot.backends.local_models.chat_template import TokenizerTemplate, template_of
from xenoglot.codec.loss import Losses
from xenoglot.errors import WireError
from xenoglot.model.content import (
    Audio,
    File,
    Image,
    Inline,
    Opaque,
    Plain,
    Reasoning,
    Remote,
    Text,
    ToolCall,
    ToolResult,
)
from xenoglot.model.request import Message, Request, Thinking, Tool, ToolChoice

if TYPE_CHECKING:
    from xenoglot.model.content import Part

PLAIN = (
    "{% for message in messages %}<{{ message.role }}>{{ message.content | trim }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
STRICT = (
    "{% for message in messages %}{% if message.role not in ('user', 'assistant') or "
    "(message.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must take turns') }}{% endif %}"
    "[{{ message.role }}]{{ message.content }}{% endfor %}"
)
"""Knows the user and the assistant, who take turns, and nobody else; as those of the first Gemma and Mistral models."""
HEAD = (
    "{% if messages[0].role == 'system' %}{{ messages[0].content }}|{% endif %}"
    "{% for message in messages if message.role in ('user', 'assistant') %}[{{ message.role }}]{{ message.content }}"
    "{% endfor %}{% if tools %}{{ tools | length }} tools{% endif %}"
)
"""Leaves out in silence whatever it does not know: a system turn that comes late, a result, a call."""
QUOTING = (
    "{% for message in messages %}<{{ message.role }}>{{ message.content | tojson }}"
    "{% for call in message.tool_calls or [] %}{{ call.function.name }}{% endfor %}{% endfor %}"
    "{% if tools %}T{% endif %}"
)
"""Writes what is said as JSON, as that of Llama 3 writes results."""

CALL = ToolCall(id="1", name="look", arguments='{"at":"sky"}')
FREE = ToolCall(id="2", name="note", arguments="as is", kind="custom")
HALF = ToolCall(id="3", name="look", arguments='{"at":')


def template(text: str) -> TokenizerTemplate:
    """A template on a tokenizer of its own."""
    made = tiny.tokenizer.__wrapped__()
    made.chat_template = text
    return TokenizerTemplate(made)


def result(words: str, *, call_id: str = "1", failed: bool | None = None) -> ToolResult:
    return ToolResult(call_id=call_id, content=(Text(text=words),), is_error=failed)


def shown(text: str, request: Request) -> tuple[str, list[str]]:
    losses = Losses()
    return template(text).prompt(request, losses).text, lost(losses)


@pytest.mark.parametrize(
    ("text", "knows"),
    [
        pytest.param(tiny.TEMPLATE, (True, True), id="tools-and-thinking"),
        pytest.param(HEAD, (True, False), id="tools"),
        pytest.param(PLAIN, (False, False), id="neither"),
        pytest.param(STRICT, (False, False), id="strict"),
    ],
)
def test_what_a_template_knows_is_found_out(text: str, knows: tuple[bool, bool]) -> None:
    made = template(text)
    assert (made.knows_tools, made.knows_thinking) == knows


def test_a_tokenizer_without_a_template() -> None:
    made = tiny.tokenizer.__wrapped__()
    made.chat_template = None
    assert template_of(made) is None


CALLING = request_of("Rain?", turn("assistant", "I look.", CALL), turn("tool", result("blue")), "So?")


@pytest.mark.parametrize(
    ("text", "request_", "prompt", "losses"),
    [
        pytest.param(
            PLAIN,
            request_of(
                turn("system", "A"), turn("developer", "B"), turn("user", "C", "D"), "E", turn("assistant", "F"), "G"
            ),
            "<system>A\n\nB<user>C\nD\n\nE<assistant>F<user>G<assistant>",
            [],
            id="A8-neighbours-are-one-turn",
        ),
        pytest.param(
            PLAIN, request_of("Hi", turn("assistant", "Wel")), "<user>Hi<assistant>Wel", [], id="an-answer-begun"
        ),
        pytest.param(
            PLAIN,
            CALLING,
            '<user>Rain?<assistant>I look.\n<tool_call>\n{"name":"look","arguments":{"at":"sky"}}\n</tool_call>'
            '<user><tool_result name="look">\nblue\n</tool_result>\n\nSo?<assistant>',
            ["$.messages[1].content[1] tool call approximated", "$.messages[2].content[0] tool result approximated"],
            id="R-S1-calls-and-results-in-words",
        ),
        pytest.param(
            PLAIN,
            request_of(turn("assistant", FREE, HALF), turn("user", result("no", call_id="2", failed=True))),
            '<assistant><tool_call>\n{"name":"note","arguments":{"input":"as is"}}\n</tool_call>\n'
            '<tool_call>\n{"name":"look","arguments":{"arguments":"{\\"at\\":"}}\n</tool_call>'
            '<user><tool_result name="note" error>\nno\n</tool_result><assistant>',
            [
                "$.messages[0].content[0] tool call approximated",
                "$.messages[0].content[1] tool call approximated",
                "$.messages[1].content[0] tool result approximated",
            ],
            id="free-text-broken-arguments-and-a-failure",
        ),
        pytest.param(
            HEAD,
            CALLING,
            '[user]Rain?[assistant]I look.\n<tool_call>\n{"name":"look","arguments":{"at":"sky"}}\n</tool_call>'
            '[user]<tool_result name="look">\nblue\n</tool_result>\n\nSo?',
            ["$.messages[1].content[1] tool call approximated", "$.messages[2].content[0] tool result approximated"],
            id="pitfall-3-what-would-be-left-out-is-told-in-words",
        ),
        pytest.param(
            HEAD,
            request_of("A", turn("system", "B"), "C"),
            "[user]A\n\nB\nC",
            ["$.messages[1] role approximated"],
            id="pitfall-3-late-system-turn",
        ),
        pytest.param(
            STRICT,
            request_of(turn("system", "Be brief."), "Hi", turn("assistant", "Hey"), "So?"),
            "[user]Be brief.\n\nHi[assistant]Hey[user]So?",
            ["$.messages[0] role approximated"],
            id="no-system-turn",
        ),
        pytest.param(
            QUOTING,
            request_of('Say "ä"\n', turn("assistant", CALL), turn("tool", result("blue", failed=True))),
            '<user>"Say \\"ä\\"\\n"<assistant>""look<tool>"[tool error] blue"',
            ["$.messages[2].content[0] is_error emulated"],
            id="quoted-is-not-left-out",
        ),
        pytest.param(
            "{% for message in messages[:1] %}{{ message.content }}{% endfor %}",
            request_of("A", turn("assistant", "B"), "C"),
            "A",
            ["$.messages a turn of the assistant dropped", "$.messages a turn of the user dropped"],
            id="what-no-form-saves-is-a-loss",
        ),
    ],
)
def test_conversations(text: str, request_: Request, prompt: str, losses: list[str]) -> None:
    assert shown(text, request_) == (prompt, losses)


@pytest.mark.parametrize(
    ("part", "words", "losses"),
    [
        pytest.param(Image(source=Remote(url="http://x")), "", ["image dropped"], id="A-W7-image"),
        pytest.param(File(source=Plain(text="page")), "page", [], id="file"),
        pytest.param(File(source=Inline(data="")), "", ["file dropped"], id="binary-file"),
        pytest.param(Audio(transcript="ah"), "ah", ["audio approximated"], id="transcript"),
        pytest.param(Opaque(dialect="x", data={}, text="word"), "word", ["part approximated"], id="block-with-words"),
        pytest.param(Opaque(dialect="x", data={}), "", ["part dropped"], id="block"),
        pytest.param(Reasoning(encrypted="z"), "", ["reasoning dropped"], id="sealed-thought"),
    ],
)
def test_what_is_no_text(part: Part, words: str, losses: list[str]) -> None:
    expected = f"<user>A\n{words}".rstrip() + "<assistant>"
    told = [f"$.messages[0].content[1] {loss}" for loss in losses]
    assert shown(PLAIN, request_of(turn("user", "A", part))) == (expected, told)


def test_thoughts_are_the_templates_to_tell() -> None:
    request = request_of("A", turn("assistant", Reasoning(text="hm"), "B"), "C")
    thinking = "{% for message in messages %}{{ message.reasoning_content }}{{ message.content }}{% endfor %}"
    assert shown(thinking, request) == ("AhmBC", ["$.messages[1].content[0] reasoning approximated"])


def test_names_are_a_loss() -> None:
    request = request_of(Message(role="user", name="Ann", content=(Text(text="A"),)))
    assert shown(PLAIN, request) == ("<user>A<assistant>", ["$.messages[0] name dropped"])


TOOLS = (Tool(name="look"), Tool(name="note", kind="custom"), Opaque(dialect="x", data={"type": "search"}))
HOSTED = ["$.tools[2] tool dropped"]


@pytest.mark.parametrize(
    ("text", "choice", "prompt", "losses"),
    [
        pytest.param(HEAD, None, "[user]A2 tools", HOSTED, id="told"),
        pytest.param(HEAD, ToolChoice(mode="auto", names=("look",)), "[user]A1 tools", HOSTED, id="some"),
        pytest.param(HEAD, ToolChoice(mode="none"), "[user]A", [], id="none"),
        pytest.param(
            HEAD,
            ToolChoice(mode="required", names=("look",)),
            "[user]A1 tools",
            [*HOSTED, "$.tool_choice mode approximated"],
            id="demanded",
        ),
        pytest.param(
            PLAIN,
            None,
            "<user>A<assistant>",
            [f"$.tools[{number}] tool dropped" for number in range(3)],
            id="R-W3-unknown",
        ),
        pytest.param(PLAIN, ToolChoice(mode="none"), "<user>A<assistant>", [], id="unknown-and-unwanted"),
    ],
)
def test_tools(text: str, choice: ToolChoice | None, prompt: str, losses: list[str]) -> None:
    request = Request(model="m", messages=(turn("user", "A"),), tools=TOOLS, tool_choice=choice)
    assert shown(text, request) == (prompt, losses)


def test_a_call_cannot_be_demanded_of_a_model_that_hears_of_no_tools() -> None:
    request = Request(model="m", messages=(turn("user", "A"),), tools=TOOLS, tool_choice=ToolChoice(mode="required"))
    with pytest.raises(WireError) as error:
        shown(PLAIN, request)
    assert error.value.path == "$.tool_choice"


def test_thinking_that_a_template_does_not_know_is_a_loss() -> None:
    request = Request(model="m", messages=(turn("user", "A"),), thinking=Thinking(effort="low"))
    assert shown(PLAIN, request) == ("<user>A<assistant>", ["$ thinking dropped"])


def test_turns_that_no_form_of_gets_through_are_refused() -> None:
    with pytest.raises(WireError) as error:
        shown(STRICT, request_of(turn("assistant", "A"), "B"))
    assert error.value.path == "$.messages"
