"""The requests in progress: the outermost shell around each of them, and their end when the gateway stops."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from xenoglot.backends.user_traceback import USER_CODE, has_user_frames, user_traceback
from xenoglot.codec.invalid_request import invalid
from xenoglot.errors import FailureError, WireError, whereabouts
from xenoglot.gateway.endpoint.responses import abort_stream, fail
from xenoglot.gateway.http.application import BodyTooLargeError, ClientDisconnectedError, InvalidBodyError
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from xenoglot.gateway.endpoint.request_context import RequestContext
    from xenoglot.gateway.http.application import PushHandler
    from xenoglot.gateway.observability.request_log import RequestLogger
    from xenoglot.model.limits import RateLimits

INTERNAL = Failure(kind="internal", message="internal error: the gateway failed; search its log for the request's id")
STOPPING = Failure(kind="overloaded", message="service unavailable: the gateway is being stopped", retry_after=5.0)
CANCELLED = Failure(kind="cancelled", message="the client disconnected")

OK = 200
UNAVAILABLE = 503
LAST_WORD_SECONDS = 1.0
"""How long a client that does not read may keep the news that we stop waiting."""

_logger = logging.getLogger("xenoglot.gateway")


class RequestRunner:
    """Serves requests, in tasks and without. Whatever ends one is answered or aborted, and written to the log."""

    def __init__(self, observer: RequestLogger) -> None:
        self.observer = observer
        self.tasks: set[asyncio.Task[object] | None] = set()
        self.passages: set[PushHandler] = set()
        """The requests that are served without a task."""
        self._all_passed = asyncio.Event()
        self._stopping = False

    def __len__(self) -> int:
        return len(self.tasks) + len(self.passages)

    async def serve(self, ctx: RequestContext, work: Awaitable[None]) -> None:
        """Do what answers a request, own up to whatever comes of it, and write the request's line to the log."""
        task = asyncio.current_task()
        self.tasks.add(task)
        try:
            await work
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  told below
            await self._fail(error, ctx)
        finally:
            self.tasks.discard(task)
            self.observer.write(ctx.record)

    def passed(self, passage: PushHandler) -> None:
        """Note that a request is served without a task no longer."""
        self.passages.discard(passage)
        if not self.passages:
            self._all_passed.set()

    def stop_now(self) -> None:
        """Break off what is being served: streams with an error event, everything else with a status."""
        self._stopping = True
        for task in self.tasks:
            if task is not None:
                task.cancel()
        for passage in tuple(self.passages):
            passage.stop()

    def abandon(self) -> None:
        """Abort what is served without a task, as if its clients had disconnected."""
        for passage in tuple(self.passages):
            passage.left()

    async def over(self) -> None:
        """Wait until no request is in progress."""
        while self.tasks or self.passages:
            if tasks := [task for task in self.tasks if task is not None]:
                await asyncio.wait(tasks)
            if self.passages:
                self._all_passed.clear()
                await self._all_passed.wait()

    async def _fail(self, error: BaseException, ctx: RequestContext) -> None:
        """Answer a request that `error` has ended; be broken off; own up to a bug."""
        try:
            await self._tell(error, ctx)
        except asyncio.CancelledError:
            await self._leave(ctx)
        except Exception as bug:  # noqa: BLE001  the outermost shell: nothing gets past it, and nobody learns more than its id
            if has_user_frames(bug):
                USER_CODE.error("request %s failed:\n%s", ctx.record.request_id, user_traceback(bug))
            else:
                _logger.error("request %s failed: %s", ctx.record.request_id, whereabouts(bug))  # noqa: TRY400  no texts
            await self._give_up(ctx, INTERNAL)

    async def _tell(self, error: BaseException, ctx: RequestContext) -> None:
        """Turn what was raised into an answer; what is none is raised again."""
        match error:
            case FailureError():
                await self._give_up(ctx, error.failure, error.limits)
            case WireError():
                await self._give_up(ctx, invalid(error))
            case BodyTooLargeError():
                await self._give_up(ctx, Failure(kind="too_large", message=str(error)))
            case InvalidBodyError():
                broken = Failure(kind="invalid_request", message=str(error))
                failure = STOPPING if error.status == UNAVAILABLE else broken
                await self._give_up(ctx, failure, status=error.status)
            case ClientDisconnectedError():
                ctx.record.failed(CANCELLED)
            case _:
                raise error

    async def _give_up(
        self, ctx: RequestContext, failure: Failure, limits: RateLimits | None = None, status: int | None = None
    ) -> None:
        """Write the failure, or end what was begun as nothing whole ends."""
        if ctx.record.status is None:
            more = () if limits is None else ctx.dialect.encode_limits(limits, time.time())
            await fail(ctx, failure, status=status, more=more)
        else:
            ctx.record.failed(failure)
            ctx.exchange.abort()

    async def _leave(self, ctx: RequestContext) -> None:
        """Be cancelled: by the client, which receives nothing more, or because the gateway stops, which is reported."""
        if not self._stopping:
            ctx.record.failed(CANCELLED)
            raise asyncio.CancelledError
        try:
            async with asyncio.timeout(LAST_WORD_SECONDS):
                if ctx.record.stream and ctx.record.status == OK:
                    await abort_stream(ctx, STOPPING)
                else:
                    await self._give_up(ctx, STOPPING)
        except TimeoutError:
            ctx.exchange.abort()
