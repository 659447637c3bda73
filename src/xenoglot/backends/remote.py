"""Another server, in one of the dialects: requests written for it, its answers read, or its bytes passed on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from xenoglot.backends import hops
from xenoglot.backends.backend import ByteAnswer, EventAnswer, Piece, watched
from xenoglot.backends.embedding import EmbeddingAnswer, form_for, understood, written
from xenoglot.backends.fanout import fan_out, shares_of
from xenoglot.backends.redaction import Redactor
from xenoglot.backends.refusal import fit_to_show, has_no_endpoint, not_understood, unreachable
from xenoglot.backends.retry_after import headers_in, retry_after
from xenoglot.backends.stopping import ended, stop_stage, told
from xenoglot.backends.targets import Targets
from xenoglot.backends.transport import TransportError
from xenoglot.backends.urls import endpoint
from xenoglot.backends.verbatim import passed
from xenoglot.codec.addressing import addressed
from xenoglot.codec.custom import UnwrapCustom
from xenoglot.codec.dialect import Target, get
from xenoglot.codec.fitting import fitted
from xenoglot.codec.names import RestoreNames
from xenoglot.codec.stage import Pipeline, through
from xenoglot.codec.wire import decode_answer, encode_json
from xenoglot.errors import FailureError, WireError
from xenoglot.model.events import Failed
from xenoglot.model.failure import Failure
from xenoglot.model.fold import unfold

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from xenoglot.backends.backend import Answer, Call
    from xenoglot.backends.embedding import EmbeddingCall
    from xenoglot.backends.transport import Reply, Transport
    from xenoglot.codec.dialect import Dialect, Headers
    from xenoglot.codec.stage import Stage
    from xenoglot.model.catalog import ModelInfo
    from xenoglot.model.events import Event
    from xenoglot.model.json import JSON
    from xenoglot.model.limits import RateLimits
    from xenoglot.policy.needs import Need

USER_AGENT = "xenoglot"
OK = 200
REFUSED = 400

Item = TypeVar("Item")


class Remote:
    """A server behind a base URL. `headers` are sent with every request, after the dialect's own.

    A call says with which of the `keys` the server is asked; what needs none of them in particular is with the first.
    `authorize` gives the headers that show a key, where they are not those of the dialect.
    """

    def __init__(  # noqa: PLR0913  one argument per setting of an upstream
        self,
        name: str,
        dialect: Dialect,
        base_url: str,
        *,
        transport: Transport,
        keys: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
        target: Target | Targets | None = None,
        authorize: Callable[[str | None], Headers] | None = None,
    ) -> None:
        self.name = name
        self._targets = target if isinstance(target, Targets) else Targets(target or Target())
        self._dialect = dialect
        self._base_url = base_url
        self._transport = transport
        fixed = _lower(headers or {})
        shown = authorize or dialect.authorize
        self._headers = [{"user-agent": USER_AGENT, **dict(shown(key)), **fixed} for key in keys or (None,)]
        self._redact = Redactor((*keys, *fixed.values()))

    async def answer(self, call: Call) -> Answer:
        """Post the request, or each part that the server takes at a time; return the answer as it begins.

        Raises:
            FailureError: the server could not be reached, or it refused.
        """
        fan = self._target(call).fan_out
        if call.request.prompt is not None or fan:
            shares = shares_of(call, texts=not self._dialect.many_texts, candidates=fan)
            if len(shares) > 1:
                return await fan_out(shares, self._answer)
        return await self._answer(call)

    async def _answer(self, call: Call) -> Answer:
        """Answer one request; at stop strings that the server is not told, the answer is ended here."""
        asked = told(call, self._dialect, self._target(call))
        if asked is call:
            return await self._ask(call)
        stage = stop_stage(call.request)
        answer = await self._ask(asked)
        if isinstance(answer, ByteAnswer):
            raise TypeError("a call without a body of its own is answered in events")
        return ended(answer, stage)

    async def _ask(self, call: Call) -> Answer:
        same = passed(call, self._dialect, self._target(call))
        verbatim = same is not None and not (same.renamed and self._restoring(call))
        url, body = (
            self._encoded(call) if same is None else (endpoint(self._base_url, same.path, same.query), same.body)
        )
        framing = self._dialect.framing
        accept = framing.media_type if call.request.stream else "application/json"
        reply = await self._post(url, call, body, accept)
        limits = self._limits(reply)
        streamed = (reply.header("content-type") or "").lower().startswith(framing.media_type)
        if streamed:
            decoder = Pipeline(framing.decoder(), self._dialect.stream_decoder())
            if verbatim and call.request.stream:
                return ByteAnswer(
                    pieces=watched(self._chunks(reply), _Watch(decoder, self._fit_to_show)),
                    aclose=reply.aclose,
                    media_type=framing.media_type,
                    limits=limits,
                )
            return EventAnswer(batches=self._events(reply, decoder, call), aclose=reply.aclose, limits=limits)
        return await self._whole(reply, call, limits, verbatim=verbatim and not call.request.stream)

    async def count(self, call: Call) -> int | None:
        """Return the prompt's tokens by the server's own endpoint; `None` where its dialect or it has none.

        Raises:
            FailureError: it has one, as far as is known, and did not say.
        """
        ask, read = self._dialect.encode_count_request, self._dialect.decode_counted
        if self._dialect.count_path is None or ask is None or read is None:
            return None
        target = self._target(call)
        asked = ask(told(call, self._dialect, target).request, call.losses, target)
        call.losses.settle()
        path, query, body = addressed(asked, self._dialect, counting=True)
        try:
            reply = await self._post(endpoint(self._base_url, path, query), call, encode_json(body), "application/json")
            return read(await self._read_json(reply))
        except WireError:
            return None
        except FailureError as error:
            if has_no_endpoint(error.failure):
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
            raise FailureError(not_understood(error)) from None
        return EmbeddingAnswer(embeddings=made, body=data if verbatim else None, limits=limits)

    async def models(self) -> Sequence[ModelInfo]:
        """Return the server's list of models."""
        url = endpoint(self._base_url, self._dialect.models_path, self._dialect.models_query)
        try:
            headers = [*self._headers[0].items(), ("accept", "application/json"), (hops.HEADER, hops.onward())]
            reply = await self._transport.send("GET", url, headers)
        except TransportError as error:
            raise FailureError(unreachable(error)) from None
        if reply.status != OK:
            raise FailureError(await self._refusal(reply), self._limits(reply))
        body = await self._read_json(reply)
        try:
            return self._dialect.decode_models(body)
        except WireError as error:
            raise FailureError(not_understood(error)) from None

    def continues(self, model: str) -> bool:
        """Return whether the server continues a last turn of the assistant's."""
        return self._targets.of(model).prefill == "native"

    def lacks(self, model: str) -> frozenset[Need]:
        """Return what is said of the server that it cannot do."""
        target = self._targets.of(model)
        said: dict[Need, bool] = {
            "tools": target.tools,
            "images": target.images,
            "structured": target.json_schema != "none",
        }
        return frozenset(need for need, has in said.items() if not has)

    async def aclose(self) -> None:
        """Nothing is held: the transport belongs to whoever made it."""

    def opens_urls(self, model: str) -> bool:
        """Return whether the server fetches pictures by their URLs for `model`."""
        return self._targets.of(model).image_urls

    def _target(self, call: Call) -> Target:
        return self._targets.of(call.request.model)

    def _encoded(self, call: Call) -> tuple[str, bytes]:
        """Return where to post the request, and it as the server's dialect writes it."""
        if call.headers and call.dialect != self._dialect.name:
            for name in sorted({name for name, _ in call.headers} - {*get(call.dialect).marks}):
                call.losses.dropped("$", f"header {name}", f"only {call.dialect} has it")
        target = self._target(call)
        request = fitted(call.request, self._dialect.name, target, call.losses)
        if request.stream:  # the log wants to know, whether the client does or not (pitfall-101)
            request = replace(request, stream_usage=True)
        encoded = self._dialect.encode_request(request, call.losses, target)
        call.losses.settle()
        path, query, body = addressed(encoded, self._dialect)
        return endpoint(self._base_url, path, query), encode_json(body)

    async def _post(self, url: str, call: Call | EmbeddingCall, body: bytes, accept: str) -> Reply:
        headers = {"content-type": "application/json", "accept": accept, **self._headers[call.key]}
        headers[hops.HEADER] = hops.onward()
        if call.dialect == self._dialect.name:
            headers.update(call.headers)
        try:
            reply = await self._transport.send("POST", url, list(headers.items()), body)
        except TransportError as error:
            raise FailureError(unreachable(error)) from None
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
            raise FailureError(not_understood(error)) from None
        if verbatim:
            return ByteAnswer(
                pieces=_once(Piece(data, events)), aclose=reply.aclose, media_type="application/json", limits=limits
            )
        restored = list(through(events, Pipeline(*self._restoring(call))))
        return EventAnswer(batches=_once(restored), aclose=reply.aclose, limits=limits)

    def _restoring(self, call: Call) -> list[Stage[Event, Event]]:
        """Return the stages that give the client back the tools it knows; often none."""
        limit = self._target(call).tool_name_limit or self._dialect.tool_name_limit
        names, custom = RestoreNames(call.request, limit), UnwrapCustom(call.request)
        return [*((names,) if names else ()), *((custom,) if custom else ())]

    async def _chunks(self, reply: Reply) -> AsyncIterator[bytes]:
        try:
            async for chunk in reply:
                yield chunk
        except TransportError as error:
            raise FailureError(unreachable(error)) from None
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
                yield (Failed(failure=unreachable(error)),)
        except WireError as error:
            yield (Failed(failure=not_understood(error)),)
        finally:
            await reply.aclose()

    async def _read(self, reply: Reply) -> bytes:
        try:
            return await reply.read()
        except TransportError as error:
            raise FailureError(unreachable(error)) from None
        finally:
            await reply.aclose()

    async def _read_json(self, reply: Reply) -> JSON:
        return self._parse(await self._read(reply))

    @staticmethod
    def _parse(data: bytes) -> JSON:
        try:
            return decode_answer(data)
        except WireError as error:
            raise FailureError(not_understood(error)) from None

    async def _refusal(self, reply: Reply) -> Failure:
        """Return what a status other than 200 says. No redirect is followed, least of all with our key (U42)."""
        if reply.status < REFUSED:
            await reply.aclose()
            told = f"the upstream gave no answer (status {reply.status})"
            return Failure(kind="upstream", message=told, cause="protocol")
        data = await self._read(reply)
        try:
            body: JSON = decode_answer(data)
        except WireError:
            body = None  # an HTML page of some proxy: nothing in it is for the client
        return self._failure(reply.status, body, reply)

    def _failure(self, status: int, body: JSON, reply: Reply) -> Failure:
        failure = self._fit_to_show(self._dialect.decode_error(status, body))
        headers, now = headers_in(body) | dict(reply.headers), time.time()
        limits = self._dialect.decode_limits(headers, now) if failure.kind == "rate_limit" else None
        return replace(failure, retry_after=retry_after(headers, now, said=failure.retry_after, limits=limits))

    def _fit_to_show(self, failure: Failure) -> Failure:
        return fit_to_show(failure, self._redact)

    def _limits(self, reply: Reply) -> RateLimits | None:
        return self._dialect.decode_limits(dict(reply.headers), time.time())


class _Watch:
    """A stage beside bytes that are passed on: what it says of their failures is fit to be told.

    A failure keeps its `dialect` only where the bytes tell it in words that the client may read.
    """

    def __init__(self, decoder: Stage[bytes, Event], fit: Callable[[Failure], Failure]) -> None:
        self._decoder = decoder
        self._fit = fit
        self._broken = False

    def feed(self, chunk: bytes, /) -> Sequence[Event]:
        return self._shown(self._decoder.feed, chunk)

    def close(self) -> Sequence[Event]:
        return self._shown(self._decoder.close)

    def _shown(self, read: Callable[..., Sequence[Event]], *arguments: bytes) -> Sequence[Event]:
        if self._broken:
            return ()
        try:
            events = read(*arguments)
        except WireError as error:
            self._broken = True
            return (Failed(failure=not_understood(error)),)
        if not events or type(failed := events[-1]) is not Failed:
            return events
        failure = self._fit(failed.failure)
        if failure == failed.failure:
            return events
        return (*events[:-1], Failed(failure=replace(failure, dialect=None, raw_type=None, code=None)))


async def _once(item: Item) -> AsyncIterator[Item]:
    yield item


def _incomplete(stage: Stage[bytes, Event]) -> bool:
    """Whether the stream lacked its end: then a decoder's `close` says that it failed."""
    return any(type(event) is Failed for event in stage.close())


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
