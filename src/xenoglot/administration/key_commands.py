"""The command `xenoglot keys`: API keys in the store of a gateway, which may run meanwhile."""

from __future__ import annotations

import asyncio
import getpass
import os
import time
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar, cast

import msgspec

from xenoglot import model_selection
from xenoglot.codec.json.json_io import encode_json
from xenoglot.errors import ConfigurationError
from xenoglot.store.ledger import api_keys
from xenoglot.store.ledger.api_keys import KeyConflictError, KeyFilter
from xenoglot.store.ledger.interval import until
from xenoglot.store.location import OFF, open_store
from xenoglot.store.records import StoreError
from xenoglot.usage_commands import moment, table

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from xenoglot.gateway.auth.managed_keys import KeyUpdate
    from xenoglot.gateway.config.limits import LimitSettings
    from xenoglot.gateway.config.load import Config
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.store.ledger.api_keys import StoredKey
    from xenoglot.store.ledger.audit import Change
    from xenoglot.store.queries import Database, Steps

    Parser = TypeVar("Parser", bound=argparse.ArgumentParser)
    T = TypeVar("T")

ROLES: Final = ("client", "viewer", "admin")
LISTED: Final = ("id", "name", "tenant", "roles", "models", "key", "state", "expires", "last_used")
TIMES: Final = ("created", "expires", "disabled", "last_used")
COUNTS: Final = ("concurrency", "queue", "queue_seconds")
WINDOWS: Final = ("requests", "tokens")


def add_commands(
    commands: argparse._SubParsersAction[Parser], say: Callable[[str], None], note: Callable[[str], None]
) -> None:
    """Add the command to a parser. Results go to `say`, everything else to `note`."""
    keys = commands.add_parser(
        "keys",
        help="create, list, rotate and disable API keys of the gateway",
        description="Manage the API keys in the store of a gateway. A running gateway accepts changes within a second.",
    )
    actions = keys.add_subparsers(title="actions", required=True, metavar="ACTION")
    create = actions.add_parser("create", help="create a key and print it, once")
    model_selection.add_config(create)
    create.add_argument("--tenant", metavar="NAME", help="tenant that the key belongs to (default: none)")
    create.add_argument("--name", metavar="NAME", help="name of the key in reports and logs (default: generated)")
    create.add_argument(
        "--models",
        metavar="NAMES",
        nargs="+",
        action="extend",
        default=[],
        help="allowed models, patterns allowed (default: all)",
    )
    create.add_argument(
        "--expires", metavar="TIME", default="never", help="12h, 90d, 52w from now, a date, `never` (never)"
    )
    create.add_argument("--role", choices=ROLES, action="append", help="what the key may do (default: client)")
    create.add_argument(
        "--limit",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="requests=60/1m, tokens=2000000/1d, concurrency=8 (repeatable)",
    )
    create.add_argument(
        "--budget", metavar="AMOUNT", action="append", default=[], help="money for a period: 50/month (repeatable)"
    )
    _add_json(create)
    create.set_defaults(run=partial(_create, say=say, note=note))

    listed = actions.add_parser("list", help="list keys, the newest first")
    model_selection.add_config(listed)
    listed.add_argument("--tenant", metavar="NAME", help="only this tenant")
    _add_json(listed)
    listed.set_defaults(run=partial(_list, say=say))

    show = _with_key(actions.add_parser("show", help="show one key"))
    show.set_defaults(run=partial(_show, say=say))
    rotate = _with_key(actions.add_parser("rotate", help="replace a key by a new one and print it, once"))
    rotate.add_argument(
        "--keep-old", metavar="TIME", default="24h", help="how long the old one still works: 30m, 24h, 7d, or 0 (24h)"
    )
    rotate.set_defaults(run=partial(_rotate, say=say, note=note))
    disable = _with_key(actions.add_parser("disable", help="have gateways refuse a key"))
    disable.set_defaults(run=partial(_disable, say=say, disabled=True))
    enable = _with_key(actions.add_parser("enable", help="have gateways accept a disabled key again"))
    enable.set_defaults(run=partial(_disable, say=say, disabled=False))


def _with_key(parser: Parser) -> Parser:
    model_selection.add_config(parser)
    parser.add_argument("key", metavar="KEY", help="name or id of the key")
    _add_json(parser)
    return parser


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, one object a line")


def _create(options: argparse.Namespace, say: Callable[[str], None], note: Callable[[str], None]) -> int:
    from xenoglot.gateway.auth import managed_keys  # noqa: PLC0415  only this command needs it

    now = time.time()
    wanted = managed_keys.KeyRequest(
        tenant=options.tenant,
        name=options.name,
        roles=tuple(options.role or ("client",)),
        models=tuple(name for names in options.models for name in names.split(",") if name),
        limits=_limits(options.limit),
        budgets=tuple(options.budget),
        expires=_time("--expires", options.expires, now),
    )
    try:
        secret, steps = managed_keys.create(wanted, user_change(now))
    except managed_keys.InvalidKeyError as error:
        raise ConfigurationError(str(error)) from None
    config = model_selection.config_of(options)
    key = _run(config, steps, writes=True)
    _tell_secret(options, key, secret, say)
    if not options.json:
        owner = "" if key.tenant is None else f" for tenant {key.tenant}"
        end = "does not expire" if key.expires is None else f"expires {moment(key.expires, 'second')}"
        note(f"created {key.id} ({key.name}){owner}; {end}; the key is not shown again")
    if not config.keys.store:
        note("note: gateways of this configuration do not accept it: set `store = true` under [keys]")
    return 0


def _list(options: argparse.Namespace, say: Callable[[str], None]) -> int:
    config, now = model_selection.config_of(options), time.time()
    found: list[StoredKey] = []
    while page := _run(config, api_keys.listed(_page(options, found))):
        found += page
        if len(page) < api_keys.MOST_KEYS:
            break
    if options.json:
        for key in found:
            say(encode_json(key.public()).decode())
    else:
        rows = [_readable(key, now) for key in found]
        say(table(LISTED, [{name: row[name] for name in LISTED} for row in rows]))
    return 0


def _page(options: argparse.Namespace, found: Sequence[StoredKey]) -> KeyFilter:
    after = found[-1].id if found else None
    return KeyFilter(tenant=options.tenant, after=after, limit=api_keys.MOST_KEYS)


def _show(options: argparse.Namespace, say: Callable[[str], None]) -> int:
    key = _found(options.key, _run(model_selection.config_of(options), api_keys.get(options.key)))
    if options.json:
        say(encode_json(key.public()).decode())
        return 0
    row = _readable(key, time.time())
    width = max(map(len, row))
    for name, value in row.items():
        if value not in (None, ""):
            say(f"{name:{width}}  {value}")
    return 0


def _rotate(options: argparse.Namespace, say: Callable[[str], None], note: Callable[[str], None]) -> int:
    from xenoglot.gateway.auth import managed_keys  # noqa: PLC0415  as above

    now = time.time()
    end = now if options.keep_old == "0" else _time("--keep-old", options.keep_old, now)
    if end is None:
        raise ConfigurationError("--keep-old: the old key has to expire; expected a time like 24h or 7d")
    secret, steps = managed_keys.rotate(options.key, user_change(now), end)
    key = _found(options.key, _run(model_selection.config_of(options), steps, writes=True))
    _tell_secret(options, key, secret, say)
    if not options.json:
        old = "no longer works" if end <= now else f"works until {moment(end, 'second')}"
        note(f"rotated {key.id} ({key.name}); the old key {old}; the new one is not shown again")
    return 0


def _disable(options: argparse.Namespace, say: Callable[[str], None], *, disabled: bool) -> int:
    from xenoglot.gateway.auth import managed_keys  # noqa: PLC0415  as above

    wanted: KeyUpdate = managed_keys.KeyUpdate(disabled=disabled)
    steps = managed_keys.update(options.key, wanted, user_change(time.time()))
    key = _found(options.key, _run(model_selection.config_of(options), steps, writes=True))
    say(
        encode_json(key.public()).decode()
        if options.json
        else f"{'disabled' if disabled else 'enabled'} {key.id} ({key.name})"
    )
    return 0


def _tell_secret(options: argparse.Namespace, key: StoredKey, secret: str, say: Callable[[str], None]) -> None:
    """Print a secret: alone, so that a shell can put it into a variable, or with its key as JSON."""
    say(encode_json({**key.public(), "secret": secret}).decode() if options.json else secret)


def _run(config: Config, steps: Steps[T], *, writes: bool = False) -> T:
    """Return the result of queries of the store of a configuration.

    Raises:
        ConfigurationError: no other process can open that store, or it cannot be used.
    """
    if config.store_url in ("memory", OFF):
        raise ConfigurationError(f'[store] url = "{config.store_url}": keys need a store that other processes can open')
    store = open_store(config.store_url, os.environ)
    if store is None or (not writes and not store.has_history()):
        raise ConfigurationError("there are no keys yet: create one with `xenoglot keys create`")

    async def ask() -> T:
        database = cast("Database", store)
        try:
            return await (database.write(steps) if writes else database.read(steps))
        finally:
            await store.aclose()

    try:
        return asyncio.run(ask())
    except StoreError as error:
        raise ConfigurationError(f"the keys cannot be {'written' if writes else 'read'}: {error}") from None
    except KeyConflictError as error:
        raise ConfigurationError(f"{error}: choose another name with `--name`") from None


def _found(reference: str, key: StoredKey | None) -> StoredKey:
    if key is None:
        raise ConfigurationError(f"no key has the name or id `{reference}`; `xenoglot keys list` lists them")
    return key


def user_change(now: float) -> Change:
    """Return a change by the person at the command line, for the audit log."""
    from xenoglot.gateway.auth.managed_keys import new_change  # noqa: PLC0415  as above

    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # an id without a name
        user = str(os.getuid())
    return new_change(now, f"cli:{user}")


def _time(flag: str, text: str, now: float) -> float | None:
    try:
        return until(text, now)
    except ValueError as error:
        raise ConfigurationError(f"{flag}: {error}") from None


def _limits(texts: Sequence[str]) -> LimitSettings | None:
    """Return the limits of flags such as `requests=60/1m`."""
    from xenoglot.gateway.config.limits import LimitSettings  # noqa: PLC0415  as above

    plain: dict[str, list[str] | str] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name in WINDOWS:
            windows = plain.setdefault(name, [])
            assert isinstance(windows, list)  # noqa: S101  for its type
            windows.append(value)
        elif name in COUNTS:
            plain[name] = value
        else:
            raise ConfigurationError(f"--limit: found `{text}`; expected NAME=VALUE with {', '.join(WINDOWS + COUNTS)}")
    try:
        return msgspec.convert(plain, LimitSettings, strict=False) if plain else None
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"--limit: {error}") from None


def _readable(key: StoredKey, now: float) -> dict[str, JSON]:
    values: JSONObject = key.public()
    for name in TIMES:
        values[name] = None if values[name] is None else moment(values[name], "second")
    for name in ("roles", "models", "budgets"):
        values[name] = ",".join(values[name])
    values["limits"] = None if key.limits is None else encode_json(key.limits).decode()
    return {**values, "key": f"...{values.pop('shown')}", "state": key.state(now)}
