"""The command `xenoglot budgets`: money budgets in the store of a gateway, which need no restart."""

from __future__ import annotations

import asyncio
import os
import time
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar, cast

from xenoglot import model_selection
from xenoglot.administration.key_commands import user_change
from xenoglot.codec.json.json_io import encode_json
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.config.ledger import BudgetSettings
from xenoglot.policy.limits.money_budget import SCOPES, Budget, BudgetUse, budget_id, remaining
from xenoglot.store.ledger import budgets
from xenoglot.store.location import open_store
from xenoglot.store.records import StoreError
from xenoglot.usage_commands import money, table

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from xenoglot.gateway.config.load import Config
    from xenoglot.model.json import JSON
    from xenoglot.store.queries import Database, Steps

    Parser = TypeVar("Parser", bound=argparse.ArgumentParser)
    T = TypeVar("T")

COLUMNS: Final = (
    "id",
    "scope",
    "period",
    "amount",
    "spent",
    "reserved",
    "remaining",
    "currency",
    "on_exceeded",
    "source",
)
AMOUNTS: Final = ("amount", "spent", "reserved", "remaining")


def add_commands(commands: argparse._SubParsersAction[Parser], say: Callable[[str], None]) -> None:
    """Add the command to a parser; each action sets `run`, which takes the options and returns the exit code."""
    parser = commands.add_parser(
        "budgets",
        help="set money budgets of a gateway, and show what remains",
        description="Limit what a tenant, key, model or upstream may cost. Gateways apply changes within a second.",
    )
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION")
    listed = actions.add_parser("list", help="list budgets with what is spent and reserved")
    model_selection.add_config(listed)
    listed.add_argument("--json", action="store_true", help="print one JSON object a line, amounts in micro-units")
    listed.set_defaults(run=partial(_list, say=say))

    put = actions.add_parser("set", help="set a budget, or change one; options that are left out keep their values")
    _add_names(put)
    put.add_argument("amount", metavar="AMOUNT", help="the most in each period, for example 50 or 0.25")
    put.add_argument("--zone", metavar="NAME", help="time zone in which periods begin (UTC)")
    put.add_argument("--warn-at", metavar="PERCENT", type=int, help="log a warning at this share of the amount")
    put.add_argument("--on-exceeded", metavar="ACTION", help="refuse, warn, or route:MODEL (refuse)")
    put.add_argument("--json", action="store_true", help="print the budget as JSON")
    put.set_defaults(run=partial(_set, say=say))

    delete = actions.add_parser("delete", help="delete a budget")
    _add_names(delete)
    delete.set_defaults(run=partial(_delete, say=say))


def _add_names(parser: argparse.ArgumentParser) -> None:
    model_selection.add_config(parser)
    parser.add_argument("scope", metavar="SCOPE", help=f"what is limited: {', '.join(SCOPES)}")
    parser.add_argument(
        "--period", metavar="NAME", default="month", help="day, week, month, total, rolling:30d (month)"
    )
    parser.add_argument("--currency", metavar="CODE", default="USD", help="code of the currency (USD)")


def _list(options: argparse.Namespace, say: Callable[[str], None]) -> int:
    config = _config(options)
    fixed = {one.budget().id: one.budget() for one in config.budgets}
    now = time.time()

    def steps() -> Steps[tuple[list[Budget], dict[str, BudgetUse]]]:
        stored = yield from budgets.definitions()
        every = [*fixed.values(), *(budget for budget in stored if budget.id not in fixed)]
        return every, (yield from budgets.uses(every, now))

    every, uses = _run(config, steps(), write=False)
    rows = [_row(budget, uses[budget.id], now, "file" if budget.id in fixed else "store") for budget in every]
    if options.json:
        for row in rows:
            say(encode_json(row).decode())
    else:
        say(table(COLUMNS, [row | {name: money(cast("int", row[name])) for name in AMOUNTS} for row in rows]))
    return 0


def _set(options: argparse.Namespace, say: Callable[[str], None]) -> int:
    config = _config(options)
    name = _name(options, config)
    before = _run(config, budgets.find(name), write=True)
    known = before or Budget(id=name, scope=options.scope, amount=0)
    settings = BudgetSettings(
        scope=options.scope,
        amount=options.amount,
        currency=options.currency,
        period=options.period,
        zone=known.zone if options.zone is None else options.zone,
        warn_at=known.warn_at if options.warn_at is None else options.warn_at,
        on_exceeded=known.on_exceeded if options.on_exceeded is None else options.on_exceeded,
    )
    for setting, problem in settings.problems():
        raise ConfigurationError(f"{setting.upper() if setting in ('scope', 'amount') else _flag(setting)}: {problem}")
    budget = settings.budget()
    _run(config, budgets.put(budget, user_change(time.time())), write=True)
    if options.json:
        say(encode_json(_plain(budget)).decode())
    else:
        say(f"{budget.id}: {budget.scope} {money(budget.amount)} {budget.currency} ({budget.period})")
    return 0


def _delete(options: argparse.Namespace, say: Callable[[str], None]) -> int:
    config = _config(options)
    deleted = _run(config, budgets.delete(_name(options, config), user_change(time.time())), write=True)
    if deleted is None:
        raise ConfigurationError(
            f"there is no budget for `{options.scope}` with the period {options.period} and the currency "
            f"{options.currency}; `xenoglot budgets list` shows all"
        )
    say(f"deleted {deleted.id}")
    return 0


def _config(options: argparse.Namespace) -> Config:
    config = model_selection.config_of(options)
    if config.ledger_settings is None:
        raise ConfigurationError("budgets need the ledger: add a table [ledger] to the configuration")
    return config


def _name(options: argparse.Namespace, config: Config) -> str:
    """Return the id of the budget that the options name.

    Raises:
        ConfigurationError: it is set in the configuration.
    """
    name = budget_id(options.scope, options.period, options.currency)
    if any(one.budget().id == name for one in config.budgets):
        raise ConfigurationError(f"the budget for `{options.scope}` is set in the configuration: change it there")
    return name


def _run(config: Config, steps: Steps[T], *, write: bool) -> T:
    """Return the result of queries.

    Raises:
        ConfigurationError: the configuration has no store that another process could read, or it cannot be used.
    """
    store = open_store(config.store_url, os.environ)
    if store is None or config.store_url == "memory" or not (write or store.has_history()):
        raise ConfigurationError("there is no ledger yet: the gateway of this configuration has stored nothing")

    async def run() -> T:
        database = cast("Database", store)
        try:
            return await (database.write(steps) if write else database.read(steps))
        finally:
            await store.aclose()

    try:
        return asyncio.run(run())
    except StoreError as error:
        raise ConfigurationError(f"the store cannot be used: {error}") from None


def _row(budget: Budget, use: BudgetUse, now: float, source: str) -> dict[str, JSON]:
    ends = budgets.bounds_of(budget, now).ends
    return _plain(budget) | {
        "spent": use.spent,
        "reserved": use.reserved,
        "remaining": remaining(budget, use),
        "unpriced": use.unpriced,
        "resets_at": None if ends is None else f"{datetime.fromtimestamp(ends, UTC):%Y-%m-%dT%H:%M:%SZ}",
        "source": source,
    }


def _plain(budget: Budget) -> dict[str, JSON]:
    return {name: getattr(budget, name) for name in budgets.DEFINITION}


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
