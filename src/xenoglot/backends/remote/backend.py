"""Backend for a server that speaks a dialect: encodes requests, decodes answers, or passes bytes through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from msgspec.structs import replace

from xenoglot.backends.backend import ByteAnswer, EventAnswer, Piece, monitored
from xenoglot.backends.http.client import TransportError
from xenoglot.backends.offload import LARGE, offload
from xenoglot.backends.operation import OperationAnswer, encode_call, upstream_form
from xenoglot.backends.redaction import Redactor
from xenoglot.backends.remote.forward import ForwardedCalls
from xenoglot.backends.remote.operator_messages import UNSET_KEY, OperatorMessages
from xenoglot.backends.remote.passthrough import UpstreamRequest, passthrough_request
from xenoglot.backends.remote.request_heads import JSON_TYPE, RequestHeads
from xenoglot.backends.remote.sign_in.client_credential import MISSING, origin_of
from xenoglot.backends.remote.sign_in.signed_transport import SignedTransport
from xenoglot.backends.remote.upstream_errors import (
    ResponseErrors,
    cause_of,
    has_no_endpoint,
    request_id,
    unreachable,
)
from xenoglot.backends.stream_guard import GuardedReader, PassthroughMonitor
from xenoglot.backends.urls import endpoint
from xenoglot.backends.wrappers.fanout import fan_out, shares_of
from xenoglot.backends.wrappers.stop_strings import stop_answer, stop_stage, supported_stops
from xenoglot.codec.features.forward import FORWARD
from xenoglot.codec.framing.formats import JSON_LINES
from xenoglot.codec.framing.stream_reader import StreamReader
from xenoglot.codec.glob import matches
from xenoglot.codec.json.json_io import MOST_NUMBERS, MOST_VALUES, encode_json, encode_large
from xenoglot.codec.json.slices import count_values
from xenoglot.codec.loss import Losses
from xenoglot.codec.reader import is_placeholder
from xenoglot.codec.requests.adapt_request import check_prompt, fitted
from xenoglot.codec.requests.custom_tools import UnwrapCustom
from xenoglot.codec.requests.names import RestoreNames
from xenoglot.codec.requests.path_template import has_model
from xenoglot.codec.requests.url_params import addressed
from xenoglot.codec.responses.answer_repair import UniqueIds, has_calls, with_finish
from xenoglot.codec.stage import Pipeline, through
from xenoglot.codec.target import Target, Targets
from xenoglot.dialect_registry import get
from xenoglot.errors import FailureError, WireError
from xenoglot.model.fold import Folder, unfold
from xenoglot.policy.cache_marks import with_cache_marks

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence

    from xenoglot.backends.backend import Answer, Call
    from xenoglot.backends.http.client import Transport, UpstreamResponse
    from xenoglot.backends.http.exchange import UpstreamExchange
    from xenoglot.backends.http.http1 import HTTPRequest
    from xenoglot.backends.operation import AnyCall, OperationHandler
    from xenoglot.backends.remote.sign_in.signed_transport import RequestTransport
    from xenoglot.backends.remote.sign_in.strategy import SignIn
    from xenoglot.codec.dialect import Dialect, Headers
    from xenoglot.codec.features.operation import AnyForm, AnyOperation
    from xenoglot.codec.features.stream_usage import StreamUsage, UsageFilter
    from xenoglot.codec.stage import Stage
    from xenoglot.model.catalog import ModelInfo
    from xenoglot.model.events import Event
    from xenoglot.model.limits import RateLimits
    from xenoglot.model.request import Request
    from xenoglot.model.response import Response
    from xenoglot.policy.capabilities import Need

OK = 200


class ExtraDialect(NamedTuple):
    """A further dialect of a server: the backend that calls it so, and for which models; without patterns, for all."""

    dialect: Dialect
    remote: Remote
    models: tuple[str, ...] = ()


Item = TypeVar("Item")


class Remote:
    """A server at a base URL. `headers` are sent with every request, after the dialect's own.

    A call has the index of the key in `keys`; requests of no call use the first.
    `authorize` returns the headers with a key, if they are not those of the dialect. `candid` is whether callers own
    the key: then they get the server's errors about it unchanged. With `socket_path` it is at a unix
    socket. An answer may hold `most_values`, one with embeddings as many numbers as are usual. Clients of a dialect
    that the server `also` speaks are answered in that. It gets those headers of a client's trace that `trace` names.
    `key_source` (`$NAME`) and `no_key` are for messages about a key that is refused or missing. With `marks_prompts`
    prompts without cache marks get some. With `sign_in` requests are signed in by it; it is not closed here.
    With `client_sign_in` each request has the credential of its client, if that is of the server's dialect.
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
        candid: bool = False,
        socket_path: str | None = None,
        most_values: int = MOST_VALUES,
        also: Sequence[ExtraDialect] = (),
        trace: Collection[str] = (),
        key_source: str = "",
        no_key: str = UNSET_KEY,
        marks_prompts: bool = False,
        sign_in: SignIn[Any] | None = None,
        client_sign_in: bool = False,
    ) -> None:
        self.name = name
        self._also = also
        self._marks_prompts = marks_prompts
        self._targets = target if isinstance(target, Targets) else Targets(target or Target())
        self._dialect = dialect
        self._base_url = base_url
        self._url = endpoint(base_url, dialect.path)
        self._client_origin = origin_of(base_url) if client_sign_in else None
        self._waits = sign_in is not None or client_sign_in
        self._signed = None if sign_in is None else SignedTransport(transport, sign_in)
        self._transport: RequestTransport = self._signed or transport
        fixed, shown = headers or {}, authorize or dialect.authorize
        self._trace = frozenset(trace).difference(name.lower() for name in fixed)
        self._heads = RequestHeads([shown(key) for key in keys or (None,)], fixed, socket_path)
        redact = Redactor((*keys, *fixed.values()))
        if sign_in is not None:
            sign_in.redacted_by(redact)
        where = base_url if socket_path is None else f"unix://{socket_path}"
        url = self._url if socket_path is None else where
        messages = OperatorMessages(where, url, redact, key=key_source if keys else None, no_key=no_key)
        self._replies = ResponseErrors(
            dialect,
            redact,
            messages,
            candid=candid,
            most_values=most_values,
            clients_key=client_sign_in,
        )

    async def answer(self, call: Call) -> Answer:
        """Post the request, or each part that the server takes at a time; return the answer as it begins.

        Raises:
            FailureError: the server could not be reached, or it refused.
        """
        if self._also and (native := self._native(call)) is not self:
            return await native.answer(call)
        fan = self._target(call).fan_out
        if call.request.prompt is not None or fan:
            shares = shares_of(call, texts=not self._dialect.many_texts, candidates=fan)
            if len(shares) > 1:
                return await fan_out(shares, self._answer)
        return await self._answer(call)

    def for_dialect(self, dialect: str, model: str) -> Remote:
        """Return the backend that calls `model` for clients of `dialect`: in that dialect, if the server speaks it."""
        spoken = self._extra_dialect(dialect, model)
        return self if spoken is None else spoken.remote

    def _extra_dialect(self, dialect: str, model: str) -> ExtraDialect | None:
        for one in self._also:
            if one.dialect.name == dialect and (not one.models or any(matches(name, model) for name in one.models)):
                return one
        return None

    def _native(self, call: Call) -> Remote:
        """Return who is to answer; one prompt with the beginning of its answer is for a dialect with turns."""
        spoken, turns = self._extra_dialect(call.dialect, call.request.model), call.request.messages
        if spoken is None or (not spoken.dialect.turns and turns and turns[-1].role == "assistant"):
            return self
        return spoken.remote

    async def _answer(self, call: Call) -> Answer:
        """Answer one request; stop strings that the server does not get end the answer here."""
        asked = supported_stops(call, self._dialect, self._target(call))
        if asked is call:
            return await self._send_call(call)
        stage = stop_stage(call.request)
        answer = await self._send_call(asked)
        if isinstance(answer, ByteAnswer):
            raise TypeError("a call without a body of its own is answered in events")
        return stop_answer(answer, stage)

    async def _send_call(self, call: Call) -> Answer:
        asked = await offload(call.size, lambda: self.encode_call(call))
        if call.capture is not None:
            call.capture.upstream_request(asked.body)
            reply = await self._send(asked.url, call, asked.body, asked.accept)
            note = call.capture.upstream_response(reply.header("content-type") or "")
            return await self.read_answer(reply.noted(note), call, asked)
        return await self.read_answer(await self._send(asked.url, call, asked.body, asked.accept), call, asked)

    def encode_call(self, call: Call) -> UpstreamRequest:
        """Return what the server is sent for `call`.

        Raises:
            LossError: something would be lost, and must not be.
            WireError: something cannot be requested from the server at all.
        """
        accept = self._dialect.framing.media_type if call.request.stream else JSON_TYPE
        target, changed = self._target(call), False
        if self._marks_prompts and (self._dialect.marked_caches or target.cache_marks):
            marked = with_cache_marks(call.request, target.cache_minimum)
            changed, call = marked is not call.request, replace(call, request=marked)
        hosted = self._dialect.header_fields is not None
        same = None if hosted else passthrough_request(call, self._dialect, target, changed=changed)
        if same is None:
            return UpstreamRequest(*self._encoded(call, target), accept=accept, verbatim=False)
        verbatim = not (same.renamed and self._restore_stages(call))
        option = self._usage_option(call.request)
        body = same.body if option is None else option.request(same.body)
        url = endpoint(self._base_url, same.path, same.query)
        return UpstreamRequest(url, body, accept, verbatim=verbatim, usage_added=option is not None)

    def accepts_unchanged(self, dialect: Dialect, model: str) -> bool:
        """Return whether what a client of `dialect` asks of `model`, by this name, may be sent as it is."""
        mine = self._dialect
        if self._marks_prompts or dialect.name != mine.name or has_model(mine.path):
            return False
        return self._targets.of(model) == Target()

    def passthrough(self, body: bytes, request: Request) -> UpstreamRequest:
        """Return what the server is sent then for `request`, which is `body`."""
        if not request.stream:
            return UpstreamRequest(self._url, body, JSON_TYPE, verbatim=True)
        option = None if request.stream_usage else self._dialect.stream_usage
        body = body if option is None else option.request(body)
        accept = self._dialect.framing.media_type
        return UpstreamRequest(self._url, body, accept, verbatim=True, usage_added=option is not None)

    def _usage_option(self, request: Request) -> StreamUsage | None:
        """Return how usage is requested where the client did not, and the server accepts that."""
        wanted = request.stream and not request.stream_usage and self._targets.of(request.model).stream_usage
        return self._dialect.stream_usage if wanted else None

    def usage_filter(self, call: Call, asked: UpstreamRequest) -> UsageFilter | None:
        """Return what takes out of a stream's bytes the usage that the client of `call` did not request."""
        option = self._dialect.stream_usage if asked.usage_added else None
        return None if option is None else option.filter(call.losses)

    async def read_answer(self, reply: UpstreamResponse, call: Call, asked: UpstreamRequest) -> Answer:
        """Return the answer to `call` of which `reply` is the beginning.

        Raises:
            FailureError: it is none; or, where it came in one piece, it fails.
        """
        if reply.status != OK:
            raise await self._replies_to(call).refusal(reply, asked.url)
        if not self.streams(reply):
            answer = await self._complete_answer(reply, call, verbatim=asked.verbatim and not call.request.stream)
        elif asked.verbatim and call.request.stream:
            pieces = monitored(self._chunks(reply), self.monitor(), self.usage_filter(call, asked))
            answer = ByteAnswer(pieces=pieces, aclose=reply.aclose, media_type=self._dialect.framing.media_type)
        else:
            reader = self.reader(call)
            answer = EventAnswer(batches=self._events(reply, reader), aclose=reply.aclose, cause=reader.cause)
        answer.limits, answer.request_id = self.limits(reply), request_id(reply)
        return answer

    def is_simple(self, call: Call) -> bool:
        """Return whether the answer to `call` is that to one request, as it comes, which can be sent at once."""
        if self._waits and not self._can_start(call):
            return False
        request, target = call.request, self._target(call)
        return request.prompt is None and not target.fan_out and supported_stops(call, self._dialect, target) is call

    def _can_start(self, call: Call) -> bool:
        """Return whether there is what signs `call` in."""
        if self._client_origin is not None:
            return bool(self._credential(call))
        return self._signed is None or self._signed.sign_in.ready

    def _credential(self, call: Call | AnyCall) -> tuple[tuple[str, str], ...]:
        """Return the header fields of the client's sign-in; none if they are not for this server and its dialect."""
        found = call.credential
        if found is None or found.origin != self._client_origin:
            return ()
        if call.dialect != self._dialect.name and not self._shares_path(call):
            return ()
        return found.headers

    def _shares_path(self, call: Call | AnyCall) -> bool:
        """Return whether a call is forwarded to a path that several dialects of its API have, this one among them."""
        form = getattr(call, "form", None)
        return form is not None and any(known.path == form.path for known in self._dialect.forwarded_paths)

    def streams(self, reply: UpstreamResponse) -> bool:
        """Return whether an answer comes as a stream."""
        return (reply.header("content-type") or "").lower().startswith(self._dialect.framing.media_type)

    def start(self, call: Call, asked: UpstreamRequest) -> UpstreamExchange | None:
        """Send what was composed for `call` over a kept connection, at once; `None` where there is none.

        Raises:
            TransportError: it cannot be sent at all.
        """
        return self._transport.start(self._request(asked.url, call, asked.body, asked.accept))

    async def dial(self, call: Call, asked: UpstreamRequest, stale: UpstreamExchange | None = None) -> UpstreamExchange:
        """Send it over a new connection; instead of the kept one that was `stale`, if there was one.

        Raises:
            TransportError: no connection comes up.
        """
        return await self._transport.begin(self._request(asked.url, call, asked.body, asked.accept), stale)

    def reply(self, exchange: UpstreamExchange) -> UpstreamResponse:
        """Return what was sent back, of which the head is here. Raises `TransportError` where it is none."""
        return self._transport.reply(exchange)

    async def continue_call(self, exchange: UpstreamExchange | None, call: Call, asked: UpstreamRequest) -> Answer:
        """Return the answer to a request that was started; without its `exchange` it is sent again.

        Raises:
            FailureError: as for a request that was started here.
        """
        try:
            if exchange is not None and exchange.head is None and exchange.error is None:
                await exchange.wait()
            if exchange is None or exchange.stale:
                exchange = await self.dial(call, asked, exchange)
                await exchange.wait()
            reply = self.reply(exchange)
            if self._signed is not None:
                request = self._request(asked.url, call, asked.body, asked.accept)
                reply = await self._signed.accepted(reply, request, exchange.credential)
        except TransportError as error:
            raise self._replies.unreachable(error) from cause_of(error)
        return await self.read_answer(reply, call, asked)

    def unreachable(self, error: TransportError) -> FailureError:
        """Return the error of a request to which no whole answer came."""
        return self._replies.unreachable(error)

    def monitor(self) -> PassthroughMonitor:
        """Return what sees the events in a stream's bytes that are passed on."""
        return PassthroughMonitor(self._dialect, self._replies.in_stream)

    def reader(self, call: Call) -> GuardedReader:
        """Return the reader of a stream's bytes as events, for the sender of `call`."""
        restoring = self._restore_stages(call)
        reading = StreamReader(self._dialect.framing, self._dialect.stream_decoder(), UniqueIds(call.request))
        stage = Pipeline(reading, *restoring) if restoring else reading
        return GuardedReader(stage, reading, self._replies.in_stream, call.losses)

    async def count(self, call: Call) -> int | None:
        """Return the prompt's tokens by the server's own endpoint; `None` where its dialect or it has none.

        Raises:
            FailureError: it has a list, as far as known, and did not return it.
        """
        ask, read = self._dialect.encode_count_request, self._dialect.decode_counted
        if self._dialect.count_path is None or ask is None or read is None:
            return None
        target = self._target(call)
        asked = ask(supported_stops(call, self._dialect, target).request, call.losses, target)
        call.losses.settle()
        path, query, body = addressed(asked, self._dialect, counting=True)
        try:
            url = endpoint(self._base_url, path, query)
            reply = await self._post(url, call, encode_json(body), "application/json")
            return read(await self._replies.json(reply, url))
        except WireError:
            return None
        except FailureError as error:
            if has_no_endpoint(error.failure):
                return None
            raise

    def handler(self, operation: AnyOperation) -> OperationHandler | None:
        """Return what calls the server's endpoint for `operation`; `None` if its dialect has none."""
        if operation is FORWARD:
            return self._forwarded_calls() if self._dialect.forwarded_paths else None
        forms = self._dialect.forms(operation.name)
        return self.operate if any(form.calls_upstreams for form in forms) else None

    def _forwarded_calls(self) -> OperationHandler:
        return ForwardedCalls(
            dialect=self._dialect,
            base_url=self._base_url,
            transport=self._transport,
            heads=self._heads,
            errors=self._replies_to,
            trace=self._trace,
            credential=None if self._client_origin is None else self._needed_credential,
        ).forward

    async def operate(self, call: AnyCall) -> OperationAnswer[Any]:
        """Return the result of the server's own endpoint; between the same forms the bytes are passed through.

        Raises:
            FailureError: there is none.
        """
        forms = self._dialect.forms(call.form.operation.name)
        form, verbatim = upstream_form(call, forms, self._targets.of(call.request.model))
        path, body = await offload(len(call.body), lambda: encode_call(call, form, verbatim=verbatim))
        reply = await self._post(endpoint(self._base_url, path), call, body, JSON_TYPE)
        data, limits = await self._replies.body(reply), self.limits(reply)
        made = await offload(len(data), lambda: self._result(data, reply, call, form, verbatim=verbatim))
        return OperationAnswer(result=made, body=data if verbatim else None, limits=limits)

    def _result(self, data: bytes, reply: UpstreamResponse, call: AnyCall, form: AnyForm, *, verbatim: bool) -> Any:  # noqa: ANN401  the result of any operation
        """Return the result in a body; if it is passed through and nothing in it is unusual, only what is logged."""
        glimpse = (
            form.glimpse if verbatim and call.bytes_pass and count_values(data, MOST_NUMBERS) <= MOST_NUMBERS else None
        )
        seen = None if glimpse is None else glimpse(data)
        if seen is not None:
            return seen
        answer = self._replies.parsed(data, reply, most=MOST_NUMBERS)
        if isinstance(answer, dict) and answer.get("error") is not None:
            raise self._replies.failure(answer, reply, data)
        try:
            result = form.decode_response(answer)
            if not verbatim:
                form.operation.check(call.request, result)
        except WireError as error:
            raise self._replies.unreadable(error, data, reply) from error
        return result

    async def models(self) -> Sequence[ModelInfo]:
        """Return the server's list of models."""
        if self._client_origin is not None:
            return ()  # there is no client whose credential could be sent
        url = endpoint(self._base_url, self._dialect.models_path, self._dialect.models_query)
        try:
            reply = await self._transport.send_prepared(self._heads.get(url).request())
        except TransportError as error:
            raise self._replies.unreachable(error) from cause_of(error)
        if reply.status != OK:
            raise await self._replies.refusal(reply, url)
        data = await self._replies.body(reply)
        body = self._replies.parsed(data, reply, url)
        try:
            return self._dialect.decode_models(body)
        except WireError as error:
            raise self._replies.unreadable(error, data, reply, url) from error

    def compacts(self, dialect: str, model: str) -> str | None:
        """Return the dialect in which the server compacts for clients of `dialect`; `None` if it does not."""
        remote = self.for_dialect(dialect, model)
        return remote._dialect.name if remote._targets.of(model).compaction else None  # noqa: SLF001  of this class

    def continues(self, model: str) -> bool:
        """Return whether the server continues a last turn of the assistant's."""
        return self._targets.of(model).prefill == "native"

    def missing_capabilities(self, model: str) -> frozenset[Need]:
        """Return the capabilities that the server does not have."""
        target = self._targets.of(model)
        said: dict[Need, bool] = {
            "tools": target.tools,
            "images": target.images,
            "structured": target.json_schema != "none",
        }
        return frozenset(need for need, has in said.items() if not has)

    async def aclose(self) -> None:
        """Do nothing: the transport belongs to its owner."""

    def opens_urls(self, model: str) -> bool:
        """Return whether the server fetches images by their URLs for `model`."""
        return self._targets.of(model).image_urls

    def _target(self, call: Call) -> Target:
        return self._targets.of(call.request.model)

    def _encoded(self, call: Call, target: Target) -> tuple[str, bytes]:
        """Return where to post the request, and it as the server's dialect writes it."""
        if call.headers and call.dialect != self._dialect.name:
            for name in sorted({name for name, _ in call.headers} - {*get(call.dialect).marks}):
                call.losses.dropped("$", f"header {name}", f"only {call.dialect} has it")
        request = fitted(call.request, self._dialect.name, target, call.losses, self._dialect.hosted_tools)
        if request.stream:  # the log wants to know, whether the client does or not (pitfall-101)
            request = replace(request, stream_usage=True)
        encoded = self._dialect.encode_request(request, call.losses, target)
        if self._dialect.header_fields is not None and call.dialect == self._dialect.name:
            encoded |= self._dialect.header_fields.fields(call.headers)
        if target.body_fields:
            encoded |= target.body_fields
        if len(call.losses):
            check_prompt(request, call.losses)
        call.losses.settle()
        path, query, body = addressed(encoded, self._dialect)
        return endpoint(self._base_url, path, query), (encode_json if call.size < LARGE else encode_large)(body)

    async def _post(self, url: str, call: Call | AnyCall, body: bytes, accept: str) -> UpstreamResponse:
        reply = await self._send(url, call, body, accept)
        if reply.status != OK:
            raise await self._replies_to(call).refusal(reply, url)
        return reply

    def _replies_to(self, call: Call | AnyCall) -> ResponseErrors:
        """Return what reads the errors of the server; it does not repeat the credential of the client."""
        if self._client_origin is None or call.credential is None:
            return self._replies
        return self._replies.without(call.credential.secrets)

    async def _send(self, url: str, call: Call | AnyCall, body: bytes, accept: str) -> UpstreamResponse:
        try:
            return await self._transport.send_prepared(self._request(url, call, body, accept))
        except TransportError as error:
            raise self._replies.unreachable(error) from cause_of(error)

    def _request(self, url: str, call: Call | AnyCall, body: bytes, accept: str) -> HTTPRequest:
        same = call.dialect == self._dialect.name and self._dialect.header_fields is None
        head = self._heads.post(url, call.key, accept, call.headers if same else ())
        if call.trace and (trace := [field for field in call.trace if field[0] in self._trace]):
            head = head.with_fields(trace)
        if self._client_origin is not None:
            head = head.with_fields(self._needed_credential(call))
        return head.request(body)

    def _needed_credential(self, call: Call | AnyCall) -> tuple[tuple[str, str], ...]:
        """Return the same. Raises `FailureError` where there is none."""
        fields = self._credential(call)
        if not fields:
            raise FailureError(MISSING)
        return fields

    async def _complete_answer(self, reply: UpstreamResponse, call: Call, *, verbatim: bool) -> Answer:
        """Return an answer that came in one piece."""
        data = await self._replies.body(reply)

        lined = call.request.stream and self._dialect.framing is JSON_LINES

        def events() -> tuple[Event, ...]:
            if lined and self._replies.is_lines(data):  # a stream that its content type does not name
                reader = self.reader(call)
                read = reader.feed(data)
                return tuple(read) if reader.failed else (*read, *reader.close())
            response = self.decode_body(data, reply, Losses() if verbatim else call.losses)
            return tuple(unfold(response if verbatim else self.restore_tools(response, call)))

        supported_stops = await offload(len(data), events)
        if verbatim:
            return ByteAnswer(pieces=_once(Piece(data, supported_stops)), aclose=reply.aclose, media_type=JSON_TYPE)
        return EventAnswer(batches=_once(supported_stops), aclose=reply.aclose)

    def decode_body(self, data: bytes, reply: UpstreamResponse, losses: Losses) -> Response:
        """Return the complete answer in the body `data`; a missing finish reason is recorded in `losses`.

        Raises:
            FailureError: it is none, or empty.
        """
        body = self._replies.parsed(data, reply)
        if isinstance(body, dict) and (error := body.get("error")) is not None and not is_placeholder(error):
            raise self._replies.failure(body, reply, data)
        try:
            response = self._dialect.decode_response(body)
        except WireError as error:
            raise self._replies.unreadable(error, data, reply) from error
        return with_finish(response, losses, unfinished=self._dialect.tells_unfinished)

    def restore_tools(self, response: Response, call: Call) -> Response:
        """Return an answer with the tools called as the client calls them, each call with an id of its own."""
        if not has_calls(response):  # most answers
            return response
        response = UniqueIds(call.request).response(response)
        restoring = self._restore_stages(call)
        if not restoring:
            return response
        folder = Folder()
        for event in through(unfold(response), Pipeline(*restoring)):
            folder.feed(event)
        return folder.response()

    def _restore_stages(self, call: Call) -> list[Stage[Event, Event]]:
        """Return the stages that give the client back the tools it knows; often none."""
        if not call.request.tools:
            return []
        limit = self._target(call).tool_name_limit or self._dialect.tool_name_limit
        names, custom = RestoreNames(call.request, limit), UnwrapCustom(call.request)
        return [*((names,) if names else ()), *((custom,) if custom else ())]

    async def _chunks(self, reply: UpstreamResponse) -> AsyncIterator[bytes]:
        try:
            async for chunk in reply:
                yield chunk
        except TransportError as error:
            raise FailureError(unreachable(error)) from cause_of(error)
        finally:
            await reply.aclose()

    async def _events(self, reply: UpstreamResponse, reader: GuardedReader) -> AsyncIterator[Sequence[Event]]:
        try:
            async for chunk in reply:
                if events := await reader.read(chunk):
                    yield events
                    if reader.failed:
                        return
            if events := reader.close():
                yield events
        except TransportError as error:
            if events := reader.connection_lost(error):
                yield events
        finally:
            await reply.aclose()

    def limits(self, reply: UpstreamResponse) -> RateLimits | None:
        """Return the rate limits that the server reported."""
        return self._replies.limits(reply)


async def _once(item: Item) -> AsyncIterator[Item]:
    yield item
