"""Which limits concern a request: those of its tenant or client, of its key, and of the model."""

from __future__ import annotations

import httpx2
import pytest

from tests.gateway.running_gateway import TIMEOUT
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.auth.keys import Principal
from xenoglot.gateway.config.limits import LimitSettings
from xenoglot.gateway.config.load import check
from xenoglot.gateway.limits.limiter import Scopes
from xenoglot.testing import Upstream, answers

ENVIRON = {"ADA": "ada-1 ada-2", "BEN": "ben-1", "CLIENT": "client-1", "LAPTOP": "laptop"}
CONFIG = {
    "upstreams": {"up": {"dialect": "chat", "base_url": "http://127.0.0.1:1"}},
    "models": [{"name": "*"}, {"name": "large", "limits": {"concurrency": 2}}],
    "keys": {
        "env": ["CLIENT"],
        "limits": {"requests": ["1/1h"]},
        "named": {"laptop": {"key_env": "LAPTOP", "tenant": "ada", "limits": {"requests": ["1/1h"]}}},
    },
    "tenants": {"ada": {"key_env": "ADA", "limits": {"requests": ["3/1h"]}}, "ben": {"key_env": "BEN"}},
}


@pytest.mark.parametrize(
    ("client", "model", "expected"),
    [
        (Principal(owner="o", tenant="ada", key="k"), "m", ["tenant:ada"]),
        (Principal(owner="o", tenant="ben", key="k"), "m", ["key:o"]),
        (Principal(owner="o", key="k"), "large", ["key:o", "model:large"]),
        (Principal(owner="o", tenant="ada", key="k", limits=LimitSettings()), "m", ["key:k", "tenant:ada"]),
        (Principal(owner="o", key="k", limits=LimitSettings()), "large", ["key:k", "key:o", "model:large"]),
    ],
)
def test_the_limits_of_a_request(client: Principal, model: str, expected: list[str]) -> None:
    scopes = Scopes(check(CONFIG, ENVIRON, "the tests"))
    assert [scope.name for scope in scopes.of_request(model, client)] == expected


def test_each_tenant_and_key_is_limited_by_its_own() -> None:
    with (
        Upstream(*answers("chat", text="Hello.").rules()) as server,
        DialectGateway(server, environ=ENVIRON, keys=CONFIG["keys"], tenants=CONFIG["tenants"]) as running,
    ):

        def send(key: str) -> httpx2.Response:
            body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
            headers = {"authorization": f"Bearer {key}"}
            return httpx2.post(f"{running.url}/v1/chat/completions", json=body, headers=headers, timeout=TIMEOUT)

        # the limits wait by themselves for at most 30 seconds, and these windows open in an hour
        told = [send(key) for key in ("laptop", "laptop", "ada-1", "ada-2", "ada-1", "ben-1", "ben-1", "client-1")]
    assert [one.status_code for one in told] == [200, 429, 200, 200, 429, 200, 429, 200]
    assert told[1].json()["error"]["message"] == "the rate limit of this API key is reached"
    assert told[4].json()["error"]["message"] == "the rate limit of the tenant `ada` is reached"


def test_a_mistake_in_the_limits_of_a_tenant_is_reported_at_its_path() -> None:
    tenants = {"ada": {"key_env": "ADA", "limits": {"requests": ["many"]}}}
    with pytest.raises(ConfigurationError, match=r"tenants\.ada\.limits\.requests\[0\]: found \"many\""):
        check(CONFIG | {"keys": {}, "tenants": tenants}, ENVIRON, "the tests")


def test_a_tenant_may_have_its_keys_elsewhere() -> None:
    named = {"laptop": {"key_env": "LAPTOP", "tenant": "eve"}}
    for keys in ({"named": named}, {"store": True}):
        assert check(CONFIG | {"keys": keys, "tenants": {"eve": {}}}, ENVIRON, "the tests").tenants
    with pytest.raises(ConfigurationError, match="needs a key"):
        check(CONFIG | {"keys": {}, "tenants": {"eve": {}}}, ENVIRON, "the tests")
