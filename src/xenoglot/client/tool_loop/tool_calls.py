"""Execution of tool calls: in parallel, each with a time limit; only results leave this module, never exceptions.

Blocking tools run in threads of their own, which cannot be stopped: after the time limit the thread is abandoned and
its result ignored.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec.structs import replace

from xenoglot.backends.thread_iterator import ThreadLimitError, ThreadRunner
from xenoglot.backends.user_traceback import USER_CODE, has_user_frames, user_traceback
from xenoglot.codec.json.json_io import to_text
from xenoglot.model.content import Text
from xenoglot.tools.context import ToolContext
from xenoglot.tools.effects import PreparedCall
from xenoglot.tools.events import CallEnded, CallProgress, CallStarted, EventOrder
from xenoglot.tools.tool_output import ToolError, ToolOutput, as_output, failed, raised

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from xenoglot.model.json import JSONObject
    from xenoglot.tools.effects import Execute, FinishedCall
    from xenoglot.tools.events import Order, RunEvent

GRACE: Final = 1.0
"""Seconds that a stopped tool has to end."""

CANCELLED: Final = "cancelled: the run was stopped before there was a result"

RunInCaller: TypeAlias = "Callable[[Callable[[], Any]], Awaitable[Any]]"
"""Runs a function in the caller's own thread."""

_abandoned: set[asyncio.Task[ToolOutput]] = set()
"""Tools that did not end after they were stopped."""


class Execution:
    """The calls of one effect. `here` runs a function in the caller's own thread, if that waits."""

    def __init__(
        self,
        effect: Execute,
        order: Order,
        tell: Callable[[RunEvent], Awaitable[None]],
        here: RunInCaller | None = None,
    ) -> None:
        self._calls = effect.calls
        self._round = effect.round
        self._limit = effect.limit
        self._report = tell
        self._run_in_caller = here
        self._announcer = EventOrder([one.call for one in effect.calls], order)
        self._queue: asyncio.Queue[RunEvent] = asyncio.Queue()
        self._outputs: dict[str, ToolOutput] = {}
        self._loop = asyncio.get_running_loop()

    async def run(self) -> tuple[ToolOutput, ...]:
        """Return the results in the order of the calls.

        Raises:
            CancelledError: cancelled; `outputs` has the results so far.
        """
        tasks: list[asyncio.Task[None]] = []
        try:
            for one in self._calls:
                if isinstance(one, PreparedCall):
                    tasks.append(asyncio.create_task(self._one(one)))
                else:
                    self._end(one, one.output)
            while len(self._outputs) < len(self._calls) or not self._queue.empty():
                for event in self._announcer.feed(await self._queue.get()):
                    await self._report(event)
        finally:
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)
        return self.outputs

    @property
    def outputs(self) -> tuple[ToolOutput, ...]:
        """The results; a call without one was cancelled."""
        return tuple(self._outputs.get(one.call.id) or failed(CANCELLED) for one in self._calls)

    def unreported_events(self) -> list[RunEvent]:
        """Return the events not reported before a cancellation, with the ends of calls without a result."""
        told: list[RunEvent] = []
        while not self._queue.empty():
            told += self._announcer.feed(self._queue.get_nowait())
        for one, output in zip(self._calls, self.outputs, strict=True):
            if one.call.id not in self._outputs:
                told += self._announcer.feed(CallEnded(call=one.call, output=output))
        return [*told, *self._announcer.close()]

    async def _one(self, ready: PreparedCall) -> None:
        call = ready.call
        self._queue.put_nowait(CallStarted(call=call, round=self._round))
        context = ToolContext(call, self._round, partial(self._progress, call.id))
        began = time.monotonic()
        output = await self._timed(ready, context)
        if ready.changed:
            output = replace(output, content=(Text(text=_changed(ready.arguments)), *output.content))
        self._end(ready, output, time.monotonic() - began)

    def _end(self, one: PreparedCall | FinishedCall, output: ToolOutput, seconds: float = 0.0) -> None:
        self._outputs[one.call.id] = output
        self._queue.put_nowait(CallEnded(call=one.call, output=output, seconds=seconds))

    def _progress(self, call_id: str, text: str) -> None:
        """Report progress, from any thread."""
        event = CallProgress(call_id=call_id, text=text)
        try:
            self._loop.call_soon_threadsafe(self._queue.put_nowait, event)
        except RuntimeError:  # the loop is gone, and everybody with it
            return

    async def _timed(self, ready: PreparedCall, context: ToolContext) -> ToolOutput:
        task = asyncio.create_task(self._attempt(ready, context))
        try:
            done, _ = await self.wait({task}, ready.seconds)
            if done:
                return task.result()
            await self._stop(task, context)
        except asyncio.CancelledError:
            await self._stop(task, context)
            raise
        return failed(f"the tool was stopped: it took longer than {ready.seconds:g} seconds")

    @staticmethod
    async def wait(
        tasks: set[asyncio.Task[ToolOutput]], seconds: float | None
    ) -> tuple[set[asyncio.Task[ToolOutput]], set[asyncio.Task[ToolOutput]]]:
        """Wait until the tasks are done or the time limit has passed; return those done, and the others."""
        return await asyncio.wait(tasks, timeout=seconds)

    async def _stop(self, task: asyncio.Task[ToolOutput], context: ToolContext) -> None:
        context.stop()
        task.cancel()
        _, pending = await asyncio.wait({task}, timeout=GRACE)
        _abandoned.update(pending)
        for stray in pending:
            stray.add_done_callback(_abandoned.discard)

    def _may_block_caller(self, ready: PreparedCall) -> bool:
        """Return whether the caller's thread may run the call: it is the only one and never has to be stopped."""
        running = [one for one in self._calls if isinstance(one, PreparedCall)]
        return len(running) == 1 and ready.seconds is None and not ready.tool.takes_context

    async def _attempt(self, ready: PreparedCall, context: ToolContext) -> ToolOutput:
        """Return the result of a tool, also if it raises: `SystemExit` in a tool does not end the program."""
        try:
            made = await self._call_tool(ready, partial(_step, ready, context, self._limit))
            return made if isinstance(made, ToolOutput) else as_output(await made, self._limit)
        except ThreadLimitError:
            return failed("not run: too many tools are running")
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return raised(error)
        except BaseException as error:  # noqa: BLE001  see above
            return _raised(ready, error)

    async def _call_tool(
        self, ready: PreparedCall, step: Callable[[], ToolOutput | Awaitable[object]]
    ) -> ToolOutput | Awaitable[object]:
        """Call the tool in its thread or loop; return its result, or an awaitable."""
        if ready.tool.asynchronous:
            return step()
        if self._run_in_caller is not None and self._may_block_caller(ready):
            made: ToolOutput | Awaitable[object] = await self._run_in_caller(step)
            return made
        steps = ThreadRunner()
        try:
            return await steps.run(step)
        finally:
            await steps.end()


def _step(ready: PreparedCall, context: ToolContext, limit: int) -> ToolOutput | Awaitable[object]:
    """Call a tool and convert its result to an output, unless it is awaitable."""
    try:
        made = ready.tool.run(ready.arguments, context)
        return made if inspect.isawaitable(made) else as_output(made, limit)
    except BaseException as error:  # noqa: BLE001  a tool may do anything
        return _raised(ready, error)


def _raised(ready: PreparedCall, error: BaseException) -> ToolOutput:
    """Return the output for an exception; log one of the user's own code, unless the tool raised it for the model."""
    if not isinstance(error, ToolError) and has_user_frames(error):
        USER_CODE.warning("the tool `%s` failed:\n%s", ready.tool.spec.name, user_traceback(error))
    return raised(error)


def _changed(arguments: JSONObject) -> str:
    try:
        return f"[the user changed the arguments to {to_text(arguments)}]\n"
    except (TypeError, ValueError, RecursionError):  # whoever approved it gave no JSON
        return "[the user changed the arguments]\n"
