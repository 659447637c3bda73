"""Execution of a call: build the request, send it with retries, and build the reply."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar, get_args

from xenoglot.backends.backend import Call
from xenoglot.backends.http.timeouts import Deadlines
from xenoglot.backends.operation import need_handler
from xenoglot.client.call.attempt import begin, begin_events
from xenoglot.client.call.operation import form_in, operation_call
from xenoglot.client.call.options import build_request, headers_of, timeout_of
from xenoglot.client.call.raw import RawSource, complete_response, raw_request
from xenoglot.client.call.retry import deadline_after, invalid_request_errors, wait_until
from xenoglot.client.call.validate_request import find_invalid_field
from xenoglot.client.results.result import OperationReply, Reply
from xenoglot.codec.loss import Losses
from xenoglot.errors import ConfigurationError
from xenoglot.model.fold import Folder
from xenoglot.providers.costs import Prices

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from xenoglot.backends.backend import Backend
    from xenoglot.client.call.attempt import StartedAnswer
    from xenoglot.client.call.messages import Messages
    from xenoglot.client.call.operation import MakeRequest
    from xenoglot.client.call.options import CallRequest, Options
    from xenoglot.client.call.raw import RawRequest
    from xenoglot.client.call.retry import RetryLoop
    from xenoglot.client.call.upstream_connection import ClientUpstream
    from xenoglot.codec.loss import Loss
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.response import Response, Usage
    from xenoglot.providers.costs import Cost

OnLoss: TypeAlias = Literal["ignore", "warn", "refuse"]
Timeout: TypeAlias = float | Deadlines | None
"""Total seconds of a call, or all four deadlines; `None`: those of the client."""

T = TypeVar("T")

_logger = logging.getLogger("xenoglot.client")


class RawCall(NamedTuple):
    """A request in a dialect's own JSON, with its options."""

    body: Mapping[str, JSON] | bytes
    dialect: str
    headers: Mapping[str, str] | None
    timeout: Timeout


class CallExecutor:
    """Executes all kinds of calls to one upstream."""

    def __init__(self, connection: ClientUpstream, tries: RetryLoop, on_loss: OnLoss, prices: Prices | None) -> None:
        if on_loss not in get_args(OnLoss):
            raise ConfigurationError(f"`on_loss`: found `{on_loss}`; expected one of: {', '.join(get_args(OnLoss))}")
        self.connection = connection
        self.tries = tries
        self._on_loss = on_loss
        self._prices = prices if prices is not None or connection.provider is None else Prices()
        self._listed = False

    async def build_request(self, messages: Messages, options: Options, *, stream: bool) -> CallRequest:
        """Return the request. Raises `InvalidRequestError` if the arguments are not valid."""
        connection = self.connection
        backend = await connection.backend()
        with invalid_request_errors():
            named = options.get("model") or getattr(messages, "model", None)
            model = connection.model(named, backend)
            return build_request(messages, options, model=model, dialect=connection.dialect, stream=stream)

    async def complete(self, asked: CallRequest) -> Reply:
        """Return the complete answer."""

        async def attempt() -> Reply:
            folder = Folder()
            async with aclosing(await self._begin_once(asked)) as begun:
                async for batch in begun.batches():
                    for event in batch:
                        folder.feed(event)
            return await self.reply(begun, folder.response())

        return await self._with_retries(attempt, asked.timeout)

    async def begin(self, asked: CallRequest) -> StartedAnswer:
        """Return the answer once it has started."""
        return await self.tries.run(lambda: self._begin_once(asked))

    async def reply(self, begun: StartedAnswer, response: Response) -> Reply:
        """Return the reply for a complete answer."""
        if self._prices is not None and not self._listed:
            await asyncio.to_thread(self._prices.load)  # it takes a third of a second
            self._listed = True
        answer = begun.answer
        return Reply(
            response=response,
            losses=self._report_losses(begun.call.losses),
            request_id=answer.request_id,
            limits=answer.limits,
            cost=self.cost(response.usage, response.model or begun.call.request.model, response.service_tier),
        )

    async def count(self, asked: CallRequest) -> int | None:
        """Return the tokens of the prompt."""

        async def attempt() -> int | None:
            backend = await self._backend_for(asked.request.model, asked.timeout)
            with find_invalid_field(asked.request):
                return await backend.count(self._call(asked))

        return await self._with_retries(attempt, asked.timeout)

    async def operate(
        self,
        operation: str,
        model: str | None,
        request: MakeRequest,
        headers: Mapping[str, str] | None,
        timeout: Timeout,  # noqa: ASYNC109  an option like those of the other calls
    ) -> OperationReply[Any]:
        """Return the result of the operation with this name."""
        connection = self.connection
        backend = await connection.backend()
        with invalid_request_errors():
            asked = request(connection.model(model, backend))
            sent = headers_of(headers)

        async def attempt() -> OperationReply[Any]:
            backend = await connection.with_deadlines(timeout if isinstance(timeout, Deadlines) else None)
            form, losses = form_in(connection.dialect, operation), self._losses()
            handler = need_handler(backend, form.operation, backend.name)
            answer = await handler(operation_call(form, asked, connection.dialect, losses, sent))
            usage = form.operation.usage(answer.result)
            return OperationReply(
                result=answer.result,
                usage=usage,
                losses=self._report_losses(losses),
                limits=answer.limits,
                cost=self.cost(usage, getattr(answer.result, "model", None) or asked.model),
            )

        return await self._with_retries(attempt, timeout)

    async def raw(self, asked: RawCall) -> JSONObject:
        """Return the complete answer in the dialect of the request."""

        async def attempt() -> JSONObject:
            backend, call, read = await self._post_once(asked, stream=False)
            answer = await complete_response(backend, call, read.dialect)
            self._report_losses(call.losses)
            return answer

        return await self._with_retries(attempt, asked.timeout)

    async def raw_begin(self, asked: RawCall) -> RawSource:
        """Return the same as a stream, once it has started."""

        async def attempt() -> RawSource:
            backend, call, read = await self._post_once(asked, stream=True)
            return RawSource(await begin(backend, call), read.dialect)

        return await self.tries.run(attempt)

    def cost(self, usage: Usage | None, model: str | None, tier: str | None = None) -> Cost | None:
        """Return the cost of `usage`; `None` if no price is known."""
        if self._prices is None:
            return None
        return self._prices.cost(usage, model, provider=self.connection.provider, service_tier=tier)

    async def _with_retries(self, attempt: Callable[[], Awaitable[T]], timeout: Timeout) -> T:  # noqa: ASYNC109  as above
        return await wait_until(deadline_after(seconds(timeout)), self.tries.run(attempt))

    async def _begin_once(self, asked: CallRequest) -> StartedAnswer:
        backend = await self._backend_for(asked.request.model, asked.timeout)
        with find_invalid_field(asked.request):
            return await begin_events(backend, self._call(asked))

    async def _post_once(self, asked: RawCall, *, stream: bool) -> tuple[Backend, Call, RawRequest]:
        opened = await self.connection.backend()
        read = raw_request(asked.body, asked.dialect, model=lambda: self.connection.model(None, opened), stream=stream)
        call = Call(
            request=read.request,
            losses=self._losses(),
            dialect=read.dialect.name,
            body=read.body,
            headers=headers_of(asked.headers),
        )
        return await self._backend_for(read.request.model, asked.timeout), call, read

    async def _backend_for(self, model: str, timeout: Timeout) -> Backend:  # noqa: ASYNC109  as above
        return await self.connection.backend_for(model, timeout if isinstance(timeout, Deadlines) else None)

    def _call(self, asked: CallRequest) -> Call:
        dialect = self.connection.dialect
        return Call(request=asked.request, losses=self._losses(), dialect=dialect, headers=asked.headers)

    def _losses(self) -> Losses:
        return Losses(strict=self._on_loss == "refuse")

    def _report_losses(self, losses: Losses) -> tuple[Loss, ...]:
        """Return the losses; log them with `on_loss="warn"`."""
        found = tuple(losses)
        if found and self._on_loss == "warn":
            _logger.warning("not supported by the upstream: %s", "; ".join(map(str, found)))
        return found


def seconds(timeout: Timeout) -> float | None:
    """Return the total seconds that a call may take. Raises `InvalidRequestError` for an invalid value."""
    with invalid_request_errors():
        found = timeout_of(timeout)
    return found.total if isinstance(found, Deadlines) else found
