"""Resolution of a model's tool calls: find the tool, parse the arguments, detect repetition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.errors import ConfigurationError
from xenoglot.tools.arguments import read_arguments
from xenoglot.tools.effects import FinishedCall, PreparedCall
from xenoglot.tools.tool_output import failed, raised

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xenoglot.model.content import ToolCall
    from xenoglot.tools.tool import Approval, LocalTool
    from xenoglot.tools.tool_output import ToolOutput

MOST_REPEATS: Final = 5
"""Identical calls in a row, with the same result, after which the call is not run again."""


class Calls:
    """The tools of one run by name, and its last calls. `time_limit` is for tools without one."""

    def __init__(self, tools: Sequence[LocalTool], time_limit: float | None) -> None:
        self._tools: dict[tuple[str | None, str], LocalTool] = {}
        for tool in tools:
            key = (tool.spec.namespace, tool.spec.name)
            if key in self._tools:
                raise ConfigurationError(f"two tools are called `{tool.spec.name}`; give one of them another `name`")
            self._tools[key] = tool
        self._time_limit = time_limit
        self._last: tuple[tuple[str | None, str, str], ToolOutput] | None = None
        self._repeats = 0

    def group(self, calls: Iterable[ToolCall | FinishedCall], most: int) -> Sequence[ToolCall | FinishedCall]:
        """Return the first of `calls` that may run in parallel, at most `most`, at least one."""
        group: list[ToolCall | FinishedCall] = []
        for call in calls:
            tool = None if isinstance(call, FinishedCall) else self._find(call)
            if tool is not None and tool.exclusive and group:
                break
            if _same(call, group) >= MOST_REPEATS:  # what comes of them is to be seen first
                break
            group.append(call)
            if len(group) >= most or (tool is not None and tool.exclusive):
                break
        return group

    def ready(self, call: ToolCall) -> PreparedCall | FinishedCall:
        """Return the call ready to run, or the error for the model."""
        tool = self._find(call)
        if tool is None:
            names = ", ".join(f"`{name}`" for _, name in self._tools) or "none"
            return FinishedCall(call=call, output=failed(f"there is no tool `{call.name[:100]}`; there are: {names}"))
        if self._repeats >= MOST_REPEATS and self._last is not None and self._last[0] == _key(call):
            told = f"not run: this very call was made {self._repeats} times in a row, each time with the same result"
            return FinishedCall(call=call, output=failed(f"{told}; do something else, or answer with what you have"))
        try:
            arguments = read_arguments(call, tool.spec.parameters)
            tool.check(arguments)
        except BaseException as error:  # noqa: BLE001  a check is the tool's own code, and may do anything
            return FinishedCall(call=call, output=raised(error))
        seconds = self._time_limit if tool.time_limit is None else tool.time_limit
        return PreparedCall(call=call, tool=tool, arguments=arguments, seconds=seconds)

    def approved(self, ready: PreparedCall, approval: Approval) -> PreparedCall | FinishedCall:
        """Return the call after the approval: unchanged, with other arguments, or refused."""
        if not approval.allowed:
            why = f": {approval.reason}" if approval.reason else ""
            return FinishedCall(call=ready.call, output=failed(f"not run: the user did not allow this call{why}"))
        if approval.arguments is None:
            return ready
        try:
            ready.tool.check(approval.arguments)
        except BaseException as error:  # noqa: BLE001  as above
            return FinishedCall(call=ready.call, output=raised(error))
        return replace(ready, arguments=approval.arguments, changed=True)

    def record(self, call: ToolCall, output: ToolOutput) -> None:
        """Record a call and its result."""
        key = _key(call)
        if self._last is not None and self._last[0] == key and self._last[1].content == output.content:
            self._repeats += 1
        else:
            self._repeats = 1
        self._last = (key, output)

    def _find(self, call: ToolCall) -> LocalTool | None:
        return self._tools.get((call.namespace, call.name)) or self._tools.get((None, call.name))


def _same(call: ToolCall | FinishedCall, others: Sequence[ToolCall | FinishedCall]) -> int:
    """Return how many of `others` are the very call."""
    if isinstance(call, FinishedCall):
        return 0
    return sum(not isinstance(one, FinishedCall) and _key(one) == _key(call) for one in others)


def _key(call: ToolCall) -> tuple[str | None, str, str]:
    return call.namespace, call.name, call.arguments
