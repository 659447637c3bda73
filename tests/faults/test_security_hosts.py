"""Hosts, targets and origins in raw bytes: what is not ours is refused, and no policy goes by it (S02-S04, R41)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gateway.running_gateway import config_for, run_gateway
from tests.gateway.scripted_backends import HELLO
from xenoglot.backends.scripted import Scripted
from xenoglot.gateway.config.file_permissions import Secrets
from xenoglot.gateway.config.settings import KeySettings

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.gateway.running_gateway import RunningGateway

KEY = "key-of-a-client-0123"


@pytest.fixture(scope="module")
def locked_gateway() -> Generator[RunningGateway]:
    """Give a gateway with a key for clients and one for the administration."""
    keys = KeySettings(env=("CLIENTS",), admin_env=("ADMIN",))
    secrets = Secrets({"CLIENTS": KEY, "ADMIN": "key-of-an-administrator"})
    with run_gateway({"own": Scripted(HELLO)}, config_for("own", keys=keys, secrets=secrets)) as running:
        yield running


def status(running: RunningGateway, *lines: str) -> int:
    """What a request of these lines gets; 0 where the connection is closed without a word."""
    head = "\r\n".join([*lines, "Connection: close", "", ""])
    answer = running.exchange(head.encode("latin-1"))
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0


HOSTS = {
    "none": [],
    "empty": ["Host:"],
    "query": ["Host: localhost?"],
    "fragment": ["Host: localhost#"],
    "path": ["Host: localhost/admin"],
    "user": ["Host: admin@localhost"],
    "two": ["Host: localhost", "Host: localhost"],
    "two-in-one": ["Host: localhost, localhost"],
    "another-beside": ["Host: localhost", "Host: evil.example"],
    "blank-inside": ["Host: local host"],
    "bad-port": ["Host: localhost:port"],
    "half-address": ["Host: [::1"],
    "beyond-ascii": ["Host: l\xf6calhost"],
}


@pytest.mark.parametrize("path", ["/health", "/v1/models", "/metrics"])
@pytest.mark.parametrize("host", HOSTS)
def test_s02_no_lawful_host_is_400(locked_gateway: RunningGateway, host: str, path: str) -> None:
    assert status(locked_gateway, f"GET {path} HTTP/1.1", *HOSTS[host], f"x-api-key: {KEY}") == 400


TARGETS = {
    "absolute-form": "http://localhost/metrics",
    "absolute-form-of-another": "http://evil.example/health",
    "authority-form": "localhost:80",
    "asterisk-form": "*",
    "double-slash": "//localhost/metrics",
    "open-route-before": "/health/../metrics",
    "open-route-encoded": "/health/%2e%2e/metrics",
    "open-route-semicolon": "/health;/../metrics",
    "open-route-query": "/metrics?/health",
    "case": "/METRICS",
    "null": "/metrics%00",
    "encoded": "/%6detrics",
}


@pytest.mark.parametrize("target", TARGETS)
def test_s02_r12_no_spelling_of_the_target_opens_what_is_closed(locked_gateway: RunningGateway, target: str) -> None:
    told = status(locked_gateway, f"GET {TARGETS[target]} HTTP/1.1", "Host: localhost")
    assert told in {400, 401, 403, 404}
    told = status(locked_gateway, f"GET {TARGETS[target]} HTTP/1.1", "Host: localhost", f"x-api-key: {KEY}")
    assert told in {400, 403, 404}


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "192.168.0.7", "[fe80::1]"]
)
def test_s03_r41_a_foreign_host_at_loopback_is_403(locked_gateway: RunningGateway, host: str) -> None:
    assert status(locked_gateway, "GET /health HTTP/1.1", f"Host: {host}") == 403


ORIGINS = ["https://evil.example", "null", "http://localhost:3000", "http://127.0.0.1", "file://"]
PLAIN = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]


@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize("method", ["OPTIONS", "GET", "POST"])
def test_s04_r41_a_foreign_origin_is_403_without_any_cors_header(
    locked_gateway: RunningGateway, method: str, origin: str
) -> None:
    headers = {"origin": origin, "x-api-key": KEY, "access-control-request-method": "POST"}
    answer = locked_gateway.request(method, "/v1/chat/completions", {} if method == "POST" else None, headers)
    assert answer.status == 403
    assert [name for name in answer.headers if name.startswith("access-control")] == []


@pytest.mark.parametrize("kind", PLAIN)
def test_s04_what_a_page_may_send_without_leave_is_415(locked_gateway: RunningGateway, kind: str) -> None:
    headers = {"content-type": kind, "x-api-key": KEY, "sec-fetch-mode": "no-cors"}
    answer = locked_gateway.request("POST", "/v1/chat/completions", b"{}", headers)
    assert (answer.status, [name for name in answer.headers if name.startswith("access-control")]) == (415, [])


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/responses", "/api/chat", "/api/show"])
def test_c24_what_curl_sends_without_a_type_is_json(locked_gateway: RunningGateway, path: str) -> None:
    """findings-clients-7: `curl -d` sends a form's type; a body that is none of JSON is a 400, as for any other."""
    headers = {"content-type": PLAIN[1], "x-api-key": KEY}
    assert locked_gateway.request("POST", path, b"{", headers).status == 400
    assert (
        locked_gateway.request("POST", path, b'{"model": "none", "messages": [], "input": ""}', headers).status != 415
    )


@pytest.mark.parametrize(
    "headers",
    [{"sec-fetch-mode": "cors"}, {"anthropic-dangerous-direct-browser-access": "true"}],
    ids=["node", "claude"],
)
def test_r41_what_programs_send_is_not_held_against_them(
    locked_gateway: RunningGateway, headers: dict[str, str]
) -> None:
    assert locked_gateway.request("GET", "/v1/models", None, {"x-api-key": KEY, **headers}).status == 200
