"""Conversion of answers to and from objects of the official SDKs, complete or as chunks of a stream.

Nothing is converted field by field: an SDK's object is its dialect's JSON in a class, so the dialect's own codec
converts it, unknown fields included. No SDK is a dependency: each is imported on use. Supported: `openai`, `anthropic`,
`google-genai` and `ollama`.
"""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING, Final, cast
from uuid import uuid4

from msgspec.structs import replace

from xenoglot.client.sdk.objects import SDKS, build, module_of, row_of, to_json
from xenoglot.client.sdk.requests import arguments_for_sdk, request_from_sdk
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.codec.loss import Losses
from xenoglot.dialect_registry import get
from xenoglot.errors import failure_error
from xenoglot.model.events import Failed, Started
from xenoglot.model.request import Request
from xenoglot.model.response import Response

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator

    import anthropic.types
    import ollama
    import openai.types
    import openai.types.chat
    import openai.types.responses
    from google.genai import types as gemini

    from xenoglot.client.results.result import Reply
    from xenoglot.client.sdk.objects import Sdk
    from xenoglot.codec.dialect import Dialect
    from xenoglot.codec.stage import Stage
    from xenoglot.model.events import Event

__all__ = [
    "arguments_for_sdk",
    "chunks_for_async_sdk",
    "chunks_for_sdk",
    "events_from_async_sdk",
    "events_from_sdk",
    "from_sdk",
    "request_from_sdk",
    "to_anthropic",
    "to_gemini",
    "to_ollama",
    "to_openai",
    "to_openai_completion",
    "to_openai_response",
    "to_sdk",
]

_STREAMING: Final = ("openai.lib.", "anthropic.lib.")
"""Module of the SDK's helper events, which repeat the content of its own stream events."""

_END: Final = b"[DONE]"


def to_openai(answer: Reply | Response, losses: Losses | None = None) -> openai.types.chat.ChatCompletion:
    """Return the answer as an object of `chat.completions.create`; unsupported features are added to `losses`."""
    return cast("openai.types.chat.ChatCompletion", to_sdk(answer, "openai", losses))


def to_openai_response(answer: Reply | Response, losses: Losses | None = None) -> openai.types.responses.Response:
    """Return the answer as an object of `responses.create`."""
    return cast("openai.types.responses.Response", to_sdk(answer, "openai_responses", losses))


def to_openai_completion(answer: Reply | Response, losses: Losses | None = None) -> openai.types.Completion:
    """Return the answer as an object of `completions.create`."""
    return cast("openai.types.Completion", to_sdk(answer, "openai_completions", losses))


def to_anthropic(answer: Reply | Response, losses: Losses | None = None) -> anthropic.types.Message:
    """Return the answer as an object of `messages.create`."""
    return cast("anthropic.types.Message", to_sdk(answer, "anthropic", losses))


def to_gemini(answer: Reply | Response, losses: Losses | None = None) -> gemini.GenerateContentResponse:
    """Return the answer as an object of `models.generate_content`. Fields unknown to its class are lost."""
    return cast("gemini.GenerateContentResponse", to_sdk(answer, "gemini", losses))


def to_ollama(answer: Reply | Response, losses: Losses | None = None) -> ollama.ChatResponse:
    """Return the answer as an object of `chat`. Fields unknown to its class are lost."""
    return cast("ollama.ChatResponse", to_sdk(answer, "ollama", losses))


def to_sdk(answer: Reply | Response, sdk: Sdk, losses: Losses | None = None) -> object:
    """Return the answer as an object of `sdk`. A missing id, time or model is filled in, because the class requires it.

    Raises:
        ConfigurationError: the SDK is not installed.
        LossError: a feature is lost, and `losses` are strict.
    """
    row, losses = SDKS[sdk], Losses() if losses is None else losses
    response = answer if isinstance(answer, Response) else answer.response
    dialect = get(row.dialect)
    started = _named(Started(id=response.id, model=response.model, created=response.created), dialect)
    response = replace(response, id=started.id, model=started.model, created=started.created)
    body = dialect.encode_response(response, Request(model=started.model or ""), losses)
    losses.settle()
    return build(getattr(module_of(row), row.response), body, losses)


def from_sdk(found: object) -> Response:
    """Return the answer in an SDK's object.

    Raises:
        TypeError: not an answer of a supported SDK.
        WireError: not valid in its dialect.
    """
    row = row_of(found)
    if row is None:
        raise TypeError(f"{type(found).__module__}.{type(found).__qualname__} is no answer of an SDK that is known")
    return get(row.dialect).decode_response(to_json(found))


def events_from_sdk(chunks: Iterable[object]) -> Iterator[Event]:
    """Yield the events of an SDK's stream, as returned by `create(stream=True)` or `messages.stream`.

    Raises:
        TypeError: not chunks of a supported SDK.
        WireError: not valid in their dialect.
    """
    reading = _Reading()
    for chunk in chunks:
        yield from reading.feed(chunk)
    yield from reading.close()


async def events_from_async_sdk(chunks: AsyncIterable[object]) -> AsyncIterator[Event]:
    """The same, for a stream of an asynchronous client."""
    reading = _Reading()
    async for chunk in chunks:
        for event in reading.feed(chunk):
            yield event
    for event in reading.close():
        yield event


def chunks_for_sdk(events: Iterable[Event], sdk: Sdk, losses: Losses | None = None) -> Iterator[object]:
    """Yield the chunks of `sdk` for a stream of these events.

    Raises:
        ConfigurationError: the SDK is not installed.
        FailureError: the stream failed.
    """
    writing = _Writing(sdk, losses)
    for event in events:
        yield from writing.feed(event)
    yield from writing.close()


async def chunks_for_async_sdk(
    events: AsyncIterable[Event], sdk: Sdk, losses: Losses | None = None
) -> AsyncIterator[object]:
    """The same for an async iterable of events."""
    writing = _Writing(sdk, losses)
    async for event in events:
        for chunk in writing.feed(event):
            yield chunk
    for chunk in writing.close():
        yield chunk


class _Reading:
    """Decoder from chunks to events; the first chunk decides the SDK."""

    def __init__(self) -> None:
        self._decoder: Stage[ServerSentEvent, Event] | None = None

    def feed(self, chunk: object) -> Iterable[Event]:
        chunk = getattr(chunk, "chunk", chunk)  # the helper of OpenAI's for chat wraps them
        row = row_of(chunk)
        if row is None:
            if type(chunk).__module__.startswith(_STREAMING):
                return ()
            raise TypeError(f"{type(chunk).__module__}.{type(chunk).__qualname__} is no chunk of an SDK that is known")
        if self._decoder is None:
            self._decoder = get(row.dialect).stream_decoder()
        body = to_json(chunk)
        kind = body.get("type")
        return self._decoder.feed(ServerSentEvent(encode_json(body), kind if isinstance(kind, str) else None))

    def close(self) -> Iterable[Event]:
        return () if self._decoder is None else self._decoder.close()


class _Writing:
    """Encoder from events to chunks."""

    def __init__(self, sdk: Sdk, losses: Losses | None) -> None:
        row = SDKS[sdk]
        self._dialect = get(row.dialect)
        self._losses = Losses() if losses is None else losses  # an empty one is false
        self._class = getattr(module_of(row), row.chunk)
        self._encoder = self._dialect.stream_encoder(Request(model="", stream=True, stream_usage=True), self._losses)

    def feed(self, event: Event) -> Iterator[object]:
        if isinstance(event, Failed):
            raise failure_error(event.failure)
        if isinstance(event, Started):
            event = _named(event, self._dialect)
        return self._build(self._encoder.feed(event))

    def close(self) -> Iterator[object]:
        return self._build(self._encoder.close())

    def _build(self, written: Iterable[ServerSentEvent]) -> Iterator[object]:
        for one in written:
            if one.data and one.data != _END:
                yield build(self._class, decode_json(one.data), self._losses)


def _named(started: Started, dialect: Dialect) -> Started:
    """Return the start of an answer, with the fields that SDKs require filled in."""
    return replace(
        started,
        id=started.id or f"{dialect.id_prefix}{uuid4().hex}",
        model=started.model or "unknown",
        created=int(time()) if started.created is None else started.created,
    )
