"""What the answer to a request that is served without a task needs of that request, and of the call behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from xenoglot.backends.backend import Call
from xenoglot.backends.remote.backend import Remote
from xenoglot.backends.remote.passthrough import UpstreamRequest
from xenoglot.gateway.routing.reservation import Reservation
from xenoglot.gateway.upstream.preserve_reasoning import Recorder

if TYPE_CHECKING:
    import asyncio

    from xenoglot.codec.dialect import Dialect
    from xenoglot.gateway.http.application import PushExchange
    from xenoglot.gateway.observability.request_log import RequestLog
    from xenoglot.gateway.relay.envelope import ResponseEnvelope


class Attempt(Struct):
    """The call of a target, before it is sent; `hold` has reserved what it takes.

    `recorder` stores what the client may strip of the answer; `None`: that is not kept.
    """

    hold: Reservation
    remote: Remote
    call: Call
    composed: UpstreamRequest
    recorder: Recorder | None = None


class Sink(Protocol):
    """The request that an answer is passed on to."""

    client: PushExchange
    record: RequestLog
    envelope: ResponseEnvelope
    loop: asyncio.AbstractEventLoop
    started: float
    """When the target was called, by the loop's clock."""

    @property
    def dialect(self) -> Dialect:
        """The client's."""
        ...

    @property
    def interval(self) -> float:
        """Seconds of silence after which a client gets a heartbeat."""
        ...

    def began(self) -> None:
        """The answer has begun: from now on it is consumed."""
        ...

    def hand_over(self) -> None:
        """Leave the answer, which has not begun, to a task."""
        ...

    def break_down(self, error: BaseException) -> None:
        """Leave it to a task to report `error`."""
        ...

    def over(self) -> None:
        """The response is complete, or aborted."""
        ...
