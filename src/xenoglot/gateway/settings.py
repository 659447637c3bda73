"""The settings of a configuration file as values: what each table may hold, and what stands where nothing is said."""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct, field

from xenoglot.backends.transport_bounds import Deadlines
from xenoglot.codec.dialect import Target
from xenoglot.gateway.emulate import Emulate
from xenoglot.model.request import Sampling
from xenoglot.text.syntax import OFF as OFF_SYNTAX

OnLoss: TypeAlias = Literal["ignore", "warn", "refuse"]
Count: TypeAlias = Annotated[int, Meta(ge=1)]


class Server(Struct, frozen=True, kw_only=True):
    """Where the gateway listens; the body's limit in bytes, the others in seconds."""

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 8080
    body_limit: Count = 32 * 1024 * 1024
    ping_interval: Annotated[float, Meta(gt=0, le=3_600)] = 15.0
    drain_seconds: Annotated[float, Meta(ge=0, le=3_600)] = 30.0
    allowed_hosts: tuple[str, ...] = ()
    """Names, beside the loopback ones, that a request to a loopback address may give as its host."""
    allowed_origins: tuple[str, ...] = ()
    """Origins (`https://app.example`) whose pages a browser may let ask."""
    metrics: bool | None = None
    """Whether `/metrics` is there; where nothing is said, only where nobody but this machine can reach it (S17)."""

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    @property
    def tells_metrics(self) -> bool:
        """Whether `/metrics` is there."""
        return self.loopback if self.metrics is None else self.metrics


class Keys(Struct, frozen=True, kw_only=True):
    """Where the clients' keys are: environment variables, each with one key or several parted by white space."""

    env: tuple[str, ...] = ()


class Upstream(Struct, frozen=True, kw_only=True):
    """A server that answers; `key_env` is the environment variable that holds our key for it."""

    dialect: str
    base_url: str
    key_env: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    deadlines: Deadlines = Deadlines()
    target: Target = Target()
    state: Literal["gateway", "native"] = "gateway"
    """Who keeps the answers of this server, for clients of its own dialect."""
    preserve: bool = False
    """Whether what clients strip of its answers is kept, and put back into their requests."""
    text_syntax: str = OFF_SYNTAX
    """How its models write calls and thoughts in text: a row of `text.syntax`, `auto`, or `off` where they do not."""
    emulate: Emulate = Emulate()


class Model(Struct, frozen=True, kw_only=True):
    """A name that clients may ask for, or a pattern of names, and what answers to it."""

    name: str
    upstream: str | None = None
    model: str | None = None
    defaults: Sampling = Sampling()
    on_loss: OnLoss | None = None
    preserve: bool | None = None
    text_syntax: str | None = None
    emulate: Emulate | None = None


class Store(Struct, frozen=True, kw_only=True):
    """Where answers and conversations are kept, and for how long; `url_env` holds a URL that has a password in it."""

    url: str = "sqlite"
    url_env: str | None = None
    max_age_days: Annotated[float, Meta(gt=0, le=36_500)] = 30.0
    max_bytes: Count = 1024 * 1024 * 1024


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Return whether `host`, an address or a name without port, is of this machine alone."""
    try:
        return ipaddress.ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"
