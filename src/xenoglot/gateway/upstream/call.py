"""One generation request and its candidate targets: backends selected, requests re-encoded for each attempt."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from xenoglot import dialect_registry as dialects
from xenoglot.backends.backend import Call, EventAnswer, LimitedBackend, ResumableBackend
from xenoglot.backends.offload import LARGE, offload
from xenoglot.backends.remote.sign_in.client_credential import ClientCredential
from xenoglot.backends.scripted import Scripted
from xenoglot.codec.dialect import Dialect
from xenoglot.codec.loss import Losses
from xenoglot.codec.requests.hosted_tools import hosted_kinds
from xenoglot.codec.responses.reasoning import ReasoningFilter, reasoning_filter
from xenoglot.errors import FailureError
from xenoglot.gateway.config.provider_defaults import targets_of
from xenoglot.gateway.ledger.client_context import note_client
from xenoglot.gateway.ledger.complete_usage import BYTES_PER_TOKEN, complete_usage
from xenoglot.gateway.limits.limiter import expected_tokens
from xenoglot.gateway.observability.request_log import RequestLog
from xenoglot.gateway.routing.dispatch import Dispatch, fitting, group_of, ordered
from xenoglot.gateway.routing.reservation import Demand
from xenoglot.gateway.routing.router import RoutePlan, apply_caps, apply_defaults
from xenoglot.gateway.upstream.compaction import compacting
from xenoglot.gateway.upstream.first_event import begun, gathered
from xenoglot.gateway.upstream.midstream_failover import SentAnswer, begun_request, continued
from xenoglot.gateway.upstream.preserve_reasoning import preserving
from xenoglot.gateway.upstream.services import UpstreamServices, reading
from xenoglot.model.content import HostedKind, Text
from xenoglot.model.fold import unfold
from xenoglot.model.request import Request
from xenoglot.model.response import Candidate, Finish, Response, Usage
from xenoglot.policy.context_edits import NO_COST, CompactionCost, compaction_cost
from xenoglot.policy.local_answers import local_answer
from xenoglot.policy.token_estimate import estimate
from xenoglot.text.registry import OFF

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from xenoglot.backends.backend import Answer, Backend
    from xenoglot.gateway.media.inline_files import InlineFiles
    from xenoglot.gateway.observability.request_log import RequestCost
    from xenoglot.gateway.routing.reservation import Reservation
    from xenoglot.gateway.routing.router import Route
    from xenoglot.model.events import Event
    from xenoglot.model.failure import Failure
    from xenoglot.policy.capabilities import Need
    from xenoglot.policy.limits.money_budget import BudgetDecision
    from xenoglot.policy.local_answers import LocalAnswer


COMPLETION = "text_completion"
"""The operation of a request with a prompt in place of messages, by its name in the conventions of OpenTelemetry."""


def answering(services: UpstreamServices, route: Route, dialect: Dialect, request: Request, owner: str) -> Backend:
    """Return who answers a `request` of `owner`'s, a client of `dialect`."""
    answer = _at_once(services, route, dialect, request)
    if answer is not None:
        return Scripted(answer, name=route.backend)
    backend = preserving(services, route, dialect.name, owner)
    context = request.context_management
    return backend if context is None or not context.acts else compacting(backend, services, route, dialect.name)


def _at_once(services: UpstreamServices, route: Route, dialect: Dialect, request: Request) -> Response | None:
    """Return the answer that needs no model; a server that knows such requests handles them itself."""
    if dialect.answer_at_once is None:
        return None
    upstream = services.models.upstream(route)
    if upstream is not None and (
        upstream.speaks(dialect.name, route.model)
        or dialects.get(upstream.dialect).answer_at_once is dialect.answer_at_once
    ):
        return None
    return dialect.answer_at_once(request)


class UpstreamCall(Struct):
    """One request of a client of `dialect`, who sent `headers`, and the targets of its `plan`.

    `body` is what the client wrote, where a server of the same dialect may have it untouched. What is lost in the
    translation for the target that answers is in `losses`; what other targets would have lost is not. `passed` are
    those of the headers that a server of the dialect may see. `size` is that of what the client wrote, `credential` the
    client's own sign-in, for the host of the first target that wants it.
    """

    services: UpstreamServices
    plan: RoutePlan
    dialect: Dialect
    headers: Sequence[tuple[str, str]]
    passed: tuple[tuple[str, str], ...]
    record: RequestLog
    request: Request
    body: bytes | None
    size: int = 0
    losses: Losses = Losses()
    credential: ClientCredential | None = None
    _said: SentAnswer | None = None
    _kept_losses: int = 0
    _estimated: int | None = None

    def __post_init__(self) -> None:
        """Begin to note losses."""
        self.losses = Losses(strict=self.plan.route.on_loss == "refuse")
        if self.credential is not None:
            self.credential = bound_credential(self.services, self.plan, self.credential)
        self.record.losses = () if self.plan.route.on_loss == "ignore" else self.losses
        if self.record.spans is not None and self.request.prompt is not None:
            self.record.operation = COMPLETION
        if self.services.ledger is not None:
            note_client(self.record, self.request, self.headers)

    @property
    def model(self) -> str:
        """The model's name at the first target."""
        return self.plan.routes[0].model

    @property
    def alone(self) -> bool:
        """Whether there is one target that can answer, and no other."""
        return len(self.plan.routes) == 1

    def change(self, request: Request) -> None:
        """Send `request` in place of the client's; its answer is still encoded for what the client requested.

        What was lost until now is lost at every target.
        """
        self.request, self.body, self._estimated = request, None, None
        self._kept_losses = len(self.losses)

    def reasoning_filter(self) -> ReasoningFilter | None:
        """Return what removes the reasoning that the client did not ask for; `None` where all of it is returned.

        Between equal dialects the upstream decides: bytes may pass untouched there, so events are not filtered either.
        """
        settings = self.services.clients.get(self.dialect.name)
        wish = None if settings is None else settings.reasoning
        if wish == "always":
            return None
        if wish != "never" and reasoning_filter(self.dialect, self.request, self.losses) is None:
            return None
        return ReasoningFilter(self.losses, self._translates)

    def _translates(self) -> bool:
        """Whether the answer of the current target is not in the client's dialect, or is read from text."""
        upstream = self.services.models.upstreams.get(self.record.backend or "")
        if upstream is None or not upstream.speaks(self.dialect.name, self.record.target or ""):
            return True
        target = (self.record.backend, self.record.target)
        routes = [route for route in self.plan.routes if (route.backend, route.model) == target]
        return any(route.text_syntax != OFF or route.emulate.tools for route in routes)

    def prompt_tokens(self) -> int:
        """Return about how many tokens the prompt is."""
        if self._estimated is None:
            self._estimated = estimate(self.request)
        return self._estimated

    def settle_usage(self) -> None:
        """Estimate what was not reported of the usage; the answer is over."""
        if self._estimated is None and self.size >= LARGE:
            self._estimated = self.size // BYTES_PER_TOKEN
        complete_usage(self.record, self.prompt_tokens)

    def tokens(self) -> int:
        """Return what the request is expected to cost."""
        expected = expected_tokens(self.request, self.prompt_tokens(), self.services.dispatcher.scopes.output_tokens)
        if self.request.context_management is None:
            return expected
        more = self._compaction()
        return expected + more.prompt + more.output

    def _compaction(self) -> CompactionCost:
        """Return what a compaction adds to the request."""
        context = self.request.context_management
        return NO_COST if context is None else compaction_cost(context, self.prompt_tokens())

    async def _measure(self) -> None:
        """Estimate the prompt of a large request in a thread, where its tokens decide who answers or are limited."""
        plan, scopes = self.plan, self.services.dispatcher.scopes
        if self._estimated is not None or self.size < LARGE:
            return
        if any(route.when.counts or scopes.of_upstream(route.backend) for route in plan.routes) or scopes.of_request(
            plan.name, self.record.client
        ):
            self._estimated = await offload(self.size, lambda: estimate(self.request))

    async def _afford(self) -> None:
        """Reserve what the request may cost; where a budget wants that, it goes to other targets.

        Raises:
            FailureError: a budget refuses it.
        """
        budgets = self.services.budgets
        if budgets is None:
            return
        if self._estimated is None and self.size >= LARGE:
            self._estimated = await offload(self.size, lambda: estimate(self.request))
        decision = await budgets.reserve(self.record, self._costs())
        if decision is not None and decision.route:
            cheaper = self.services.models.router.plan(decision.route)
            if cheaper is not None:
                routes = tuple(replace(route, substituted=True) for route in cheaper.routes)
                self.plan, self.body = replace(cheaper, routes=routes), None
            decision = await budgets.reserve(self.record, self._costs(), routes=False)
        self._close(decision)

    def _close(self, decision: BudgetDecision | None) -> None:
        """Leave out the targets to which a budget allows no request."""
        if decision is not None and decision.closed:
            routes = tuple(route for route in self.plan.routes if route.backend not in decision.closed)
            self.plan = replace(self.plan, routes=routes)

    def _costs(self) -> list[tuple[str, RequestCost | None]]:
        """Return what the request may cost at each of its targets."""
        more = self._compaction()
        prompt = self.prompt_tokens() + more.prompt
        return route_costs(self.services, self.plan, prompt, lambda route: self._most_output(route) + more.output)

    def _most_output(self, route: Route) -> int:
        """Return how many tokens the answer of a target may have."""
        sampling = apply_defaults(self.request, route).sampling
        most = sampling.max_tokens
        if most is None:
            most = self.services.dispatcher.scopes.output_tokens
        if route.caps.max_tokens is not None:
            most = min(most, route.caps.max_tokens)
        return most * (sampling.n or 1)

    async def answer(
        self, hold: Reservation | None = None, begun: Callable[[], Awaitable[Answer]] | None = None, waited: float = 0.0
    ) -> Answer:
        """Return the answer as it begins, as interceptors leave it; closing it gives back all that the request held.

        Where a target is called already, `hold` is its reservation, and `begun` gives what it has answered
        after it was `waited` for so many seconds, and what is waited from now on.

        Raises:
            FailureError: no target answers.
            LossError: no target can be called without a loss, and none is allowed.
            WireError: the target's dialect refuses what the request asks.
        """
        interceptors = self.services.interceptors
        if hold is not None:
            return await self._answer(hold, begun, waited)
        if self.services.files is not None:
            await self._inline(self.services.files)
        ask = self._answer if self.services.tool_execution is None else self._executed
        return await (ask() if interceptors is None else interceptors.answer(self, ask))

    async def _executed(self) -> Answer:
        """Return the answer; tools of the request are executed here where not all of its targets run them."""
        execution = self.services.tool_execution
        kinds = frozenset[HostedKind]() if execution is None else execution.kinds(self.request)
        if execution is None or not (kinds := kinds - self._hosted()):
            return await self._answer()
        return await execution.answer(self, kinds, self._answer)

    def _hosted(self) -> frozenset[HostedKind]:
        """Return the hosted tools that every target of the request runs."""
        models, dialect = self.services.models, self.dialect.name
        found: list[frozenset[HostedKind]] = []
        for route in self.plan.routes:
            upstream = models.upstream(route)
            if upstream is None:
                return frozenset()
            spoken = dialect if upstream.speaks(dialect, route.model) else upstream.dialect
            facts = targets_of(upstream).of(route.model)
            found.append(frozenset(hosted_kinds(dialects.get(spoken).hosted_tools, facts)))
        return frozenset.intersection(*found)

    async def follow_up(self, request: Request) -> Answer | None:
        """Send `request` after the answer to the one before, and return its answer as it begins.

        It is a part of the same request: its losses are added. `None` if limits do not let it through to a target.

        Raises:
            FailureError: no target answers. `WireError` alike.
        """
        self.change(request)
        self.losses.strict = False
        await self._measure()
        tries = self.record.tries
        try:
            return await self._routed(None, None, 0.0)
        except FailureError:
            if self.record.tries > tries:
                raise
            return None

    async def affords(self, request: Request, used: Usage) -> bool:
        """Reserve what the request may cost with `request` as a further part; return whether the budgets allow it.

        `used` is what the parts before have used; the last of them is priced by the target that answered it.
        """
        budgets, prices = self.services.budgets, self.services.prices
        if prices is not None:
            self.record.parts += (prices.part(self.record, used),)
        if budgets is None or not self.services.has_budgets:
            return True
        self.change(request)
        if self.size >= LARGE:
            self._estimated = await offload(self.size, lambda: estimate(self.request))
        given, made = self.prompt_tokens() + (used.input_tokens or 0), used.output_tokens or 0
        costs = route_costs(self.services, self.plan, given, lambda route: made + self._most_output(route))
        try:
            self._close(await budgets.extend(self.record, costs))
        except FailureError:
            return False
        return True

    async def _inline(self, files: InlineFiles) -> None:
        """Replace ids of stored files by their content.

        Raises:
            FailureError: a file does not exist, or the files are too large together.
        """
        owner = self.record.client.owner
        inlined = await files.inlined(self.request, owner, self.dialect.name, self.losses, self.size)
        if inlined is not None:
            self.change(inlined.request)
            self.size += inlined.grown

    async def _answer(
        self, hold: Reservation | None = None, begun: Callable[[], Awaitable[Answer]] | None = None, waited: float = 0.0
    ) -> Answer:
        """Return the answer of a target, or of the gateway itself."""
        if hold is None and (local := self._local()) is not None:
            return local
        await self._measure()
        if hold is None and self.services.has_budgets:
            await self._afford()
        return await self._routed(hold, begun, waited)

    async def _routed(
        self, hold: Reservation | None, begun: Callable[[], Awaitable[Answer]] | None, waited: float
    ) -> Answer:
        """Return the answer of a target."""
        dispatch, routes = self._dispatched()
        if hold is None or begun is None:
            answer, hold = await dispatch.run(routes)
        else:
            asked = (self.record.backend, self.record.target)
            first = next(route for route in self.plan.routes if (route.backend, route.model) == asked)
            routes = (first, *(route for route in routes if route is not first))
            answer, hold = await dispatch.go_on_from(routes, hold, lambda: self._begun(begun()), waited)
        if self._continues and isinstance(answer, EventAnswer):
            answer = continued(answer, partial(self._go_on, dispatch, hold, routes))
        return _held(answer, hold, self.settle_usage)

    def _local(self) -> EventAnswer | None:
        """Return the answer to a housekeeping request that the configuration wants answered without a model."""
        found = answered_here(self.services, self.dialect, self.request)
        if found is None:
            return None
        self.record.answered_locally(found.kind)
        content = (Text(text=found.text),) if found.text else ()
        usage = Usage(input_tokens=self.prompt_tokens(), output_tokens=len(found.text) // 4 + 1, estimated=True)
        candidate = Candidate(content=content, finish=Finish(reason="stop"))
        batches = _one_batch(list(unfold(Response(candidates=(candidate,), usage=usage, model=self.request.model))))
        return EventAnswer(batches=batches, aclose=batches.aclose)

    def _dispatched(self) -> tuple[Dispatch[Answer], Sequence[Route]]:
        """Return the dispatch of the request, and its routes."""
        dispatcher, plan = self.services.dispatcher, self.plan
        routes, group = routes_for(self.services, plan, self.request, self.headers, self.prompt_tokens)
        demand = Demand(plan, self.record, self.tokens, group)
        return Dispatch(dispatcher, demand, self._ask), routes

    @property
    def _continues(self) -> bool:
        """Whether another target may continue the answer: there is one, it is streamed, and it is words."""
        if not self.plan.continues:
            return False
        request, sampling = self.request, self.request.sampling
        words = request.output is None or request.output.kind == "text"
        one = all((asked.n or 1) == 1 for asked in (sampling, *(route.defaults for route in self.plan.routes)))
        plain = words and one and request.prompt is None and not sampling.logprobs and not sampling.top_logprobs
        return request.stream and plain

    async def _go_on(
        self, dispatch: Dispatch[Answer], hold: Reservation, routes: Sequence[Route], said: SentAnswer, failure: Failure
    ) -> EventAnswer:
        """Return the rest of an answer, by a target that continues a turn; the one that failed is tried last."""
        self._said, self._kept_losses = said, len(self.losses)
        able = [route for route in routes if self._goes_on(route)]
        failed = (self.record.backend, self.record.target)
        able.sort(key=lambda route: (route.backend, route.model) == failed)
        try:
            answer = await dispatch.go_on(able, hold, failure)
        except BaseException:
            self.losses.rewind(self._kept_losses)  # what nobody answered lost nothing
            raise
        if isinstance(answer, EventAnswer):
            return answer
        raise TypeError("a call without a body of its own is answered in events")

    def _goes_on(self, route: Route) -> bool:
        backend = self.services.models.backend(route)
        plain = reading(backend, route) is backend
        return plain and isinstance(backend, ResumableBackend) and backend.continues(route.model)

    async def _ask(self, route: Route, key: int) -> Answer:
        self.losses.rewind(self._kept_losses)
        self.record.told = min(self.record.told, self._kept_losses)
        call = self.call(route, key)
        if self.record.trace_context is not None or self.record.spans is not None:
            call = self.record.traced(call)
        if self.record.capture is not None:
            call = replace(call, capture=self.record.capture)
        backend = answering(self.services, route, self.dialect, call.request, self.record.client.owner)
        return await self._begun(backend.answer(call))

    async def _begun(self, answering: Awaitable[Answer]) -> Answer:
        """Return an answer once it has begun; a whole one, once it is all there."""
        answer = await answering
        try:
            return await (begun(answer, self.plan.hold_back) if self.request.stream else gathered(answer))
        except BaseException:
            await answer.aclose()
            raise

    def call(self, route: Route, key: int) -> Call:
        """Return the request as `route` has it, to be sent with this key of its target's."""
        request = self.request if self._said is None else begun_request(self.request, self._said)
        named = request if request.model == route.model else replace(request, model=route.model)
        asked = apply_caps(apply_defaults(named, route), route, self.losses)
        return Call(
            request=asked,
            losses=self.losses,
            dialect=self.dialect.name,
            body=self.body if asked.sampling is self.request.sampling and not self._continues else None,
            headers=self.passed,
            key=key,
            size=self.size,
            credential=self.credential,
        )


async def _one_batch(events: Sequence[Event]) -> AsyncGenerator[Sequence[Event]]:
    yield events


def passed_on(headers: Sequence[tuple[str, str]], dialect: Dialect) -> tuple[tuple[str, str], ...]:
    """Return those of the client's `headers` that a server of its `dialect` may see."""
    return tuple([header for header in headers if header[0] in dialect.forward])


def bound_credential(
    services: UpstreamServices, plan: RoutePlan, credential: ClientCredential | None
) -> ClientCredential | None:
    """Return a client's credential for one host: that of the first target of `plan` that wants it; `None` if none does.

    So neither a fallback to another host has it, nor a target that replaces those of the requested model.
    """
    if credential is None:
        return None
    for route in plan.routes:
        upstream = services.models.upstream(route)
        if upstream is not None and upstream.auth == "client":
            return credential.bound_to(upstream.base_url)
    return None


def answered_here(services: UpstreamServices, dialect: Dialect, request: Request) -> LocalAnswer | None:
    """Return the answer to a housekeeping request that the configuration wants answered without a model."""
    settings = services.clients.get(dialect.name)
    kinds = () if settings is None else settings.local_answers
    return local_answer(request, kinds) if kinds else None


def route_costs(
    services: UpstreamServices, plan: RoutePlan, prompt: int, most_output: Callable[[Route], int]
) -> list[tuple[str, RequestCost | None]]:
    """Return what a request with so many tokens of prompt may cost at each target of `plan`."""
    prices = services.prices
    return [
        (
            route.backend,
            None if prices is None else prices.estimate(route.backend, route.model, prompt, most_output(route)),
        )
        for route in plan.routes
    ]


class TargetOrder(NamedTuple):
    """The targets of a request in the order in which they are tried, and the group that keeps it to one of them."""

    routes: Sequence[Route]
    group: str | None


def routes_for(
    services: UpstreamServices,
    plan: RoutePlan,
    request: Request,
    headers: Sequence[tuple[str, str]],
    size: Callable[[], int] | None = None,
) -> TargetOrder:
    """Return who may answer a `request` that came with `headers`; `size` gives its prompt's, where it is known."""
    dispatcher = services.dispatcher
    group = group_of(plan, request, headers, len(dispatcher.ward.of(plan.route).busy))
    fit = fitting(plan, request, size or (lambda: estimate(request)), partial(_lacks, services))
    return TargetOrder(ordered(dispatcher, plan, fit, group), group)


def _lacks(services: UpstreamServices, route: Route) -> frozenset[Need]:
    """Return what the target of `route` cannot do, by itself or with what is done for it here."""
    backend = services.models.backend(route)
    if not isinstance(backend, LimitedBackend):
        return frozenset()
    emulated = {"tools": route.emulate.tools, "structured": route.emulate.acts}
    return frozenset(need for need in backend.missing_capabilities(route.model) if not emulated.get(need))


def _held(answer: Answer, hold: Reservation, settle: Callable[[], None]) -> Answer:
    close = answer.aclose

    async def aclose() -> None:
        try:
            await close()
        finally:
            settle()
            hold.over()

    return replace(answer, aclose=aclose)
