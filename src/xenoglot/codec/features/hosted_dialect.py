"""Composes a dialect that servers of another one take: bodies and events of the guest, all else of the host.

Paths and framing are those of the form (`codec.features.hosted`); errors, limits and authorization are the host's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.model.events import Failed, Finished, Ping

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from xenoglot.codec.dialect import Dialect
    from xenoglot.codec.features.hosted import HeaderFields, HostedDialect
    from xenoglot.codec.framing.sse import ServerSentEvent
    from xenoglot.codec.framing.stream_reader import StreamDecoder
    from xenoglot.codec.loss import Losses
    from xenoglot.codec.stage import Stage
    from xenoglot.codec.target import Target
    from xenoglot.model.events import Event
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request


def hosted(host: Dialect, guest: Dialect, form: HostedDialect) -> Dialect:
    """Return the dialect of `form`: bodies and events of `guest`, all else of `host`."""
    return replace(
        guest,
        path=form.path,
        stream_path=form.stream_path,
        stream_query="",
        aliases=(),
        framing=form.framing,
        bare_framing=None,
        comments=host.comments,
        alive=b"",
        terminator=b"",
        mirrors=(),
        marks=(),
        count_path=host.count_path,
        count_aliases=(),
        decode_count=None,  # that of the host: its paths are the same
        encode_count_request=_count_encoder(guest, form),
        decode_counted=host.decode_counted,
        models_path=host.models_path,
        models_query=host.models_query,
        decode_models=host.decode_models,
        encode_models=host.encode_models,
        encode_model=host.encode_model,
        inquiries=(),
        operations=(),
        forwarded_paths=(),
        batching=None,
        files=(),
        state=None,
        web_socket=None,
        compaction=None,
        hosted_tools=host.hosted_tools,
        header_fields=form.header_fields,
        decode_request=lambda body: guest.decode_request(form.body(body)),
        encode_request=_request_encoder(guest, form.header_fields),
        stream_decoder=lambda: HostedStreamDecoder(guest.stream_decoder(), host.stream_decoder()),
        stream_encoder=lambda request, losses: HostedStreamEncoder(
            guest.stream_encoder(request, losses), host.stream_encoder(request, losses)
        ),
        decode_error=host.decode_error,
        encode_error=host.encode_error,
        answer_headers=host.answer_headers,
        error_headers=host.error_headers,
        decode_limits=host.decode_limits,
        limits_prefix=host.limits_prefix,
        encode_limits=host.encode_limits,
        authorize=host.authorize,
        hosts=(),
    )


def _request_encoder(guest: Dialect, fields: HeaderFields) -> Callable[[Request, Losses, Target], JSONObject]:
    """Return the encoder of requests: those of `guest`, with the fields of a client that sends no headers."""

    def encode_request(request: Request, losses: Losses, target: Target) -> JSONObject:
        return fields.fields(()) | guest.encode_request(request, losses, target)

    return encode_request


def _count_encoder(guest: Dialect, form: HostedDialect) -> Callable[[Request, Losses, Target], JSONObject] | None:
    """Return the encoder of the question for a request's tokens; `None` if the guest dialect has none."""
    encode = guest.encode_count_request
    if encode is None:
        return None

    def encode_count_request(request: Request, losses: Losses, target: Target) -> JSONObject:
        return form.encode_counted(form.header_fields.fields(()) | encode(request, losses, target))

    return encode_count_request


def count_decoder(host: Dialect, guests: Mapping[str, Dialect]) -> Callable[[JSON], Request] | None:
    """Return what decodes a token counting request of `host`, the bodies that it hosts included."""
    decode = host.decode_count
    if decode is None or not host.hosts:
        return decode

    def decode_count(value: JSON) -> Request:
        for form in host.hosts:
            body = form.counted_body(value)
            guest = guests.get(form.dialect)
            if body is not None and guest is not None and guest.decode_count is not None:
                return guest.decode_count(form.body(body))
        return decode(value)

    return decode_count


class HostedStreamDecoder:
    """A stage from frames to events: those of the guest dialect, and errors of the host."""

    __slots__ = ("_errors", "_failed", "_inner")

    def __init__(self, inner: StreamDecoder, errors: StreamDecoder) -> None:
        self._inner, self._errors = inner, errors
        self._failed = False

    @property
    def terminated(self) -> bool:
        """Whether the event that terminates a stream was read."""
        return not self._failed and self._inner.terminated

    def feed(self, event: ServerSentEvent, /) -> Sequence[Event]:
        """Take one frame; return its events."""
        if self._failed:
            return ()
        if event.id is None:
            return self._inner.feed(event)
        self._failed = True
        return self._errors.feed(event)

    def close(self) -> Sequence[Event]:
        """The stream is over: fail if the answer is not."""
        return () if self._failed else self._inner.close()


class HostedStreamEncoder:
    """A stage from events to frames: those of the guest dialect, and errors of the host. A ping has no frame."""

    __slots__ = ("_errors", "_failed", "_finished", "_inner")

    def __init__(self, inner: Stage[Event, ServerSentEvent], errors: Stage[Event, ServerSentEvent]) -> None:
        self._inner, self._errors = inner, errors
        self._failed = self._finished = False

    def feed(self, event: Event, /) -> Sequence[ServerSentEvent]:
        """Take one event; return its frames."""
        if self._failed or type(event) is Ping:
            return ()
        if type(event) is Failed:
            self._failed = True
            return self._errors.feed(event)
        if type(event) is Finished:
            self._finished = True
        return self._inner.feed(event)

    def close(self) -> Sequence[ServerSentEvent]:
        """Return the end of the answer; without a `Finished` before it, an error."""
        if self._failed:
            return ()
        return self._inner.close() if self._finished else self._errors.close()
