"""What is done on one WebSocket connection: its requests in their lanes, its answers that can be continued, its end.

Theory of operation. A task reads the client's messages, so that a disconnect is noticed; each request is
answered in a task of its own, by the endpoint of posted requests. Requests of one lane wait for those before them. So
that no client makes the gateway hold more than it would of posted requests, those that are waiting are bounded in
number and bytes together; one beyond them is refused, and the connection stays open.

A client that disconnects cancels its requests. A server that stops lets those in progress end, refuses the others, and
closes. A connection that is too old refuses its next request, and closes when nothing is done for it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.codec.features.web_socket import CreateEvent, SteerEvent
from xenoglot.codec.invalid_request import refusal
from xenoglot.codec.json.json_io import encode_json
from xenoglot.errors import FailureError, WireError
from xenoglot.gateway.endpoint.request_runner import STOPPING
from xenoglot.gateway.endpoint.responses import retry_headers
from xenoglot.gateway.web_socket.recent_answers import RecentAnswers
from xenoglot.gateway.web_socket.steer_queue import SteerQueue
from xenoglot.gateway.web_socket.turn import ConnectionContext, SteerInput, TurnExchange
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from xenoglot.codec.dialect import Dialect
    from xenoglot.codec.features.web_socket import WebSocketForm
    from xenoglot.gateway.endpoint.request_context import BodyReader
    from xenoglot.gateway.http.application import Exchange, MessageSocket

MOST_MINUTES: Final = 60
"""How old a connection may be for another request."""

MOST_REQUESTS: Final = 16
"""Requests of a connection that are being answered or wait for it."""

MOST_LANES: Final = 32
"""Lanes with a name that a connection may have had."""

GOING_AWAY: Final = 1001
EXPIRED_CODE: Final = 1000

TOO_MANY: Final = Failure(
    kind="rate_limit",
    message=f"rate limit: {MOST_REQUESTS} requests of this connection are being answered or wait for it",
)
TOO_LARGE: Final = Failure(
    kind="rate_limit", message="rate limit: the requests of this connection that wait are too large together"
)


class QueuedRequest(Struct, frozen=True):
    """A request, how many bytes its message had, and the steering input that it consists of."""

    event: CreateEvent
    size: int
    steers: Sequence[SteerInput] = ()


class WebSocketSession:
    """Serves one connection, which began with the request `handshake`."""

    def __init__(self, handshake: Exchange, dialect: Dialect, form: WebSocketForm, bodies: BodyReader) -> None:
        self._handshake = handshake
        self._dialect = dialect
        self._form = form
        self._bodies = bodies
        self._socket: MessageSocket
        self._context: ConnectionContext
        self._answers = RecentAnswers(bodies.limit)
        self._lanes: dict[str | None, deque[QueuedRequest]] = {}
        self._tasks: dict[str | None, asyncio.Task[None]] = {}
        """What answers the request of a lane that is being answered."""
        self._turns: dict[str | None, TurnExchange] = {}
        """The same requests."""
        self._steers: SteerQueue | None = None
        self._waiting = 0
        """Bytes of the requests that wait."""
        self._expired = False

    async def serve(self, socket: MessageSocket) -> None:
        """Serve the connection until it is closed."""
        self._socket = socket
        self._context = ConnectionContext(self._handshake, socket, self._form, self._dialect.framing, self._answers)
        if self._form.steer is not None:
            self._steers = SteerQueue(self._form.steer, socket, self._answers, self._bodies.limit)
        socket.rest(idle=True)
        timer = asyncio.get_running_loop().call_later(MOST_MINUTES * 60, self._expire)
        try:
            if socket.draining:
                socket.end(GOING_AWAY)
            while (message := await socket.read_message()) is not None:
                await self._take(message)
                await socket.writable()  # each message may be answered with an error
        finally:
            timer.cancel()
            tasks = list(self._tasks.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _take(self, message: bytes) -> None:
        """Handle a message; what is wrong with it is an error event."""
        try:
            event = self._form.decode(await self._bodies.request(message))
        except (FailureError, WireError, RecursionError) as error:
            self._fail(refusal(error))
            return
        if isinstance(event, SteerEvent) and self._steers is not None:
            self._steers.take(event, list(self._turns.values()), len(message))
        elif isinstance(event, CreateEvent):
            failure = self._admit(event, len(message))
            if failure is not None:
                self._fail(failure, event.lane)

    def _admit(self, event: CreateEvent, size: int) -> Failure | None:
        """Have a request answered, now or when those before it in its lane are; return why not."""
        if self._expired:
            return self._form.expired(MOST_MINUTES)
        if self._socket.draining:
            return STOPPING
        lane = event.lane
        if lane not in self._lanes and lane is not None and len(self._lanes.keys() - {None}) >= MOST_LANES:
            return self._form.too_many_lanes(MOST_LANES)
        waiting = sum(map(len, self._lanes.values()))
        if waiting + len(self._tasks) >= MOST_REQUESTS:
            return TOO_MANY
        if waiting and self._waiting + size > self._bodies.limit:
            return TOO_LARGE
        self._lanes.setdefault(lane, deque()).append(QueuedRequest(event, size))
        self._waiting += size
        if lane not in self._tasks:
            self._next(lane)
        return None

    def _next(self, lane: str | None) -> None:
        """Answer the next request of a lane, if there is one."""
        if not self._lanes[lane]:
            return
        request = self._lanes[lane].popleft()
        self._waiting -= request.size
        self._socket.rest(idle=False)
        event, steers = request.event, request.steers
        if self._steers is not None and not steers:
            event, steers = self._steers.merged(event)
        turn = self._turns[lane] = TurnExchange(self._context, event, request.size)
        turn.committing = steers
        self._tasks[lane] = asyncio.get_running_loop().create_task(self._answer(turn, event))

    async def _answer(self, turn: TurnExchange, event: CreateEvent) -> None:
        try:
            await self._socket.handle(turn)
        finally:
            del self._tasks[event.lane], self._turns[event.lane]
        turn.break_off()
        if event.previous is not None and (turn.refused or turn.observer.failed):
            self._answers.forget(event.previous)  # a client is to begin anew, and not to fail again
        self._follow(turn)
        self._go_on(event.lane)

    def _follow(self, turn: TurnExchange) -> None:
        """Have the request that steering input wants follow next, in front of those that wait."""
        if self._steers is None or self._socket.gone or (follows := self._steers.ended(turn)) is None:
            return
        event, steers = follows
        if self._socket.draining:
            self._steers.reject(steers, self._steers.not_created, turn)
        else:
            self._lanes[event.lane].appendleft(QueuedRequest(event, 0, steers))

    def _go_on(self, lane: str | None) -> None:
        """Begin the next request, or close."""
        if self._socket.gone:
            return
        if self._socket.draining:
            self._refuse_all()
        else:
            self._next(lane)
        if self._tasks:
            return
        if self._socket.draining:
            self._socket.end(GOING_AWAY, "the gateway is stopping")
        elif self._expired:
            self._socket.end(EXPIRED_CODE)
        else:
            self._socket.rest(idle=True)

    def _refuse_all(self) -> None:
        """Refuse the requests that wait: the server takes no more work."""
        for lane, waiting in self._lanes.items():
            for _ in waiting:
                self._fail(STOPPING, lane)
            waiting.clear()
        self._waiting = 0

    def _expire(self) -> None:
        """Note that the connection is too old for another request."""
        self._expired = True
        if not self._tasks:
            self._fail(self._form.expired(MOST_MINUTES))
            self._socket.end(EXPIRED_CODE)

    def _fail(self, failure: Failure, lane: str | None = None) -> None:
        """Send the event of a failure."""
        status, body = self._dialect.encode_error(replace(failure, status=failure.status))
        event = self._form.error(failure.status or status, body, dict(retry_headers(failure)))
        if lane is not None:
            event["stream_id"] = lane
        self._socket.put(encode_json(event))
