"""The command `xenoglot doctor`: whether a gateway of this configuration would work, one line for each check."""

from __future__ import annotations

import asyncio
import os
import time
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, TypeVar, cast

from msgspec import Struct

from xenoglot import model_selection
from xenoglot.codec.json.json_io import encode_json
from xenoglot.errors import ConfigurationError, FailureError
from xenoglot.store.ledger.prices import prices
from xenoglot.store.location import OFF, open_store
from xenoglot.store.records import StoreError

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Awaitable, Callable

    from xenoglot.backends.http.client import Transport
    from xenoglot.gateway.config.load import Config
    from xenoglot.gateway.config.settings import UpstreamSettings
    from xenoglot.store.ledger.prices import StoredPrice
    from xenoglot.store.queries import Database

    Parser = TypeVar("Parser", bound=argparse.ArgumentParser)

UPSTREAM_SECONDS: Final = 10.0
MOST_SKEW: Final = 30.0
"""Seconds by which clocks may differ."""
MOST_NAMED: Final = 5
HEALTHY, UNHEALTHY = 0, 1


class CheckResult(Struct, frozen=True):
    """The result of a check; `remedy` is what to do, unless all is well."""

    level: Literal["ok", "warn", "fail"]
    what: str
    detail: str
    remedy: str | None = None


def add_command(commands: argparse._SubParsersAction[Parser], say: Callable[[str], None]) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "doctor",
        help="check configuration, upstreams, store, clock and prices",
        description="Check what a gateway of this configuration needs: the configuration itself, whether each upstream "
        "can be reached with its key, executors of hosted tools, the store, the clock, prices and keys. The exit code "
        "is 1 if anything fails.",
    )
    model_selection.add_config(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    parser.set_defaults(run=partial(_run, say=say))


def _run(options: argparse.Namespace, say: Callable[[str], None]) -> int:
    async def report() -> bool:
        healthy = True
        async for finding in _findings(options):
            healthy = healthy and finding.level != "fail"
            say(encode_json(finding).decode() if options.json else _line(finding))
        return healthy

    return HEALTHY if asyncio.run(report()) else UNHEALTHY


def _line(finding: CheckResult) -> str:
    text = f"{finding.level:4}  {finding.what:22}  {finding.detail}"
    return text if finding.remedy is None else f"{text}; {finding.remedy}"


async def _findings(options: argparse.Namespace) -> AsyncIterator[CheckResult]:
    """Yield what each check finds; without a valid configuration there are no others."""
    try:
        config = model_selection.config_of(options)
    except ConfigurationError as error:
        detail = " ".join(str(error).split())
        yield CheckResult("fail", "configuration", detail, "see docs/configuration.md")
        return
    upstreams, models = len(config.upstreams), len(config.models)
    yield CheckResult(
        "ok", "configuration", f"{options.config or 'flags and defaults'}: {upstreams} upstreams, {models} models"
    )
    skews: list[float] = []
    for name, upstream in config.upstreams.items():
        yield await _upstream(name, upstream, config, skews)
    async for found in _tools(config):
        yield found
    store, stored = await _store(config)
    yield store
    yield _clock(skews)
    yield await asyncio.to_thread(_prices, config, stored)
    yield _keys(config)


async def _upstream(name: str, upstream: UpstreamSettings, config: Config, skews: list[float]) -> CheckResult:
    """Return whether an upstream lists its models; note by how many seconds its clock is ahead of ours."""
    from xenoglot.backends.http.client import Transport  # noqa: PLC0415  `--help` must not need the extra
    from xenoglot.gateway.config.proxies import proxy_of  # noqa: PLC0415
    from xenoglot.gateway.process.build import build_remote, without_deadline  # noqa: PLC0415

    what = f"upstream {name}"
    proxy = proxy_of(upstream, config.secrets, os.environ)
    transport = Transport(deadlines=without_deadline(upstream.deadlines), proxy=proxy)
    remedy = f"see `base_url` and `key_env` under [upstreams.{name}]"
    try:
        async with asyncio.timeout(UPSTREAM_SECONDS):
            models = await build_remote(name, upstream, transport, config).models()
            skews += await _skew(transport, upstream.base_url)
    except TimeoutError:
        return CheckResult("fail", what, f"no answer within {UPSTREAM_SECONDS:g} seconds", remedy)
    except FailureError as error:
        return CheckResult(
            "fail", what, " ".join((error.failure.operator_message or error.failure.message).split()), remedy
        )
    finally:
        await transport.aclose()
    return CheckResult("ok", what, f"{upstream.base_url.partition('?')[0]}: {len(models)} models")


async def _tools(config: Config) -> AsyncIterator[CheckResult]:
    """Yield for each executor of a hosted tool, and for each MCP server, whether it works."""
    if config.tools is None:
        return
    from xenoglot.gateway.tool_execution.service import open_tool_execution  # noqa: PLC0415  as above

    try:
        async with open_tool_execution(config.tools, config.secrets) as execution:
            if execution is None:
                return
            for kind, executor in execution.executors.items():
                yield await _checked(f"tool {kind}", f"see [tools.{kind}]", executor.check)
            for name in config.tools.mcp.servers:
                yield await _checked(f"mcp {name}", f"see [tools.mcp.servers.{name}]", partial(execution.listed, name))
    except ConfigurationError as error:
        yield CheckResult("fail", "tools", " ".join(str(error).split()), "see [tools]")


async def _checked(what: str, remedy: str, check: Callable[[], Awaitable[str]]) -> CheckResult:
    try:
        async with asyncio.timeout(UPSTREAM_SECONDS):
            return CheckResult("ok", what, await check())
    except TimeoutError:
        return CheckResult("fail", what, f"no answer within {UPSTREAM_SECONDS:g} seconds", remedy)
    except ConfigurationError as error:
        return CheckResult("fail", what, " ".join(str(error).split()), remedy)


async def _skew(transport: Transport, url: str) -> list[float]:
    """Return by how many seconds the clock of a server is ahead; nothing if it does not send the time."""
    from email.utils import parsedate_to_datetime  # noqa: PLC0415  as above

    from xenoglot.backends.http.timeouts import TransportError  # noqa: PLC0415  as above

    try:
        async with await transport.send("GET", url, []) as response:
            sent = next((value for name, value in response.headers if name == "date"), None)
    except TransportError:
        return []
    try:
        return [] if sent is None else [parsedate_to_datetime(sent).timestamp() - time.time()]
    except ValueError:
        return []


async def _store(config: Config) -> tuple[CheckResult, list[StoredPrice]]:
    """Return whether the store can be used, and the prices in it."""
    if config.store.url == OFF:
        return CheckResult("ok", "store", "off: nothing is stored"), []
    store = open_store(config.store_url, os.environ)
    kind = config.store_url.partition(":")[0]
    if store is None or config.store_url == "memory":
        lost = CheckResult("warn", "store", "memory: the ledger ends with the process", "set `url` under [store]")
        return (
            lost if config.ledger is not None else CheckResult("ok", "store", "memory: it ends with the process")
        ), []
    if not store.has_history():
        return CheckResult("ok", "store", f"{kind}: it is made when the gateway stores something"), []
    try:
        found = await cast("Database", store).read(prices())
    except StoreError as error:
        return CheckResult("fail", "store", f"{kind}: {error}", "see `url` under [store]"), []
    finally:
        await store.aclose()
    return CheckResult("ok", "store", f"{kind}: it can be read"), found


def _clock(skews: list[float]) -> CheckResult:
    """Return whether the clock agrees with those of the upstreams."""
    if not skews:
        return CheckResult("ok", "clock", "not compared: no upstream sent the time")
    skew = min(skews, key=abs)
    if abs(skew) <= MOST_SKEW:
        return CheckResult("ok", "clock", "it agrees with the upstreams'")
    detail = f"{abs(skew):.0f} seconds {'behind' if skew > 0 else 'ahead of'} the upstreams'"
    return CheckResult(
        "warn", "clock", detail, "synchronize it (NTP): expiry of keys and periods of budgets depend on it"
    )


def _prices(config: Config, stored: list[StoredPrice]) -> CheckResult:
    """Return whether the price of each named model is known."""
    from xenoglot.gateway.ledger.request_cost import PriceList  # noqa: PLC0415  as above
    from xenoglot.gateway.routing.router import ANY, plans  # noqa: PLC0415

    if config.ledger_settings is None and not config.prices:
        return CheckResult("ok", "prices", "not needed: there is no ledger")
    listed = PriceList(config, time.time)
    listed.use_stored(stored)
    routes = {(route.backend, route.model) for plan in plans(config, None) for route in plan.routes}
    named = sorted(place for place in routes if place[1] != ANY and place[0] in config.upstreams)
    unknown = [f"{upstream}/{model}" for upstream, model in named if not listed.knows(upstream, model)]
    if not unknown:
        return CheckResult(
            "ok", "prices", f"known for all {len(named)} models with a name" if named else "no model is named"
        )
    more = f" and {len(unknown) - MOST_NAMED} more" if len(unknown) > MOST_NAMED else ""
    detail = f"unknown for {', '.join(unknown[:MOST_NAMED])}{more}"
    return CheckResult("warn", "prices", detail, "add [[prices]], or install the extra `prices`: their cost is null")


def _keys(config: Config) -> CheckResult:
    """Return whether clients and administrators have keys."""
    clients = len(config.client_keys) + len(config.tenants)
    if not clients:
        return CheckResult("ok", "keys", "none: only this machine can reach the gateway")
    if config.keys.admin_env:
        return CheckResult("ok", "keys", "clients and administrators have keys")
    return CheckResult(
        "warn", "keys", "no administrator has a key", "name one in `admin_env` under [keys] for the admin API"
    )
