"""Calls hooks: within their time, off the event loop if they are not async, and what happens when one fails.

Theory of operation. `before_request` runs before a target is chosen. An answer is passed to each hook once: to
`after_response` if it is whole, to `on_event` if it is streamed; a hook that has only one of them gets that one. So a
stream is held back for a hook without `on_event`, else a client could avoid the hook by asking for a stream. The last
hook is the first to see the answer: a hook sees what those after it made of it. Usage is passed around the hooks:
what the upstream reports is what is billed.

A hook that is not async runs in a thread, one call for each batch of events, so that it cannot stop other requests. A
thread cannot be cancelled: one that does not return is left alone, and is one less for other calls.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from inspect import isawaitable, iscoroutinefunction
from typing import TYPE_CHECKING, Any, Final, get_args

from msgspec.structs import replace

from xenoglot.backends.backend import ByteAnswer, EventAnswer
from xenoglot.backends.user_traceback import USER_CODE, has_user_frames, user_traceback
from xenoglot.codec.glob import matches
from xenoglot.errors import FailureError, whereabouts
from xenoglot.hooks.daemon_threads import DaemonThreads
from xenoglot.hooks.hook import HookContext, RejectedError
from xenoglot.model.events import Event, Failed, Ping, UsageReported
from xenoglot.model.failure import Failure
from xenoglot.model.fold import Folder, unfold
from xenoglot.model.request import Request
from xenoglot.model.response import Response

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence

    from xenoglot.backends.backend import Answer
    from xenoglot.hooks.load import LoadedHook

THREADS: Final = 8
"""Calls of hooks that are not async, at once."""

EVENTS: Final = get_args(Event)

FAILED: Final = Failure(
    kind="internal",
    message="internal error: a hook of the gateway failed, and nothing is answered without it; search the log of the "
    "gateway for the request's id",
)

_logger = logging.getLogger("xenoglot.gateway")


class Hooks:
    """The hooks of a gateway."""

    def __init__(self, hooks: Sequence[LoadedHook]) -> None:
        self._hooks = hooks
        self._threads = DaemonThreads(THREADS)

    def concern(self, model: str) -> bool:
        """Return whether any hook is for requests for `model`."""
        return any(_is_for(hook, model) for hook in self._hooks)

    def of_request(self, context: HookContext) -> RequestHooks:
        """Return the hooks of one request; `context` is what they know of it."""
        found = [hook for hook in self._hooks if _is_for(hook, context.model)]
        return RequestHooks([HookCall(hook, replace(context, state={}), self._threads) for hook in found])

    async def aclose(self) -> None:
        """Release what the hooks hold, by their own `aclose`, if they have one."""
        for one in self._hooks:
            close = getattr(one.hook, "aclose", None)
            if callable(close):
                closing = close()
                if isawaitable(closing):
                    await closing
        self._threads.close()


def _is_for(hook: LoadedHook, model: str) -> bool:
    patterns = hook.settings.models
    return not patterns or any(matches(pattern, model) for pattern in patterns)


class RequestHooks:
    """The hooks of one request, in order."""

    def __init__(self, calls: Sequence[HookCall]) -> None:
        self._calls = calls

    async def before(self, request: Request) -> Request:
        """Return the request as the hooks change it; what names and streams it stays.

        Raises:
            FailureError: a hook rejects it, or fails.
        """
        for call in self._calls:
            request = await call.before(request)
        return request

    def answer(self, answer: Answer) -> Answer:
        """Return the answer as the hooks change it; itself if none looks at answers."""
        calls = [call for call in reversed(self._calls) if call.hook.sees_answers]
        if not calls:
            return answer
        batches: AsyncIterator[Sequence[Event]] = _seen(answer) if isinstance(answer, ByteAnswer) else answer.batches
        for call in calls:
            batches = call.held(batches) if call.holds else call.streamed(batches)
        return EventAnswer(batches=batches, aclose=answer.aclose, limits=answer.limits, request_id=answer.request_id)


class HookCall:
    """One hook, called for one request."""

    def __init__(self, hook: LoadedHook, context: HookContext, threads: DaemonThreads) -> None:
        self.hook = hook
        self._context = context
        self._threads = threads
        self._skipped = False
        """Whether the hook failed in this answer, and is not called again for it."""

    @property
    def holds(self) -> bool:
        """Whether the hook gets this answer in one piece."""
        return self.hook.on_event is None or (self.hook.after_response is not None and not self._context.stream)

    async def before(self, request: Request) -> Request:
        """Return the request as the hook changes it.

        Raises:
            FailureError: it rejects it, or fails.
        """
        method = self.hook.before_request
        if method is None:
            return request
        changed: Request | None = await self._call(method, request, Request)
        if changed is None:
            return request
        return replace(changed, model=request.model, stream=request.stream, stream_usage=request.stream_usage)

    async def held(self, batches: AsyncIterator[Sequence[Event]]) -> AsyncGenerator[Sequence[Event]]:
        """Yield an answer in one piece, as the hook changes it; one that fails, as it comes."""
        folder = Folder()
        async for batch in batches:
            for event in batch:
                folder.feed(event)
            if folder.failure is not None:
                yield (*_usage(folder), Failed(failure=folder.failure))
                return
        response = folder.response()
        if any(candidate.finish is None for candidate in response.candidates):
            yield list(unfold(response))  # it is not complete, which is reported as such
            return
        try:
            changed = await self._after(response)
        except FailureError as error:
            yield (*_usage(folder), Failed(failure=error.failure))
            return
        yield list(unfold(changed))

    async def _after(self, response: Response) -> Response:
        method = self.hook.after_response
        changed: Response | None = None if method is None else await self._call(method, response, Response)
        return response if changed is None else replace(changed, usage=response.usage)

    async def streamed(self, batches: AsyncIterator[Sequence[Event]]) -> AsyncGenerator[Sequence[Event]]:
        """Yield each batch as the hook changes it."""
        async for batch in batches:
            try:
                changed = batch if self._skipped else await self._events(batch)
            except FailureError as error:
                usage = [event for event in batch if isinstance(event, UsageReported)]
                yield (*usage, Failed(failure=error.failure))
                return
            if changed:
                yield changed

    async def _events(self, batch: Sequence[Event]) -> Sequence[Event]:
        """Return a batch as the hook changes it.

        Raises:
            FailureError: it rejects the answer, or fails.
        """
        method = self.hook.on_event
        if method is None:
            return batch
        if iscoroutinefunction(method):
            changed = await self._within(_each_async(method, batch, self._context))
        else:
            changed = await self._within(self._threads.run(partial(_each, method, batch, self._context)))
        return batch if changed is None else changed

    async def _call(self, method: Callable[..., Any], value: Any, kind: type) -> Any:  # noqa: ANN401  a request or a response
        if iscoroutinefunction(method):
            changed = await self._within(method(value, self._context))
        else:
            changed = await self._within(self._threads.run(partial(method, value, self._context)))
        if changed is None or isinstance(changed, kind):
            return changed
        return self._failed(TypeError(f"expected a {kind.__name__} or None, found {type(changed).__name__}"))

    async def _within(self, working: Any) -> Any:  # noqa: ANN401  what a method returns
        """Return what a method returns in time; `None` if it failed, and that is to be ignored.

        Raises:
            FailureError: it rejects, or fails.
        """
        try:
            async with asyncio.timeout(self.hook.settings.timeout_seconds):
                return await working
        except RejectedError as error:
            raise FailureError(error.failure) from error
        except Exception as error:  # noqa: BLE001  it is anybody's code
            return self._failed(error)

    def _failed(self, error: Exception) -> None:
        """Report a failure of the hook.

        Raises:
            FailureError: nothing may be answered without the hook.
        """
        self._skipped = True
        name, request, seconds = self.hook.name, self._context.request_id, self.hook.settings.timeout_seconds
        if isinstance(error, TimeoutError) and not has_user_frames(error):
            _logger.error("hook `%s` took longer than %s s in request %s", name, seconds, request)
        elif has_user_frames(error):
            USER_CODE.error("hook `%s` failed in request %s:\n%s", name, request, user_traceback(error))
        else:
            _logger.error("hook `%s` failed in request %s: %s", name, request, whereabouts(error))
        if self.hook.settings.on_failure == "refuse":
            raise FailureError(FAILED) from error


def _usage(folder: Folder) -> Sequence[Event]:
    usage = folder.response().usage
    return () if usage is None else (UsageReported(usage=usage),)


async def _seen(answer: ByteAnswer) -> AsyncIterator[Sequence[Event]]:
    """Yield what the bytes of an answer contain."""
    async for piece in answer.pieces:
        if piece.events:
            yield piece.events


_AROUND: Final = frozenset({UsageReported, Ping, Failed})
"""Events that no hook sees: what is billed, signs of life, and the end of a broken answer."""


def _each(method: Callable[..., Any], batch: Sequence[Event], context: HookContext) -> list[Event]:
    made: list[Event] = []
    for event in batch:
        made += (event,) if type(event) in _AROUND else _replaced(event, method(event, context))
    return made


async def _each_async(method: Callable[..., Any], batch: Sequence[Event], context: HookContext) -> list[Event]:
    made: list[Event] = []
    for event in batch:
        made += (event,) if type(event) in _AROUND else _replaced(event, await method(event, context))
    return made


def _replaced(event: Event, changed: Any) -> Sequence[Event]:  # noqa: ANN401  it is anybody's code
    """Return the events in place of `event`.

    Raises:
        TypeError: the hook returned something else.
    """
    if changed is None:
        return (event,)
    events: list[Event] = [changed] if isinstance(changed, EVENTS) else list(changed)
    if not all(isinstance(one, EVENTS) for one in events):
        raise TypeError(f"`on_event` returned {type(changed).__name__}; expected an event, a list of events, or None")
    return events
