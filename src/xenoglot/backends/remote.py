"""Another server, in one of the dialects: requests written for it, its answers read, or its bytes passed on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec.structs import replace

from xenoglot.backends.backend import ByteAnswer, EventAnswer
from xenoglot.backends.embedding import EmbeddingAnswer, form_for, understood, written
from xenoglot.backends.fanout import fan_out, shares_of
from xenoglot.backends.redaction import Redactor
from xenoglot.backends.retry_after import retry_after
from xenoglot.backends.stopping import ended, stop_stage, told
from xenoglot.backends.transport import TransportError
from xenoglot.backends.urls import endpoint
from xenoglot.codec.addressing import MODEL, addressed
from xenoglot.codec.custom import UnwrapCustom
from xenoglot.codec.dialect import Target, get
from xenoglot.codec.fitting import fitted
from xenoglot.codec.names import RestoreNames
from xenoglot.codec.stage import Pipeline, through
from xenoglot.codec.wire import decode_answer, encode_json
from xenoglot.errors import FailureError, WireError
from xenoglot.model.events import Failed
from xenoglot.model.failure import Failure, FailureKind
from xenoglot.model.fold import unfold

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from xenoglot.backends.backend import Answer, Call
    from xenoglot.backends.embedding import EmbeddingCall
    from xenoglot.backends.transport import Reply, Transport
    from xenoglot.codec.dialect import Dialect
    from xenoglot.codec.stage import Stage
    from xenoglot.model.catalog import ModelInfo
    from xenoglot.model.events import Event
    from xenoglot.model.json import JSON
    from xenoglot.model.limits import RateLimits

USER_AGENT = "xenoglot"
OK = 200

Item = TypeVar("Item")
SERVER_ERROR = 500

_CREDENTIALS = ("authentication", "permission")
_REFUSING = (401, 403)
_SERVER_FAULTS = ("upstream", "internal", "timeout")
_WORDS_OF_A_SERVER = ("message", "raw_type", "code", "param", "details")

_KINDS: Mapping[str, FailureKind] = {
    "connect": "upstream",
    "tls": "upstream",
    "timeout": "timeout",
    "protocol": "upstream",
    "closed": "upstream",
    "too_large": "upstream",
}
_WORDS: Mapping[str, str] = {
    "connect": "the upstream cannot be reached",
    "tls": "the upstream's certificate or TLS handshake was refused",
    "timeout": "the upstream did not answer in time",
    "protocol": "the upstream's answer is not lawful HTTP",
    "closed": "the upstream broke the connection off",
    "too_large": "the upstream's answer is larger than allowed",
}


class Remote:
    """A server behind a base URL. `headers` are sent with every request, after the dialect's own."""

    def __init__(  # noqa: PLR0913  one argument per setting of an upstream
        self,
        name: str,
        dialect: Dialect,
        base_url: str,
        *,
        transport: Transport,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        target: Target | None = None,
    ) -> None:
        self.name = name
        self.target = Target() if target is None else target
        self._dialect = dialect
        self._base_url = base_url
        self._transport = transport
        self._headers = {"user-agent": USER_AGENT, **dict(dialect.authorize(key)), **_lower(headers or {})}
        self._redact = Redactor((key, *(headers or {}).values()))

    async def answer(self, call: Call) -> Answer:
        """Post the request, or each part that the server takes at a time; return the answer as it begins.

        Raises:
            FailureError: the server could not be reached, or it refused.
        """
        if call.request.prompt is not None or self.target.fan_out:
            shares = shares_of(call, texts=not self._dialect.many_texts, candidates=self.target.fan_out)
            if len(shares) > 1:
                return await fan_out(shares, self._answer)
        return await self._answer(call)

    async def _answer(self, call: Call) -> Answer:
        """Answer one request; at stop strings that the server is not told, the answer is ended here."""
        asked = told(call, self._dialect, self.target)
        if asked is call:
            return await self._ask(call)
        stage = stop_stage(call.request)
        answer = await self._ask(asked)
        if isinstance(answer, ByteAnswer):
            raise TypeError("a call without a body of its own is answered in events")
        return ended(answer, stage)

    async def _ask(self, call: Call) -> Answer:
        verbatim = self._passes_verbatim(call)
        url, body = self._verbatim(call) if verbatim else self._encoded(call)
        framing = self._dialect.framing
        accept = framing.media_type if call.request.stream else "application/json"
        reply = await self._post(url, call, body, accept)
        limits = self._limits(reply)
        streamed = (reply.header("content-type") or "").lower().startswith(framing.media_type)
        if streamed:
            decoder = Pipeline(framing.decoder(), self._dialect.stream_decoder())
            if verbatim and call.request.stream:
                return ByteAnswer(
                    chunks=self._chunks(reply),
                    aclose=reply.aclose,
                    media_type=framing.media_type,
                    watch=_Watch(decoder, self._fit_to_show),
                    limits=limits,
                )
            return EventAnswer(batches=self._events(reply, decoder, call), aclose=reply.aclose, limits=limits)
        return await self._whole(reply, call, limits, verbatim=verbatim and not call.request.stream)

    async def count(self, call: Call) -> int | None:
        """Return the prompt's tokens by the server's own endpoint; `None` where its dialect or it has none."""
        ask, read = self._dialect.encode_count_request, self._dialect.decode_counted
        if self._dialect.count_path is None or ask is None or read is None:
            return None
        asked = ask(told(call, self._dialect, self.target).request, call.losses, self.target)
        call.losses.settle()
        path, query, body = addressed(asked, self._dialect, counting=True)
        try:
            reply = await self._post(endpoint(self._base_url, path, query), call, encode_json(body), "application/json")
            return read(await self._read_json(reply))
        except WireError:
            return None
        except FailureError as error:
            if error.failure.kind in ("not_found", "unsupported", "upstream"):
                return None
            raise

    async def embed(self, call: EmbeddingCall) -> EmbeddingAnswer:
        """Return the vectors of the server's own endpoint; between the same forms the bytes pass untouched."""
        form, verbatim = form_for(call, self._dialect.embeddings)
        path, body = written(call, form, verbatim=verbatim)
        reply = await self._post(endpoint(self._base_url, path), call, body, "application/json")
        data, limits = await self._read(reply), self._limits(reply)
        answer = self._parse(data)
        if isinstance(answer, dict) and answer.get("error") is not None:
            raise FailureError(self._failure(reply.status, answer, reply), limits)
        try:
            made = understood(answer, call, form, verbatim=verbatim)
        except WireError as error:
            raise FailureError(_not_understood(error)) from None
        return EmbeddingAnswer(embeddings=made, body=data if verbatim else None, limits=limits)

    async def models(self) -> Sequence[ModelInfo]:
        """Return the server's list of models."""
        url = endpoint(self._base_url, self._dialect.models_path, self._dialect.models_query)
        try:
            reply = await self._transport.send("GET", url, [*self._headers.items(), ("accept", "application/json")])
        except TransportError as error:
            raise FailureError(_transport_failure(error)) from None
        if reply.status != OK:
            raise FailureError(await self._refusal(reply), self._limits(reply))
        body = await self._read_json(reply)
        try:
            return self._dialect.decode_models(body)
        except WireError as error:
            raise FailureError(_not_understood(error)) from None

    async def aclose(self) -> None:
        """Nothing is held: the transport belongs to whoever made it."""

    def _passes_verbatim(self, call: Call) -> bool:
        return call.body is not None and call.dialect == self._dialect.name and self.target == Target()

    def _verbatim(self, call: Call) -> tuple[str, bytes]:
        """Return where to post the client's bytes, and them; only the model's name is replaced, where it differs."""
        body, name, dialect = call.body or b"", call.request.model, self._dialect
        if MODEL in dialect.path:
            path, query, _ = addressed({"model": name, "stream": call.request.stream}, dialect)
            return endpoint(self._base_url, path, query), body
        fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        written = encode_json(name)
        if bytes(fields[dialect.model_field]) != written:
            fields[dialect.model_field] = msgspec.Raw(written)
            body = encode_json(fields)
        return endpoint(self._base_url, dialect.path), body

    def _encoded(self, call: Call) -> tuple[str, bytes]:
        """Return where to post the request, and it as the server's dialect writes it."""
        if call.headers and call.dialect != self._dialect.name:
            for name in sorted({name for name, _ in call.headers} - {*get(call.dialect).marks}):
                call.losses.dropped("$", f"header {name}", f"only {call.dialect} has it")
        request = fitted(call.request, self._dialect.name, self.target, call.losses)
        if request.stream:  # the log wants to know, whether the client does or not (pitfall-101)
            request = replace(request, stream_usage=True)
        encoded = self._dialect.encode_request(request, call.losses, self.target)
        call.losses.settle()
        path, query, body = addressed(encoded, self._dialect)
        return endpoint(self._base_url, path, query), encode_json(body)

    async def _post(self, url: str, call: Call | EmbeddingCall, body: bytes, accept: str) -> Reply:
        headers = {"content-type": "application/json", "accept": accept, **self._headers}
        if call.dialect == self._dialect.name:
            headers.update(call.headers)
        try:
            reply = await self._transport.send("POST", url, list(headers.items()), body)
        except TransportError as error:
            raise FailureError(_transport_failure(error)) from None
        if reply.status != OK:
            raise FailureError(await self._refusal(reply), self._limits(reply))
        return reply

    async def _whole(self, reply: Reply, call: Call, limits: RateLimits | None, *, verbatim: bool) -> Answer:
        """Return an answer that came in one piece."""
        data = await self._read(reply)
        body = self._parse(data)
        if isinstance(body, dict) and body.get("error") is not None:
            raise FailureError(self._failure(reply.status, body, reply), limits)
        try:
            events = list(unfold(self._dialect.decode_response(body)))
        except WireError as error:
            raise FailureError(_not_understood(error)) from None
        if verbatim:
            return ByteAnswer(
                chunks=_once(data),
                aclose=reply.aclose,
                media_type="application/json",
                watch=_Known(events),
                limits=limits,
            )
        restored = list(through(events, Pipeline(*self._restoring(call))))
        return EventAnswer(batches=_once(restored), aclose=reply.aclose, limits=limits)

    def _restoring(self, call: Call) -> list[Stage[Event, Event]]:
        """Return the stages that give the client back the tools it knows; often none."""
        limit = self.target.tool_name_limit or self._dialect.tool_name_limit
        names, custom = RestoreNames(call.request, limit), UnwrapCustom(call.request)
        return [*((names,) if names else ()), *((custom,) if custom else ())]

    async def _chunks(self, reply: Reply) -> AsyncIterator[bytes]:
        try:
            async for chunk in reply:
                yield chunk
        except TransportError as error:
            raise FailureError(_transport_failure(error)) from None
        finally:
            await reply.aclose()

    async def _events(self, reply: Reply, decoder: Stage[bytes, Event], call: Call) -> AsyncIterator[Sequence[Event]]:
        restoring = self._restoring(call)
        stage = Pipeline(decoder, *restoring) if restoring else decoder
        try:
            async for chunk in reply:
                if events := stage.feed(chunk):
                    last = events[-1]
                    if type(last) is Failed:
                        yield (*events[:-1], Failed(failure=self._fit_to_show(last.failure)))
                        return
                    yield events
            if events := stage.close():
                yield events
        except TransportError as error:
            if _incomplete(stage):
                yield (Failed(failure=_transport_failure(error)),)
        except WireError as error:
            yield (Failed(failure=_not_understood(error)),)
        finally:
            await reply.aclose()

    async def _read(self, reply: Reply) -> bytes:
        try:
            return await reply.read()
        except TransportError as error:
            raise FailureError(_transport_failure(error)) from None
        finally:
            await reply.aclose()

    async def _read_json(self, reply: Reply) -> JSON:
        return self._parse(await self._read(reply))

    @staticmethod
    def _parse(data: bytes) -> JSON:
        try:
            return decode_answer(data)
        except WireError as error:
            raise FailureError(_not_understood(error)) from None

    async def _refusal(self, reply: Reply) -> Failure:
        """Return what a status other than 200 says."""
        data = await self._read(reply)
        try:
            body: JSON = decode_answer(data)
        except WireError:
            body = None  # an HTML page of some proxy: nothing in it is for the client
        return self._failure(reply.status, body, reply)

    def _failure(self, status: int, body: JSON, reply: Reply) -> Failure:
        failure = self._fit_to_show(self._dialect.decode_error(status, body))
        return replace(failure, retry_after=retry_after(dict(reply.headers), time.time()))

    def _fit_to_show(self, failure: Failure) -> Failure:
        """Return what the client may know of a failure that the server told in its own words."""
        if failure.dialect is None:
            return failure
        if (
            failure.kind in _CREDENTIALS or failure.status in _REFUSING
        ):  # the client's own key is fine: it must not be told otherwise (U40)
            return Failure(kind="upstream", message="the upstream refused the gateway's credentials")
        if failure.kind in _SERVER_FAULTS:  # their texts can hold anything: paths, hosts, traces (R32)
            said = "" if failure.status in (None, SERVER_ERROR) else f" (status {failure.status})"
            return replace(failure, message=f"the upstream failed{said}", details=None)
        words = {name: self._redact.json(getattr(failure, name)) for name in _WORDS_OF_A_SERVER}
        return replace(failure, **words)

    def _limits(self, reply: Reply) -> RateLimits | None:
        return self._dialect.decode_limits(dict(reply.headers), time.time())


class _Watch:
    """A stage beside bytes that are passed on: what it says of their failures is fit to be told.

    A failure keeps its `dialect` only where the bytes tell it in words that the client may read.
    """

    def __init__(self, decoder: Stage[bytes, Event], fit: Callable[[Failure], Failure]) -> None:
        self._decoder = decoder
        self._fit = fit

    def feed(self, chunk: bytes, /) -> Sequence[Event]:
        try:
            events = self._decoder.feed(chunk)
        except WireError as error:
            return (Failed(failure=_not_understood(error)),)
        return self._shown(events)

    def close(self) -> Sequence[Event]:
        return self._shown(self._decoder.close())

    def _shown(self, events: Sequence[Event]) -> Sequence[Event]:
        if not events or type(failed := events[-1]) is not Failed:
            return events
        failure = self._fit(failed.failure)
        if failure == failed.failure:
            return events
        return (*events[:-1], Failed(failure=replace(failure, dialect=None, raw_type=None, code=None)))


class _Known:
    """A stage for bytes whose events are known already."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events

    def feed(self, _chunk: bytes, /) -> Sequence[Event]:
        return self._events

    def close(self) -> Sequence[Event]:
        return ()


async def _once(item: Item) -> AsyncIterator[Item]:
    yield item


def _incomplete(stage: Stage[bytes, Event]) -> bool:
    """Whether the stream lacked its end: then a decoder's `close` says that it failed."""
    return any(type(event) is Failed for event in stage.close())


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _transport_failure(error: TransportError) -> Failure:
    return Failure(kind=_KINDS[error.kind], message=_WORDS[error.kind])


def _not_understood(error: WireError) -> Failure:
    return Failure(kind="upstream", message=f"the upstream's answer was not understood: {error}")
