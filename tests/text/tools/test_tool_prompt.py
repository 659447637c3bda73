"""Tools, calls and results told in words (L-S2, R-S1)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import pytest
from msgspec.structs import replace

from xenoglot.codec.loss import Losses
from xenoglot.errors import WireError
from xenoglot.model.content import CacheMark, Extra, Image, Opaque, Reasoning, Remote, Text, ToolCall, ToolResult
from xenoglot.model.request import Message, Request, Tool, ToolChoice
from xenoglot.text import registry
from xenoglot.text.payloads.json_calls import JSONCalls
from xenoglot.text.syntax import CallSyntax, Syntax, ToolPromptSyntax
from xenoglot.text.tools.tool_prompt import MUST_CALL, ONE_AT_A_TIME, USUAL, told

if TYPE_CHECKING:
    from xenoglot.model.content import Part

ROW = Syntax(
    name="row",
    title="A row",
    source="",
    calls=(CallSyntax(open=("<call>",), close=("</call>",), payload=JSONCalls()),),
    telling=ToolPromptSyntax(
        tools="Tools: {tools} Like this: {example}", tool="function", separator=", ", result="<{name}>{content}"
    ),
)
NOW = Tool(name="now", description="Tell the time.", parameters={"type": "object", "properties": {}})
SEEN = '{"name":"now","description":"Tell the time.","parameters":{"type":"object","properties":{}}}'
TOLD = f'Tools: {SEEN} Like this: <call>{{"name": "<name>", "arguments": {{"<parameter>": "<value>"}}}}</call>'
HI = Message(role="user", content=(Text(text="Hi"),))
ASKED = Request(model="m", messages=(HI,), tools=(NOW,))


def system(text: str) -> Message:
    """A system turn."""
    return Message(role="system", content=(Text(text=text),))


def role_and_text(request: Request) -> list[tuple[str, str]]:
    """The turns of a request, as (role, text)."""
    return [
        (turn.role, "".join(part.text for part in turn.content if isinstance(part, Text))) for turn in request.messages
    ]


def test_a_request_without_tools_and_calls_is_left_alone() -> None:
    request = Request(model="m", messages=(HI,))
    assert told(request, ROW, Losses()) is request


def test_tools_stand_in_a_system_turn_of_their_own() -> None:
    losses = Losses()
    asked = replace(ASKED, tool_choice=ToolChoice(mode="auto"), parallel_tool_calls=True)
    assert told(asked, ROW, losses) == Request(model="m", messages=(system(TOLD), HI))
    assert [str(loss) for loss in losses] == ["$ tools emulated (described in the system turn, in the form `row`)"]


def test_tools_stand_behind_what_the_system_says() -> None:
    asked = replace(ASKED, messages=(system("Be kind."), HI))
    assert role_and_text(told(asked, ROW, Losses())) == [("system", f"Be kind.\n\n{TOLD}"), ("user", "Hi")]


@pytest.mark.parametrize(
    ("choice", "parallel", "demands", "lost"),
    [
        (ToolChoice(mode="required"), None, [MUST_CALL], ["$.tool_choice mode"]),
        (
            ToolChoice(mode="required", names=("now",)),
            None,
            ["You must call the tool `now` now."],
            ["$.tool_choice mode"],
        ),
        (None, False, [ONE_AT_A_TIME], ["$ parallel_tool_calls"]),
    ],
    ids=["required", "named", "one"],
)
def test_demands_are_asked_for(
    choice: ToolChoice | None, parallel: Literal[False] | None, demands: list[str], lost: list[str]
) -> None:
    losses = Losses()
    asked = replace(ASKED, tool_choice=choice, parallel_tool_calls=parallel)
    assert role_and_text(told(asked, ROW, losses)) == [("system", "\n\n".join([TOLD, *demands])), ("user", "Hi")]
    assert [f"{loss.where} {loss.what}" for loss in losses if loss.how == "approximated"] == lost


def test_no_tool_is_told_where_none_may_be_called() -> None:
    losses = Losses()
    assert told(replace(ASKED, tool_choice=ToolChoice(mode="none")), ROW, losses) == Request(model="m", messages=(HI,))
    assert [*losses] == []


def test_only_the_tools_that_may_be_called_are_told() -> None:
    other = replace(NOW, name="other")
    asked = replace(ASKED, tools=(other, NOW), tool_choice=ToolChoice(mode="auto", names=("now",)))
    assert role_and_text(told(asked, ROW, Losses())) == [("system", TOLD), ("user", "Hi")]


def test_calls_and_results_are_words_of_the_family() -> None:
    """What looks like a field in a result is none."""
    calls: tuple[Part, ...] = (
        Reasoning(text="hm"),
        Text(text="Let me see."),
        ToolCall(id="a", name="now", arguments='{"zone": "x"}'),
        ToolCall(id="b", name="now"),
    )
    results = (ToolResult(call_id="a", content=(Text(text="{name} noon"),)), ToolResult(call_id="b", is_error=True))
    history = (
        HI,
        Message(role="assistant", content=calls),
        Message(role="tool", content=results[:1]),
        Message(role="tool", content=results[1:]),
        Message(role="user", content=(Text(text="And?"),)),
    )
    made = told(replace(ASKED, messages=history, tools=()), ROW, Losses())
    assert role_and_text(made) == [
        ("user", "Hi"),
        (
            "assistant",
            (
                'Let me see.\n<call>{"name": "now", "arguments": {"zone": "x"}}</call>\n'
                '<call>{"name": "now", "arguments": {}}</call>'
            ),
        ),
        ("user", "<now>{name} noon\n<now>[tool error] \nAnd?"),
    ]
    assert made.messages[1].content[0] == Reasoning(text="hm")


def test_pictures_in_results_stand_behind_them() -> None:
    """They are told apart by their numbers, whichever results they are from."""
    losses = Losses()
    one, two = (Image(source=Remote(url=f"https://pictures.example/{number}.png")) for number in (1, 2))
    results = (
        ToolResult(call_id="a", name="now", content=(Text(text="see"), one)),
        ToolResult(call_id="b", name="look", content=(two,)),
    )
    made = told(Request(model="m", messages=(Message(role="tool", content=results),)), ROW, losses)
    text = Text(text="<now>see\n[image 1: below]\n<look>[image 2: below]")
    assert made.messages == (Message(role="user", content=(text, one, two)),)
    assert [str(loss) for loss in losses] == [
        "$.messages[0] image emulated (moved after the tool results)",
    ]


def test_what_else_is_in_results_is_told_as_far_as_it_has_words() -> None:
    losses = Losses()
    known = Opaque(dialect="messages", data={"type": "tool_reference"}, text="The tool `now` can be called.")
    unknown = Opaque(dialect="messages", data={"type": "mystery"})
    result = ToolResult(call_id="a", name="find", content=(known, unknown))
    made = told(Request(model="m", messages=(Message(role="tool", content=(result,)),)), ROW, losses)
    assert role_and_text(made) == [("user", "<find>The tool `now` can be called.")]
    assert [str(loss) for loss in losses] == [
        "$.messages[0] tool_reference approximated (written as text)",
        "$.messages[0] mystery dropped (a tool result is rendered as text)",
    ]


def test_results_stand_in_the_order_of_their_calls() -> None:
    """Clients give them as they come in; the model may have nothing but their order to tell them apart."""
    calls = tuple(ToolCall(id=name, name="now") for name in ("a", "b", "c"))
    results = [ToolResult(call_id=name, name=name) for name in ("c", "stray", "b", "a")]
    history = (
        Message(role="assistant", content=calls),
        Message(role="tool", content=tuple(results[:2])),
        *(Message(role="tool", content=(result,)) for result in results[2:]),
        Message(role="assistant", content=(ToolCall(id="b", name="now"), ToolCall(id="a", name="now"))),
        Message(role="user", content=(ToolResult(call_id="a", name="a"), ToolResult(call_id="b", name="b"))),
    )
    made = role_and_text(told(Request(model="m", messages=history), ROW, Losses()))
    assert [text for role, text in made if role == "user"] == ["<a>\n<b>\n<c>\n<stray>", "<b>\n<a>"]


def test_cache_marks_stay_at_the_end_of_what_they_marked() -> None:
    short, long = CacheMark(ttl="5m"), CacheMark(ttl="1h")
    history = (
        system("Be kind."),
        Message(role="assistant", content=(ToolCall(id="a", name="now"), ToolCall(id="b", name="now", cache=long))),
        Message(role="tool", content=(ToolResult(call_id="a", cache=short), ToolResult(call_id="b"))),
        Message(role="tool", content=(ToolResult(call_id="c", content=(Text(text="x", cache=long),)),)),
    )
    asked = replace(ASKED, messages=history, tools=(replace(NOW, cache=short), replace(NOW, name="other")))
    losses = Losses()
    made = told(asked, ROW, losses)
    parts = [part for turn in made.messages for part in turn.content if isinstance(part, Text)]
    assert [part.cache for part in parts] == [None, short, long, short, long]
    assert [str(loss) for loss in losses] == ["$ tools emulated (described in the system turn, in the form `row`)"]


def test_turns_that_become_one_are_one_text() -> None:
    """But where more is said of a text, or the prompt is to be cached up to it."""
    mark = CacheMark()
    results = [Message(role="tool", content=(ToolResult(call_id=name, name=name),)) for name in ("a", "b")]
    picture = Image(source=Remote(url="https://pictures.example/1.png"))
    words = (Text(text="One.\n"), Text(text="Two.", cache=mark))
    others = (Text(text="Three."), picture)
    said_of = Message(role="user", content=(Text(text="Four.", extra=Extra(dialect="chat", fields={"a": 1})),))
    users = [Message(role="user", content=content) for content in (words, (), others, (Text(text="Five."),))]
    made = told(Request(model="m", messages=(*results, *users, said_of)), ROW, Losses())
    assert made.messages == (
        Message(
            role="user",
            content=(
                Text(text="<a>\n<b>\nOne.\n"),
                Text(text="Two.", cache=mark),
                Text(text="\nThree."),
                picture,
                Text(text="Five."),
                Text(text="\nFour.", extra=Extra(dialect="chat", fields={"a": 1})),
            ),
        ),
    )


def test_tools_stand_behind_the_first_words_of_the_system() -> None:
    """Claude Code's first system turn is a note to Anthropic alone, and the next one the prompt."""
    note = Message(role="system", content=(Opaque(dialect="messages", data={"type": "text", "text": "cch=1"}),))
    asked = replace(ASKED, messages=(note, system("Be kind."), system("It is noon."), HI, system("Now one.")))
    made = told(asked, ROW, Losses())
    assert role_and_text(made)[1:] == [
        ("system", f"Be kind.\n\n{TOLD}"),
        ("system", "It is noon."),
        ("user", "Hi"),
        ("system", "Now one."),
    ]
    assert made.messages[0] == note


def test_tools_of_free_text_and_in_namespaces_are_told_as_functions() -> None:
    losses = Losses()
    tool = Tool(name="patch", kind="custom", namespace="files", strict=True)
    made = told(Request(model="m", messages=(HI,), tools=(tool,)), ROW, losses)
    ((_, text), _) = role_and_text(made)
    assert '"name":"files__patch"' in text
    assert '"required":["input"]' in text
    assert sorted({f"{loss.where} {loss.what} {loss.how}" for loss in losses}) == [
        "$ tools emulated",
        "$.tools[0] kind emulated",
        "$.tools[0] strict dropped",
    ]


def test_a_tool_that_its_provider_runs_is_lost() -> None:
    losses = Losses()
    hosted = Opaque(dialect="responses", data={"type": "web_search"})
    assert told(replace(ASKED, tools=(hosted, NOW)), ROW, losses) == Request(model="m", messages=(system(TOLD), HI))
    assert "$.tools[0] tool dropped (only its provider runs it)" in [str(loss) for loss in losses]


def test_nothing_but_tools_that_others_run_is_refused() -> None:
    hosted = Opaque(dialect="responses", data={"type": "web_search"})
    with pytest.raises(WireError):
        told(replace(ASKED, tools=(hosted,)), ROW, Losses())


def test_results_escaped_where_the_family_wants_it() -> None:
    row = replace(ROW, telling=ToolPromptSyntax(tools="{tools}", result='{"content": {content}}', escaped=True))
    result = ToolResult(call_id="a", content=(Text(text='say "hi"'),))
    made = told(Request(model="m", messages=(Message(role="tool", content=(result,)),)), row, Losses())
    assert role_and_text(made) == [("user", '{"content": "say \\"hi\\""}')]


@pytest.mark.parametrize("name", registry.names())
def test_no_result_looks_like_words_of_the_user(name: str) -> None:
    """It stands in a turn of the user: whatever a family puts around it has to say what it is."""
    telling = registry.get(name).telling or USUAL
    around = re.sub(r"\{(?:name|id|content)\}", "", telling.result)
    assert telling.result.count("{content}") == 1
    assert re.search(r"[a-z]{4}", around, re.IGNORECASE)


def turns_of(row: str, *calls: ToolCall) -> list[tuple[str, str]]:
    """Return a conversation in words of `row` in which `calls` were made, and each gave its name."""
    history = []
    for call in calls:
        result = ToolResult(call_id=call.id, content=(Text(text=call.name),))
        history += [Message(role="assistant", content=(call,)), Message(role="tool", content=(result,))]
    return role_and_text(told(Request(model="m", messages=tuple(history)), registry.get(row), Losses()))


KIMI_CALL = (
    "<|tool_calls_section_begin|><|tool_call_begin|>{}<|tool_call_argument_begin|>{{}}<|tool_call_end|>"
    "<|tool_calls_section_end|>"
)


def test_kimi_is_told_its_own_ids_and_others_in_its_form() -> None:
    own = ToolCall(id="functions.now:7", name="now", arguments="{}")
    other = ToolCall(id="toolu_1", name="add", arguments="{}")
    assert [text for _, text in turns_of("kimi_k2", own, other)] == [
        KIMI_CALL.format("functions.now:7"),
        "## Return of functions.now:7\nnow",
        KIMI_CALL.format("functions.add:1"),
        "## Return of functions.add:1\nadd",
    ]


def test_mistral_is_told_its_own_ids_alone() -> None:
    own = ToolCall(id="VvvODy9mT", name="now", arguments="{}")
    other = ToolCall(id="toolu_1", name="add", arguments="{}")
    assert [text for _, text in turns_of("mistral", own, other)] == [
        "[TOOL_CALLS]now[CALL_ID]VvvODy9mT[ARGS]{}",
        "[TOOL_RESULTS]now[/TOOL_RESULTS]",
        "[TOOL_CALLS]add[ARGS]{}",
        "[TOOL_RESULTS]add[/TOOL_RESULTS]",
    ]


def test_names_of_tools_stand_in_the_prompt_as_they_are() -> None:
    """A prompt has no limit of names (R-S1)."""
    names = ("web.search", "x" * 90, "na\u00efve tool")
    tools = tuple(Tool(name=name) for name in names)
    call = ToolCall(id="c", name="web.search", arguments="{}")
    made = told(
        Request(model="m", messages=(HI, Message(role="assistant", content=(call,))), tools=tools), ROW, Losses()
    )
    ((_, system), _, (_, called)) = role_and_text(made)
    assert [name for name in names if f'"name":"{name}"' in system] == [*names]
    assert called == '<call>{"name": "web.search", "arguments": {}}</call>'
