"""One line of a batch as a request to a backend; every outcome is returned in the line's own dialect."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from xenoglot import dialect_registry as dialects
from xenoglot.backends.backend import ByteAnswer, Call
from xenoglot.backends.batch_lines import BatchLine, LineOutcome
from xenoglot.backends.operation import OperationCall, need_handler
from xenoglot.codec.invalid_request import refusal
from xenoglot.codec.json.json_io import decode_answer, encode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.requests.checks import bounded
from xenoglot.codec.responses.reasoning import reasoning_filter
from xenoglot.errors import FailureError, LossError, WireError
from xenoglot.model.events import Failed, Finished, Started, UsageReported
from xenoglot.model.failure import Failure
from xenoglot.model.fold import Folder, merge_usage
from xenoglot.model.response import Usage
from xenoglot.policy.token_estimate import bytes_tokens, estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.backends.backend import Answer, Backend
    from xenoglot.backends.operation import AnyCall
    from xenoglot.codec.dialect import Dialect
    from xenoglot.codec.features.operation import AnyForm
    from xenoglot.model.events import Event
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Request
    from xenoglot.model.response import Response

_ENDED_EARLY = Failure(
    kind="upstream", message="connection lost: the answer ended without being complete", cause="garbled"
)
_STREAMING = ("stream", "stream_options")


class LineReport(Struct, frozen=True, kw_only=True):
    """Outcome of a line, with its usage, model and failure."""

    outcome: LineOutcome
    usage: Usage | None = None
    model: str | None = None
    failure: Failure | None = None


async def answer_line(line: BatchLine, backend: Backend) -> LineReport:
    """Send the request of a line to `backend`, once. A streaming request is answered in one piece."""
    dialect, losses = dialects.get(line.endpoint.dialect), Losses()
    try:
        if (form := line.endpoint.form) is not None:
            return await _operated(line, form, backend, losses)
        return await _answered(line, dialect, backend, losses)
    except (FailureError, LossError, WireError, RecursionError) as error:
        return failed_line(line, refusal(error))


def failed_line(line: BatchLine, failure: Failure) -> LineReport:
    """Return the report of a line that ends in `failure`."""
    status, body = dialects.get(line.endpoint.dialect).encode_error(failure)
    return LineReport(outcome=LineOutcome(status=status, body=body, request_id=failure.request_id), failure=failure)


def tokens_of(line: BatchLine) -> int:
    """Return about how many tokens a line will use at most, at least 1."""
    if line.endpoint.operation:
        return 1 + bytes_tokens(encode_json(line.body))
    try:
        request = dialects.get(line.endpoint.dialect).decode_request(line.body)
    except (WireError, RecursionError):
        return 1
    return estimate(request) + (request.sampling.max_tokens or 0)


async def _answered(line: BatchLine, dialect: Dialect, backend: Backend, losses: Losses) -> LineReport:
    request, body = _request(line, dialect)
    call = Call(request=request, losses=losses, dialect=dialect.name, body=encode_json(body))
    answer = await backend.answer(call)
    watched = _Watched(request)
    try:
        told = await _raw_body(answer, watched)
    finally:
        await answer.aclose()
    if told is None:
        response = _identified(watched.folder.response(), request, dialect)
        shown = reasoning_filter(dialect, request, losses)
        response = response if shown is None else shown.response(response)
        told = dialect.encode_response(response, request, losses)
    outcome = LineOutcome(body=told, request_id=answer.request_id, losses=tuple(map(str, losses)))
    return LineReport(outcome=outcome, usage=watched.usage, model=watched.model)


def _request(line: BatchLine, dialect: Dialect) -> tuple[Request, JSONObject]:
    """Return the line's request and its body, both without `stream`.

    Raises:
        WireError: not a valid request of its dialect.
    """
    body = line.body
    request = dialect.decode_request(body)
    if request.stream:
        body = {name: value for name, value in body.items() if name not in _STREAMING} | {"stream": False}
        request = replace(dialect.decode_request(body), stream=False)
    return bounded(request, body), body


async def _raw_body(answer: Answer, watched: _Watched) -> JSONObject | None:
    """Return the body of an answer in bytes; `None` for an answer in events, which `watched` folds.

    Raises:
        FailureError: truncated.
    """
    if isinstance(answer, ByteAnswer):
        data = []
        async for piece in answer.pieces:
            watched.observe(piece.events)
            data.append(piece.data)
        return _object(b"".join(data))
    async for batch in answer.batches:
        watched.observe(batch)
        watched.fold(batch)
    if not watched.finished:
        raise FailureError(_ENDED_EARLY)
    return None


def _object(data: bytes) -> JSONObject:
    value = decode_answer(data)
    if not isinstance(value, dict):
        raise FailureError(_ENDED_EARLY)
    return value


class _Watched:
    """Folds the events of an answer, and records its usage."""

    def __init__(self, request: Request) -> None:
        self.folder = Folder()
        self.finished = False
        self.usage: Usage | None = None
        self.model: str | None = request.model

    def observe(self, events: Sequence[Event]) -> None:
        """Process a batch of events.

        Raises:
            FailureError: the answer failed.
        """
        for event in events:
            match event:
                case Failed():
                    raise FailureError(event.failure)
                case Finished():
                    self.finished = True
                case UsageReported():
                    self.usage = merge_usage(self.usage, event.usage)
                case Started(model=str()):
                    self.model = event.model
                case _:
                    pass

    def fold(self, events: Sequence[Event]) -> None:
        """Return the response folded from the events."""
        for event in events:
            self.folder.feed(event)


def _identified(response: Response, request: Request, dialect: Dialect) -> Response:
    """Return an answer that has an id, a model and a time, be they of our making."""
    return replace(
        response,
        id=response.id or f"{dialect.id_prefix}{uuid.uuid4().hex}",
        model=response.model or request.model,
        created=int(time.time()) if response.created is None else response.created,
    )


async def _operated(line: BatchLine, form: AnyForm, backend: Backend, losses: Losses) -> LineReport:
    operation, request = form.operation, form.decode_request(line.body)
    dialect, body = line.endpoint.dialect, encode_json(line.body)
    call: AnyCall = OperationCall(request=request, losses=losses, form=form, body=body, dialect=dialect)
    answer = await need_handler(backend, operation, request.model)(call)
    made = answer.result
    told = form.encode_response(made, request, losses) if answer.body is None else decode_answer(answer.body)
    outcome = LineOutcome(body=told, losses=tuple(map(str, losses)))
    return LineReport(outcome=outcome, usage=operation.usage(made), model=getattr(made, "model", None) or request.model)
