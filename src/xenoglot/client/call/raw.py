"""Requests in a dialect's own JSON; an upstream of the same dialect gets them unchanged."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.client.call.attempt import StartedAnswer, begin
from xenoglot.client.call.validate_request import encode_value
from xenoglot.codec.dialect import Dialect
from xenoglot.codec.json.json_io import decode_answer, decode_json
from xenoglot.codec.requests.checks import bounded
from xenoglot.codec.requests.path_template import has_model
from xenoglot.codec.responses.reasoning import reasoning_filter
from xenoglot.codec.stage import Pipeline
from xenoglot.dialect_registry import get
from xenoglot.errors import FailureError, WireError
from xenoglot.model.events import Started
from xenoglot.model.failure import Failure
from xenoglot.model.fold import Folder
from xenoglot.model.request import Request
from xenoglot.model.response import Response

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable

    from xenoglot.backends.backend import Backend, Call
    from xenoglot.client.call.attempt import StartedBytes
    from xenoglot.codec.framing.sse import ServerSentEvent
    from xenoglot.model.json import JSON, JSONObject

Said = TypeVar("Said", Response, Started)

_DONE = b"[DONE]"
"""End mark of OpenAI's streams, which is not JSON."""


class RawRequest(Struct, frozen=True, kw_only=True):
    """A request of a dialect: decoded, and its bytes."""

    dialect: Dialect
    request: Request
    body: bytes


def raw_request(
    body: Mapping[str, JSON] | bytes, dialect: str, *, model: Callable[[], str], stream: bool
) -> RawRequest:
    """Return the request in `body`; `stream` overrides the body's own setting.

    `model` supplies the model's name if the body has none.

    Raises:
        WireError: not a valid request of the dialect.
        ConfigurationError: unknown dialect.
    """
    spoken = get(dialect)
    said: JSON = decode_json(body) if isinstance(body, bytes) else body
    if isinstance(said, Mapping):
        said = dict(said)
    if not isinstance(said, dict):
        raise WireError("$", "expected a JSON object")
    told = said if spoken.model_field in said or "model" in said else said | {spoken.model_field: model()}
    in_url = spoken.stream_path is not None
    if in_url:
        told = told | {"stream": stream}
    request = bounded(spoken.decode_request(told), told)
    if request.stream != stream:
        told = told | {"stream": stream}
        request = bounded(spoken.decode_request(told), told)
    elsewhere = {*(("stream",) if in_url else ()), *((spoken.model_field,) if has_model(spoken.path) else ())}
    sent = {key: value for key, value in told.items() if key not in elsewhere}
    data = body if isinstance(body, bytes) and sent == said else encode_value(sent, "$")
    return RawRequest(dialect=spoken, request=request, body=data)


async def complete_response(backend: Backend, call: Call, dialect: Dialect) -> JSONObject:
    """Return the complete answer as JSON of `dialect`.

    Raises:
        FailureError: there is none.
    """
    async with aclosing(await begin(backend, call)) as begun:
        if isinstance(begun, StartedAnswer):
            folder = Folder()
            async for batch in begun.batches():
                for event in batch:
                    folder.feed(event)
            answer = _with_model(folder.response(), call, _dialect_named(dialect))
            shown = reasoning_filter(dialect, call.request, call.losses)
            answer = answer if shown is None else shown.response(answer)
            return dialect.encode_response(answer, call.request, call.losses)
        body = decode_answer(b"".join([data async for data in begun.items()]))
    if not isinstance(body, dict):
        raise FailureError(Failure(kind="upstream", message="the upstream's answer is no JSON object", cause="garbled"))
    return body


class RawSource:
    """A streamed answer as JSON of a dialect, event by event."""

    def __init__(self, begun: StartedAnswer | StartedBytes, dialect: Dialect) -> None:
        self.started = begun
        self._dialect = dialect

    async def batches(self) -> AsyncGenerator[list[JSONObject], None]:
        """Yield the events in batches, as they arrived together; without an end mark that is not JSON.

        Raises:
            FailureError: the answer fails, or has no end.
        """
        async for frames in (
            self._encoded(self.started) if isinstance(self.started, StartedAnswer) else self._framed(self.started)
        ):
            found = [decode_answer(frame.data) for frame in frames if frame.data and frame.data != _DONE]
            if events := [event for event in found if isinstance(event, dict)]:
                yield events

    async def aclose(self) -> None:
        """Stop the upstream at once."""
        await self.started.aclose()

    async def _framed(self, begun: StartedBytes) -> AsyncGenerator[Iterable[ServerSentEvent], None]:
        framing = self._dialect.framing
        decoder = (framing.tolerant_decoder or framing.decoder)()
        async for data in begun.items():
            yield decoder.feed(data)
        yield decoder.close()

    async def _encoded(self, begun: StartedAnswer) -> AsyncGenerator[Iterable[ServerSentEvent], None]:
        call = begun.call
        own = _dialect_named(self._dialect)
        encoder = self._dialect.stream_encoder(call.request, call.losses)
        shown = reasoning_filter(self._dialect, call.request, call.losses)
        encoder = encoder if shown is None else Pipeline(shown, encoder)
        async for batch in begun.batches():
            named = (_with_model(event, call, own) if type(event) is Started else event for event in batch)
            yield [frame for event in named for frame in encoder.feed(event)]
        yield encoder.close()


def _dialect_named(dialect: Dialect) -> str:
    return dialect.id_prefix + secrets.token_hex(16)


def _with_model(answer: Said, call: Call, own: str) -> Said:
    """Return an answer with the fields that dialects require: a missing model or time is filled in."""
    return replace(
        answer,
        id=answer.id or own,
        model=answer.model or call.request.model,
        created=int(time.time()) if answer.created is None else answer.created,
    )
