"""The budgets of one request: what it may cost, what is reserved for it, and what it is charged."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from xenoglot.errors import FailureError
from xenoglot.gateway.ledger.budget_service import claims_of, money
from xenoglot.model.failure import Failure
from xenoglot.policy.limits.money_budget import UPSTREAM, BudgetUse, remaining
from xenoglot.store.ledger.budgets import BudgetRequest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xenoglot.gateway.ledger.budget_service import BudgetService
    from xenoglot.gateway.observability.request_log import RequestCost, RequestLog
    from xenoglot.policy.limits.money_budget import Budget, BudgetClaim, BudgetDecision
    from xenoglot.store.ledger.budgets import BudgetOutcome

REMAINING: Final = "x-xenoglot-budget-remaining"
"""Response header: the least that remains of the budgets of a request, as an amount and a currency."""

WARNING: Final = "x-xenoglot-budget-warning"
"""Response header: a budget that is exceeded, or has come to its warning."""

QUOTA: Final = "insufficient_quota"
"""Code of a refusal, as OpenAI names it (https://developers.openai.com/api/docs/guides/error-codes)."""

BUSY_SECONDS: Final = 5.0
PERCENT: Final = 100

UNPRICED: Final = Failure(
    kind="permission",
    message="the price of the model is unknown, and there is a budget: the gateway sends no request without a price",
    code="unknown_price",
)

_WHOSE: Final = {
    "all": "the budget of this gateway",
    "tenant": "the budget of your tenant",
    "key": "the budget of this API key",
    "model": "the budget of this model",
    UPSTREAM: "the budget of this gateway",
}


class BudgetReservation:
    """What is reserved for a request; settled once, when it is over."""

    __slots__ = ("_claims", "_headers", "_more", "_service")

    def __init__(self, service: BudgetService, decision: BudgetDecision, outcome: BudgetOutcome) -> None:
        self._service = service
        self._claims = [(claim, outcome.bounds[claim.budget.id].bucket) for claim in decision.claims]
        self._more: list[tuple[BudgetClaim, int]] = []
        self._headers = _headers([*(claim.budget for claim in decision.claims), *decision.exceeded], decision, outcome)

    def reserved(self, claim: BudgetClaim) -> int:
        """Return what is reserved already of the budget of `claim`."""
        place = (claim.budget.id, claim.upstream)
        return sum(one.amount or 0 for one, _ in (*self._claims, *self._more) if (one.budget.id, one.upstream) == place)

    def extend(self, more: BudgetReservation) -> None:
        """Add what is reserved for a further part of the request."""
        self._more += more._claims

    def headers(self) -> list[tuple[str, str]]:
        """Return headers with what remains."""
        return self._headers

    def settle(self, record: RequestLog) -> None:
        """Charge what the request cost, and give back the rest of what it reserved."""
        claims, more, self._claims, self._more = self._claims, self._more, [], []
        if claims or more:
            charged = [(claim.budget.id, bucket, _settled(claim, charge(claim, record))) for claim, bucket in claims]
            self._service.change([*charged, *((claim.budget.id, bucket, _settled(claim)) for claim, bucket in more)])


def _settled(claim: BudgetClaim, charged: int = 0) -> BudgetUse:
    """Return the change of a budget in which `claim` was reserved, and so much is charged."""
    return BudgetUse(charged, -(claim.amount or 0))


def charge(claim: BudgetClaim, record: RequestLog) -> int:
    """Return what a request that is over is charged; all that it reserved, if it was answered at an unknown cost."""
    called = {record.backend, *(part.backend for part in record.parts)}
    if not record.tries or (claim.upstream and claim.upstream not in called):
        return 0
    cost = record.cost
    if cost is not None and cost.currency == claim.budget.currency:
        return cost.amount - _elsewhere(claim.upstream, cost.amount, record) if claim.upstream else cost.amount
    return 0 if record.usage is None or cost is not None else claim.amount or 0


def _elsewhere(upstream: str, amount: int, record: RequestLog) -> int:
    """Return how much of the `amount` that a request cost was paid to other upstreams."""
    paid = [(part.backend, 0 if part.cost is None else part.cost.amount) for part in record.parts]
    paid.append((record.backend, amount - sum(cost for _, cost in paid)))
    return sum(cost for backend, cost in paid if backend != upstream)


class BudgetAdmission:
    """Reserves what requests may cost, and refuses those that do not fit: see `RequestBudgets`."""

    def __init__(self, service: BudgetService) -> None:
        self.service = service

    @property
    def active(self) -> bool:
        """Whether there is any budget."""
        return self.service.active

    async def reserve(
        self, record: RequestLog, costs: Sequence[tuple[str, RequestCost | None]], *, routes: bool = True
    ) -> BudgetDecision | None:
        """Reserve what a request may cost.

        Raises:
            FailureError: a budget refuses it.
        """
        claims = self._claims(record, costs)
        if not claims:
            return None
        decision, outcome = await self.service.reserve(BudgetRequest(claims, _upstreams(costs), not routes))
        record.reservation = BudgetReservation(self.service, decision, outcome)
        if decision.refused_by is not None:
            raise FailureError(_refusal(decision.refused_by, claims, outcome))
        return decision

    async def extend(
        self, record: RequestLog, costs: Sequence[tuple[str, RequestCost | None]]
    ) -> BudgetDecision | None:
        """Reserve what the whole request may cost now that it has a further part.

        Raises:
            FailureError: a budget refuses it; what was reserved before stays reserved.
        """
        held = record.reservation
        if not isinstance(held, BudgetReservation):
            return None
        claims = [
            claim if claim.amount is None else claim._replace(amount=max(0, claim.amount - held.reserved(claim)))
            for claim in self._claims(record, costs)
        ]
        decision, outcome = await self.service.reserve(BudgetRequest(claims, _upstreams(costs), rerouted=True))
        held.extend(BudgetReservation(self.service, decision, outcome))
        if decision.refused_by is not None:
            raise FailureError(_refusal(decision.refused_by, claims, outcome))
        return decision

    def _claims(self, record: RequestLog, costs: Sequence[tuple[str, RequestCost | None]]) -> list[BudgetClaim]:
        """Return what a request may cost of each budget that concerns it.

        Raises:
            FailureError: a price is unknown, and there may be none.
        """
        service, client = self.service, record.client
        common = service.common(client.tenant, client.key, record.model or "")
        upstreams = {name: own for name in {name for name, _ in costs} if (own := service.of_upstream(name))}

        def cost(budget: Budget, upstream: str | None) -> int | None:
            wanted = [one for name, one in costs if upstream in (None, name)]
            amounts = [one.amount for one in wanted if one is not None and one.currency == budget.currency]
            if len(amounts) < len(wanted) and service.unpriced == "refuse":
                raise FailureError(UNPRICED)
            return max(amounts, default=None)

        return claims_of(common, upstreams, cost)


def _upstreams(costs: Sequence[tuple[str, RequestCost | None]]) -> tuple[str, ...]:
    return tuple(name for name, _ in costs)


def _refusal(budget: Budget, claims: Sequence[BudgetClaim], outcome: BudgetOutcome) -> Failure:
    """Return the failure of a request that does not fit into `budget`, with the time at which it may fit."""
    use, ends = outcome.uses[budget.id], outcome.bounds[budget.id].ends
    amount = next((claim.amount or 0 for claim in claims if claim.budget.id == budget.id), 0)
    left = f"{money(max(0, remaining(budget, use)))} {budget.currency}"
    whose = f"{_WHOSE[budget.kind]} ({budget.period})"
    if use.spent + max(amount, 1) <= budget.amount:
        busy = f"rate limit: requests in progress have reserved the rest of {whose}; retry when they are over"
        return Failure(kind="rate_limit", message=busy, retry_after=BUSY_SECONDS)
    if use.spent < budget.amount:
        may = f"this request may cost {money(amount)} {budget.currency}, and {left} remain of {whose}"
        message = f"insufficient quota: {may}; limit its output tokens"
    else:
        message = f"insufficient quota: {whose} is used up"
    if ends is not None:
        message += f"; it begins again at {datetime.fromtimestamp(ends, UTC):%Y-%m-%dT%H:%M:%SZ}"
    return Failure(kind="rate_limit", message=message, code=QUOTA, non_retryable=True)


def _headers(budgets: Sequence[Budget], decision: BudgetDecision, outcome: BudgetOutcome) -> list[tuple[str, str]]:
    """Return the headers; budgets of upstreams are the operator's alone."""
    shown: Mapping[str, Budget] = {budget.id: budget for budget in budgets if budget.kind != UPSTREAM}
    if not shown:
        return []
    left = {name: remaining(budget, outcome.uses[name]) for name, budget in shown.items()}
    least = min(shown.values(), key=lambda budget: left[budget.id])
    headers = [(REMAINING, f"{money(left[least.id])} {least.currency}")]
    exceeded = {budget.id for budget in decision.exceeded}
    for name, budget in shown.items():
        if name in exceeded:
            headers.append((WARNING, f"exceeded: {budget.kind} {budget.period}"))
        elif budget.warn_at is not None and outcome.uses[name].spent * PERCENT >= budget.warn_at * budget.amount:
            headers.append((WARNING, f"{budget.warn_at}%: {budget.kind} {budget.period}"))
    return headers
