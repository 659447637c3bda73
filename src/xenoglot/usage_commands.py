"""The commands `xenoglot usage` and `xenoglot requests`: what the ledger of a gateway has, as a table, CSV or JSON."""

from __future__ import annotations

import asyncio
import csv
import os
import sys
import time
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar, cast

from msgspec.structs import asdict

from xenoglot import model_selection
from xenoglot.codec.json.json_io import encode_json
from xenoglot.errors import ConfigurationError
from xenoglot.store.ledger import api_keys, bodies, queries
from xenoglot.store.ledger.interval import since
from xenoglot.store.ledger.queries import GROUPS, RequestFilter, UsageFilter
from xenoglot.store.ledger.tail import POLL_SECONDS, RequestTail
from xenoglot.store.ledger.usage_sums import SUMS
from xenoglot.store.location import open_store
from xenoglot.store.records import StoreError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from xenoglot.model.json import JSON
    from xenoglot.store.ledger.bodies import CaptureRow
    from xenoglot.store.ledger.rows import RequestRow
    from xenoglot.store.queries import Database, Steps

    Parser = TypeVar("Parser", bound=argparse.ArgumentParser)
    T = TypeVar("T")

MICRO: Final = 1_000_000
MONEY: Final = ("cost", "amount", "spent", "reserved", "remaining")
"""Columns of amounts, which are text in tables."""
SHOWN: Final = ("requests", "failures", "input", "output", "cache_read", "cost", "unpriced", "estimated")
"""Sums in the table; CSV and JSON have all."""
LISTED: Final = (
    "id",
    "time",
    "tenant",
    "model",
    "upstream",
    "status",
    "input",
    "output",
    "cost",
    "total_ms",
    "failure",
)


def add_commands(commands: argparse._SubParsersAction[Parser], say: Callable[[str], None]) -> None:
    """Add the commands to a parser; each sets `run`, which takes the options and returns the exit code."""
    usage = commands.add_parser(
        "usage",
        help="report usage and cost from the gateway's ledger",
        description="Report tokens, requests and cost by tenant, model and others, from the ledger of a gateway.",
    )
    usage.add_argument(
        "--by",
        metavar="NAMES",
        default="tenant,model",
        help=f"group by some of {', '.join(GROUPS)}, tag:NAME (tenant,model)",
    )
    _add_period(usage)
    usage.add_argument("--tenant", metavar="NAME", help="only this tenant")
    form = usage.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="print comma-separated values, costs in micro-units")
    form.add_argument("--json", action="store_true", help="print one JSON object a line, costs in micro-units")
    usage.set_defaults(run=partial(_usage, say=say))

    requests = commands.add_parser(
        "requests",
        help="list or follow requests of the gateway's ledger, or show one",
        description="List requests that a gateway recorded in its ledger, print them as they end, or show one.",
    )
    actions = requests.add_subparsers(title="actions", required=True, metavar="ACTION")
    tail = actions.add_parser("tail", help="print requests as they end")
    model_selection.add_config(tail)
    tail.add_argument("--since", metavar="TIME", help="begin with requests that ended then: 30m ago, or a date (now)")
    tail.add_argument("--tenant", metavar="NAME", help="only this tenant")
    tail.add_argument("--model", metavar="NAME", help="only this model, as clients name it")
    tail.add_argument("--failed", action="store_true", help="only requests that failed")
    tail.add_argument("--limit", type=int, metavar="N", help="end after so many requests (never)")
    tail.add_argument("--json", action="store_true", help="print one JSON object a line, costs in micro-units")
    tail.set_defaults(run=partial(_tail, say=say))
    listed = actions.add_parser("list", help="list requests, the newest first")
    _add_period(listed)
    listed.add_argument("--tenant", metavar="NAME", help="only this tenant")
    listed.add_argument("--model", metavar="NAME", help="only this model, as clients name it")
    listed.add_argument("--failed", action="store_true", help="only requests that failed")
    listed.add_argument("--limit", type=int, metavar="N", default=50, help="at most so many (50)")
    listed.add_argument("--json", action="store_true", help="print one JSON object a line, costs in micro-units")
    listed.set_defaults(run=partial(_list, say=say))
    show = actions.add_parser("show", help="show one request")
    model_selection.add_config(show)
    show.add_argument("--bodies", action="store_true", help="print the captured bodies, too")
    show.add_argument("id", metavar="ID", help="the id of the request: header `x-request-id` of the response")
    show.set_defaults(run=partial(_show, say=say))


def _add_period(parser: argparse.ArgumentParser) -> None:
    model_selection.add_config(parser)
    parser.add_argument("--since", metavar="TIME", default="7d", help="30m, 24h, 7d or 4w ago, or a date (7d)")


def _usage(options: argparse.Namespace, say: Callable[[str], None]) -> int:
    by = [name for name in options.by.split(",") if name]
    if unknown := [name for name in by if not queries.is_group(name)]:
        raise ConfigurationError(f"--by: `{unknown[0]}`: expected one of {queries.EXPECTED}")
    which = UsageFilter(since=_since(options) // 3600 * 3600, tenant=options.tenant)
    rows, names = _read(options, _with_names(queries.usage(by, which)))
    if "key" in by:
        names = {**_names_of_file(options), **names}
        rows = [_with_name(row, names) for row in rows]
    if "day" in by or "hour" in by:
        for row in rows:
            row |= {name: moment(cast("float", row[name]), name) for name in ("day", "hour") if name in row}
    if options.json:
        for row in rows:
            say(encode_json(row).decode())
    elif options.csv:
        groups = [column for name in by for column in ((name, "key_name") if name == "key" else (name,))]
        _csv((*groups, "currency", *SUMS), rows)
    else:
        columns = (*by, *SHOWN, "currency")
        rows = [row | {"key": row["key_name"] or row["key"]} for row in rows] if "key" in by else rows
        say(table(columns, [row | {"cost": money(row["cost"]) if row["currency"] else ""} for row in rows]))
    return 0


def _list(options: argparse.Namespace, say: Callable[[str], None]) -> int:
    which = RequestFilter(
        since=_since(options),
        tenant=options.tenant,
        model=options.model,
        failed=options.failed or None,
        limit=options.limit,
    )
    found = _read(options, queries.requests(which))
    if options.json:
        for row in found:
            say(encode_json(asdict(row)).decode())
    else:
        say(table(LISTED, [_readable(row) for row in found]))
    return 0


def _tail(options: argparse.Namespace, say: Callable[[str], None]) -> int:
    which = RequestFilter(tenant=options.tenant, model=options.model, failed=options.failed or None)
    tail = RequestTail(which, (time.time() if options.since is None else _since(options), ""))

    async def follow(database: Database) -> int:
        left = options.limit
        while left is None or left > 0:
            for row in tail.new(await database.read(tail.steps()), time.time())[:left]:
                say(encode_json(asdict(row)).decode() if options.json else _line(row))
                left = None if left is None else left - 1
            if not tail.full and left != 0:
                await asyncio.sleep(POLL_SECONDS)
        return 0

    return _with_ledger(options, follow)


def _line(row: RequestRow) -> str:
    """Return a request as one line for a person."""
    tokens = "  ".join(
        f"{'?' if count is None else count} {name}" for count, name in ((row.input, "in"), (row.output, "out"))
    )
    parts = (
        moment(row.ended, "second"),
        row.id,
        row.tenant,
        " -> ".join(filter(None, (row.model or row.route, "/".join(filter(None, (row.upstream, row.target)))))),
        str(row.status or "-"),
        f"{row.total_ms / 1000:.1f} s",
        None if row.input is None and row.output is None else tokens,
        None if row.cost is None else f"{money(row.cost)} {row.currency}",
        f"losses {row.losses}" if row.losses else None,
        row.failure,
    )
    return "  ".join(part for part in parts if part)


def _show(options: argparse.Namespace, say: Callable[[str], None]) -> int:
    row = _read(options, queries.request(options.id))
    if row is None:
        raise ConfigurationError(f"the ledger has no request `{options.id}`")
    readable = _readable(row)
    if row.key is not None:
        names = {**_names_of_file(options), **_read(options, api_keys.names([row.key]))}
        readable = {name: value for item in readable.items() for name, value in _named_item(item, names.get(row.key))}
    width = max(map(len, readable))
    for name, value in readable.items():
        if value is not None:
            say(f"{name:{width}}  {value}")
    if options.bodies:
        _show_bodies(_read(options, bodies.captured_bodies(options.id)), say)
    return 0


def _with_names(steps: Steps[list[dict[str, JSON]]]) -> Steps[tuple[list[dict[str, JSON]], dict[str, str]]]:
    """Return sums, and the names of keys of the store in them."""
    rows = yield from steps
    names = yield from api_keys.names(sorted({str(row["key"]) for row in rows if row.get("key")}))
    return rows, names


def _names_of_file(options: argparse.Namespace) -> dict[str, str]:
    from xenoglot.gateway.auth.file_keys import key_names  # noqa: PLC0415  only reports by key need it

    return key_names(model_selection.config_of(options))


def _with_name(row: dict[str, JSON], names: Mapping[str, str]) -> dict[str, JSON]:
    """Return a row with `key_name` after its `key`."""
    name = names.get(str(row["key"]))
    return {place: value for item in row.items() for place, value in _named_item(item, name)}


def _named_item(item: tuple[str, JSON], name: str | None) -> Sequence[tuple[str, JSON]]:
    return (item, ("key_name", name)) if item[0] == "key" else (item,)


def _show_bodies(rows: Sequence[CaptureRow], say: Callable[[str], None]) -> None:
    """Print captured bodies; characters that could control a terminal are replaced."""
    if not rows:
        say("\nno captured bodies: the request was not chosen, or they have expired")
    for row in sorted(rows, key=lambda row: (*bodies.PARTS, bodies.DETAILS).index(row.part)):
        try:
            body = bodies.decompressed(row.body).decode("utf-8", "replace")
        except StoreError as error:
            body = f"({error})"
        shown = "".join(one if one.isprintable() or one == "\n" else " " for one in body)
        say(f"\n{row.part} ({row.media}), until {moment(row.expires, 'second')}\n{shown}")


def _since(options: argparse.Namespace) -> float:
    try:
        return since(options.since, time.time())
    except ValueError as error:
        raise ConfigurationError(f"--since: {error}") from None


def _read(options: argparse.Namespace, steps: Steps[T]) -> T:
    """Return the report of the ledger.

    Raises:
        ConfigurationError: see `_with_ledger`.
    """
    return _with_ledger(options, lambda database: database.read(steps))


def _with_ledger(options: argparse.Namespace, use: Callable[[Database], Awaitable[T]]) -> T:
    """Return what `use` makes of the ledger.

    Raises:
        ConfigurationError: the configuration has no store that another process could read, or it cannot be read.
    """
    config = model_selection.config_of(options)
    store = open_store(config.store_url, os.environ)
    if store is None or config.store_url == "memory" or not store.has_history():
        place = options.config or "no configuration file is found"
        problem = "the gateway has stored nothing yet" if config.ledger is not None else "it needs the table [ledger]"
        raise ConfigurationError(f"there is no ledger ({place}): {problem}")

    async def ask() -> T:
        try:
            return await use(cast("Database", store))
        finally:
            await store.aclose()

    try:
        return asyncio.run(ask())
    except StoreError as error:
        raise ConfigurationError(f"the ledger cannot be read: {error}") from None


def _readable(row: RequestRow) -> dict[str, JSON]:
    values: dict[str, JSON] = asdict(row)
    values["cost"] = None if row.cost is None else f"{money(row.cost)} {row.currency}"
    return {"id": values.pop("id"), "time": moment(values.pop("at"), "second"), **values}


def moment(seconds: float, exact: str) -> str:
    """Return a time in UTC, to the `day`, `hour` or `second`."""
    forms = {"day": "%Y-%m-%d", "hour": "%Y-%m-%dT%H:00Z"}
    return datetime.fromtimestamp(seconds, UTC).strftime(forms.get(exact, "%Y-%m-%dT%H:%M:%SZ"))


def money(amount: int) -> str:
    """Return micro-units as a decimal number."""
    if amount < 0:
        return f"-{money(-amount)}"
    return f"{amount // MICRO}.{amount % MICRO:06}"


def _csv(columns: Sequence[str], rows: Sequence[dict[str, JSON]]) -> None:
    writer = csv.DictWriter(sys.stdout, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def table(columns: Sequence[str], rows: Sequence[dict[str, JSON]]) -> str:
    """Return rows in columns: numbers to the right, a dash for what is not known."""
    cells = [[_cell(row.get(name)) for name in columns] for row in rows]
    widths = [max(len(name), *(len(line[place]) for line in cells), 0) for place, name in enumerate(columns)]
    numbers = [all(isinstance(row.get(name), int | float) or name in MONEY for row in rows) for name in columns]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(line, widths, numbers, strict=True)
        ).rstrip()
        for line in ([*columns], *cells)
    )


def _cell(value: JSON) -> str:
    return "-" if value is None or value == "" else str(value)
