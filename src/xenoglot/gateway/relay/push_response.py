"""A non-streaming response without a task, and what every answer without a task needs of its request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from xenoglot.backends.backend import Call
from xenoglot.backends.offload import LARGE
from xenoglot.backends.remote.backend import Remote
from xenoglot.backends.remote.passthrough import UpstreamRequest
from xenoglot.codec.invalid_request import REFUSED, refusal
from xenoglot.codec.loss import Losses
from xenoglot.errors import FailureError
from xenoglot.gateway.relay.envelope import OK
from xenoglot.gateway.routing.reservation import Reservation
from xenoglot.gateway.upstream.preserve_reasoning import Recorder

if TYPE_CHECKING:
    import asyncio

    from xenoglot.backends.http.client import UpstreamResponse
    from xenoglot.codec.dialect import Dialect
    from xenoglot.gateway.http.application import PushExchange
    from xenoglot.gateway.observability.request_log import RequestLog
    from xenoglot.gateway.relay.envelope import ResponseEnvelope
    from xenoglot.model.limits import RateLimits
    from xenoglot.model.response import Response


class NonStreamingRelay:
    """The answer to a request that asks for one piece."""

    begun = False

    def __init__(self, sink: Sink, attempt: Attempt, reply: UpstreamResponse, limits: RateLimits | None) -> None:
        self._sink = sink
        self._remote = attempt.remote
        self._dialect = sink.dialect
        self._reply = reply
        self._limits = limits
        self._call = attempt.call
        self._verbatim = attempt.composed.verbatim
        self._recorder = attempt.recorder

    def look(self) -> None:
        """Send the answer if it is all here; leave one that fails to a task, which may retry."""
        data = self._reply.complete_body
        if data is None:
            if self._reply.is_idle:
                self._sink.hand_over()
            return
        if len(data) >= LARGE:  # it is decoded in a thread, for which a task waits
            self._sink.hand_over()
            return
        if self._is_noted(data):
            self._begin()
            self._send(data)
            return
        try:
            response = self._response(data)
        except REFUSED:
            self._sink.hand_over()
            return
        self._begin()
        if self._recorder is not None:
            self._recorder.note(response)
        try:
            body = self._body(data, response)
        except REFUSED as error:
            self._sink.break_down(FailureError(refusal(error)))
        else:
            self._send(body)

    def stop(self) -> None:
        """Nothing is in progress."""

    def _begin(self) -> None:
        self._sink.began()
        self.begun = True

    def _is_noted(self, data: bytes) -> bool:
        """Note what the log wants to know of bytes that pass on, if that is all there is to be seen in them."""
        glimpse = self._dialect.glimpse if self._verbatim and self._sink.record.spans is None else None
        seen = None if glimpse is None else glimpse(data)
        if seen is None:
            return False
        usage, finish = seen
        if usage is None:  # then the text is counted
            return False
        self._sink.record.finish = finish
        self._sink.record.used(usage)
        return True

    def _response(self, data: bytes) -> Response:
        """Return the response in `data`.

        Raises:
            FailureError: it is no answer. `LossError`, `WireError` and `RecursionError` alike.
        """
        losses = Losses() if self._verbatim else self._call.losses
        response = self._remote.decode_body(data, self._reply, losses)
        return response if self._verbatim else self._remote.restore_tools(response, self._call)

    def _body(self, data: bytes, response: Response) -> bytes:
        """Return what the client gets for `data`, which contains `response`.

        Raises:
            FailureError: it is no whole answer.
            LossError: it cannot be encoded without a loss, and none is allowed. `WireError` and `RecursionError` alike.
        """
        envelope = self._sink.envelope
        envelope.note(response)
        return data if self._verbatim else envelope.body(response)

    def _send(self, body: bytes) -> None:
        sink = self._sink
        sink.client.open(OK, sink.envelope.begin_whole(self._limits, len(body)))
        sink.client.finish(body)
        sink.over()


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
