"""Driver of the tool loop: performs its effects by calling the model, running tools and reporting events."""

from __future__ import annotations

import asyncio
import inspect
import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.backends.http.timeouts import Deadlines
from xenoglot.client.tool_loop.tool_calls import Execution
from xenoglot.errors import FailureError
from xenoglot.tools.effects import Approve, CallModel, Cancelled, Execute, ModelAnswer, ReadClock, ReportEvent
from xenoglot.tools.events import ModelEvent, Order
from xenoglot.tools.run_options import Approver
from xenoglot.tools.tool import Approval

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from xenoglot.client.tool_loop.caller import Caller
    from xenoglot.model.content import ToolCall
    from xenoglot.tools.effects import Effect
    from xenoglot.tools.events import RunEvent
    from xenoglot.tools.loop import ToolLoop
    from xenoglot.tools.result import RunResult


class ModelCallOptions(Struct, frozen=True, kw_only=True):
    """Options of the model calls and of the approval of tool calls."""

    headers: tuple[tuple[str, str], ...] = ()
    timeout: float | Deadlines | None = None
    order: Order = "call"
    approve: Approver | None = None


class RunObserver(NamedTuple):
    """The observer of a run.

    `report` passes an event on; its flag means that the run is cancelled and must not wait. `wait_read` waits until all
    events are read.
    """

    report: Callable[[RunEvent, bool], Awaitable[None]]
    wait_read: Callable[[], Awaitable[None]]


class Driver:
    """Drives one run.

    `looker` gets every event; `here` runs a function in the caller's thread, if that waits. An exception of the
    program's own callbacks ends the run and is in `error`, as is any error after which a run cannot continue.
    """

    def __init__(
        self,
        client: Caller,
        asking: ModelCallOptions,
        looker: RunObserver,
        here: Callable[[Callable[[], object]], Awaitable[object]] | None = None,
    ) -> None:
        self.result: RunResult | None = None
        self.error: BaseException | None = None
        self.cancelled = False
        self._client = client
        self._options = asking
        self._observer = looker
        self._run_in_caller = here
        self._started_at = time.monotonic()

    async def drive(self, flow: ToolLoop) -> None:
        """Run `flow` to its end. A cancelled run ends with the outcome `cancelled` and a complete transcript."""
        steps = flow.steps()
        reaction: object = None
        while True:
            try:
                effect = steps.send(reaction)
            except StopIteration as stop:
                self.result = stop.value
                return
            reaction = await self._perform(effect)

    async def _perform(self, effect: Effect) -> object:
        """Perform an effect and return its result."""
        try:
            match effect:
                case ReportEvent(event=event):
                    await self._report(event)
                    return None
                case CallModel():
                    return await self._call_model(effect)
                case Execute():
                    return await self._execute(effect)
                case ReadClock():
                    return Cancelled() if self.cancelled else time.monotonic() - self._started_at
                case Approve(call=call):
                    return Cancelled() if self.cancelled else await self._approve(call)
        except asyncio.CancelledError:
            self._cancel()
        except Exception as error:  # noqa: BLE001  the program's own: it comes out behind the run
            self.error, self.cancelled = error, True
        return (
            ModelAnswer(cancelled=True)
            if isinstance(effect, CallModel)
            else None
            if isinstance(effect, ReportEvent)
            else Cancelled()
        )

    async def _report(self, event: RunEvent) -> None:
        await self._observer.report(event, self.cancelled)

    def _cancel(self) -> None:
        self.cancelled = True
        if (task := asyncio.current_task()) is not None:
            task.uncancel()

    async def _call_model(self, effect: CallModel) -> ModelAnswer:
        if self.cancelled:
            return ModelAnswer(cancelled=True)
        tries, left = self._client._calling.tries, effect.seconds  # noqa: SLF001  the same room
        wait = effect.wait if left is None else min(effect.wait, left)
        timeout = _sooner(self._options.timeout, None if left is None else left - wait)
        stream = self._client.stream(effect.request, headers=dict(self._options.headers), timeout=timeout)
        try:
            if wait:
                await tries.sleep(wait)
            async with stream:
                async for event in stream:
                    if not effect.internal:
                        await self._report(ModelEvent(event=event))
                reply = await stream.reply()
        except FailureError as error:
            partial = stream.response
            if not partial.candidates:  # nothing came, and the client has tried as often as it does
                return ModelAnswer(failure=error.failure)
            again = tries.wait_after_truncation(error.failure, effect.attempts + 1)
            return ModelAnswer(failure=error.failure, response=partial, retry_after=again)
        except asyncio.CancelledError:
            self._cancel()
            return ModelAnswer(cancelled=True, response=stream.response)
        return ModelAnswer(response=reply.response, losses=reply.losses)

    async def _execute(self, effect: Execute) -> object:
        execution = Execution(effect, self._options.order, self._report, self._run_in_caller)
        try:
            if not self.cancelled:
                return await execution.run()
        except asyncio.CancelledError:
            self._cancel()
        except Exception as error:  # noqa: BLE001  see `_done`
            self.error, self.cancelled = error, True
        for event in execution.unreported_events():
            await self._report(event)
        return execution.outputs

    async def _approve(self, call: ToolCall) -> Approval:
        approve = self._options.approve
        if approve is None:
            return Approval(allowed=False, reason="the program does not approve calls")
        if self._run_in_caller is None:
            await self._observer.wait_read()  # a question must not stand before the words that led to it
            said: object = approve(call)
        else:
            said = await self._run_in_caller(partial(approve, call))
        if inspect.isawaitable(said):
            said = await said
        match said:
            case Approval():
                return said
            case bool():
                return Approval(allowed=said)
            case str():
                return Approval(allowed=False, reason=said)
            case _:
                pass
        raise TypeError(
            f"`approve` returned a `{type(said).__name__}`; expected a bool, the reason why not, an `Approval`"
        )


def _sooner(timeout: float | Deadlines | None, seconds: float | None) -> float | Deadlines | None:
    """Return the timeout of a call that has `timeout` of its own and may take at most `seconds`."""
    if seconds is None:
        return timeout
    seconds = max(seconds, 0.001)
    match timeout:
        case None:
            return seconds
        case Deadlines(total=total):
            return replace(timeout, total=seconds if total is None else min(total, seconds))
        case _:
            return min(timeout, seconds)
