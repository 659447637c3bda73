"""Relays a request without a task: callbacks of the event loop do all of it, and nothing waits.

Theory of operation. A task costs its making, a future and a wake-up for every read, and each frame between the loop and
the codec; for a stream of small events that is more than codecs and sockets together. So here the loop's own callbacks
do the work: the client's connection starts the request (`gateway.api.fast_path`), the upstream's connection calls for
each read, and what a read makes leaves in one write. A client that is slower than that pauses the upstream.

Until the answer has started (`codec.responses.answer_start`) nothing of it is consumed. So whatever is out of the
ordinary by then (a refusal, a failure, a silence that needs a heartbeat) is handed over as it is to the coroutines of
`gateway.relay.task_driver`, in a task: they can retry, and call other targets. After that an answer can only continue,
end, or fail. What is sent of it then is decided by `gateway.relay.answer`, for both drivers.
"""

from __future__ import annotations

import asyncio
from asyncio import CancelledError
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from xenoglot.backends.http.client import TransportError
from xenoglot.backends.remote import request_heads
from xenoglot.gateway.endpoint.request_runner import CANCELLED, RequestRunner
from xenoglot.gateway.http.application import ClientDisconnectedError
from xenoglot.gateway.relay.envelope import OK, ResponseEnvelope
from xenoglot.gateway.relay.push_response import NonStreamingRelay
from xenoglot.gateway.relay.push_stream import EventStreamRelay, relay_bytes
from xenoglot.gateway.relay.task_driver import RelayEndpoint, StartedCall

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from xenoglot.backends.backend import Answer
    from xenoglot.backends.http.client import UpstreamResponse
    from xenoglot.backends.http.exchange import UpstreamExchange as Asked
    from xenoglot.gateway.endpoint.request_context import RequestContext
    from xenoglot.gateway.http.application import PushExchange
    from xenoglot.gateway.relay.push_response import Attempt
    from xenoglot.gateway.upstream.call import UpstreamCall


class PushAnswer(Protocol):
    """The answer to a request, as its reads are relayed."""

    begun: bool

    def look(self) -> None:
        """See what is here of an answer that has not begun."""
        ...

    def stop(self) -> None:
        """Do nothing more."""
        ...


class PushServices(NamedTuple):
    """Services for requests without a task: the endpoint that does the rest in a task, and what both share."""

    relay: RelayEndpoint
    requests: RequestRunner


class PushRelay:
    """One request: begun by `start`, over when it is no longer among those in flight."""

    __slots__ = (
        "_answer",
        "_asked",
        "_attempt",
        "_broken_off",
        "_ctx",
        "_dialling",
        "_hold",
        "_relay",
        "_requests",
        "_silence",
        "asking",
        "client",
        "dialect",
        "envelope",
        "interval",
        "loop",
        "record",
        "reply",
        "started",
    )

    def __init__(
        self, client: PushExchange, ctx: RequestContext, services: PushServices, asking: UpstreamCall, attempt: Attempt
    ) -> None:
        self.client = client
        self.dialect = ctx.dialect
        self.record = ctx.record
        self.asking = asking
        self.envelope = ResponseEnvelope(asking)
        self.loop = asyncio.get_running_loop()
        self.reply: UpstreamResponse | None = None
        self._ctx = ctx
        self._relay, self._requests = services
        self._attempt = attempt
        self._hold = attempt.hold
        self.interval = self._relay.ping_interval
        """Seconds of silence after which a client wants a sign of life."""
        self.started = self.loop.time()
        """When the target was called, by the loop's clock."""
        self._asked: Asked | None = None
        self._broken_off = False
        """Whether a task that is to do the rest is to be cancelled."""
        self._dialling: asyncio.Task[Asked] | None = None
        self._silence: asyncio.TimerHandle | None = None
        self._answer: PushAnswer | None = None

    def start(self) -> None:
        """Ask the target."""
        attempt = self._attempt
        self._requests.passages.add(self)
        self.client.passage = self
        if self.asking.request.stream:
            self._silence = self.loop.call_later(self.interval, self.hand_over)
        try:
            asked = attempt.remote.start(attempt.call, attempt.composed)
        except TransportError as error:
            self._leave_to(partial(self._unreached, error))
        except Exception as bug:  # noqa: BLE001  the task that is given it tells the log
            self.break_down(bug)
        else:
            if asked is not None:
                self._attend(asked)
            else:
                self._dialling = self.loop.create_task(attempt.remote.dial(attempt.call, attempt.composed))
                self._dialling.add_done_callback(self._dialled)

    # What the upstream's connection tells.

    def data_available(self) -> None:
        """There is news of an answer that has not begun."""
        try:
            self._look()
        except Exception as bug:  # noqa: BLE001  as above
            self.break_down(bug)

    # What the client's connection tells.

    def left(self) -> None:
        """The client disconnected: stop all work for it."""
        if self.client.passage is not self:  # a task does the rest
            return
        self._detach()
        self._release()
        self.record.failed(CANCELLED)
        self._requests.observer.write(self.record)
        self._requests.passed(self)

    def held_up(self) -> None:
        """The client takes less than it is sent."""
        if self.reply is not None:
            self.reply.pause()

    def let_on(self) -> None:
        """The client has taken what it was sent."""
        if self.reply is not None:
            self.reply.resume()

    # What the gateway asks.

    def stop(self) -> None:
        """Abort, and report that to the client."""
        if self.client.passage is self:
            self.break_down(CancelledError())
        else:  # a task has been made already that does the rest, and has not begun
            self._broken_off = True

    # What the answer calls.

    def hand_over(self) -> None:
        """Leave the answer, which has not begun, to a task, as it is."""
        self._leave_to(self._answered)

    def break_down(self, error: BaseException) -> None:
        """Let a task report `error`, whatever has been sent by now."""
        self._detach()
        self._release()

        async def tell() -> None:
            raise error

        self._resume(tell)

    def over(self) -> None:
        """The response is complete, or broken off."""
        self._detach()
        self._answer = self._asked = None  # or they would hold each other, for the collector to find
        self.asking.settle_usage()
        self._hold.over()
        self._requests.observer.write(self.record)
        self._requests.passed(self)
        self.client.served()

    def began(self) -> None:
        """The answer has begun."""
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None
        self._hold.began(self.loop.time() - self.started)

    def _look(self) -> None:
        asked, answer = self._asked, self._answer
        if asked is None:
            return
        if answer is None:
            answer = self._begin(asked)
            if answer is None:
                self.hand_over()
                return
            self._answer = answer
        answer.look()

    def _begin(self, asked: Asked) -> PushAnswer | None:
        """Return what relays the answer, whose head is here; `None` where that needs a task."""
        if asked.head is None or asked.head.status != OK or asked.head.values(b"content-encoding"):
            return None
        attempt, streams = self._attempt, self.asking.request.stream
        remote = attempt.remote
        try:
            reply = self.reply = remote.reply(asked)
        except TransportError:
            return None
        if remote.streams(reply) != streams:
            return None
        limits = remote.limits(reply)
        if not streams:
            return NonStreamingRelay(self, attempt, reply, limits)
        if attempt.composed.verbatim:
            unasked = remote.usage_filter(attempt.call, attempt.composed)
            return relay_bytes(self, reply, limits, remote.monitor(), unasked)
        return EventStreamRelay(self, reply, limits, remote.reader(attempt.call), attempt.recorder)

    def _attend(self, asked: Asked) -> None:
        self._asked = asked
        asked.set_listener(self)
        if asked.head is not None or asked.error is not None:  # it came before anybody was there to be told
            self.data_available()

    def _dialled(self, dialling: asyncio.Task[Asked]) -> None:
        """See what came of a new connection, unless a task waits for that by now."""
        if dialling.cancelled() or self._dialling is not dialling or self.client.passage is not self:
            return
        self._dialling = None
        error = dialling.exception()
        if error is None:
            self._attend(dialling.result())
        elif isinstance(error, TransportError):
            self._leave_to(partial(self._unreached, error))
        else:
            self.break_down(error)

    async def _answered(self) -> Answer:
        """Return the answer, whatever its state is.

        Raises:
            FailureError: there is none.
        """
        dialling, self._dialling = self._dialling, None
        if dialling is not None:
            try:
                self._asked = await dialling
            except TransportError as error:
                raise self._attempt.remote.unreachable(error) from None
        attempt = self._attempt
        answer = await attempt.remote.continue_call(self._asked, attempt.call, attempt.composed)
        return answer if attempt.recorder is None else attempt.recorder.watched(answer)

    async def _unreached(self, error: TransportError) -> Answer:
        raise self._attempt.remote.unreachable(error)

    def _leave_to(self, begun: Callable[[], Awaitable[Answer]]) -> None:
        """Let a task continue from what `begun` gives, which is the answer of the target that was called."""
        self._detach()
        self._answer = None

        async def go_on() -> None:
            if self.client.gone or self._broken_off:
                self._release()
                raise (
                    ClientDisconnectedError("the client disconnected before it was answered")
                    if self.client.gone
                    else CancelledError
                )
            request_heads.arrive(self._ctx.hops)
            waited = self.loop.time() - self.started
            await self._relay.go_on(self._ctx, self.asking, StartedCall(self._hold, begun, waited))

        self._resume(go_on)

    def _resume(self, work: Callable[[], Awaitable[None]]) -> None:
        """Have a task do the rest; until it has begun, the gateway knows of this one."""

        async def rest() -> None:
            self._requests.passed(self)
            await work()

        self.client.resume(lambda: self._requests.serve(self._ctx, rest()))

    def _detach(self) -> None:
        """Be called no more."""
        self.client.passage = None
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None
        if self._answer is not None:
            self._answer.stop()
        if self._asked is not None:
            self._asked.set_listener(None)

    def _release(self) -> None:
        """Give back what is held of the target, and close what is open towards it."""
        dialling, self._dialling = self._dialling, None
        if dialling is not None and not dialling.cancel() and not dialling.cancelled() and not dialling.exception():
            self._asked = dialling.result()
        if self.reply is not None:
            self.reply.close()
        elif self._asked is not None:
            self._asked.abandon()
        answer, self._answer = self._answer, None
        if answer is not None and answer.begun:
            self.asking.settle_usage()
            self._hold.over()
        else:
            self._hold.drop()
