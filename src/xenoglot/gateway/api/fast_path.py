"""Which requests pass without a task: those that can be decided upon at once, and sent on their way.

What cannot is left to the coroutines, which begin it again: nothing is held, counted or sent by then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.backends.offload import LARGE
from xenoglot.codec.json.json_io import unambiguous
from xenoglot.gateway.api.request_admission import admitted_context
from xenoglot.gateway.media.inline_files import names_file
from xenoglot.gateway.relay.push_driver import PushRelay, PushServices
from xenoglot.gateway.relay.push_response import Attempt
from xenoglot.gateway.relay.task_driver import decode_request, framing_of
from xenoglot.gateway.routing.dispatch import begin
from xenoglot.gateway.routing.reservation import Demand
from xenoglot.gateway.upstream.call import UpstreamCall, answered_here
from xenoglot.gateway.upstream.preserve_reasoning import Recorder, may_lack
from xenoglot.gateway.upstream.route_cache import RouteCache
from xenoglot.shortcuts import shortcut

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.gateway.api.request_admission import RequestAdmission
    from xenoglot.gateway.endpoint.request_context import Admission
    from xenoglot.gateway.endpoint.request_runner import RequestRunner
    from xenoglot.gateway.http.application import PushExchange
    from xenoglot.gateway.relay.task_driver import RelayEndpoint
    from xenoglot.http1.request_head import RequestHead
    from xenoglot.model.request import Request


class FastPath:
    """Serves requests without a task: those that may enter by `admission`, and `relay` would serve at once."""

    def __init__(self, admission: RequestAdmission, relay: RelayEndpoint, requests: RequestRunner) -> None:
        self._admission = admission
        self._upstream = relay.services
        self._bodies = relay.bodies
        self._files = relay.services.files is not None
        self._observer = requests.observer
        self._ways = RouteCache(relay.services)
        self._services = PushServices(relay, requests)

    @shortcut("callbacks")
    def awaits_body(self, exchange: PushExchange, head: RequestHead) -> bool:
        """Whether a request that may come in is looked at when all of it is here: it may need no task then."""
        if head.waits or head.length is None or head.length >= LARGE or self._upstream.has_budgets:
            return False
        limit = self._bodies.limit
        entry = self._admission.let_in(exchange, exchange.seen) if head.length <= limit else None
        if entry is None or not entry.generates:
            return False
        exchange.expect(limit)
        exchange.since = self._observer.clock()
        return True

    def start(self, exchange: PushExchange) -> bool:
        """Serve a request without a task, if it may enter and its target can be called at once."""
        entry = self._admission.let_in(exchange, exchange.seen)
        passage = None if entry is None else self.passage(exchange, entry)
        if passage is None:
            return False
        passage.start()
        return True

    @shortcut("callbacks")
    def passage(self, exchange: PushExchange, entry: Admission) -> PushRelay | None:
        """Return the relay of a request admitted by `entry`, to be started at once; `None` where it needs a task."""
        data = exchange.content()
        if not entry.generates or len(data) >= LARGE or self._upstream.has_budgets:
            return None
        try:
            if self._upstream.ledger is not None:
                self._upstream.check_ledger()
            value = self._bodies.small_request(data)
            if entry.dialect.state is not None and not entry.dialect.state.wish(value).stateless:
                return None  # it wants something kept, or means something that is
            request = decode_request(entry.dialect, value, entry.route, entry.variables)
            if request.context_management is not None and request.context_management.acts:
                return None
            if self._files and names_file(request):
                return None
            return self._begun(exchange, entry, request, lambda alike: unambiguous(data, value) if alike else data)
        except Exception:  # noqa: BLE001  whatever it is, the task meets it again, and tells of it
            return None

    def _begun(
        self, exchange: PushExchange, entry: Admission, request: Request, bytes_for: Callable[[bool], bytes]
    ) -> PushRelay | None:
        """Return the relay of `request`, with all that it holds; `None` where it needs a task, and nothing is held.

        `bytes_for` gives the request's bytes for a server, which may be one of the client's dialect.
        """
        dialect, services = entry.dialect, self._upstream
        interceptors = services.interceptors
        if (
            (interceptors is not None and interceptors.concern(entry.client, request.model))
            or (services.clients and answered_here(services, dialect, request) is not None)
            or (services.tool_execution is not None and services.tool_execution.kinds(request))
        ):
            return None
        way = self._ways.of(request.model, dialect, entry.client)
        ahead, group, last = way.first(services, request, exchange.headers)
        if ahead is None:
            return None
        keeper = services.keeper if ahead.preserves else None
        if keeper is not None and (may_lack(keeper, request, ahead.route.backend) or (request.sampling.n or 1) > 1):
            return None
        record = self._observer.record(exchange.method, exchange.since)
        ctx = admitted_context(entry, exchange, record)
        record.asked(request.model, stream=request.stream)
        record.framing = framing = framing_of(dialect, exchange.query)
        body = bytes_for(way.alike) if framing is dialect.framing or not request.stream else None
        asking = UpstreamCall(
            services,
            way.plan,
            dialect,
            exchange.headers,
            entry.passed,
            record,
            request,
            body,
            credential=entry.credential,
        )
        call = asking.call(ahead.route, 0)
        if not ahead.remote.is_simple(call):
            return None
        if ahead.untouched and body is not None:
            composed = ahead.remote.passthrough(body, call.request)
        else:
            composed = ahead.remote.encode_call(call)
        hold = begin(services.dispatcher, Demand(way.plan, record, asking.tokens, group), ahead.route, last=last)
        if hold is None:
            return None
        if hold.key:
            call = replace(call, key=hold.key)
        if record.trace_context is not None or record.spans is not None:
            call = record.traced(call)
        recorder = None if keeper is None else Recorder(keeper, entry.client.owner, ahead.route.backend, call.request)
        attempt = Attempt(hold, ahead.remote, call, composed, recorder)
        return PushRelay(exchange, ctx, self._services, asking, attempt)
