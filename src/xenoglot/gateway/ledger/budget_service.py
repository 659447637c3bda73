"""Money budgets of a gateway: reserves before a request is sent, and settles what it cost.

Theory of operation. Requests that reserve, and those that are over, wait for the transaction in progress; the next one
has them all. So a process has one transaction at a time, however many requests there are. While the store fails,
requests are decided by what was last known of it, and what they reserve and cost is written when it is back.
Definitions from the store are read again when they change, which is looked for every second.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol, TypeVar, cast

from xenoglot.errors import FailureError, whereabouts
from xenoglot.gateway.ledger.recorder import OUTAGE
from xenoglot.policy.limits.money_budget import (
    UPSTREAM,
    Budget,
    BudgetClaim,
    BudgetUse,
    concerns,
    remaining,
)
from xenoglot.store.ledger import budgets
from xenoglot.store.ledger.budgets import BudgetBatch, BudgetOutcome, added, bounds_of, decided
from xenoglot.store.records import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from xenoglot.gateway.config.ledger import LedgerSettings
    from xenoglot.model.json import JSONObject
    from xenoglot.policy.limits.money_budget import BudgetDecision
    from xenoglot.store.ledger.budgets import BudgetRequest
    from xenoglot.store.queries import Database
    from xenoglot.store.store import TimedStore

T = TypeVar("T")

POLL_SECONDS: Final = 1.0
RETRY_SECONDS: Final = 1.0
MOST_SHOWN: Final = 200
"""Budgets in the metrics."""
PERCENT: Final = 100
MICRO: Final = 1_000_000

_logger = logging.getLogger("xenoglot.gateway")


class BudgetService:
    """The budgets of the configuration (`fixed`) and of the store."""

    def __init__(self, store: TimedStore, settings: LedgerSettings, fixed: Sequence[Budget] = ()) -> None:
        self.unpriced = settings.unpriced
        self.active = bool(fixed)
        """Whether there is any budget."""
        self.failing = False
        """Whether the last transaction failed."""
        self.uses: dict[str, BudgetUse] = {}
        """What was last known to be used of each budget."""
        self._store = store
        self._database = cast("Database", store.store)
        self._refuses = settings.on_outage == "refuse"
        self._fixed = {budget.id: budget for budget in fixed}
        self._budgets: dict[str, Budget] = {}
        self._common: tuple[Budget, ...] = ()
        self._upstreams: dict[str, tuple[Budget, ...]] = {}
        self._stamp: object = None
        self._process = secrets.token_hex(12)
        self._number = 1
        self._unsure: Mapping[tuple[str, int], BudgetUse] | None = None
        """The changes of the last transaction, if it failed: it may have been committed."""
        self._waiting: list[tuple[BudgetRequest, asyncio.Future[BudgetOutcome]]] = []
        self._changes: dict[tuple[str, int], BudgetUse] = {}
        self._retry_at = 0.0
        self._task: asyncio.Task[None] | None = None
        self._polling: asyncio.Task[None] | None = None
        self._told: set[tuple[str, int, str]] = set()
        """Warnings that were logged, by budget and period."""
        self._define(())

    @property
    def budgets(self) -> Mapping[str, Budget]:
        """All budgets, by their ids."""
        return self._budgets

    def is_fixed(self, name: str) -> bool:
        """Return whether the budget with this id is one of the configuration."""
        return name in self._fixed

    async def start(self) -> None:
        """Read the budgets of the store, and look for changes from now on."""
        await self._poll()
        self._polling = asyncio.get_running_loop().create_task(self._look())

    def common(self, tenant: str | None, key: str | None, model: str) -> list[Budget]:
        """Return the budgets that concern a request at any upstream."""
        return [budget for budget in self._common if concerns(budget, tenant, key, model)]

    def of_client(self, tenant: str | None, key: str | None) -> list[Budget]:
        """Return the budgets of a key and of its tenant."""
        return [one for one in self._common if one.kind in ("tenant", "key") and concerns(one, tenant, key, "")]

    def of_upstream(self, name: str) -> tuple[Budget, ...]:
        """Return the budgets of an upstream."""
        return self._upstreams.get(name, ())

    async def reserve(self, request: BudgetRequest) -> tuple[BudgetDecision, BudgetOutcome]:
        """Return whether a request may be sent; what it may cost is reserved then.

        Raises:
            FailureError: the store cannot be used, and no request may be answered that cannot be recorded.
        """
        if self.failing and asyncio.get_running_loop().time() < self._retry_at:
            outcome = self._decide_alone((request,))
            return outcome.decisions[0], outcome
        future: asyncio.Future[BudgetOutcome] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, future))
        self._begin()
        try:
            outcome = await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                made = future.result()
                self._give_back(made.decisions[0], made)
            raise
        self._warn(outcome)
        return outcome.decisions[0], outcome

    def change(self, changes: Iterable[tuple[str, int, BudgetUse]]) -> None:
        """Have changes of use written, each of a budget and a bucket; it waits for nothing."""
        for name, bucket, use in changes:
            place = (name, bucket)
            self._changes[place] = added(self._changes.get(place, BudgetUse()), use)
            if name in self.uses:
                self.uses[name] = added(self.uses[name], use)
        self._begin()

    async def show(self, wanted: Sequence[Budget] | None = None) -> dict[str, BudgetUse]:
        """Return what is used of budgets now, of all gateways; what waits here is written before.

        Raises:
            StoreError: the store fails.
        """
        await self.flush()
        chosen = list(self._budgets.values()) if wanted is None else wanted
        found = await self._store.within(self._database.read(budgets.uses(chosen, self._store.now())))
        self.uses |= found
        return found

    async def refresh(self) -> None:
        """Read the budgets of the store now.

        Raises:
            StoreError: the store fails.
        """
        self._define(await self._store.within(self._database.read(budgets.definitions())))

    async def flush(self) -> None:
        """Write what waits."""
        self._begin()
        while self._task is not None:
            await asyncio.wait({self._task})
            if self.failing:
                break

    async def aclose(self) -> None:
        """Write what waits; what cannot be written is lost: it stays reserved."""
        if self._polling is not None:
            self._polling.cancel()
            with suppress(asyncio.CancelledError):
                await self._polling
        self._retry_at = 0.0
        await self.flush()
        if self._changes or self._unsure:
            _logger.error("costs of requests are not counted in budgets: the store cannot be written")

    def _begin(self) -> None:
        if self._task is None and (self._waiting or self._changes or self._unsure):
            loop = asyncio.get_running_loop()
            if self.failing and loop.time() < self._retry_at:
                return
            self._task = loop.create_task(self._run())

    async def _run(self) -> None:
        try:
            while self._waiting or self._changes or self._unsure:
                await self._write()
        except Exception as error:  # noqa: BLE001  whatever it is: requests are decided, changes wait
            self._fail(error)
        finally:
            self._task = None

    async def _write(self) -> None:
        """Write what waits in one transaction, after the last one if that failed."""
        if self._unsure is not None:
            await self._transact(self._unsure, (), again=True)
        changes, self._changes = self._changes, {}
        self._unsure = changes
        waiting = [one for one in self._waiting if not one[1].done()]
        self._waiting = waiting[:]
        outcome = await self._transact(changes, [request for request, _ in waiting])
        self._waiting = self._waiting[len(waiting) :]
        for (_, future), decision in zip(waiting, outcome.decisions, strict=True):
            if future.done():
                self._give_back(decision, outcome)
            else:
                future.set_result(BudgetOutcome((decision,), outcome.uses, outcome.bounds))

    async def _transact(
        self, changes: Mapping[tuple[str, int], BudgetUse], requests: Sequence[BudgetRequest], *, again: bool = False
    ) -> BudgetOutcome:
        batch = BudgetBatch(
            process=self._process,
            number=self._number,
            now=self._store.now(),
            changes=changes,
            requests=requests,
            again=again,
        )
        outcome = await self._store.within(self._database.write(budgets.write(batch)))
        self._number += 1
        self._unsure = None
        if self.failing:
            _logger.info("budgets are counted in the store again")
        self.failing = False
        self.uses |= outcome.uses
        return outcome

    def _give_back(self, decision: BudgetDecision, outcome: BudgetOutcome) -> None:
        """Give back what was reserved for a request that waits no longer."""
        for claim in decision.claims:
            use = BudgetUse(0, -(claim.amount or 0), -int(claim.amount is None))
            self.change([(claim.budget.id, outcome.bounds[claim.budget.id].bucket, use)])

    def _fail(self, error: Exception) -> None:
        """Decide what waits by what is known here."""
        if not self.failing:
            _logger.error("budgets are not counted in the store, the last known use holds: %s", whereabouts(error))
        self.failing = True
        loop = asyncio.get_running_loop()
        self._retry_at = loop.time() + RETRY_SECONDS
        waiting, self._waiting = self._waiting, []
        for request, future in waiting:
            if future.done():
                continue
            try:
                future.set_result(self._decide_alone((request,)))
            except FailureError as refusal:
                future.set_exception(refusal)

    def _decide_alone(self, requests: Sequence[BudgetRequest]) -> BudgetOutcome:
        if self._refuses:
            raise FailureError(OUTAGE)
        now = self._store.now()
        concerned = {claim.budget.id: claim.budget for request in requests for claim in request.claims}
        for name in concerned:
            self.uses.setdefault(name, BudgetUse())
        bounds = {name: bounds_of(budget, now) for name, budget in concerned.items()}
        outcome, reserved = decided(requests, self.uses, bounds)
        for place, use in reserved.items():
            self._changes[place] = added(self._changes.get(place, BudgetUse()), use)
        return outcome

    def _warn(self, outcome: BudgetOutcome) -> None:
        """Log, once in each period, that a budget has come to its warning, or is exceeded."""
        for decision in outcome.decisions:
            for exceeded in decision.exceeded:
                self._tell(exceeded, outcome, "exceeded")
        for name, bounds in outcome.bounds.items():
            budget, use = self._budgets.get(name), outcome.uses[name]
            if budget is None or budget.warn_at is None or (name, bounds.bucket, "warning") in self._told:
                continue
            if use.spent * PERCENT >= budget.warn_at * budget.amount:
                self._tell(budget, outcome, "warning")

    def _tell(self, budget: Budget, outcome: BudgetOutcome, event: str) -> None:
        use = outcome.uses[budget.id]
        if (place := (budget.id, outcome.bounds[budget.id].bucket, event)) in self._told:
            return
        if len(self._told) >= MOST_SHOWN * MOST_SHOWN:
            self._told.clear()
        self._told.add(place)
        _logger.warning(
            "budget %s: %s (%s, %s): spent %s, reserved %s of %s",
            event,
            budget.id,
            budget.scope,
            budget.period,
            money(use.spent),
            money(use.reserved),
            f"{money(budget.amount)} {budget.currency}",
            extra={"event": f"budget_{event}", "fields": _logged(budget, use)},
        )

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(POLL_SECONDS)
            await self._poll()
            self._begin()

    async def _poll(self) -> None:
        """Read definitions that have changed, and what is used of the budgets."""
        if not self._fixed and not self._store.store.has_history():
            return
        try:
            stamp = await self._store.within(self._database.read(budgets.stamp()))
            if stamp != self._stamp:
                await self.refresh()
                self._stamp = stamp
            if self._budgets and not self._changes and not self.failing:
                shown = list(self._budgets.values())[:MOST_SHOWN]
                self.uses |= await self._store.within(self._database.read(budgets.uses(shown, self._store.now())))
        except StoreError as error:
            _logger.debug("budgets are not read: %s", error)

    def _define(self, stored: Iterable[Budget]) -> None:
        self._budgets = found = {**{budget.id: budget for budget in stored}, **self._fixed}
        self._common = tuple(budget for budget in found.values() if budget.kind != UPSTREAM)
        names = {budget.name for budget in found.values() if budget.kind == UPSTREAM}
        self._upstreams = {
            name: tuple(budget for budget in found.values() if budget.scope == f"{UPSTREAM}:{name}") for name in names
        }
        self.uses = {name: use for name, use in self.uses.items() if name in found}
        self.active = bool(found)

    def remaining(self) -> list[tuple[Budget, int]]:
        """Return what was last known to remain of each budget, for the metrics."""
        shown = list(self._budgets.values())[:MOST_SHOWN]
        return [(budget, remaining(budget, self.uses[budget.id])) for budget in shown if budget.id in self.uses]


def _logged(budget: Budget, use: BudgetUse) -> JSONObject:
    """Return what a line of the log has of a budget, in micro-units."""
    return {
        "budget": budget.id,
        "scope": budget.scope,
        "period": budget.period,
        "currency": budget.currency,
        "amount": budget.amount,
        "spent": use.spent,
        "reserved": use.reserved,
    }


def claims_of(common: Iterable[Budget], upstreams: Mapping[str, Iterable[Budget]], cost: Cost) -> list[BudgetClaim]:
    """Return what a request may cost of `common` budgets, and of those of each upstream; `cost` gives amounts."""
    claims = [BudgetClaim(budget, cost(budget, None)) for budget in common]
    for name, own in upstreams.items():
        claims += [BudgetClaim(budget, cost(budget, name), name) for budget in own]
    return claims


class Cost(Protocol):
    """Gives what a request may cost."""

    def __call__(self, budget: Budget, upstream: str | None, /) -> int | None:
        """Return an amount in the budget's currency: the most at `upstream`, or at any; `None` if no price is known."""
        ...


def money(amount: int) -> str:
    """Return micro-units as a decimal number."""
    sign, size = ("-", -amount) if amount < 0 else ("", amount)
    return f"{sign}{size // MICRO}.{size % MICRO:06}"
