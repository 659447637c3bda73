"""A request is changed only where the server's facts demand it, and the change is told."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from xenoglot.codec.loss import Losses
from xenoglot.codec.requests.adapt_request import check_prompt, check_tools, fitted, fold_system
from xenoglot.codec.target import Target
from xenoglot.errors import WireError
from xenoglot.model.content import HostedKind, Image, Opaque, Remote, Text
from xenoglot.model.hosted import HostedTool, McpServer
from xenoglot.model.request import Message, Request, Tool, ToolChoice

REQUEST = Request(model="m")
FORCED = ToolChoice(mode="required", names=("f",))
TOLD = ["$.tool_choice mode approximated (the server takes only `auto` and `none`)"]


@pytest.mark.parametrize(
    ("choice", "target", "made", "told"),
    [
        pytest.param(None, Target(forced_tools=False), None, [], id="nothing-chosen"),
        pytest.param(FORCED, Target(), FORCED, [], id="forced-and-taken"),
        pytest.param(FORCED, Target(forced_tools=False), ToolChoice(mode="auto"), TOLD, id="pitfall-18-forced"),
        pytest.param(
            ToolChoice(mode="none"), Target(forced_tools=False), ToolChoice(mode="none"), [], id="pitfall-18-none"
        ),
    ],
)
def test_fitted(choice: ToolChoice | None, target: Target, made: ToolChoice | None, told: list[str]) -> None:
    losses = Losses()
    assert fitted(replace(REQUEST, tool_choice=choice), "chat", target, losses) == replace(REQUEST, tool_choice=made)
    assert [str(loss) for loss in losses] == told


SEARCH = Opaque(dialect="messages", data={"type": "web_search_20250305", "name": "web_search"})


@pytest.mark.parametrize(
    ("tools", "dialect"),
    [
        pytest.param((), "chat", id="none"),
        pytest.param((SEARCH,), "messages", id="at-home"),
        pytest.param((SEARCH, Tool(name="f")), "chat", id="pitfall-30-beside-others"),
    ],
)
def test_tools_that_somebody_runs(tools: tuple[Tool | Opaque, ...], dialect: str) -> None:
    check_tools(replace(REQUEST, tools=tools), dialect)


def test_pitfall_30_tools_that_nobody_here_runs() -> None:
    with pytest.raises(WireError) as caught:
        check_tools(replace(REQUEST, tools=(SEARCH,)), "chat")
    assert str(caught.value) == (
        "$.tools: the target model cannot run `web_search_20250305`; ask a server of messages, or leave it out"
    )


def test_pitfall_30_a_refusal_names_the_settings_of_a_gateway_that_runs_the_tools() -> None:
    server = McpServer(label="docs", url="https://mcp.example")
    tools = (HostedTool(kind="web_search"), HostedTool(kind="mcp", server=server), HostedTool(kind="file_search"))
    with pytest.raises(WireError) as caught:
        check_tools(replace(REQUEST, tools=tools), "chat")
    assert str(caught.value) == (
        "$.tools: the target model cannot run `web_search`, `mcp`, `file_search`; ask a model whose provider runs it, "
        "have a gateway run it (`[tools.web_search]`, `[tools.mcp.servers]`), or leave it out"
    )


FORCED_SEARCH = replace(
    REQUEST,
    tools=(HostedTool(kind="web_search"), Tool(name="f")),
    tool_choice=ToolChoice(mode="required", names=("web_search",)),
)


def test_pitfall_30_a_forced_tool_that_the_target_does_not_run_is_refused() -> None:
    with pytest.raises(WireError, match=r"cannot run `web_search`.*\[tools.web_search\]"):
        check_tools(FORCED_SEARCH, "chat")
    hosted: tuple[HostedKind, ...] = ("web_search",)
    check_tools(FORCED_SEARCH, "responses", hosted)
    check_tools(replace(FORCED_SEARCH, tools=(*FORCED_SEARCH.tools, Tool(name="web_search"))), "chat")


def test_a_choice_names_only_tools_that_are_sent() -> None:
    losses = Losses()
    request = replace(FORCED_SEARCH, tool_choice=ToolChoice(mode="auto", names=("web_search", "f")))
    assert fitted(request, "chat", Target(), losses).tool_choice == ToolChoice(mode="auto", names=("f",))
    assert [str(loss) for loss in losses] == ["$.tool_choice web_search dropped (the tool is left out)"]


PICTURE = Image(source=Remote(url="https://example.com/a.png"))
SUMMARIZED = replace(
    REQUEST,
    messages=(
        Message(role="user", content=(Text(text="Before: two pictures."),)),
        Message(role="user", content=(PICTURE,)),
    ),
)
"""Its last turn is the fourth of the client's."""


def after_a_summary(lost: str) -> Losses:
    """Return the losses of `SUMMARIZED`; that of the picture of this turn is one."""
    losses = Losses()
    losses.dropped(f"{lost}.content[0]", "image", "it is too large")
    return losses.moved({"$.messages[0]": None, "$.messages[1]": "$.messages[3]"})


def test_a_lost_turn_is_found_by_where_it_stood() -> None:
    with pytest.raises(WireError) as caught:
        check_prompt(SUMMARIZED, after_a_summary("$.messages[3]"))
    assert str(caught.value) == (
        "$.messages[3].content[0]: the target model would get nothing of this turn: the image is left out, because "
        "it is too large"
    )


def test_a_lost_turn_is_not_the_one_that_stands_in_its_place_now() -> None:
    """A picture of an old turn is lost in the summary alone."""
    check_prompt(SUMMARIZED, after_a_summary("$.messages[1]"))


def test_losses_of_turns_behind_a_folded_one_are_where_they_stood() -> None:
    messages = (
        Message(role="user", content=(Text(text="Hi"),)),
        Message(role="system", content=(Text(text="Be short."),)),
        Message(role="assistant", content=(Text(text="Hello."),)),
        Message(role="user", content=(Text(text="And?"), Text(text="Why?"))),
    )
    losses = Losses()
    folded, moved = fold_system(messages, losses)
    assert [[part.text for part in message.content if isinstance(part, Text)] for message in folded] == [
        ["Hi"],
        ["Hello."],
        ["Be short.", "And?", "Why?"],
    ]
    now = [
        f"$.messages[{index}].content[{number}]"
        for index, message in enumerate(folded)
        for number in range(len(message.content))
    ]
    assert [moved.origin(path) for path in now] == [
        "$.messages[0].content[0]",
        "$.messages[2].content[0]",
        "$.messages[1].content[0]",
        "$.messages[3].content[0]",
        "$.messages[3].content[1]",
    ]
