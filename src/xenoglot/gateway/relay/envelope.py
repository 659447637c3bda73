"""Response envelope: ids, headers, reported losses, and what the request log records of an answer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from xenoglot.backends.offload import LARGE
from xenoglot.codec.framing.formats import EVENT_STREAM
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.framing.stream_writer import StreamWriter
from xenoglot.codec.json.json_io import encode_json, encode_large
from xenoglot.codec.stage import Pipeline
from xenoglot.errors import FailureError
from xenoglot.gateway.observability.request_log import LOSSES
from xenoglot.gateway.relay.response_ids import ResponseIds
from xenoglot.gateway.relay.usage_estimate import usage_estimate
from xenoglot.model.events import Failed, Finished, TextDelta, UsageReported
from xenoglot.model.failure import Failure
from xenoglot.model.fold import Folder, unfold

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.gateway.relay.usage_estimate import UsageEstimate
    from xenoglot.gateway.upstream.call import UpstreamCall
    from xenoglot.model.events import Event
    from xenoglot.model.limits import RateLimits
    from xenoglot.model.response import Response

OK = 200
JSON_TYPE = "application/json"
_UNBUFFERED = (("cache-control", "no-cache"), ("x-accel-buffering", "no"))


class ResponseEnvelope:
    """One answer and the client that asked for it, in its dialect."""

    __slots__ = ("_asking", "_request", "dialect", "framing", "losses", "record")

    def __init__(self, asking: UpstreamCall) -> None:
        self.framing = asking.record.framing or asking.dialect.framing
        self.losses = asking.losses
        self.dialect = asking.dialect
        self.record = asking.record
        self._request = asking.request
        self._asking = asking

    def observe(self, events: Sequence[Event]) -> None:
        """Note what the log wants to know."""
        record = self.record
        for event in events:
            if type(event) is TextDelta:
                continue  # nearly all are
            if type(event) is UsageReported:
                record.used(event.usage)
            elif type(event) is Finished:
                record.finish = event.finish.reason
            elif type(event) is Failed:
                record.failed(event.failure)

    def note(self, response: Response) -> None:
        """Note the same of a whole answer."""
        if response.usage is not None:
            self.record.used(response.usage)
        for candidate in response.candidates:
            if candidate.finish is not None:
                self.record.finish = candidate.finish.reason

    def encoder(self, identify: ResponseIds) -> StreamWriter:
        """Return what makes bytes of the events that `identify` has completed."""
        encoder = self.dialect.stream_encoder(self._request, self.losses)
        estimate, shown = self._usage_estimate(), self._asking.reasoning_filter()
        stages = [identify, *(stage for stage in (estimate, shown) if stage is not None)]
        if estimate is not None:
            encoder = estimate.counted(encoder)
        return StreamWriter(identify if len(stages) == 1 else Pipeline(*stages), encoder, self.framing)

    def body(self, response: Response, size: int = 0) -> bytes:
        """Return the body of a whole answer of about `size` bytes.

        Raises:
            FailureError: the answer has no end. `LossError`, `WireError` and `RecursionError`: it cannot be written.
        """
        self.must_have_finished()
        if any(candidate.finish is None for candidate in response.candidates):
            response = _without_open_blocks(response)
        response = self.identify().response(response)
        estimate, shown = self._usage_estimate(), self._asking.reasoning_filter()
        if estimate is not None:
            response = estimate.response(response)
        if shown is not None:
            response = shown.response(response)
        encode = encode_json if size < LARGE else encode_large
        return encode(self.dialect.encode_response(response, self._request, self.losses))

    def identify(self, *, early: bool = False) -> ResponseIds:
        """Return what names an answer; `early` where it may have to begin before its own name is known."""
        request_id, kept = self.record.request_id, self.record.answer_id
        own = kept or self.dialect.id_prefix + request_id.removeprefix("req_")
        lost = self._lost_early() if early else None
        return ResponseIds(own, self._asking.model, request_id, kept=kept is not None, early=lost)

    def _usage_estimate(self) -> UsageEstimate | None:
        """Return what estimates counts that the upstream does not report; `None` where the client needs none."""
        asking = self._asking
        return usage_estimate(self.dialect, self._request, asking.prompt_tokens, self.losses, self.record.used)

    def must_have_finished(self) -> None:
        """Refuse to take for whole what no `Finished` closed: a backend may be anybody's code.

        Raises:
            FailureError: nothing did.
        """
        if self.record.finish is None:
            raise FailureError(
                Failure(kind="upstream", message="connection lost: the answer ended without being complete")
            )

    def begin_stream(self, limits: RateLimits | None, *, sure: bool) -> list[tuple[str, str]]:
        """Return the headers of a streamed response, which begins now; `sure` as below."""
        headers = self._headers(limits, self.framing.media_type, *_UNBUFFERED, sure=sure)
        self.record.begin(OK)
        return headers

    def begin_whole(self, limits: RateLimits | None, size: int) -> list[tuple[str, str]]:
        """Return the headers of a whole response with a body of `size` bytes, which begins now."""
        headers = self._headers(limits, JSON_TYPE, ("content-length", str(size)))
        self.record.begin(OK)
        return headers

    def _headers(
        self, limits: RateLimits | None, media_type: str, *more: tuple[str, str], sure: bool = True
    ) -> list[tuple[str, str]]:
        """Return the headers of a response; `sure` says that it is known who answers, and no other may yet."""
        headers = [("content-type", media_type), *more]
        if limits is not None:
            headers += self.dialect.encode_limits(limits, time.time())
        if said := self.record.tell_losses():
            headers.append((LOSSES, said))
        return [*headers, *self.record.headers(answering=sure or self._asking.alone)]

    def late_losses(self) -> bytes:
        """Return what was lost behind the head, as a comment, which readers skip; nothing where there are none."""
        skipped = self.dialect.comments and self.framing is EVENT_STREAM
        if not skipped or not (said := self.record.tell_losses()):
            return b""
        return b"".join(self.framing.encoder().feed(ServerSentEvent(b"", comment=f"{LOSSES}: {said}")))

    def _lost_early(self) -> Losses | None:
        """Return where to tell of an answer that begins early under our id; `None` where its own may be asked for."""
        ours = self.record.answer_id is not None or self._request.store is False
        return self.losses if self.dialect.begins_early and ours and not self.losses.strict else None


def _without_open_blocks(response: Response) -> Response:
    """Return an answer, some of whose candidates have no end, as its events would give it."""
    folder = Folder()
    for event in unfold(response):
        folder.feed(event)
    return folder.response()
