"""Hooks: commands of the user that run before and after a prompt, and before and after a tool call.

A hook gets one JSON object on standard input. Exit code 0 lets the work continue, and the hook's output is added for
the model. Any other exit code, a time-out, or a command that cannot be started stops the prompt or the call; the reason
is on standard error. After a prompt or a call nothing can be stopped: the reason then goes to the model.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import subprocess
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from xenoglot.agent.process_output import exchange
from xenoglot.agent.sandbox.file_names import valid_text
from xenoglot.errors import ConfigurationError
from xenoglot.model.content import Text
from xenoglot.tools.tool import LocalTool, ToolContext, ToolError, ToolOutput
from xenoglot.tools.tool_output import as_output, raised

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xenoglot.backends.redaction import Redactor
    from xenoglot.model.json import JSONObject

HookEvent: TypeAlias = Literal["before_prompt", "after_prompt", "before_tool", "after_tool"]

SECONDS: Final = 30.0
MOST_OUTPUT: Final = 10_000
"""Characters of what a hook prints, on either channel, that are used."""

MOST_FOLLOW_UPS: Final = 3
"""How often hooks after a prompt may send the model back to work."""


class Hook(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One command: `on` is its event, `tools` (name patterns) selects the calls, `seconds` is its time limit."""

    on: HookEvent
    command: Annotated[tuple[str, ...], Meta(min_length=1)]
    tools: tuple[str, ...] = ("*",)
    seconds: Annotated[float, Meta(gt=0, le=600)] = SECONDS


class HookResult(Struct, frozen=True):
    """Result of the hooks of one event: `output` for the model, and the reason if the work is stopped."""

    output: str = ""
    stopped: str | None = None


class Hooks:
    """The hooks of an agent, run in `folder` with the variables `environ`; secrets are redacted from their output."""

    def __init__(self, hooks: Sequence[Hook], folder: str, environ: Mapping[str, str], redactor: Redactor) -> None:
        self._hooks = tuple(hooks)
        self._folder = folder
        self._environ = environ
        self._redactor = redactor

    async def before_prompt(self, prompt: str) -> str:
        """Return the prompt with the output of hooks."""
        result = await asyncio.to_thread(self.run, "before_prompt", {"prompt": prompt})
        if result.stopped is not None:
            raise ConfigurationError(f"a hook stopped the prompt: {result.stopped}")
        return f"{prompt}\n\n{result.output}" if result.output else prompt

    async def after_prompt(self, outcome: str, answer: str) -> str | None:
        """Return a further prompt for the model if a hook rejects the result."""
        result = await asyncio.to_thread(self.run, "after_prompt", {"outcome": outcome, "answer": answer})
        return result.stopped

    def around(self, tools: Sequence[LocalTool]) -> list[LocalTool]:
        """Return the tools, each wrapped with its hooks."""
        return [HookWrapper(tool, self) if self._has_tool(tool.spec.name) else tool for tool in tools]

    def run(self, moment: HookEvent, event: JSONObject) -> HookResult:
        """Run the hooks of a moment one after the other, until one stops the work."""
        outputs: list[str] = []
        for hook in self._hooks:
            if hook.on != moment or not _matches(hook, event):
                continue
            result = self._run(hook, {"event": moment, **event})
            if result.stopped is not None:
                return HookResult("\n".join(outputs), result.stopped)
            if result.output:
                outputs.append(result.output)
        return HookResult("\n".join(outputs))

    def _has_tool(self, name: str) -> bool:
        return any(hook.on.endswith("_tool") and _matches(hook, {"tool": name}) for hook in self._hooks)

    def _run(self, hook: Hook, event: JSONObject) -> HookResult:
        name = hook.command[0]
        try:
            process = subprocess.Popen(  # noqa: S603  the user's own file names it
                hook.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self._folder,
                env=dict(self._environ),
                start_new_session=True,
                bufsize=0,
            )
        except (OSError, ValueError) as error:
            return HookResult(stopped=f"`{name}` could not be started: {type(error).__name__}")
        try:
            data = msgspec.json.encode(event)
            printed = exchange(process, data, seconds=hook.seconds, most=MOST_OUTPUT, redactor=self._redactor)
        except subprocess.TimeoutExpired:
            return HookResult(stopped=f"`{name}` took longer than {hook.seconds:g} seconds")
        finally:
            _end(process)
        if process.returncode == 0:
            return HookResult(valid_text(printed.output))
        problem = valid_text(printed.problem) or f"`{name}` ended with exit code {process.returncode}"
        return HookResult(stopped=problem)


class HookWrapper(LocalTool):
    """A tool with the hooks that run before and after its calls."""

    def __init__(self, tool: LocalTool, hooks: Hooks) -> None:
        self._tool = tool
        self._hooks = hooks
        self.spec = tool.spec
        self.needs_approval = tool.needs_approval
        self.time_limit = tool.time_limit
        self.exclusive = tool.exclusive
        self.asynchronous = tool.asynchronous

    def check(self, arguments: JSONObject) -> None:
        """Validate the arguments as the tool does."""
        self._tool.check(arguments)

    def run(self, arguments: JSONObject, context: ToolContext) -> object:
        """Run the hooks and the tool."""
        if self.asynchronous:
            return self._run_async(arguments, context)
        self._before(arguments)
        try:
            output = as_output(self._tool.run(arguments, context))
        except ToolError as error:
            output = raised(error)
        return self._after(arguments, output)

    async def _run_async(self, arguments: JSONObject, context: ToolContext) -> ToolOutput:
        await asyncio.to_thread(self._before, arguments)
        try:
            made = self._tool.run(arguments, context)
            output = as_output(await made if inspect.isawaitable(made) else made)
        except ToolError as error:
            output = raised(error)
        return await asyncio.to_thread(self._after, arguments, output)

    def _before(self, arguments: JSONObject) -> None:
        result = self._hooks.run("before_tool", {"tool": self.spec.name, "arguments": arguments})
        if result.stopped is not None:
            raise ToolError(f"a hook stopped the call: {result.stopped}")

    def _after(self, arguments: JSONObject, output: ToolOutput) -> ToolOutput:
        event: JSONObject = {
            "tool": self.spec.name,
            "arguments": arguments,
            "result": output.text,
            "is_error": output.is_error,
        }
        result = self._hooks.run("after_tool", event)
        added = [text for text in (result.output, result.stopped) if text]
        if not added:
            return output
        note = Text(text="".join(f"\n[hook] {text}" for text in added))
        return replace(output, content=(*output.content, note), is_error=output.is_error or result.stopped is not None)


def _matches(hook: Hook, event: JSONObject) -> bool:
    return "tool" not in event or any(fnmatchcase(event["tool"], pattern) for pattern in hook.tools)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End what is left of a hook, with what it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()
    process.wait()
