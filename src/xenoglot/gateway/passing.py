"""Which requests pass without a task: those that can be decided upon at once, and sent on their way.

What cannot is left to the coroutines, which begin it anew: nothing is held, counted or sent by then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.backends.offload import LARGE
from xenoglot.codec.duplicates import unambiguous
from xenoglot.gateway import relay, state
from xenoglot.gateway.asking import Asking, answered_here
from xenoglot.gateway.bodies import read_request
from xenoglot.gateway.dispatch import begin
from xenoglot.gateway.endpoint import let_in, note
from xenoglot.gateway.hold import Demand
from xenoglot.gateway.passage import Passage
from xenoglot.gateway.preserve import Recorder, may_lack
from xenoglot.gateway.relay import decode_request, framing_of
from xenoglot.shortcuts import shortcut

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.gateway.application import PushExchange
    from xenoglot.gateway.entry import Entry
    from xenoglot.gateway.gateway import Gateway
    from xenoglot.gateway.native_head import Head
    from xenoglot.model.request import Request


GLANCED = 16 * 1024
"""Bytes of a request beyond which it is read in the general way: a long history has too much in it to be plain."""

_PASSABLE = (relay.serve, state.serve)
"""Who would serve such a request in a task; idempotency keys are heeded by another."""


@shortcut("callbacks")
def is_worth_waiting(exchange: PushExchange, head: Head, gateway: Gateway) -> bool:
    """Whether a request that may come in is looked at when all of it is here: it may need no task then."""
    if head.waits or head.length is None or head.length >= LARGE:
        return False
    limit = gateway.config.server.body_limit
    entry = let_in(exchange, gateway, exchange.seen) if head.length <= limit else None
    if entry is None or entry.handler not in _PASSABLE:
        return False
    exchange.expect(limit)
    exchange.since = gateway.observer.clock()
    return True


@shortcut("callbacks")
def passage(exchange: PushExchange, entry: Entry, gateway: Gateway) -> Passage | None:
    """Return the passage of a request that was let in by `entry`, to be started at once; `None` where it has none."""
    data = exchange.content()
    if entry.handler not in _PASSABLE or len(data) >= LARGE:
        return None
    try:
        small = entry.dialect.glance if len(data) < GLANCED else None
        request = None if small is None else small(data)
        if request is not None:
            return _begun(exchange, entry, gateway, request, lambda _: data)
        value = read_request(data, gateway.config.server.body_values)
        if entry.dialect.state is not None and not entry.dialect.state.wish(value).stateless:
            return None  # it wants something kept, or means something that is
        request = decode_request(entry.dialect, value, entry.route, entry.variables)
        return _begun(exchange, entry, gateway, request, lambda alike: unambiguous(data, value) if alike else data)
    except Exception:  # noqa: BLE001  whatever it is, the task meets it again, and tells of it
        return None


def _begun(
    exchange: PushExchange, entry: Entry, gateway: Gateway, request: Request, bytes_for: Callable[[bool], bytes]
) -> Passage | None:
    """Return the passage of `request`, with all that it holds; `None` where it has none, and nothing is held.

    `bytes_for` gives the bytes that say so to a server, which may be one of the client's dialect.
    """
    dialect = entry.dialect
    if answered_here(gateway, dialect, request) is not None:
        return None
    way = gateway.ways.of(request.model, dialect, entry.client)
    ahead, group, last = way.first(gateway, request, exchange.headers)
    if ahead is None:
        return None
    keeper = gateway.keeper if ahead.preserves else None
    if keeper is not None and (may_lack(keeper, request, ahead.route.backend) or (request.sampling.n or 1) > 1):
        return None
    record = gateway.observer.record(exchange.method, exchange.since)
    note(entry, exchange, record)
    record.asked(request.model, stream=request.stream)
    record.framing = framing = framing_of(dialect, exchange.query)
    body = bytes_for(way.alike) if framing is dialect.framing or not request.stream else None
    asking = Asking(gateway, way.plan, dialect, exchange.headers, record, request, body, entry.passed)
    call = asking.call(ahead.route, 0)
    if not ahead.remote.is_simple(call):
        return None
    if ahead.untouched and body is not None:
        composed = ahead.remote.untouched(body, stream=request.stream)
    else:
        composed = ahead.remote.composed(call)
    demand = Demand(way.plan, record, asking.tokens, group)
    hold = begin(gateway.dispatcher, demand, ahead.route, last=last)
    if hold is None:
        return None
    if hold.key:
        call = replace(call, key=hold.key)
    recorder = None if keeper is None else Recorder(keeper, entry.client.owner, ahead.route.backend, call.request)
    return Passage(exchange, entry, gateway, record, request, asking, hold, ahead.remote, call, composed, recorder)
