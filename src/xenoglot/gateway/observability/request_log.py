"""The log of requests: one line of JSON each, with names and numbers and never a word of their content."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from xenoglot.backends.redaction import for_log
from xenoglot.codec.framing.formats import Framing
from xenoglot.codec.json.json_io import encode_json
from xenoglot.codec.loss import Loss, Losses, divide, summary
from xenoglot.errors import QUOTING
from xenoglot.gateway.auth.keys import EVERYBODY, Principal
from xenoglot.gateway.observability.access_log import ACCESS, listener
from xenoglot.gateway.observability.log_format import timestamp
from xenoglot.gateway.observability.trace_context import TraceContext
from xenoglot.gateway.observability.tracing import LoggedTarget, RequestSpans
from xenoglot.model.failure import FailureKind
from xenoglot.model.fold import merge_usage
from xenoglot.model.response import FinishReason, Usage

if TYPE_CHECKING:
    from xenoglot.backends.backend import Call
    from xenoglot.model.failure import Failure
    from xenoglot.policy.limits.money_budget import BudgetDecision

SUBSTITUTED = "x-xenoglot-substituted-model"
"""Response header: the model that answers in place of the requested one."""

TARGET = "x-xenoglot-target"
"""Response header: the target, as `upstream/model`, by the names of the configuration."""

LOSSES = "x-xenoglot-losses"
"""Response header, and comment at the end of a stream: what the answer, or the request for it, lost on its way."""

COST = "x-xenoglot-cost"
"""Response header, and comment at the end of a stream: what the request cost, as an amount and a currency."""

CACHE = "x-xenoglot-cache"
"""Response header: whether the answer came from the cache (`hit`, with its `age`), or will be there (`miss`)."""

MICRO_DIGITS = 6
MICRO = 10**MICRO_DIGITS

LONGEST_TELLING = 2000
"""Characters of losses that a client receives; losses beyond that are counted."""

CLIENT_GONE = 499
"""The status in the log where the client disconnected before it received one (as nginx does)."""

MOST_TRIES = 20
"""How many failed tries one line names."""

LONGEST_REASON = 500
"""Characters of the reason of one."""

MAX_LOSSES = 20
"""How many losses one line names; losses beyond that are counted."""

MOST_LOSSES = 1000
"""How many it names where an operator wants to see all of them."""

FIRST_FAILED, FIRST_ERROR = 400, 500

RANDOM_BYTES = 8
IDS_AT_ONCE = 256
TICKS = 256
"""In a second, of the time in an id."""


class RequestCost(NamedTuple):
    """What a request cost, in micro-units of a currency, and where its prices are from."""

    amount: int
    currency: str
    source: str

    def __str__(self) -> str:
        """Return the amount in units of the currency, for a header."""
        digits = str(self.amount).zfill(MICRO_DIGITS + 1)
        return f"{digits[:-MICRO_DIGITS]}.{digits[-MICRO_DIGITS:]} {self.currency}"


class AnswerPart(NamedTuple):
    """A call of a target that is over and was not the last of its request: what it used, and what that cost."""

    backend: str | None
    usage: Usage
    cost: RequestCost | None


class RequestReservation(Protocol):
    """What a request has reserved of budgets."""

    def headers(self) -> list[tuple[str, str]]:
        """Return headers with what remains."""
        ...

    def settle(self, record: RequestLog) -> None:
        """Replace it by what the request cost, which is over."""
        ...


class RequestCapture(Protocol):
    """Takes the bodies of a request on the upstream's side."""

    def upstream_request(self, data: bytes) -> None:
        """Note what is sent to an upstream."""
        ...

    def upstream_response(self, media: str) -> Callable[[bytes], None]:
        """Begin what the upstream answers; return what takes its pieces."""
        ...


class RequestLog(Struct):
    """One request as the log will show it; each part that learns something sets it here.

    Times are in seconds of `clock`. `route` is the row of the route table, never the path as it came. `model` is what
    the client requested, `backend` and `target` are the server and its name for the model, `substituted` means that it
    is another model than the requested one. `None` is what was never learnt.
    """

    request_id: str
    method: str
    started: float
    clock: Callable[[], float]
    route: str | None = None
    dialect: str | None = None
    model: str | None = None
    stream: bool | None = None
    framing: Framing | None = None
    cut: bool = False
    """Whether what was written of a stream ends inside of a frame."""
    backend: str | None = None
    target: str | None = None
    substituted: bool = False
    local: bool = False
    """Whether the gateway answers itself."""
    tries: int = 0
    """Attempts, over all targets."""
    status: int | None = None
    answered: float | None = None
    first_token: float | None = None
    """When the first piece of a streamed answer came."""
    usage: Usage | None = None
    pieces: int = 0
    """Pieces of text in the answer so far, most of them one token."""
    characters: int = 0
    """Characters in them."""
    finish: FinishReason | None = None
    cost: RequestCost | None = None
    parts: tuple[AnswerPart, ...] = ()
    """Calls before the last, whose usage is in `usage` too."""
    reservation: RequestReservation | None = None
    """What is reserved of budgets."""
    session: str | None = None
    """A digest of the session that the request belongs to; learned only where requests are stored."""
    trace_context: TraceContext | None = None
    """The context of the client's trace."""
    tags: Mapping[str, str] | None = None
    """What the client calls the request, by names of its choice, and what hooks noted of it."""
    spans: RequestSpans | None = None
    """The spans of the request, where it is traced here."""
    operation: str | None = None
    """The name of the operation, if it is not an ordinary answer."""
    losses: Losses | Sequence[Loss] = ()
    told: int = 0
    """How many of the losses the client knows of: they are only ever added to."""
    failure: FailureKind | None = None
    answer_id: str | None = None
    """The id of an answer that is kept, whatever the upstream calls it: items get theirs from it."""
    client: Principal = EVERYBODY
    """The client."""
    failed_tries: list[str] | None = None
    """Why tries failed, each as `upstream/model: reason`."""
    capture: RequestCapture | None = None
    """The bodies that are captured of it."""
    cache: Literal["hit", "miss"] | None = None
    """Whether the answer came from the cache; `None` if it was not looked for there."""
    age: int = 0
    """The age in seconds of an answer from the cache."""
    origin: str | None = None
    """The browser origin that may read the answer, where one asked and is allowed."""

    @property
    def trace(self) -> str | None:
        """The id of the trace that the request belongs to."""
        if self.spans is not None:
            return self.spans.trace_id
        return None if self.trace_context is None else self.trace_context.trace_id

    def trace_headers(self) -> tuple[tuple[str, str], ...]:
        """Return the headers with the context of the trace for an upstream."""
        if self.spans is not None:
            return self.spans.headers()
        return () if self.trace_context is None else self.trace_context.headers

    def traced(self, call: Call) -> Call:
        """Return the call of a target with the context of the trace."""
        if self.spans is not None:
            self.spans.asked(call.request)
        return replace(call, trace=self.trace_headers())

    def asked(self, model: str, *, stream: bool) -> None:
        """Note what the client asks for."""
        self.model = model
        self.stream = stream

    def routed(self, target: LoggedTarget) -> None:
        """Note who will answer."""
        self.backend = target.backend
        self.target = target.model
        self.substituted = target.substituted

    def queued(self) -> None:
        """Note that a record of its own, which is counted, has the answer: it is made in the background."""
        self.model = self.backend = self.target = None

    def answered_from_cache(self, backend: str, target: str, age: float) -> None:
        """Note that the answer is a cached one, which `target` of a backend gave `age` seconds ago."""
        self.backend, self.target, self.cache, self.age = backend, target, "hit", int(age)

    def answered_locally(self, kind: str) -> None:
        """Note that no target is called: the request is of a `kind` that the gateway answers itself."""
        self.backend, self.target, self.substituted, self.local = "local", kind, False, True

    def tried(self, target: LoggedTarget) -> None:
        """Note the target of the next attempt."""
        self.routed(target)
        self.tries += 1
        if self.spans is not None:
            self.spans.tried(target, self.operation)

    def not_sent(self, before: LoggedTarget | None) -> None:
        """Take back a try: nothing was sent. The target `before` was called last."""
        self.tries -= 1
        if before is not None:
            self.routed(before)
        if self.spans is not None:
            self.spans.not_sent()

    def begin(self, status: int) -> None:
        """Note that the response begins now."""
        self.status = status
        self.answered = self.clock()

    def used(self, usage: Usage) -> None:
        """Note a snapshot of the usage."""
        self.usage = merge_usage(self.usage, usage)

    def try_failed(self, target: LoggedTarget, failure: Failure) -> None:
        """Note why `target` did not answer, or was not called."""
        tries = self.failed_tries = self.failed_tries or []
        why = _why(f"{target.backend}/{target.model}", failure)
        if len(tries) < MOST_TRIES:
            tries.append(why)
        if self.spans is not None:
            self.spans.failed(str(failure.status or failure.cause or failure.kind), why)

    def not_tried(self, target: LoggedTarget, why: str) -> None:
        """Note why `target` is not called again, or at all, after others failed."""
        tries = self.failed_tries = self.failed_tries or []
        if len(tries) < MOST_TRIES:
            tries.append(f"{target.backend}/{target.model}: {why}")

    def failed(self, failure: Failure) -> None:
        """Note that there will be no (whole) answer."""
        self.failure = failure.kind
        if self.tries and failure.kind != "cancelled":
            tries = self.failed_tries = self.failed_tries or []
            why = _why(f"{self.backend}/{self.target}", failure)
            if why not in tries and len(tries) < MOST_TRIES:  # it broke off after it had begun
                tries.append(why)

    def token_gap(self, ended: float) -> float | None:
        """Return the mean time between the tokens of a stream that was over at this time; `None` if it has no two."""
        usage = self.usage
        tokens = self.pieces if usage is None or usage.output_tokens is None else usage.output_tokens
        if self.first_token is None or self.failure is not None or tokens <= 1:
            return None
        return (ended - self.first_token) / (tokens - 1)

    def tell_losses(self) -> str:
        """Return the losses since the last call; empty without any."""
        if not self.losses:
            return ""
        news = tuple(islice(self.losses, self.told, None))
        self.told += len(news)
        return _shortened(news) if news else ""

    def all_losses(self) -> str:
        """Return all losses, reported or not; empty without any."""
        losses = tuple(self.losses)
        return _shortened(losses) if losses else ""

    def headers(self, *, answering: bool = True) -> list[tuple[str, str]]:
        """Return the headers that every answer has: its id (under both names in use), and who answers instead.

        The target is named only where it is `answering`, or has refused to.
        """
        named = [
            ("x-request-id", self.request_id),
            ("request-id", self.request_id),
            ("x-content-type-options", "nosniff"),
        ]
        if self.cache is not None:
            named.append((CACHE, self.cache))
            if self.cache == "hit":
                named.append(("age", str(self.age)))
        if answering and (self.tries or self.local or self.cache == "hit") and self.backend is not None:
            named.append((TARGET, f"{self.backend}/{self.target}"))
        if self.substituted and self.target is not None:
            named.append((SUBSTITUTED, self.target))
        if self.reservation is not None:
            named += self.reservation.headers()
        if self.origin is not None:
            named += [("access-control-allow-origin", self.origin), ("vary", "origin")]
        return named


class RequestPrices(Protocol):
    """Knows what requests cost."""

    def cost(self, record: RequestLog) -> RequestCost | None:
        """Return the cost of a request whose usage is known; `None` if its price is unknown."""
        ...

    def part(self, record: RequestLog, used: Usage) -> AnswerPart:
        """Return the call that is over, of a request that has `used` so much until now."""
        ...

    def estimate(self, upstream: str, model: str, given: int, made: int) -> RequestCost | None:
        """Return what so many tokens of input and output cost; `None` if their price is unknown."""
        ...


class RequestBudgets(Protocol):
    """Limits what requests cost."""

    @property
    def active(self) -> bool:
        """Whether there is any budget."""
        ...

    async def reserve(
        self, record: RequestLog, costs: Sequence[tuple[str, RequestCost | None]], *, routes: bool = True
    ) -> BudgetDecision | None:
        """Reserve what a request may cost; `None` if no budget concerns it.

        `costs` are an upstream and a cost for each target; `None` is a cost whose price is unknown. With `routes` the
        decision may be that another model is to answer.

        Raises:
            FailureError: a budget refuses it.
        """
        ...

    async def extend(
        self, record: RequestLog, costs: Sequence[tuple[str, RequestCost | None]]
    ) -> BudgetDecision | None:
        """Reserve what the whole request may cost now that it has a further part.

        Raises:
            FailureError: a budget refuses it; what was reserved before stays reserved.
        """
        ...


class RequestSink(Protocol):
    """Stores requests that are over."""

    def check(self) -> None:
        """Raise `FailureError` if none may be answered that cannot be stored."""
        ...

    async def flush(self) -> None:
        """Store what waits; what cannot be stored stays queued."""
        ...

    def add(self, record: RequestLog, ended: float) -> None:
        """Take one that ended at this time of its clock. It waits for nothing."""
        ...


class Tracing(Protocol):
    """Traces requests."""

    def begin(self, record: RequestLog) -> RequestSpans:
        """Return the spans of a request that begins."""
        ...


class RequestLogger:
    """Begins records and writes them down. `clock` gives seconds, from any beginning, and never goes back.

    With `all_losses` the log names each harmless loss instead of a summary. `count` gets every record that is over, and
    so does the `ledger`, with its cost by `prices`.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        all_losses: bool = False,
        count: Callable[[RequestLog], object] = bool,
        tracing: Tracing | None = None,
    ) -> None:
        self.clock = clock
        self.all_losses = all_losses
        self.count = count
        self.prices: RequestPrices | None = None
        self.ledger: RequestSink | None = None
        self.tracing = tracing

    def inherit(self, other: RequestLogger) -> None:
        """Count where `other` counted; from now on, both write as this one does."""
        self.clock, self.count = other.clock, other.count
        other.all_losses = self.all_losses

    def record(self, method: str, since: float | None = None) -> RequestLog:
        """Return the record of a request that came at the time `since`, or now, with an id that cannot be guessed."""
        clock = self.clock
        record = RequestLog(identifier(), method, clock() if since is None else since, clock)
        if self.tracing is not None:
            record.spans = self.tracing.begin(record)
        return record

    def write(self, record: RequestLog) -> None:
        """Write the one line of a request that is over, and count it."""
        if self.prices is not None:
            record.cost = self.prices.cost(record)
        if record.reservation is not None:
            record.reservation.settle(record)
        self.count(record)
        ended = self.clock()
        if record.spans is not None:
            record.spans.end(ended)
        if self.ledger is not None:
            self.ledger.add(record, ended)
        if ACCESS.isEnabledFor(logging.INFO):
            entry = line(record, ended, all_losses=self.all_losses, written=time.time())
            log = listener()
            if log is None:
                ACCESS.info("%s", encode_json(entry).decode())
            elif log.terminal:
                log.put(terminal_line(entry, time.strftime("%H:%M:%S")).encode())
            else:
                log.put(encode_json(entry))


_drawn: list[str] = []
"""Ids that are not used yet. A process that forks does not share them with the new one."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drawn.clear)


def identifier() -> str:
    """Return the id of a request: the time at which it was drawn, and what makes it unguessable, for many at once.

    Ids that are used together are alike at the beginning, so that they are near each other in the index of a database:
    ids without an order would each change a page of their own.
    """
    if not _drawn:
        digits, size = os.urandom(IDS_AT_ONCE * RANDOM_BYTES).hex(), 2 * RANDOM_BYTES
        drawn = f"req_{int(time.time() * TICKS):010x}"
        _drawn.extend([drawn + digits[begin : begin + size] for begin in range(0, len(digits), size)])
    return _drawn.pop()


class LogLine(Struct):
    """The line of a request in the log; durations in milliseconds."""

    time: str
    level: str
    event: str
    request: str
    method: str
    route: str | None
    dialect: str | None
    tenant: str | None
    model: str | None
    backend: str | None
    target: str | None
    substituted: bool
    tries: int
    stream: bool | None
    status: int | None
    ttfb_ms: float | None
    total_ms: float
    usage: LoggedUsage | None
    finish: FinishReason | None
    failure: FailureKind | None
    losses: list[str]
    failed_tries: list[str] | UnsetType = UNSET
    cost: LoggedCost | UnsetType = UNSET
    key: str | UnsetType = UNSET
    session: str | UnsetType = UNSET
    trace: str | UnsetType = UNSET
    tags: Mapping[str, str] | UnsetType = UNSET
    cache: str | UnsetType = UNSET


class LoggedCost(Struct):
    """The cost in a line, in micro-units of the currency."""

    amount: int
    currency: str
    source: str


class LoggedUsage(Struct, omit_defaults=True):
    """The usage in a line; an estimate is marked as one."""

    input_tokens: int | None
    output_tokens: int | None
    cache_read: int | None
    cache_write: int | None
    reasoning: int | None
    input_audio: int | None = None
    output_audio: int | None = None
    estimated: bool = False


def line(record: RequestLog, now: float, *, all_losses: bool = False, written: float = 0.0) -> LogLine:
    """Return the line of `record` at the time `now` of its clock; `all_losses` names harmless losses too.

    It is `written` at that time, in Unix seconds.
    """
    status, usage, model, target = record.status, record.usage, record.model, record.target
    if status is None and record.failure == "cancelled":
        status = CLIENT_GONE
    client = record.client
    return LogLine(
        timestamp(written),
        _level(record),
        "request",
        record.request_id,
        for_log(record.method),
        record.route,
        record.dialect,
        record.client.tenant,
        None if model is None else for_log(model),
        record.backend,
        None if target is None else for_log(target),
        record.substituted,
        record.tries,
        record.stream,
        status,
        None if record.answered is None else round((record.answered - record.started) * 1000, 3),
        round((now - record.started) * 1000, 3),
        None if usage is None else _spent(usage),
        record.finish,
        record.failure,
        _named(tuple(record.losses), all_losses=all_losses) if record.losses else [],
        UNSET if record.failed_tries is None else record.failed_tries,
        UNSET if record.cost is None else LoggedCost(*record.cost),
        client.name or client.key or UNSET,
        record.session or UNSET,
        UNSET if record.spans is None and record.trace_context is None else record.trace or UNSET,
        record.tags or UNSET,
        UNSET if record.cache is None else record.cache,
    )


def _level(record: RequestLog) -> str:
    """Return how bad a request went: `error` where the gateway or an upstream failed."""
    broken = record.failure is not None and record.failure != "cancelled"
    status = record.status or 0
    return "error" if status >= FIRST_ERROR or (broken and status < FIRST_FAILED) else "info"


def _why(target: str, failure: Failure) -> str:
    """Return why a try failed. A text that may quote the request is left out."""
    said = failure.operator_message or (failure.kind if failure.kind in QUOTING else failure.message)
    return for_log(f"{target}: {said}", LONGEST_REASON)


def _spent(usage: Usage) -> LoggedUsage:
    return LoggedUsage(
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read,
        usage.cache_write,
        usage.reasoning,
        usage.input_audio,
        usage.output_audio,
        bool(usage.estimated),
    )


def loss_texts(record: RequestLog) -> list[str]:
    """Return the losses of a request as its line in the log has them, without the harmless ones."""
    return _first(divide(tuple(record.losses))[0], MAX_LOSSES) if record.losses else []


def _named(losses: tuple[Loss, ...], *, all_losses: bool) -> list[str]:
    """Return as many losses that matter as one line names, how many more there are, and a summary of the harmless."""
    if all_losses:
        return _first(losses, MOST_LOSSES)
    matter, harmless = divide(losses)
    named = _first(matter, MAX_LOSSES)
    if harmless:
        named.append(f"and {summary(harmless)}" if named else summary(harmless))
    return named


def _first(losses: Sequence[Loss], most: int) -> list[str]:
    """Return the first losses, `most` of them, and how many more there are."""
    named = [for_log(str(loss)) for loss in losses[:most]]
    more = len(losses) - len(named)
    return [*named, f"and {more} more"] if more else named


def _shortened(losses: tuple[Loss, ...]) -> str:
    """Return as many whole losses that matter as fit, the number of the others, and a summary of the harmless."""
    matter, harmless = divide(losses)
    named = _within(matter)
    if harmless:
        named.append(f"and {summary(harmless)}" if named else summary(harmless))
    return "; ".join(named)


def _within(losses: list[Loss]) -> list[str]:
    """Return as many whole losses as fit, at least one, and the number of the others."""
    named: list[str] = []
    room = LONGEST_TELLING
    for loss in losses:
        said = str(loss)[:LONGEST_TELLING]
        room -= len(said) + len("; ")
        if named and room < 0:
            return [*named, f"and {len(losses) - len(named)} more"]
        named.append(said)
    return named


def terminal_line(entry: LogLine, clock: str) -> str:
    """Return the line for a person at a terminal; the request ended at the time of day `clock`."""
    return f"{clock} {'  '.join(_fields(entry))}"


def _fields(entry: LogLine) -> Iterator[str]:
    yield f"{entry.method} {entry.route or '(unknown path)'}"
    if entry.model is not None:
        yield _models(entry)
    yield str(entry.status or "-")
    yield f"{entry.total_ms / 1000:.1f} s"
    if entry.usage is not None:
        counts = (entry.usage.input_tokens, entry.usage.output_tokens)
        yield "{} in {} out".format(*("?" if count is None else count for count in counts))
    if entry.tries > 1:
        yield f"{entry.tries} tries"
    if entry.losses:
        yield f"losses {len(entry.losses)}"
    if entry.failure is not None:
        yield entry.failure


def _models(entry: LogLine) -> str:
    """Return the requested model and its target; a model that the client did not ask for is marked."""
    if entry.backend is None or entry.target is None:
        return entry.model or ""
    target = f"{entry.backend}/{entry.target}"
    return (
        f"{entry.model} -> {target} (unknown model, answered by another)"
        if entry.substituted
        else (f"{entry.model} -> {target}")
    )
