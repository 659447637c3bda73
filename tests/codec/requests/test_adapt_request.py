"""A request is changed only where the server's facts demand it, and the change is told."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from xenoglot.codec.loss import Losses
from xenoglot.codec.requests.adapt_request import check_tools, fitted
from xenoglot.codec.target import Target
from xenoglot.errors import WireError
from xenoglot.model.content import HostedKind, Opaque
from xenoglot.model.hosted import HostedTool, McpServer
from xenoglot.model.request import Request, Tool, ToolChoice

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
