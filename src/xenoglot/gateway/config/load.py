"""The gateway's configuration: a TOML file or a few flags, checked completely before anything starts.

    [server]                            # where it listens, and what it allows
    host = "127.0.0.1"
    port = 8080

    [keys]
    env = ["GATEWAY_KEYS"]              # clients' keys: environment variables, several keys in one separated by spaces
    admin_env = ["ADMIN_KEY"]           # who sees `/metrics` and administers the gateway
    viewer_env = ["VIEWER_KEY"]         # who sees `/metrics` and what administrators see
    store = true                        # keys of the store too: `xenoglot keys create`

    [tenants.research]                  # several keys that are one client
    key_env = "RESEARCH_KEYS"
    models = ["claude-*"]

    [upstreams.main]
    dialect = "chat"
    base_url = "https://models.example/v1"
    key_env = "MAIN_KEY"
    deadlines = { idle = 120.0 }
    target = { provider = "example", thinking = "budget" }

    [[models]]
    name = "claude-*"                   # a name, or a pattern: `*` is any number of characters
    upstream = "main"
    model = "large"                     # without it, the name as the client gave it
    defaults = { max_tokens = 4096 }
    on_loss = "refuse"

    [store]                             # answers and conversations that clients want kept
    url = "sqlite:///var/lib/xenoglot/state.db"
    max_age_days = 7

Keys stand in the environment, never in the file.
"""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from xenoglot import dialect_registry as dialects
from xenoglot.backends.remote.sign_in.settings import sign_in_problems
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.config.file_permissions import Secrets, check_file
from xenoglot.gateway.config.ledger import (
    BudgetSettings,
    CaptureSettings,
    LedgerSettings,
    PriceSettings,
    check_budgets,
    check_capture,
    check_prices,
)
from xenoglot.gateway.config.limits import LimitBackend, check_cache, check_limit_backend, check_limits
from xenoglot.gateway.config.local_models import (
    EMBEDDED,
    Embedded,
    Emulate,
    check_embedded,
    check_emulate,
    check_syntax,
)
from xenoglot.gateway.config.named_keys import check_named_keys, named_variables
from xenoglot.gateway.config.provider_defaults import (
    check_cache_marks,
    check_load_metrics,
    check_provider,
    sign_in_advice,
    with_provider_defaults,
)
from xenoglot.gateway.config.proxies import check_proxy
from xenoglot.gateway.config.schema import (
    Problems,
    header_problem,
    join,
    origin_problem,
    read,
    shown,
    unknown_name,
    url_problem,
    with_new_keys,
)
from xenoglot.gateway.config.settings import (
    BatchSettings,
    CacheSettings,
    ClientDialect,
    FetchSettings,
    KeySettings,
    LogSettings,
    ModelSettings,
    OnLoss,
    ServerSettings,
    StoreSettings,
    UpstreamSettings,
)
from xenoglot.gateway.config.targets import ModelTarget, check_defaults, check_target
from xenoglot.gateway.config.telemetry import TelemetrySettings, check_telemetry
from xenoglot.gateway.config.tenants import Tenant, check_tenants, wanted
from xenoglot.gateway.config.tools.checks import check_hosted_tools, tool_variables
from xenoglot.gateway.config.tools.settings import HostedToolSettings
from xenoglot.hooks.hook import HookSettings
from xenoglot.store.location import OFF, location_problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.model.json import JSONObject

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Config(Struct, frozen=True, kw_only=True):
    """The whole configuration; what `load` and `check` give has been checked."""

    server: ServerSettings = ServerSettings()
    keys: KeySettings = KeySettings()
    tenants: dict[str, Tenant] = field(default_factory=dict)
    clients: dict[str, ClientDialect] = field(default_factory=dict)
    upstreams: dict[str, UpstreamSettings] = field(default_factory=dict)
    embedded: Embedded | None = None
    models: tuple[ModelSettings, ...] = ()
    store: StoreSettings = StoreSettings()
    batches: BatchSettings = BatchSettings()
    fetch: FetchSettings = FetchSettings()
    limits: LimitBackend = LimitBackend()
    ledger: LedgerSettings | None = None
    prices: tuple[PriceSettings, ...] = ()
    telemetry: TelemetrySettings | None = None
    budgets: tuple[BudgetSettings, ...] = ()
    log: LogSettings = LogSettings()
    hooks: tuple[HookSettings, ...] = ()
    cache: CacheSettings | None = None
    capture: CaptureSettings | None = None
    tools: HostedToolSettings | None = None
    on_loss: OnLoss = "warn"
    secrets: Secrets = Secrets({})

    @property
    def client_keys(self) -> tuple[str, ...]:
        """The keys of clients without a tenant; without any keys and tenants, clients need no key."""
        return tuple(key for name in self.keys.env for key in self.secrets[name].split())

    @property
    def admin_keys(self) -> tuple[str, ...]:
        """The keys of those who administer; none means that every client may see what they see."""
        return tuple(key for name in self.keys.admin_env for key in self.secrets[name].split())

    @property
    def needs_key(self) -> bool:
        """Whether clients need a key to use a model."""
        keys = self.keys
        return bool(keys.env or keys.named or keys.store or self.tenants)

    def upstream_keys(self, upstream: UpstreamSettings) -> tuple[str, ...]:
        """Return our keys for a server, in the order in which they are named; none where it needs none."""
        return tuple(key for name in upstream.key_names for key in self.secrets[name].split())

    @property
    def store_url(self) -> str:
        """Where things are kept."""
        return self.store.url if self.store.url_env is None else self.secrets[self.store.url_env]

    @property
    def first_model(self) -> str | None:
        """The first name in `[[models]]` that is no pattern: the default of programs that request a model."""
        return next((model.name for model in self.models if "*" not in model.name), None)

    @property
    def limits_url(self) -> str:
        """Where what is limited is counted, if not here."""
        return self.limits.url if self.limits.url_env is None else self.secrets[self.limits.url_env]

    @property
    def cache_settings(self) -> CacheSettings | None:
        """How answers are cached; `None` if they are not."""
        return self.cache if self.cache is not None and self.cache.enabled else None

    @property
    def capture_settings(self) -> CaptureSettings | None:
        """Which requests are captured; `None` if none are."""
        return self.capture if self.capture is not None and self.capture.enabled else None

    @property
    def cache_url(self) -> str:
        """Where answers are cached, if not here."""
        if self.cache is None:
            return ""
        return self.cache.url if self.cache.url_env is None else self.secrets[self.cache.url_env]

    @property
    def ledger_settings(self) -> LedgerSettings | None:
        """How requests are recorded; `None` if they are not."""
        return self.ledger if self.ledger is not None and self.ledger.enabled else None

    @property
    def telemetry_settings(self) -> TelemetrySettings | None:
        """What is exported by OpenTelemetry; `None` if nothing is."""
        return self.telemetry if self.telemetry is not None and self.telemetry.enabled else None

    @property
    def telemetry_headers(self) -> str | None:
        """The headers for the collector, as the environment has them."""
        name = None if self.telemetry is None else self.telemetry.headers_env
        return None if name is None else self.secrets[name]

    @property
    def has_embedded(self) -> bool:
        """Whether the embedded model is served: if it is set, or if there is nothing else."""
        return not self.upstreams if self.embedded is None else self.embedded.enabled

    @property
    def embedded_models(self) -> tuple[str, ...]:
        """The names of the embedded models in addition to the default one."""
        return () if self.embedded is None or not self.has_embedded else tuple(self.embedded.models)

    @property
    def backends(self) -> tuple[str, ...]:
        """The names of all that answer."""
        return (*self.upstreams, EMBEDDED) if self.has_embedded else tuple(self.upstreams)


class _File(Struct, frozen=True, kw_only=True):
    """What may stand in the file: a `Config` but for its secrets."""

    server: ServerSettings = ServerSettings()
    keys: KeySettings = KeySettings()
    tenants: dict[str, Tenant] = field(default_factory=dict)
    clients: dict[str, ClientDialect] = field(default_factory=dict)
    upstreams: dict[str, UpstreamSettings] = field(default_factory=dict)
    embedded: Embedded | None = None
    models: tuple[ModelSettings, ...] = ()
    store: StoreSettings = StoreSettings()
    batches: BatchSettings = BatchSettings()
    fetch: FetchSettings = FetchSettings()
    limits: LimitBackend = LimitBackend()
    ledger: LedgerSettings | None = None
    prices: tuple[PriceSettings, ...] = ()
    telemetry: TelemetrySettings | None = None
    budgets: tuple[BudgetSettings, ...] = ()
    log: LogSettings = LogSettings()
    hooks: tuple[HookSettings, ...] = ()
    cache: CacheSettings | None = None
    capture: CaptureSettings | None = None
    tools: HostedToolSettings | None = None
    on_loss: OnLoss = "warn"


def load(
    path: Path | str,
    environ: Mapping[str, str],
    *,
    host: str | None = None,
    port: int | None = None,
    workers: int | None = None,
) -> Config:
    """Return the configuration in the file `path`; `host`, `port` and `workers` stand before the file's.

    Raises:
        ConfigurationError: the file cannot be read, something in it is wrong, or others may change it, or read what
            none but us should; the text names all that is.
    """
    try:
        plain = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        message = f"`{path}` cannot be read: {os.strerror(error.errno or 0)}"
        raise ConfigurationError(message) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        message = f"`{path}` is not TOML: {error}"
        raise ConfigurationError(message) from None
    except RecursionError:
        raise ConfigurationError(f"`{path}`: its values are nested too deeply to be read") from None
    said = {"host": host, "port": port, "workers": workers}
    if isinstance(plain.get("server", {}), dict):
        plain["server"] = plain.get("server", {}) | {key: value for key, value in said.items() if value is not None}
    config = check(plain, environ, str(path))
    problems = Problems({})
    check_file(Path(path), config.upstreams, problems)
    _raise(problems, str(path))
    return config


def check(plain: JSONObject, environ: Mapping[str, str], where: str, names: Mapping[str, str] | None = None) -> Config:
    """Return `plain` as a configuration; `names` are what its paths are called where it came from.

    Raises:
        ConfigurationError: it is none; the text has a line for each thing that is wrong.
    """
    problems = Problems(names or {})
    plain = with_new_keys(plain, where, problems)
    file = read(_File, with_provider_defaults(plain, environ, problems), "", problems) or _File()
    config = Config(
        server=file.server,
        keys=file.keys,
        tenants=file.tenants,
        clients={dialects.canonical(name): clients for name, clients in file.clients.items()},
        upstreams=file.upstreams,
        embedded=file.embedded,
        models=file.models,
        on_loss=file.on_loss,
        store=file.store,
        batches=file.batches,
        fetch=file.fetch,
        limits=file.limits,
        ledger=file.ledger,
        prices=file.prices,
        telemetry=file.telemetry,
        budgets=file.budgets,
        log=file.log,
        hooks=file.hooks,
        cache=file.cache,
        capture=file.capture,
        tools=file.tools,
        secrets=_secrets(file, environ, problems),
    )
    _check_server(config, problems)
    check_limits(config.keys.limits, "keys", problems)
    variables = (variable for _, variable in named_variables(config.keys.named))
    several = {variable for variable in variables if len(config.secrets[variable].split()) > 1}
    check_named_keys(config.keys.named, several, problems)
    keys = config.keys
    check_tenants(config.tenants, keys.named, config.client_keys, config.secrets, problems, stored=keys.store)
    _check_clients(config, problems)
    for name, upstream in config.upstreams.items():
        _check_upstream(name, upstream, join("upstreams", name), problems)
        check_proxy(upstream, environ, join("upstreams", name), problems)
    if config.embedded is not None:
        check_embedded(config.embedded, problems)
        for path, name in config.embedded.syntaxes():
            check_syntax(name, path, problems)
    _check_models(config, plain, problems)
    _check_store(config, problems)
    check_prices(config.prices, config.backends, problems)
    check_telemetry(config.telemetry, problems)
    check_budgets(config.budgets, config.models, problems, recorded=config.ledger_settings is not None)
    check_capture(config.capture, recorded=config.ledger_settings is not None, problems=problems)
    check_cache(config.cache, config.cache_url, problems)
    check_limit_backend(config.limits, config.limits_url, problems)
    if config.tools is not None:
        check_hosted_tools(config.tools, problems)
    _raise(problems, where)
    return config


def _raise(problems: Problems, where: str) -> None:
    lines = problems.lines
    if lines:
        told = lines[0] if len(lines) == 1 else f"{len(lines)} mistakes\n" + "\n".join(f"  {line}" for line in lines)
        message = f"{where}: {told}"
        raise ConfigurationError(message)


def _secrets(file: _File, environ: Mapping[str, str], problems: Problems) -> Secrets:
    named = [(f"keys.env[{index}]", name) for index, name in enumerate(file.keys.env)]
    named += [(f"keys.admin_env[{index}]", name) for index, name in enumerate(file.keys.admin_env)]
    named += [(f"keys.viewer_env[{index}]", name) for index, name in enumerate(file.keys.viewer_env)]
    named += [*named_variables(file.keys.named), *wanted(file.tenants)]
    named += () if file.tools is None else tool_variables(file.tools)
    keyless: dict[str, str] = {}
    for name, upstream in file.upstreams.items():
        named += [(join(join("upstreams", name), "key_env"), variable) for variable in upstream.key_names]
        keyless[join(join("upstreams", name), "key_env")] = sign_in_advice(upstream)
        named += [
            (join(join(join("upstreams", name), "sign_in"), option), variable)
            for option, variable in upstream.sign_in.variables
        ]
        named += [(join(join("upstreams", name), "proxy_env"), upstream.proxy_env)] if upstream.proxy_env else []
    values: dict[str, str] = {}
    single = {
        "store.url_env": file.store.url_env,
        "limits.url_env": file.limits.url_env,
        "cache.url_env": None if file.cache is None else file.cache.url_env,
        "telemetry.headers_env": None if file.telemetry is None else file.telemetry.headers_env,
    }
    named += [(path, name) for path, name in single.items() if name is not None]
    for path, name in named:
        value = environ.get(name)
        if value is None and _VARIABLE.fullmatch(name) is None:  # a key, as likely as not: it is not repeated
            problems.add(path, "is no name of an environment variable; a key stands in one, never in the file")
        elif value is None:
            problems.add(path, f"the environment variable {shown(name)} is not set{keyless.get(path, '')}")
        elif not value.strip():
            problems.add(path, f"the environment variable {shown(name)} is empty")
        elif not "".join(value.split()).isprintable() and path.startswith("upstreams"):
            problems.add(path, f"the environment variable {shown(name)} holds characters that no header can carry")
        values[name] = (value or "").strip()
    return Secrets(values)


def _check_server(config: Config, problems: Problems) -> None:
    server = config.server
    if not server.loopback and not config.needs_key:
        problems.add(
            "server.host",
            f"found {shown(server.host)}, which others can reach; that needs client keys: name an environment variable "
            "that holds them (`--client-key-env`, or `env` under `[keys]`), or listen on 127.0.0.1",
        )
    if server.workers > 1 and config.has_embedded:
        problems.add(
            "server.workers",
            f"found {server.workers}, and each would load the embedded model: serve that by a gateway of its own and "
            "name it as an upstream, or say `enabled = false` under `[embedded]`",
        )
    if server.workers > 1 and config.store_url == "memory":
        problems.add("server.workers", f"found {server.workers}, and each would have a `memory` of its own for a store")
    for index, host in enumerate(server.allowed_hosts):
        if "*" in host:
            problems.add(f"server.allowed_hosts[{index}]", f"found {shown(host)}; expected a host name, not a pattern")
    for index, origin in enumerate(server.allowed_origins):
        if problem := origin_problem(origin):
            problems.add(f"server.allowed_origins[{index}]", problem)


def _check_clients(config: Config, problems: Problems) -> None:
    known = dialects.names()
    for name, clients in config.clients.items():
        path = join("clients", name)
        if name not in known:
            problems.add(path, unknown_name(name, known, dialects.other_names()))
        elif clients.reasoning == "on_request" and dialects.get(name).reasoning_requested is None:
            problems.add(
                join(path, "reasoning"), f"found {shown('on_request')}; requests of `{name}` do not ask for reasoning"
            )


def _check_upstream(name: str, upstream: UpstreamSettings, path: str, problems: Problems) -> None:
    if name == EMBEDDED or not _NAME.fullmatch(name):
        problems.add(path, f"found {shown(name)}; a name is letters, digits and `.`, `_`, `-`, and not `{EMBEDDED}`")
    if upstream.dialect not in dialects.names():
        problems.add(join(path, "dialect"), unknown_name(upstream.dialect, dialects.names(), dialects.other_names()))
    if problem := url_problem(upstream.base_url):
        problems.add(join(path, "base_url"), problem)
    for key, value in upstream.headers.items():
        if problem := header_problem(key, value):
            problems.add(join(join(path, "headers"), key), problem)
    check_syntax(upstream.text_syntax, path, problems)
    check_cache_marks(upstream, path, problems)
    check_load_metrics(upstream, path, problems)
    check_provider(upstream, path, problems)
    also = [one.auth for one in upstream.also]
    for key, problem in sign_in_problems(upstream.auth, upstream.key_names, upstream.sign_in, also):
        problems.add(f"{path}.{key}", problem)
    check_emulate(upstream.emulate, path, problems)
    check_limits(upstream.limits, path, problems)
    for key in ("connect", "first_byte", "idle", "total"):
        seconds = getattr(upstream.deadlines, key)
        if seconds is not None and not seconds > 0:
            problems.add(join(join(path, "deadlines"), key), f"found {seconds}; expected more than 0 seconds")


def _check_store(config: Config, problems: Problems) -> None:
    store = config.store
    if store.url_env is None and "@" in store.url:
        problems.add("store.url", "holds a user or password; name the environment variable with the URL in `url_env`")
    elif (url := config.store_url) and (problem := location_problem(url)):
        problems.add("store.url" if store.url_env is None else "store.url_env", problem)
    preserved = [
        *(one.preserve_reasoning for one in config.upstreams.values()),
        *(one.preserve_reasoning for one in config.models),
    ]
    if store.url == OFF and any(preserved):
        problems.add("store.url", f"found {shown(OFF)}; `preserve_reasoning` needs a store")
    if store.url == OFF and config.ledger_settings is not None:
        problems.add("store.url", f"found {shown(OFF)}; `[ledger]` needs a store")
    if store.url == OFF and config.keys.store:
        problems.add("store.url", f"found {shown(OFF)}; `store = true` under `[keys]` needs a store")


def _check_models(config: Config, plain: JSONObject, problems: Problems) -> None:
    backends = config.backends
    if not backends:
        problems.add("upstreams", "nothing answers: name an upstream, or leave the embedded model enabled")
    if len(config.upstreams) > 1 and not plain.get("models"):
        problems.add("models", "with more than one upstream, say which models each of them answers")
    seen: dict[str, int] = {}
    for index, model in enumerate(config.models):
        path = f"models[{index}]"
        if model.name in seen:
            problems.add(f"{path}.name", f"found {shown(model.name)}, which is models[{seen[model.name]}] already")
        seen.setdefault(model.name, index)
        _check_model(model, path, backends, problems)


def _check_model(model: ModelSettings, path: str, backends: tuple[str, ...], problems: Problems) -> None:
    if not model.name or not model.name.isprintable():
        problems.add(f"{path}.name", f"found {shown(model.name)}; expected a name of printable characters")
    for key in ("upstream", "model"):
        if model.targets and getattr(model, key) is not None:
            problems.add(f"{path}.{key}", "stands in each of the `targets` where there are any")
    if not model.targets:
        check_target(ModelTarget(upstream=model.upstream, model=model.model), path, backends, problems)
    for index, target in enumerate(model.targets):
        check_target(target, f"{path}.targets[{index}]", backends, problems)
    check_defaults(model.defaults, path, problems)
    check_syntax(model.text_syntax, path, problems)
    check_emulate(model.emulate or Emulate(), path, problems)
    check_limits(model.limits, path, problems)
