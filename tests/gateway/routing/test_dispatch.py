"""Which targets are asked, in which order, after which waits, and what a request holds meanwhile."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from xenoglot.errors import FailureError, LossError, WireError
from xenoglot.gateway.config.file_permissions import Secrets
from xenoglot.gateway.config.limits import LimitSettings
from xenoglot.gateway.config.load import Config
from xenoglot.gateway.config.settings import UpstreamSettings
from xenoglot.gateway.limits.limiter import MemoryLimiter, Scopes
from xenoglot.gateway.observability.request_log import RequestLog
from xenoglot.gateway.routing.dispatch import Dispatch
from xenoglot.gateway.routing.reservation import Demand, Dispatcher, TargetRegistry
from xenoglot.gateway.routing.router import Route, RoutePlan
from xenoglot.model.failure import Failure
from xenoglot.model.response import Usage
from xenoglot.policy.target_health import Retry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.gateway.routing.reservation import Reservation

DOWN = Failure(
    kind="upstream", message="connection error: the upstream cannot be reached", cause="connect", not_sent=True
)
BROKEN = Failure(kind="upstream", message="connection lost: the upstream closed it", cause="closed")
BUSY = Failure(kind="overloaded", message="busy", status=503)
LATE = Failure(kind="timeout", message="connection timed out: the upstream did not answer in time", cause="timeout")
TLS = Failure(kind="upstream", message="the upstream's certificate", cause="tls")
WRONG = Failure(kind="invalid_request", message="no", status=400)
LONG = Failure(kind="context_overflow", message="too long", status=400)
REFUSED = Failure(kind="upstream", message="the upstream refused the gateway's credentials", cause="credentials")
FORBIDDEN = replace(REFUSED, cause="forbidden")
LIMITED = Failure(kind="rate_limit", message="slow down", status=429, retry_after=7.0)
LATER = Failure(kind="rate_limit", message="slow down", status=429, retry_after=59.0)
ENDED = Failure(kind="upstream", message="connection lost: the upstream's stream ended without being complete")
LOSS = LossError(("$ x dropped (y)",))
WIRE = WireError("$.n", "one answer at a time")

Outcome = Failure | Exception | str


class ScriptedTargets:
    """Targets that do what a test says, on a clock that a wait pushes on. `trace` is what happened, in order."""

    def __init__(self, **answers: Sequence[Outcome]) -> None:
        self.now = 1_000.0
        self.trace: list[object] = []
        self.waiting = asyncio.Event()
        self.answers = {name: [*outcomes] for name, outcomes in answers.items()}
        upstreams = {
            name: UpstreamSettings(dialect="chat", base_url="http://x.invalid", key_env="K") for name in answers
        }
        self.configure(upstreams)

    def configure(self, upstreams: dict[str, UpstreamSettings]) -> None:
        """Begin anew with these upstreams."""
        config = Config(upstreams=upstreams, secrets=Secrets({"K": "one", "KK": "one two"}))
        self.dispatcher = Dispatcher(
            ward=TargetRegistry(config),
            limiter=MemoryLimiter(clock=lambda: self.now),
            scopes=Scopes(config),
            clock=lambda: self.now,
            chance=lambda: 0.5,
            sleep=self.sleep,
        )

    async def sleep(self, seconds: float) -> None:
        """Note that somebody waits, and let the time pass."""
        self.trace.append(seconds)
        self.now += seconds
        self.waiting.set()
        await asyncio.sleep(0)

    async def ask(self, route: Route, key: int) -> str:
        """Do what is said for the target; its last outcome is that of all that follow."""
        self.trace.append(route.backend if key == 0 else f"{route.backend}#{key}")
        outcomes = self.answers[route.backend]
        outcome = outcomes.pop(0) if len(outcomes) > 1 else outcomes[0]
        match outcome:
            case Failure():
                raise FailureError(outcome)
            case Exception():
                raise outcome
            case answer:
                return answer

    def plan(self, **settings: object) -> RoutePlan:
        """Return a plan of all targets, in their order."""
        routes = tuple(Route(backend=name, model="m") for name in self.answers)
        return replace(RoutePlan(name="m", routes=routes, strategy="ordered"), **settings)

    async def run(self, plan: RoutePlan | None = None, record: RequestLog | None = None) -> tuple[str, Reservation]:
        """Send one request on its way."""
        plan = plan or self.plan()
        dispatch = Dispatch(self.dispatcher, Demand(plan, record or new_record()), self.ask)
        return await dispatch.run(plan.routes)

    async def fails(self, plan: RoutePlan | None = None) -> Failure:
        """Send one request on its way, and return how it fails."""
        with pytest.raises(FailureError) as caught:
            await self.run(plan)
        return caught.value.failure

    @property
    def held(self) -> tuple[int, int]:
        """How many requests are under way, by target and by key."""
        targets = [self.dispatcher.ward.of(route) for route in self.plan().routes]
        return sum(target.running for target in targets), sum(sum(target.busy) for target in targets)


def new_record() -> RequestLog:
    """Return the record of a request."""
    return RequestLog(request_id="req_1", method="POST", started=0.0, clock=lambda: 0.0)


@pytest.mark.parametrize(
    ("answers", "trace"),
    [
        pytest.param({"a": ["yes"], "b": ["yes"]}, ["a"], id="the-first"),
        pytest.param({"a": [DOWN], "b": ["yes"]}, ["a", "b"], id="U01-elsewhere-at-once"),
        pytest.param({"a": [DOWN, "yes"]}, ["a", 0.25, "a"], id="U01-again-after-a-wait-where-there-is-no-other"),
        pytest.param({"a": [DOWN], "b": [DOWN, "yes"]}, ["a", "b", 0.25, "b"], id="the-last-is-waited-for"),
        pytest.param({"a": [TLS], "b": ["yes"]}, ["a", "b"], id="U05-another-has-another-certificate"),
        pytest.param({"a": [LATE], "b": ["yes"]}, ["a", "b"], id="U07-elsewhere"),
        pytest.param({"a": [BROKEN, "yes"]}, ["a", 0.25, "a"], id="U11-again"),
        pytest.param({"a": [LIMITED, "yes"]}, ["a", 7.25, "a"], id="U37-no-less-than-it-asks"),
        pytest.param({"a": [replace(LIMITED, retry_after=None), "yes"]}, ["a", 1.25, "a"], id="U37-nothing-is-said"),
        pytest.param({"a": [LATER], "b": ["yes"]}, ["a", "b"], id="U37-elsewhere-meanwhile"),
        pytest.param({"a": [REFUSED], "b": ["yes"]}, ["a", "b"], id="U40-elsewhere"),
        pytest.param({"a": [LOSS], "b": ["yes"]}, ["a", "b"], id="another-can-express-it"),
        pytest.param({"a": [WIRE], "b": ["yes"]}, ["a", "b"], id="another-dialect-has-a-form-for-it"),
        pytest.param({"a": [replace(LIMITED, retry_after=0.0), "yes"]}, ["a", 0.25, "a"], id="U37-now-is-not-at-once"),
    ],
)
async def test_somebody_answers(answers: dict[str, Sequence[Outcome]], trace: list[object]) -> None:
    stage = ScriptedTargets(**answers)
    answer, hold = await stage.run()
    assert (answer, stage.trace, stage.held) == ("yes", trace, (1, 1))
    hold.drop()
    hold.drop()
    assert stage.held == (0, 0)


@pytest.mark.parametrize(
    ("answers", "trace", "failure"),
    [
        pytest.param({"a": [WRONG], "b": ["yes"]}, ["a"], WRONG, id="the-request-is-at-fault"),
        pytest.param({"a": [LONG], "b": ["yes"]}, ["a"], LONG, id="U39-too-long"),
        pytest.param({"a": [TLS]}, ["a"], TLS, id="U05-not-again"),
        pytest.param({"a": [LATE]}, ["a"], LATE, id="U07-not-again"),
        pytest.param({"a": [LATER]}, ["a"], LATER, id="U37-too-long-a-wait"),
        pytest.param({"a": [REFUSED]}, ["a"], replace(REFUSED, non_retryable=True), id="U40-futile-for-the-client"),
        pytest.param({"a": [FORBIDDEN]}, ["a"], replace(FORBIDDEN, non_retryable=True), id="U40-forbidden-alike"),
        pytest.param(
            {"a": [DOWN], "b": [BUSY]},
            ["a", "b", 0.25, "b"],
            replace(BUSY, non_retryable=True),
            id="K04-R-all-down-is-the-last-failure-and-futile",
        ),
    ],
)
async def test_nobody_answers(answers: dict[str, Sequence[Outcome]], trace: list[object], failure: Failure) -> None:
    stage = ScriptedTargets(**answers)
    assert (await stage.fails(), stage.trace, stage.held) == (failure, trace, (0, 0))


@pytest.mark.parametrize("refusal", [LOSS, WIRE], ids=["loss", "wire"])
async def test_a_loss_that_nobody_can_spare_is_told(refusal: Exception) -> None:
    stage, record = ScriptedTargets(a=[refusal], b=[refusal]), new_record()
    with pytest.raises(type(refusal)):
        await stage.run(record=record)
    assert (stage.trace, stage.held, record.tries) == (["a", "b"], (0, 0), 0)


@pytest.mark.parametrize("refusal", [LOSS, WIRE], ids=["loss", "wire"])
async def test_who_cannot_be_asked_was_not_asked(refusal: Exception) -> None:
    stage, record = ScriptedTargets(a=[BUSY], b=[refusal]), new_record()
    with pytest.raises(FailureError) as caught:
        await stage.run(record=record)
    assert caught.value.failure == BUSY
    assert (record.tries, record.backend, stage.held) == (1, "a", (0, 0))


async def test_what_cannot_be_asked_of_one_costs_no_budget() -> None:
    stage = ScriptedTargets(a=[WIRE], b=["yes"])
    for _ in range(100):
        (await stage.run())[1].drop()
    assert stage.trace == ["a", "b"] * 100


async def test_who_is_left_alone_costs_no_budget() -> None:
    stage = ScriptedTargets(a=["yes"], b=["yes"], c=["yes"])
    upstream = UpstreamSettings(
        dialect="chat", base_url="http://x.invalid", retry=Retry(attempts=1, budget=1.0, budget_floor=0)
    )
    shut = replace(upstream, breaker=replace(upstream.breaker, failures=1, open_seconds=3_600.0))
    stage.configure({"a": replace(upstream, breaker=replace(upstream.breaker, failures=100)), "b": shut, "c": upstream})
    stage.answers = {"a": [BUSY], "b": [BUSY], "c": ["yes"]}
    with pytest.raises(FailureError):  # one further try can be afforded, and `b` fails it
        await stage.run()
    for _ in range(20):
        (await stage.run())[1].drop()
    assert stage.trace == ["a", "b", *["a", "c"] * 20]


@pytest.mark.parametrize("error", [TypeError(), RecursionError(), KeyError()], ids=lambda error: type(error).__name__)
async def test_a_bug_leaves_nothing_behind(error: Exception) -> None:
    stage = ScriptedTargets(a=[error])
    with pytest.raises(type(error)):
        await stage.run()
    assert stage.held == (0, 0)


async def test_k01_clients_are_told_once_nothing_more_can_be_afforded() -> None:
    stage = ScriptedTargets(a=[BUSY])
    retry = Retry(budget=0.0, budget_floor=0)
    stage.configure({"a": UpstreamSettings(dialect="chat", base_url="http://x.invalid", retry=retry)})
    assert await stage.fails() == replace(BUSY, non_retryable=True)
    assert stage.trace.count("a") == 1


async def test_no_further_try_waits_in_a_queue_beyond_its_patience() -> None:
    stage = ScriptedTargets(a=[BUSY])
    limits = LimitSettings(concurrency=1, queue_seconds=600.0)
    stage.configure({"a": UpstreamSettings(dialect="chat", base_url="http://x.invalid", limits=limits)})

    async def taken(seconds: float) -> None:
        stage.now += seconds
        (scope,) = stage.dispatcher.scopes.of_upstream("a")
        await stage.dispatcher.limiter.enter([scope], owner="another", tokens=0)

    stage.dispatcher.sleep = taken
    failure = await stage.fails(stage.plan(patience=0.25))  # or it would wait for ten minutes
    assert (failure.kind, failure.status, stage.trace, stage.held) == ("overloaded", None, ["a"], (0, 0))


async def test_what_the_operator_wishes_goes_elsewhere() -> None:
    stage = ScriptedTargets(a=[LONG], b=["yes"])
    assert (await stage.run(stage.plan(fallback_on=("context_overflow",))))[0] == "yes"


async def test_u40_a_refused_key_rests_and_the_next_is_used_at_once() -> None:
    stage = ScriptedTargets(a=[REFUSED, "yes"])
    stage.configure({"a": UpstreamSettings(dialect="chat", base_url="http://x.invalid", key_env="KK")})
    for _ in range(2):
        await stage.run()
    assert stage.trace == ["a", "a#1", "a#1"]


async def test_u40_the_operator_hears_of_a_refused_key(caplog: pytest.LogCaptureFixture) -> None:
    await ScriptedTargets(a=[REFUSED], b=["yes"]).run()
    assert [line.getMessage() for line in caplog.records] == ["upstream `a` refuses the gateway's key"]


async def test_k03_a_target_that_keeps_failing_is_left_alone() -> None:
    stage = ScriptedTargets(a=[BUSY], b=["yes"])
    for _ in range(7):
        await stage.run()
    assert stage.trace == ["a", "b"] * 5 + ["b"] * 2


async def test_k03_where_all_are_left_alone_clients_are_told_when_to_come() -> None:
    stage = ScriptedTargets(a=[BUSY])
    upstream = UpstreamSettings(dialect="chat", base_url="http://x.invalid", retry=Retry(attempts=1))
    stage.configure({"a": upstream})
    for _ in range(5):
        await stage.fails()
    failure = await stage.fails()
    assert (failure.kind, failure.message) == ("overloaded", "circuit breaker open for the upstream")
    assert failure.retry_after == pytest.approx(11.25)
    assert stage.trace == ["a"] * 5
    stage.now += 12
    stage.answers = {"a": ["yes"]}
    await stage.run()
    assert stage.trace == ["a"] * 6


async def test_k03_a_probe_that_says_nothing_is_given_back() -> None:
    stage = ScriptedTargets(a=[BUSY, "yes"])
    breaker = replace(UpstreamSettings(dialect="chat", base_url="").breaker, failures=1)
    upstream = UpstreamSettings(dialect="chat", base_url="http://x.invalid", retry=Retry(attempts=1), breaker=breaker)
    stage.configure({"a": upstream})
    await stage.fails()
    stage.now += 13
    for _ in range(3):
        _, hold = await stage.run()
        assert (await stage.fails()).kind == "overloaded"  # one probe at a time
        hold.over()  # its client left
    assert stage.trace == ["a"] * 4


async def test_k01_an_outage_is_no_storm() -> None:
    stage = ScriptedTargets(a=[BUSY])
    retry = Retry(attempts=5, base=0.0)
    breaker = replace(UpstreamSettings(dialect="chat", base_url="").breaker, failures=1_000_000)
    stage.configure({"a": UpstreamSettings(dialect="chat", base_url="http://x.invalid", retry=retry, breaker=breaker)})
    for _ in range(500):
        await stage.fails()
    assert stage.trace.count("a") == 500 + 0.2 * 500 + 10


async def test_no_try_begins_when_patience_is_at_its_end() -> None:
    stage = ScriptedTargets(a=[LIMITED])
    assert await stage.fails(stage.plan(patience=7.0)) == LIMITED
    assert stage.trace == ["a"]


async def test_c04_nobody_is_asked_for_a_client_that_left() -> None:
    stage = ScriptedTargets(a=[DOWN, "yes"])
    task = asyncio.ensure_future(stage.run())
    await stage.waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (stage.trace, stage.held) == (["a", 0.25], (0, 0))


async def test_u37_a_key_that_rests_is_better_than_none() -> None:
    """A target whose key rests is passed over; the last one, whose quota may be there again, is not."""
    stage = ScriptedTargets(a=[LATER], b=["yes", "yes", LATER, "yes"])
    for _ in range(2):
        await stage.run()
    assert await stage.fails() == LATER
    await stage.run()
    assert stage.trace == ["a", "b", "b", "b", "b"]


async def test_what_came_of_asking_is_counted() -> None:
    stage = ScriptedTargets(a=[BUSY, "yes"], b=["yes"])
    stage.now = 0.0
    for _ in range(2):
        await stage.run()
    told = [(said.backend, dict(said.tries), said.running) for said in stage.dispatcher.ward.measures(stage.now)]
    assert told == [("a", {"overloaded": 1, "answered": 1}, 1), ("b", {"answered": 1}, 1)]


async def test_what_this_process_refuses_is_not_asked_again() -> None:
    stage = ScriptedTargets(a=[LIMITED])
    stage.configure({})
    assert await stage.fails() == LIMITED
    assert await stage.fails() == LIMITED  # and nobody rests for it
    assert stage.trace == ["a", "a"]


@pytest.mark.parametrize(
    ("failure", "finish", "state"),
    [(None, "stop", "closed"), ("upstream", None, "open"), ("cancelled", None, "closed"), ("rate_limit", None, "open")],
)
async def test_the_end_of_an_answer_is_told_to_its_breaker(failure: str | None, finish: str | None, state: str) -> None:
    stage = ScriptedTargets(a=["yes"])
    breaker = replace(UpstreamSettings(dialect="chat", base_url="").breaker, failures=1)
    stage.configure({"a": UpstreamSettings(dialect="chat", base_url="http://x.invalid", breaker=breaker)})
    record = new_record()
    _, hold = await stage.run(record=record)
    record.failure, record.finish = failure, finish  # type: ignore[assignment]  # words of theirs
    hold.over()
    told = [(said.backend, said.model, said.open) for said in stage.dispatcher.ward.measures(stage.now)]
    assert (told, stage.held) == ([("a", "m", state == "open")], (0, 0))


async def test_an_answer_that_broke_off_is_gone_on_with_elsewhere() -> None:
    stage = ScriptedTargets(a=["Hel"], b=["lo"])
    plan = stage.plan()
    dispatch = Dispatch(stage.dispatcher, Demand(plan, new_record()), stage.ask)
    _, hold = await dispatch.run(plan.routes)
    assert await dispatch.go_on(plan.routes[1:], hold, ENDED) == "lo"
    assert stage.held == (1, 1)
    hold.over()
    assert stage.held == (0, 0)


@pytest.mark.parametrize("failure", [WRONG, LONG], ids=["wrong", "long"])
async def test_what_only_the_request_can_mend_is_not_gone_on_with(failure: Failure) -> None:
    stage = ScriptedTargets(a=["Hel"], b=["lo"])
    plan = stage.plan()
    dispatch = Dispatch(stage.dispatcher, Demand(plan, new_record()), stage.ask)
    _, hold = await dispatch.run(plan.routes)
    with pytest.raises(FailureError):
        await dispatch.go_on(plan.routes[1:], hold, failure)
    assert (stage.trace, stage.held) == (["a"], (0, 0))


async def test_each_target_of_an_answer_keeps_the_tokens_that_it_used() -> None:
    stage = ScriptedTargets(a=["Hel"], b=["lo"])
    limits = LimitSettings(tokens=("1000/1m",))
    upstream = UpstreamSettings(dialect="chat", base_url="http://x.invalid", limits=limits)
    stage.configure({"a": upstream, "b": upstream})
    plan, record = stage.plan(), new_record()
    dispatch = Dispatch(stage.dispatcher, Demand(plan, record, lambda: 1000), stage.ask)
    _, hold = await dispatch.run(plan.routes)
    record.used(Usage(input_tokens=100, output_tokens=50))
    await dispatch.go_on(plan.routes[1:], hold, ENDED)
    record.used(Usage(input_tokens=350, output_tokens=50))
    hold.over()
    for name, left in (("a", 850), ("b", 750)):
        (scope,) = stage.dispatcher.scopes.of_upstream(name)
        with pytest.raises(FailureError):
            await stage.dispatcher.limiter.enter([scope], owner="", tokens=left + 1, patience=0.0)
        await stage.dispatcher.limiter.enter([scope], owner="", tokens=left, patience=0.0)


def test_names_with_slashes_outlive_a_reload() -> None:
    upstream = UpstreamSettings(dialect="chat", base_url="http://x.invalid")
    before, after = (TargetRegistry(Config(upstreams={"a": upstream})) for _ in range(2))
    route = Route(backend="a", model="hf://owner/model")
    before.of(route).running = 3
    after.inherit(before)
    told = [(said.backend, said.model, said.running) for said in after.measures(0.0)]
    assert told == [("a", "hf://owner/model", 3)]
