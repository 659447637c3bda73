"""What the configuration says of limits, what is wrong with it, and whom it concerns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xenoglot.errors import ConfigurationError
from xenoglot.gateway.auth.keys import Principal
from xenoglot.gateway.config import load as config_load
from xenoglot.gateway.config.limits import LONGEST_WINDOW, window
from xenoglot.gateway.limits.limiter import MemoryLimiter, Scopes, expected_tokens
from xenoglot.gateway.limits.redis import RedisLimiter
from xenoglot.gateway.process.build import build_limiter
from xenoglot.model.request import Request, Sampling
from xenoglot.policy.limits.usage_ledger import Scope, Window

if TYPE_CHECKING:
    from xenoglot.model.json import JSONObject

MAIN: JSONObject = {"dialect": "chat", "base_url": "https://models.example/v1"}
ENVIRON = {"SHARED": "rediss://me:secret@shared.example:6380/1", "WRONG": "http://me:secret@shared.example"}


def load(**tables: JSONObject | list[JSONObject]) -> config_load.Config:
    return config_load.check({"upstreams": {"main": MAIN}, **tables}, ENVIRON, "f.toml")


def problems(**tables: JSONObject | list[JSONObject]) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load(**tables)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("60/1m", Window(60, 60.0)),
        ("5/s", Window(5, 1.0)),
        ("0/2h", Window(0, 7_200.0)),
        (f"{10**14}/30d", Window(10**14, 2_592_000.0)),
        ("1/366d", Window(1, float(LONGEST_WINDOW))),
        ("1/367d", None),
        ("60/0m", None),
        ("-1/1m", None),
        ("60", None),
        ("60/1w", None),
        ("1.5/1m", None),
        ("\u0661/1m", None),
        (" 60/1m", None),
        ("", None),
    ],
)
def test_a_window_is_a_number_and_a_time(text: str, expected: Window | None) -> None:
    assert window(text) == expected


ME = Principal(owner="me")


def test_limits_of_clients_models_and_upstreams() -> None:
    scopes = Scopes(
        load(
            keys={"limits": {"requests": ["60/1m", "1000/1d"], "concurrency": 8}},
            upstreams={"main": {**MAIN, "limits": {"tokens": ["9/1h"], "queue": 3, "queue_seconds": 1.5}}, "b": MAIN},
            models=[
                {"name": "large", "upstream": "main", "limits": {"concurrency": 0}},
                {"name": "*", "upstream": "b"},
            ],
        )
    )
    mine = Scope("key:me", requests=(Window(60, 60.0), Window(1_000, 86_400.0)), concurrency=8)
    assert scopes.of_request("large", ME) == (mine, Scope("model:large", concurrency=0))
    assert scopes.of_request("*", ME) == (mine,)
    upstream = Scope("upstream:main", tokens=(Window(9, 3_600.0),), queue=3, queue_seconds=1.5)
    assert (scopes.of_upstream("main"), scopes.of_upstream("b")) == ((upstream,), ())
    assert mine.kind == "key"


def test_where_nothing_is_limited_nothing_is_named() -> None:
    scopes = Scopes(load())
    assert (scopes.of_request("m", ME), scopes.of_upstream("main"), scopes.output_tokens) == ((), (), 1024)


def test_every_mistake_is_told() -> None:
    told = problems(
        keys={"limits": {"requests": ["many"]}},
        upstreams={"main": {**MAIN, "limits": {"tokens": ["9/1h", "9/1y"], "concurrency": -1}}},
        models=[{"name": "a", "limits": {"queue_seconds": 4_000, "burst": 3}}],
    )
    expected = 'expected a number and a time, like "60/1m" or "1000000/1d" (s, m, h, d)'
    assert told.splitlines()[1:] == [
        "  upstreams.main.limits.concurrency: found -1; expected `int` >= 0".replace("`", ""),
        "  models[0].limits.queue_seconds: found 4000; expected float <= 3600.0",
        "  models[0].limits.burst: unknown; expected one of requests, tokens, concurrency, queue, queue_seconds",
        f'  keys.limits.requests[0]: found "many"; {expected}',
        f'  upstreams.main.limits.tokens[1]: found "9/1y"; {expected}',
    ]


@pytest.mark.parametrize(
    ("limits", "problem"),
    [
        pytest.param({"url": "redis://:secret@x"}, "limits.url: holds a user or password", id="S21-password"),
        pytest.param({"url": "http://x"}, "limits.url: expected a URL that begins with one of redis://", id="scheme"),
        pytest.param({"url": "redis://x:secret"}, "limits.url: not a URL", id="port"),
        pytest.param({"url_env": "WRONG"}, "limits.url_env: expected a URL", id="S21-scheme-in-variable"),
        pytest.param({"url_env": "NONE"}, "limits.url_env: the environment variable", id="no-variable"),
        pytest.param({"store": "disk"}, 'limits.store: found "disk"; expected one of memory, redis', id="store"),
    ],
)
def test_where_things_are_counted_is_checked(limits: JSONObject, problem: str) -> None:
    told = problems(limits=limits)
    assert problem in told
    assert "secret" not in told


async def test_the_store_says_who_counts() -> None:
    alone = build_limiter(load())
    shared = build_limiter(load(limits={"store": "redis", "url_env": "SHARED"}))
    assert (type(alone), type(shared)) == (MemoryLimiter, RedisLimiter)
    assert isinstance(shared, RedisLimiter)
    known = shared._server._redis.connection_pool.connection_kwargs
    assert (known["host"], known["port"], known["db"], known["username"]) == ("shared.example", 6380, 1, "me")
    for limiter in (alone, shared):
        await limiter.aclose()


def test_the_password_is_no_secret_to_the_redactor() -> None:
    loaded = load(limits={"store": "redis", "url_env": "SHARED"})
    assert (loaded.limits_url, ENVIRON["SHARED"] in [*loaded.secrets]) == (ENVIRON["SHARED"], True)


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        pytest.param(Sampling(), 40 + 1_000, id="not-said"),
        pytest.param(Sampling(max_tokens=16), 40 + 16, id="said"),
        pytest.param(Sampling(max_tokens=16, n=3), 40 + 48, id="several"),
        pytest.param(Sampling(max_tokens=0), 40, id="nothing"),
    ],
)
def test_k07_what_a_request_is_expected_to_cost(sampling: Sampling, expected: int) -> None:
    assert expected_tokens(Request(model="m", sampling=sampling), 40, 1_000) == expected
