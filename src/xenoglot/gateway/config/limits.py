"""Settings of limits: amounts, scopes, and where they are counted."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Literal, Protocol
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from xenoglot.gateway.config.schema import join, shown
from xenoglot.policy.limits.usage_ledger import Window

if TYPE_CHECKING:
    from xenoglot.gateway.config.schema import Problems
    from xenoglot.model.json import JSON, JSONObject

_WINDOW = re.compile(r"([0-9]{1,15})/([0-9]{0,6})([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
LONGEST_WINDOW = 366 * 86_400
EXPECTED = 'expected a number and a time, like "60/1m" or "1000000/1d" (s, m, h, d)'
OUTPUT_TOKENS = 1024
SCHEMES = ("redis", "rediss", "valkey", "valkeys", "unix")


class LimitSettings(Struct, frozen=True, kw_only=True):
    """Limits of requests and tokens per window, and of requests at once; length and time of the queue."""

    requests: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()
    concurrency: Annotated[int, Meta(ge=0)] | None = None
    queue: Annotated[int, Meta(ge=0, le=10_000)] = 64
    queue_seconds: Annotated[float, Meta(ge=0, le=3_600)] = 30.0


class LimitBackend(Struct, frozen=True, kw_only=True):
    """Where what is limited is counted: here, or by a server that gateways share (`url_env` holds one with a password).

    `output_tokens` are expected of an answer for which the request names no limit.
    """

    store: Literal["memory", "redis"] = "memory"
    url: str = "redis://127.0.0.1:6379/0"
    url_env: str | None = None
    output_tokens: Annotated[int, Meta(ge=0, le=2**31)] = OUTPUT_TOKENS


@lru_cache(maxsize=1024)
def window(text: str) -> Window | None:
    """Return the window of a text like `60/1m`, `None` if it is invalid."""
    match = _WINDOW.fullmatch(text)
    if match is None:
        return None
    seconds = int(match[2] or "1") * _SECONDS[match[3]]
    return Window(int(match[1]), float(seconds)) if 0 < seconds <= LONGEST_WINDOW else None


def check_limits(limits: LimitSettings | None, path: str, problems: Problems) -> None:
    """Note what is wrong with limits."""
    if limits is None:
        return
    for key, texts in (("requests", limits.requests), ("tokens", limits.tokens)):
        for index, text in enumerate(texts):
            if window(text) is None:
                problems.add(f"{join(join(path, 'limits'), key)}[{index}]", f"found {shown(text)}; {EXPECTED}")


def limits_json(limits: LimitSettings | None) -> JSON:
    """Return limits as JSON, without the defaults; `None` if there are none."""
    if limits is None:
        return None
    usual = LimitSettings()
    plain: JSONObject = msgspec.json.decode(msgspec.json.encode(limits))
    return {name: value for name, value in plain.items() if getattr(limits, name) != getattr(usual, name)}


def check_limit_backend(counting: LimitBackend, url: str, problems: Problems) -> None:
    """Note what is wrong with the place where things are counted; nothing of a URL is repeated."""
    where = "limits.url" if counting.url_env is None else "limits.url_env"
    if counting.url_env is None and "@" in counting.url:
        problems.add(where, "holds a user or password; name the environment variable with the URL in `url_env`")
    elif url and (problem := redis_url_problem(url)):
        problems.add(where, problem)


def redis_url_problem(url: str) -> str | None:
    """Return what is wrong with the URL of a Redis or Valkey server."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  raises for what is no port
    except ValueError:
        return "not a URL"
    schemes = ", ".join(f"{scheme}://" for scheme in SCHEMES)
    return None if parts.scheme in SCHEMES else f"expected a URL that begins with one of {schemes}"


class SharedServer(Protocol):
    """Settings of what may be in a Redis or Valkey server."""

    @property
    def url(self) -> str:
        """The URL in the file."""
        ...

    @property
    def url_env(self) -> str | None:
        """The environment variable that holds one with a password."""
        ...


def check_cache(cache: SharedServer | None, url: str, problems: Problems) -> None:
    """Note what is wrong with where answers are cached; nothing of a URL is repeated."""
    if cache is None:
        return
    if cache.url_env is None and "@" in cache.url:
        problems.add("cache.url", "holds a user or password; name the environment variable with the URL in `url_env`")
    elif url and (problem := redis_url_problem(url)):
        problems.add("cache.url" if cache.url_env is None else "cache.url_env", problem)
