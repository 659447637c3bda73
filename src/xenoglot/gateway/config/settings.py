"""The settings of a configuration file: the keys of each table, and their defaults."""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct, field

from xenoglot.backends.http.timeouts import Deadlines
from xenoglot.backends.remote.sign_in.settings import SignInSettings
from xenoglot.codec.json.json_io import MOST_VALUES
from xenoglot.codec.target import Target
from xenoglot.gateway.config.extra_endpoints import ExtraEndpoint, ModelOverrides
from xenoglot.gateway.config.limits import LimitSettings
from xenoglot.gateway.config.local_models import Emulate
from xenoglot.gateway.config.named_keys import NamedKey
from xenoglot.gateway.config.targets import Affinity, Caps, ModelTarget, StreamBuffer
from xenoglot.model.request import Sampling
from xenoglot.policy.failure_policy import Reason
from xenoglot.policy.local_answers import Kind
from xenoglot.policy.target_health import BreakerSettings, Retry
from xenoglot.policy.target_order import Strategy
from xenoglot.providers.provider import Auth
from xenoglot.text.registry import OFF as OFF_SYNTAX

OnLoss: TypeAlias = Literal["ignore", "warn", "refuse"]
Count: TypeAlias = Annotated[int, Meta(ge=1)]
Seconds: TypeAlias = Annotated[float, Meta(gt=0, le=86_400)]


TraceHeaders: TypeAlias = Literal["full", "parent", "off"]
_TRACE_HEADERS = {"full": ("traceparent", "tracestate"), "parent": ("traceparent",), "off": ()}

Preserve: TypeAlias = bool | Literal["translated"]
"""For which clients what they strip is kept: for all, for none, or for those whose requests are translated."""


class ConnectionSettings(Struct, frozen=True, kw_only=True):
    """How many clients may be connected at once, and how slow each may be.

    Of more than `most` connections, those that have waited longest without a request are closed, then those whose
    request's body is slow. A request's head has
    `head_seconds` from its first byte, its body must bring `body_rate` bytes a second and has `body_seconds` in all. A
    connection without a request is closed after `idle_seconds`; one whose client takes less than a kibibyte of what it
    is sent in `stall_seconds` is aborted.
    """

    most: Annotated[int, Meta(ge=1)] = 4096
    head_seconds: Seconds = 20.0
    body_seconds: Seconds = 600.0
    body_rate: Annotated[int, Meta(ge=0)] = 512
    idle_seconds: Seconds = 75.0
    stall_seconds: Seconds = 60.0


class ServerSettings(Struct, frozen=True, kw_only=True):
    """Where the gateway listens; the body's limit in bytes, the others in seconds."""

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 8080
    body_limit: Count = 32 * 1024 * 1024
    body_values: Annotated[int, Meta(ge=10_000)] = MOST_VALUES
    """How many JSON values a body may hold, of a request as of an upstream's answer."""
    ping_interval: Annotated[float, Meta(gt=0, le=3_600)] = 15.0
    drain_seconds: Annotated[float, Meta(ge=0, le=3_600)] = 30.0
    allowed_hosts: tuple[str, ...] = ()
    """Host names that requests to a loopback address may have in addition to loopback names."""
    allowed_origins: tuple[str, ...] = ()
    """Origins (`https://app.example`) whose pages a browser may let ask."""
    metrics: bool | None = None
    """Whether `/metrics` is served; by default only if no other machine can reach it (S17)."""
    console: bool | None = None
    """Whether `/console` is served; by default to administrators, and where no key is needed and only this machine can
    reach the gateway."""
    workers: Annotated[int, Meta(ge=1, le=256)] = 1
    """How many processes answer."""
    watch: bool = False
    """Whether the file is reloaded when it changes, and not only at a signal."""
    log_losses: Literal["summary", "all"] = "summary"
    """How the log names harmless losses: as a summary after the losses that matter, or each of them."""
    connections: ConnectionSettings = ConnectionSettings()
    """What a client's connection may cost."""

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    @property
    def tells_metrics(self) -> bool:
        """Whether `/metrics` is served."""
        return self.loopback if self.metrics is None else self.metrics


class LogSettings(Struct, frozen=True, kw_only=True):
    """The log on standard error: lines of JSON, or short ones for people; `auto`: these on a terminal."""

    format: Literal["auto", "text", "json"] = "auto"


class KeySettings(Struct, frozen=True, kw_only=True):
    """Environment variables with the clients' keys, each with one key or several separated by white space."""

    env: tuple[str, ...] = ()
    admin_env: tuple[str, ...] = ()
    """Environment variables with the keys of administrators, which open `/metrics` and `/admin/v1`, but no model."""
    viewer_env: tuple[str, ...] = ()
    """Environment variables with the keys of viewers, which may read what administrators read, and change nothing."""
    limits: LimitSettings | None = None
    """Limits of each client, or of all clients together if no key is needed."""
    store: bool = False
    """Whether keys of the store are accepted too: they are created, rotated and disabled while the gateway runs. Then
    a key is needed even while there is none."""
    named: dict[str, NamedKey] = field(default_factory=dict)
    """Keys with names, and rights of their own."""


class LoadMetrics(Struct, frozen=True, kw_only=True):
    """How the load of a server is read from its metrics, for the choice among targets.

    Every so many `seconds` the `gauges`, which count requests in progress and waiting, are added up.
    """

    seconds: Annotated[float, Meta(ge=0.1, le=60)] = 2.0
    path: str = "/metrics"
    """The path on the server's host, whatever the path of `base_url`."""
    gauges: tuple[str, ...] = ()
    """Not set: those of the provider."""


class UpstreamSettings(Struct, frozen=True, kw_only=True):
    """A server that answers.

    `key_env` is the environment variable that holds our key for it, or several of them; one may hold several keys,
    separated by white space. If there are several, each request uses one that the server currently accepts.
    """

    provider: str | None = None
    """The provider: a row of the catalogue, which has the defaults of this table."""
    settings: dict[str, str] = field(default_factory=dict)
    """What stands in the braces of the provider's address."""
    dialect: str
    also: tuple[ExtraEndpoint, ...] = ()
    """What else it speaks: clients of these dialects are answered in them."""
    base_url: str
    hosted_by: str | None = None
    """The dialect whose servers take the bodies of `dialect`, at its own paths and in its framing."""
    path: str | None = None
    """Where requests are posted, if that is not the dialect's own path; `{model}` in it is the name of the model as one
    segment, `{+model}` as several where the name has slashes."""
    stream_path: str | None = None
    """The same for requests that stream, if they are posted elsewhere."""
    count_path: str | None = None
    """Where tokens are counted, if that is not the dialect's own path."""
    models_path: str | None = None
    key_env: str | tuple[str, ...] | None = None
    auth: Auth | None = None
    """How a key is shown, if that is not the way of the dialect; or what signs its requests in."""
    sign_in: SignInSettings = SignInSettings()
    """Options of a sign-in."""
    headers: dict[str, str] = field(default_factory=dict)
    trace_context: TraceHeaders | None = None
    """Which headers of the client's trace it gets: `traceparent` and `tracestate` (`full`), the first alone (`parent`),
    or none (`off`). Not set: `full` for a server without `provider`, else `parent`."""
    proxy: str | None = None
    """The proxy for its requests; `environment` is the one of `HTTPS_PROXY` and similar variables."""
    proxy_env: str | None = None
    """The environment variable with the proxy's URL, where that has a password in it."""
    deadlines: Deadlines = Deadlines()
    target: Target = Target()
    model_overrides: tuple[ModelOverrides, ...] = ()
    cache_marks: Literal["client", "auto"] = "client"
    """Whether the gateway marks where a prompt is cached if the client does not, for a server that caches at marks."""
    state: Literal["gateway", "native"] = "gateway"
    """Where answers of this server are stored, for clients of its own dialect."""
    preserve_reasoning: Preserve | None = None
    """Whether what clients strip of its answers is kept, and put back into their requests; `translated` keeps it for
    clients of other dialects alone, so that bytes still pass untouched for those of its own. Not set: `translated`
    where the gateway is on loopback."""
    text_syntax: str = OFF_SYNTAX
    """The syntax of calls and reasoning in text: a row of `text.syntax`, `auto`, or `off`."""
    emulate: Emulate = Emulate()
    retry: Retry = Retry()
    breaker: BreakerSettings = BreakerSettings()
    limits: LimitSettings | None = None
    load_metrics: LoadMetrics | None = None
    """How its load is read; not set: it is not."""

    @property
    def trace_headers(self) -> tuple[str, ...]:
        """The names of the headers of a client's trace that it gets."""
        setting = self.trace_context or ("full" if self.provider is None else "parent")
        return _TRACE_HEADERS[setting]

    def speaks(self, dialect: str, model: str | None = None) -> bool:
        """Return whether clients of `dialect` are answered in it; with `model`, whether that one answers them so."""
        return dialect == self.dialect or any(one.dialect == dialect and one.has(model) for one in self.also)

    @property
    def key_names(self) -> tuple[str, ...]:
        """The environment variables that hold our keys for it."""
        return (self.key_env,) if isinstance(self.key_env, str) else self.key_env or ()


class ModelSettings(Struct, frozen=True, kw_only=True):
    """A name that clients may ask for, or a pattern of names, and what answers to it: one target, or several."""

    name: str
    upstream: str | None = None
    model: str | None = None
    targets: tuple[ModelTarget, ...] = ()
    strategy: Strategy = "weighted"
    """Which target of a tier is tried first: as listed, by weight, the least busy, or the fastest to begin."""
    affinity: Affinity = "session"
    """What keeps to one target, so that it finds its prompts in its cache: a session that the request names, a prompt
    that begins alike where it names none, or nothing."""
    fallback_on: tuple[Reason, ...] = ()
    """Failures of the request itself after which another target is still tried."""
    buffer: StreamBuffer = StreamBuffer()
    midstream_failover: bool = False
    """Whether a target that can continue a text does so if another broke off in the middle."""
    retry_deadline_seconds: Seconds = 60.0
    """After this no further try begins."""
    defaults: Sampling = Sampling()
    caps: Caps = Caps()
    on_loss: OnLoss | None = None
    preserve_reasoning: Preserve | None = None
    text_syntax: str | None = None
    emulate: Emulate | None = None
    limits: LimitSettings | None = None


class ClientDialect(Struct, frozen=True, kw_only=True):
    """Settings for all clients of one dialect."""

    reasoning: Literal["on_request", "always", "never"] | None = None
    """When answers hold the model's reasoning; not set: `on_request` in dialects that return it on request only, else
    `always`. Bytes of an upstream of the client's own dialect are not changed."""
    local_answers: tuple[Kind, ...] = ()
    """Which housekeeping requests are answered here, without a model."""


class StoreSettings(Struct, frozen=True, kw_only=True):
    """Where answers and conversations are kept, and for how long; `url_env` holds a URL that has a password in it."""

    url: str = "sqlite"
    url_env: str | None = None
    max_age_days: Annotated[float, Meta(gt=0, le=36_500)] = 30.0
    max_bytes: Count = 1024 * 1024 * 1024


class CacheSettings(Struct, frozen=True, kw_only=True):
    """Where answers are cached, and for how long: in each process, or in a server that gateways share.

    `url_env` holds a URL with a password. `max_bytes` bounds all answers in memory; a shared server has bounds of its
    own. An answer of more than `max_answer_bytes` is not cached. `models` are patterns of names that clients ask for.
    """

    enabled: bool = True
    ttl_seconds: Annotated[float, Meta(gt=0, le=31_536_000)] = 3600.0
    store: Literal["memory", "redis"] = "memory"
    url: str = "redis://127.0.0.1:6379/0"
    url_env: str | None = None
    max_bytes: Count = 64 * 1024 * 1024
    max_answer_bytes: Annotated[int, Meta(ge=1, le=64 * 1024 * 1024)] = 1024 * 1024
    models: tuple[str, ...] = ()


class BatchSettings(Struct, frozen=True, kw_only=True):
    """Files and batches that clients may bring."""

    enabled: bool = True
    concurrency: Annotated[int, Meta(ge=1, le=1024)] = 4
    """How many requests of all batches are in progress at once."""
    max_requests: Annotated[int, Meta(ge=1, le=1_000_000)] = 50_000
    """The most requests of one batch."""
    max_bytes: Annotated[int, Meta(ge=1)] = 200 * 1024 * 1024
    """The most of one file."""
    public_url: Annotated[str, Meta(pattern=r"^https?://[^/\s?#]+[^\s?#]*$")] | None = None
    """The URL of the gateway in URLs of files and uploads."""


class FetchSettings(Struct, frozen=True, kw_only=True):
    """Whether images are fetched, the allowed ports, and the limits: bytes each, number, seconds for all."""

    enabled: bool = False
    ports: tuple[Annotated[int, Meta(ge=1, le=65535)], ...] = (443,)
    max_bytes: Annotated[int, Meta(ge=1, le=1024 * 1024 * 1024)] = 10 * 1024 * 1024
    max_images: Annotated[int, Meta(ge=1, le=1000)] = 16
    seconds: Annotated[float, Meta(gt=0, le=600)] = 15.0


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Return whether `host`, an address or a name without port, is of this machine alone."""
    try:
        return ipaddress.ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"
