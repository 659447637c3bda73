"""What stands between a request and its targets: hooks of the operator, the cache of answers, captures.

A request that they concern is served in a task, and its answer is translated, also between equal dialects, if a hook
looks at answers. Hooks see a request before it is looked up in the cache, and cached answers too.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Final, Protocol

from msgspec.structs import replace

from xenoglot.errors import FailureError
from xenoglot.gateway.cache.answer_cache import AnswerCache, CachedAnswer, cached_from, replayed
from xenoglot.gateway.cache.cache_key import AnswerSource
from xenoglot.gateway.cache.memory_store import CacheStore, MemoryStore
from xenoglot.gateway.ledger.capture import Captures
from xenoglot.model.failure import Failure
from xenoglot.model.response import Usage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from xenoglot.backends.backend import Answer
    from xenoglot.backends.remote.sign_in.client_credential import ClientCredential
    from xenoglot.codec.dialect import Dialect
    from xenoglot.codec.loss import Losses
    from xenoglot.gateway.auth.keys import Principal
    from xenoglot.gateway.config.load import Config
    from xenoglot.gateway.http.application import Exchange
    from xenoglot.gateway.observability.request_log import RequestLog
    from xenoglot.gateway.routing.router import RoutePlan
    from xenoglot.hooks.runner import Hooks, RequestHooks
    from xenoglot.model.request import Request

NO_USAGE: Final = Usage(input_tokens=0, output_tokens=0)

NOT_CACHED = Failure(
    kind="timeout",
    message="no cached answer: the request has `cache-control: only-if-cached`, and its answer is not cached",
    non_retryable=True,
)


class InterceptedCall(Protocol):
    """A call, as interceptors see it."""

    plan: RoutePlan
    dialect: Dialect
    headers: Sequence[tuple[str, str]]
    passed: tuple[tuple[str, str], ...]
    record: RequestLog
    request: Request
    size: int
    losses: Losses
    credential: ClientCredential | None
    """The client's own sign-in, where a target wants it."""

    def change(self, request: Request) -> None:
        """Send `request` in place of the client's."""
        ...


class Interceptors:
    """Change requests and answers by `hooks`, answer requests from a `cache`, and make `captures` of them."""

    def __init__(self, hooks: Hooks | None, cache: AnswerCache | None = None, captures: Captures | None = None) -> None:
        self._hooks = hooks
        self._cache = cache
        self._captures = captures

    def concern(self, client: Principal, model: str) -> bool:
        """Return whether any of them is for requests of `client` for `model`, as it names it."""
        hooks, cache, captures = self._hooks, self._cache, self._captures
        return (
            (hooks is not None and hooks.concern(model))
            or (cache is not None and cache.concerns(model))
            or (captures is not None and captures.concern(client, model))
        )

    def capture(self, record: RequestLog, body: bytes, exchange: Exchange) -> Exchange:
        """Return the exchange in which a request is answered: one that captures it, if it is chosen."""
        return exchange if self._captures is None else self._captures.capture(record, body, exchange)

    async def answer(self, call: InterceptedCall, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """Return the answer to `call`: a cached one, or what `ask` gives as it begins.

        Raises:
            FailureError: a hook rejects the request, or fails; or there is no answer.
        """
        if self._hooks is None:
            return await self._answer(call, ask)
        hooks = self._of_request(self._hooks, call.record, call.dialect, call.request)
        changed = await hooks.before(call.request)
        if changed is not call.request:
            call.change(changed)
        return hooks.answer(await self._answer(call, ask))

    async def _answer(self, call: InterceptedCall, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        cache, record = self._cache, call.record
        if cache is None or record.answer_id is not None:  # an answer that is stored has an id of its own
            return await ask()
        if call.credential is not None:  # another login behind the same key of the gateway may not see this answer
            return await ask()
        asked = AnswerSource(record.client.owner, call.dialect.name, call.passed, call.plan, call.request)
        place = await cache.place(asked, call.headers, call.size)
        if place is None:
            return await ask()
        found = await cache.find(place)
        if found is not None:
            return _hit(call, found, cache.age(found))
        if place.control.only:
            raise FailureError(NOT_CACHED)
        record.cache, plan = "miss", call.plan
        answer = await ask()
        if record.local or call.plan is not plan:  # a budget had another model answer
            return answer
        lost = tuple(call.losses)  # by the request; what the answer loses is seen again
        return cache.recorded(answer, place, lambda: cached_from(record.backend or "", record.target or "", lost))

    async def before(self, record: RequestLog, dialect: Dialect, request: Request) -> Request:
        """Return a request whose tokens are to be counted, as the hooks change it.

        Raises:
            FailureError: a hook rejects it, or fails.
        """
        if self._hooks is None:
            return request
        return await self._of_request(self._hooks, record, dialect, request).before(request)

    def _of_request(self, hooks: Hooks, record: RequestLog, dialect: Dialect, request: Request) -> RequestHooks:
        """Return the hooks of a request; the tags that they set are in its `record`."""
        from xenoglot.hooks.hook import HookContext  # noqa: PLC0415  most gateways have no hooks

        record.tags = tags = dict(record.tags or {})
        return hooks.of_request(
            HookContext(
                request_id=record.request_id,
                dialect=dialect.name,
                model=request.model,
                stream=request.stream,
                tenant=record.client.tenant,
                key=record.client.key,
                tags=tags,
            )
        )

    async def aclose(self) -> None:
        """Release what they hold."""
        if self._hooks is not None:
            await self._hooks.aclose()


def _hit(call: InterceptedCall, found: CachedAnswer, age: float) -> Answer:
    """Return a cached answer. Its usage is that of the call that made it; the ledger records that it used nothing.

    Raises:
        LossError: its request lost something, and there may be no loss.
    """
    call.losses.extend(found.losses)
    call.losses.settle()
    record = call.record
    record.answered_from_cache(found.upstream, found.target, age)
    answer = replayed(found)
    close = answer.aclose

    async def aclose() -> None:
        record.usage = NO_USAGE
        await close()

    return replace(answer, aclose=aclose)


def interceptors_of(config: Config, store: CacheStore | None = None) -> Interceptors | None:
    """Return the interceptors of a configuration, `None` if it has none. Modules of hooks are imported.

    Answers are cached in `store`, without one in memory.

    Raises:
        ConfigurationError: a hook cannot be loaded.
    """
    hooks, settings = None, config.cache_settings
    if config.hooks:
        from xenoglot.hooks.load import load_hooks  # noqa: PLC0415  most gateways have no hooks
        from xenoglot.hooks.runner import Hooks  # noqa: PLC0415  as above

        hooks = Hooks(load_hooks(config.hooks))
    cache = captures = None
    if settings is not None:
        store = store or MemoryStore(settings.max_bytes, time.monotonic)
        cache = AnswerCache(store, settings, config.upstreams, time.time)
    if config.capture_settings is not None:
        captures = Captures(config.capture_settings, random.random)
    return Interceptors(hooks, cache, captures) if hooks or cache or captures else None
