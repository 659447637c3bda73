"""Runs of the tool loop: their options, and the four ways to start one."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Unpack, cast, get_args

from xenoglot.client.tool_loop.driver import ModelCallOptions
from xenoglot.client.tool_loop.run_streams import AsyncRunStream, RunStream
from xenoglot.errors import ConfigurationError
from xenoglot.model.content import Opaque
from xenoglot.model.request import Tool
from xenoglot.model.response import Usage
from xenoglot.tools.budget import Budget, RunSpend
from xenoglot.tools.compaction import Compaction
from xenoglot.tools.events import Order
from xenoglot.tools.loop import ToolLoop
from xenoglot.tools.run_options import RunOptions
from xenoglot.tools.tool import LocalTool, tool

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.client.call.messages import Messages
    from xenoglot.client.call.options import Options, ToolRunOptions
    from xenoglot.client.call.tools import AnyTool
    from xenoglot.client.tool_loop.caller import BlockingCaller, Caller
    from xenoglot.tools.events import RunEvent
    from xenoglot.tools.result import RunResult

__all__ = ["AsyncRunStream", "RunStream", "run", "run_stream", "run_stream_sync", "run_sync"]

_RULES: Final = frozenset(
    {
        "max_rounds",
        "on_limit",
        "budget",
        "spent",
        "parallel",
        "time_limit",
        "result_limit",
        "continue_length",
        "compaction",
    }
)
_KINDS: Final[Mapping[str, type]] = {
    "budget": Budget,
    "spent": RunSpend,
    "compaction": Compaction,
    "max_rounds": int,
    "result_limit": int,
    "time_limit": float,
}


def run_stream(
    client: Caller, messages: Messages, tools: Sequence[AnyTool], **options: Unpack[ToolRunOptions]
) -> AsyncRunStream:
    """Return a run as a stream; see `run` for the options."""
    return AsyncRunStream(client, _starter(client, messages, tools, options))


async def run(
    client: Caller,
    messages: Messages,
    tools: Sequence[AnyTool],
    *,
    on_event: Callable[[RunEvent], object] | None = None,
    **options: Unpack[ToolRunOptions],
) -> RunResult:
    """Return the result of a run: the model is called and its tool calls are run, until it stops.

    `tools` are functions made tools by `@tool` (plain functions are converted), other `LocalTool`s, and built-in tools
    of the upstream. `on_event` is called with each event; its awaitable results are awaited. `Client.run` describes the
    options.

    Raises:
        ConfigurationError: an option or a tool is not valid.
        FailureError: the request is not valid; later failures are the outcome `failed`.
        CancelledError: the task was cancelled; the last event still has a result.
    """
    stream = run_stream(client, messages, tools, **options)
    telling = False
    try:
        async for event in stream:
            telling = True
            if on_event is not None and inspect.isawaitable(made := on_event(event)):
                await made
            telling = False
    except BaseException:
        await stream.aclose()
        if on_event is not None and not telling:
            for event in stream.unread_events():
                if inspect.isawaitable(made := on_event(event)):
                    await made
        raise
    return _ended(stream.result)


def run_stream_sync(
    client: BlockingCaller, messages: Messages, tools: Sequence[AnyTool], **options: Unpack[ToolRunOptions]
) -> RunStream:
    """Return a run as a stream for callers that block; see `run` for the options."""
    portal, inner = client._current()  # noqa: SLF001  the same room
    return RunStream(portal, AsyncRunStream(inner, _starter(inner, messages, tools, options), here=True))


def run_sync(
    client: BlockingCaller,
    messages: Messages,
    tools: Sequence[AnyTool],
    *,
    on_event: Callable[[RunEvent], object] | None = None,
    **options: Unpack[ToolRunOptions],
) -> RunResult:
    """Return the result of a run; see `run`. A `KeyboardInterrupt` is raised after the last event."""
    stream = run_stream_sync(client, messages, tools, **options)
    telling = False
    try:
        for event in stream:
            telling = True
            if on_event is not None:
                on_event(event)
            telling = False
    except BaseException:
        stream.close()
        if on_event is not None and not telling:
            for event in stream.unread_events():
                on_event(event)
        raise
    return _ended(stream.result)


def _starter(
    client: Caller, messages: Messages, tools: Sequence[AnyTool], options: Mapping[str, Any]
) -> Callable[[], Any]:
    """Return a function that starts the run; it raises errors about options when it is called."""

    async def start() -> tuple[ToolLoop, ModelCallOptions]:
        said = dict(options)
        local, others = _sorted(tools)
        rules = {name: said.pop(name) for name in _RULES & set(said)}
        _check_kinds(rules)
        order, approve = said.pop("order", "call"), said.pop("approve", None)
        if approve is not None and not callable(approve):
            raise ConfigurationError(f"`approve`: found a `{type(approve).__name__}`; expected a function")
        if order not in get_args(Order):
            raise ConfigurationError(f"`order`: found `{order}`; expected `call` or `result`")
        if "tools" in said:
            raise TypeError("`tools` is set twice: pass the tools once, after the messages")
        _check_names(said)
        if others:
            said["tools"] = others
        wanted = await client._calling.build_request(messages, cast("Options", said), stream=True)  # noqa: SLF001  the same room
        if isinstance(budget := rules.get("budget"), Budget) and budget.cost is not None:
            await asyncio.to_thread(_price, client, Usage(), wanted.request.model)  # the table takes its time to load
        made = RunOptions(
            **{name: value for name, value in rules.items() if value is not None},
            price=partial(_price, client),
            window=_window(client, wanted.request.model),
        )
        asking = ModelCallOptions(headers=wanted.headers, timeout=wanted.timeout, order=order, approve=approve)
        return ToolLoop(wanted.request, local, made), asking

    return start


def _sorted(tools: Sequence[AnyTool]) -> tuple[list[LocalTool], list[AnyTool]]:
    """Return the tools that run here, and those that the upstream runs."""
    if isinstance(tools, str | Mapping) or not isinstance(tools, Sequence):
        raise ConfigurationError(f"`tools`: found a `{type(tools).__name__}`; expected a list")
    local: list[LocalTool] = []
    others: list[AnyTool] = []
    for one in tools:
        if isinstance(one, LocalTool):
            local.append(one)
        elif isinstance(one, Tool | Opaque | Mapping) or not callable(one):
            others.append(one)
        else:
            local.append(tool(one))
    return local, others


def _check_kinds(rules: Mapping[str, object]) -> None:
    for name, kind in _KINDS.items():
        value = rules.get(name)
        if value is not None and not isinstance(value, (int, float) if kind is float else kind):
            raise ConfigurationError(f"`{name}`: found a `{type(value).__name__}`; expected a `{kind.__name__}`")


def _check_names(options: Mapping[str, object]) -> None:
    from xenoglot.client.call.options import Options  # noqa: PLC0415  read when there is something to compare

    known = {*Options.__annotations__, *_RULES, "order", "approve", "on_event"}
    for name in options:
        if name not in Options.__annotations__:
            near = get_close_matches(name, known, n=1)
            raise TypeError(f"there is no option `{name}`" + (f"; did you mean `{near[0]}`?" if near else ""))


def _price(client: Caller, usage: Usage, model: str, tier: str | None = None) -> float | None:
    cost = client.cost_of(usage, model, service_tier=tier)
    return None if cost is None else cost.total


def _window(client: Caller, model: str) -> int | None:
    """Return the context window of `model`, if the client knows it."""
    known = getattr(client, "context_window", None)
    return known(model) if callable(known) else None


def _ended(result: RunResult | None) -> RunResult:
    if result is None:  # cannot be: every end of a run leaves one, or an error
        raise RuntimeError("the run has no result")
    return result
