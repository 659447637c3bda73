"""Answers made in the background: the same relay, writing into the store instead of to a client.

Theory of operation. A job is a task of the gateway, not of the request that began it. What the relay writes becomes
frames, numbered and stored as they come; a client that follows the answer, from its beginning or from any number on,
reads them from the store and is woken when there are more. The last frames are stored in one transaction with the
answer's end, so no client sees the one without the other. While a job runs its process renews the job's lease; an
answer whose lease has expired has failed. To cancel is to settle the answer in the store, and to stop the task at any
point.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.codec.framing.sse import ServerSentEvent, encode_event
from xenoglot.codec.invalid_request import invalid
from xenoglot.codec.json.json_io import encode_json
from xenoglot.codec.loss import Losses
from xenoglot.errors import FailureError, WireError, whereabouts
from xenoglot.gateway.endpoint.responses import send_json
from xenoglot.gateway.observability.request_log import LOSSES, RequestLogger
from xenoglot.gateway.relay.task_driver import RelayEndpoint, decode_request
from xenoglot.gateway.store_service import LEASE, OFF, UNREACHABLE, StoreService, settled
from xenoglot.gateway.stored.save import add_to_conversation, stored
from xenoglot.model.failure import Failure
from xenoglot.model.response import Response
from xenoglot.store.records import UNDONE, Stored, StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from xenoglot.codec.dialect import Dialect
    from xenoglot.codec.features.stored_responses import Background, StoredResponseCodec
    from xenoglot.codec.framing.formats import Framing
    from xenoglot.gateway.endpoint.request_context import RequestContext
    from xenoglot.gateway.http.application import Exchange
    from xenoglot.gateway.observability.request_log import RequestLog
    from xenoglot.gateway.stored.save import ResolvedRequest

OK = 200
FRAMES = 200
"""Frames that are read at once."""

AGAIN_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0, 12.0)
"""How long a store is waited for that cannot keep what was made, each time; in all about as long as a lease."""

LOOK_SECONDS = 1.0
"""How often one looks whether another process has made more of an answer."""

BROKEN = Failure(kind="internal", message="internal error: the gateway failed; search its log for the request's id")
STOPPED = Failure(kind="overloaded", message="service unavailable: the gateway was stopped while it made this answer")
ENDED_EARLY = Failure(kind="upstream", message="connection lost: the answer ended without being complete")

_COMMENT: Final = b": ping\n\n"
_logger = logging.getLogger("xenoglot.gateway")


class BackgroundJob:
    """An answer in the making; `answer` is what the store has of it."""

    def __init__(
        self,
        keeper: StoreService,
        state: StoredResponseCodec,
        framing: Framing,
        remembered: ResolvedRequest,
        answer: Stored,
    ) -> None:
        self.answer = answer
        self.remembered = remembered
        self.showing = state.showing(remembered.kept)
        self.failure: Failure | None = None
        self._keeper = keeper
        self._state = state
        self._framing = framing
        self._count = 0
        self._added = False
        self._last: Sequence[ServerSentEvent] = ()
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Its owner and id."""
        return self.answer.owner, self.answer.id

    @property
    def changed(self) -> asyncio.Event:
        """Set when there is more of the answer; another takes its place then."""
        return self._changed

    def run(self, jobs: BackgroundJobs, ctx: RequestContext) -> None:
        """Begin."""
        self._keeper.jobs[self.key] = self
        self._keeper.beat()
        self._task = asyncio.get_running_loop().create_task(self._run(jobs, ctx))
        self._task.add_done_callback(self._forget)  # one that is cancelled before its first step runs no `finally`

    def cancel(self) -> None:
        """Stop it at any point."""
        if self._task is not None:
            self._task.cancel()

    async def wait(self) -> None:
        """Wait until it has come to its end."""
        if self._task is not None:
            await asyncio.wait((self._task,))

    async def begin(self) -> None:
        """Note that a model is at work."""
        self.answer = settled(self.answer, self._state, "in_progress")
        self.answer = replace(self.answer, process=self._keeper.process, lease=self._keeper.now() + LEASE)
        await self._patiently(lambda: self._keeper.within(self._keeper.store.settle(self.answer)))
        self._tell()

    async def show(self, events: Sequence[ServerSentEvent]) -> None:
        """Take what the relay made of the stream; store it unless it is the end, which `_settle` stores."""
        shown = [made for event in events for made in self.showing.feed(event)]
        if shown and self.showing.answer is None:
            await self.add(shown)
        else:
            self._last = [*self._last, *shown]

    async def add(self, events: Sequence[ServerSentEvent]) -> None:
        """Store events as frames, if a client may follow."""
        if self.answer.streamed:
            frames = self._frames(events)
            append = self._keeper.store.append
            await self._patiently(lambda: self._keeper.within(append(*self.key, self._count, frames)))
        self._count += len(events)
        self._tell()

    async def _run(self, jobs: BackgroundJobs, ctx: RequestContext) -> None:
        record = ctx.record
        try:
            self.failure = await jobs.relayed(ctx)
        except asyncio.CancelledError:
            self.failure = STOPPED
            record.failed(STOPPED)
        finally:
            try:
                await self._patiently(partial(self._settle, record))
            except StoreError as error:  # then its lease ends
                _logger.error("request %s: the end is not kept: %s", record.request_id, error)  # noqa: TRY400  no texts
            finally:
                self._forget()
                jobs.observer.write(record)

    async def _patiently(self, write: Callable[[], Awaitable[object]]) -> None:
        """Have the store do it, once it can; neither the client nor who stops the gateway waits for that.

        Raises:
            StoreError: it cannot.
        """
        for seconds in () if self._task is None else AGAIN_SECONDS:
            try:
                await write()
            except StoreError:
                if self.failure is STOPPED:
                    raise
                await asyncio.sleep(seconds)
            else:
                return
        await write()

    async def _settle(self, record: RequestLog) -> None:
        """Store the end, with the losses that `record` has."""
        answer = self.showing.answer
        if answer is not None:
            status, output = self._state.status(answer), self._state.output(answer)
            over = replace(self.answer, status=status, response=answer, output=output, process=None, lease=None)
        else:
            over = settled(self.answer, self._state, "failed", self.failure or ENDED_EARLY)
            background = self._state.background
            self._last = () if background is None else background.ending(over.response, self._count)
        if not self._added:
            await add_to_conversation(self._keeper, over, self.remembered, self._state)
            self._added = True
        frames = self._frames(self._last) if self.answer.streamed else ()
        over = replace(over, losses=record.all_losses())
        await self._keeper.within(self._keeper.store.settle(over, self._count, frames))

    def _frames(self, events: Sequence[ServerSentEvent]) -> list[bytes]:
        encoder = self._framing.encoder()
        return [b"".join(encoder.feed(event)) for event in events]

    def _forget(self, _task: object = None) -> None:
        """Drop the job: its work is over."""
        self._keeper.forget(self.answer)
        self._tell()

    def _tell(self) -> None:
        """Wake the clients that wait for more."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


class JobExchange:
    """What the relay writes a job's answer into. It has the body of the request, as one for a stream."""

    def __init__(self, exchange: Exchange, framing: Framing, job: BackgroundJob) -> None:
        self.method = exchange.method
        self.path = exchange.path
        self.query = exchange.query
        self.headers: Sequence[tuple[str, str]] = exchange.headers
        self.peer = exchange.peer
        self.reads_behind_upgrade = exchange.reads_behind_upgrade
        self.variables: Mapping[str, str] = exchange.variables
        self._body = encode_json(job.remembered.prepared | {"stream": True})
        self._decoder = framing.decoder()
        self._job = job

    def header(self, name: str) -> str | None:
        """Return the first value of the header `name` (lower case)."""
        return next((value for field, value in self.headers if field == name), None)

    async def read_body(self, _limit: int) -> bytes:
        """Return the body."""
        return self._body

    async def start(self, _status: int, _headers: Sequence[tuple[str, str]]) -> None:
        """Note that a model is at work."""
        await self._job.begin()

    async def write(self, data: bytes) -> None:
        """Take a piece of the stream."""
        if events := self._decoder.feed(data):
            await self._job.show(events)

    async def end(self, data: bytes = b"") -> None:
        """Take the last piece."""
        await self.write(data)

    def abort(self) -> None:
        """Nothing: a missing end shows the abort."""


class BackgroundJobs(Struct, frozen=True):
    """Begins jobs, and has clients follow their answers."""

    keeper: StoreService | None
    relay: RelayEndpoint
    observer: RequestLogger

    async def start(self, ctx: RequestContext, remembered: ResolvedRequest) -> BackgroundJob:
        """Store that there will be an answer, and begin to make it.

        Raises:
            FailureError: there will be none: the request is invalid, no target serves its model, or the store fails.
        """
        keeper, spoken, background = self._speaking(ctx.dialect)
        exchange, dialect, record = ctx.exchange, ctx.dialect, ctx.record
        request = decode_request(dialect, remembered.prepared, ctx.route, exchange.variables)
        route = self.relay.services.models.route(request.model, client=ctx.client)
        record.asked(request.model, stream=remembered.kept.request.get("stream") is True)
        record.routed(route)
        now = keeper.now()
        empty = Response(id=remembered.kept.id, model=request.model, created=remembered.kept.created)
        body = spoken.show(dialect.encode_response(empty, request, Losses()), remembered.kept)
        queued = replace(
            stored(remembered, dialect, spoken, spoken.mark(body, "queued", None), now),
            streamed=bool(record.stream),
            process=keeper.process,
            lease=now + LEASE,
        )
        job = BackgroundJob(keeper, spoken, dialect.framing, remembered, queued)
        await keeper.need(keeper.store.put(queued))
        opening = background.opening(queued.response)
        try:
            await job.add(opening)
        except StoreError:
            raise FailureError(UNREACHABLE) from None
        own = self.observer.record(exchange.method)
        own.route, own.dialect, own.client, own.answer_id = record.route, record.dialect, record.client, queued.id
        own.trace_context, own.tags = record.trace_context, record.tags
        job.run(self, replace(ctx, exchange=JobExchange(exchange, dialect.framing, job), record=own, credential=None))
        record.queued()
        keeper.sweep()
        return job

    async def tell(self, ctx: RequestContext, job: BackgroundJob) -> None:
        """Answer the request that began a job: with its stream, or with the news that it is queued."""
        if job.answer.streamed:
            await self.follow(ctx, job.key, -1)
        else:
            await send_json(ctx, job.answer.response)

    async def follow(self, ctx: RequestContext, key: tuple[str, str], after: int) -> None:
        """Send the stream of an answer from the frame after the number `after` on, to its end."""
        keeper, spoken, _ = self._speaking(ctx.dialect)
        exchange, media_type = ctx.exchange, ctx.dialect.framing.media_type
        unbuffered = [("cache-control", "no-cache"), ("x-accel-buffering", "no")]
        ctx.record.begin(OK)
        await exchange.start(OK, [("content-type", media_type), *unbuffered, *ctx.record.headers()])
        quiet = 0.0
        while True:
            changed = None if (job := keeper.jobs.get(key)) is None else job.changed
            done = await _is_done(keeper, key, spoken)
            frames = await keeper.need(keeper.store.frames(*key, after, FRAMES))
            if frames:
                after, quiet = frames[-1][0], 0.0
                await exchange.write(b"".join(data for _, data in frames))
            elif done:
                break
            else:
                quiet += await _wait(changed)
                if quiet >= self.relay.ping_interval:
                    quiet = 0.0
                    await exchange.write(_COMMENT)
        await exchange.end(await _last_comment(keeper, key, spoken))

    async def relayed(self, ctx: RequestContext) -> Failure | None:
        """Have the relay answer; return why there is no answer, if it reports that."""
        record = ctx.record
        try:
            await self.relay.serve(ctx)
        except FailureError as error:
            record.failed(error.failure)
            return error.failure
        except WireError as error:
            record.failed(invalid(error))
            return invalid(error)
        except StoreError as error:
            record.failed(BROKEN)
            _logger.error("request %s: the store fails: %s", record.request_id, error)  # noqa: TRY400  no texts
            return BROKEN
        except Exception as error:  # noqa: BLE001  the outermost shell of a task: nobody else would own up to a bug
            record.failed(BROKEN)
            _logger.error("request %s failed: %s", record.request_id, whereabouts(error))  # noqa: TRY400  no texts
            return BROKEN
        return None

    def _speaking(self, dialect: Dialect) -> tuple[StoreService, StoredResponseCodec, Background]:
        """Return the store, the dialect's codec of stored answers, and the settings for background answers.

        Raises:
            FailureError: nothing is kept here.
        """
        spoken = dialect.state
        if self.keeper is None or spoken is None or spoken.background is None:
            raise FailureError(OFF)
        return self.keeper, spoken, spoken.background


async def _last_comment(keeper: StoreService, key: tuple[str, str], spoken: StoredResponseCodec) -> bytes:
    """Return the comment that lists an answer's losses; empty without losses."""
    answer = await keeper.get(*key, spoken)
    if answer is None or not answer.losses:
        return b""
    return encode_event(ServerSentEvent(b"", comment=f"{LOSSES}: {answer.losses}"))


async def cancel(keeper: StoreService, spoken: StoredResponseCodec, answer: Stored) -> Stored:
    """Stop the making of an answer; return what became of it.

    Raises:
        FailureError: it was never in the background, or the store fails.
    """
    if not answer.background:
        raise FailureError(spoken.not_in_background())
    over = settled(answer, spoken, "cancelled")
    done = answer.status in UNDONE and await keeper.need(keeper.store.settle(over))
    if (job := keeper.jobs.get((answer.owner, answer.id))) is not None:
        job.cancel()
        await job.wait()
    if done:
        return over
    return await keeper.get(answer.owner, answer.id, spoken) or answer


async def _is_done(keeper: StoreService, key: tuple[str, str], spoken: StoredResponseCodec) -> bool:
    """Whether no more will be made of an answer."""
    if key in keeper.jobs:
        return False
    answer = await keeper.get(*key, spoken)
    return answer is None or answer.status not in UNDONE


async def _wait(changed: asyncio.Event | None) -> float:
    """Wait for more of an answer, that another process makes if there is no event; return the seconds without any."""
    if changed is None:
        await asyncio.sleep(LOOK_SECONDS)
        return LOOK_SECONDS
    try:
        async with asyncio.timeout(LOOK_SECONDS):
            await changed.wait()
    except TimeoutError:
        return LOOK_SECONDS
    return 0.0
