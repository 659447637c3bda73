"""A default install speaks to nobody but whom it was told to: apart from the net, and under a hook (S19, S22)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.architecture.tree import MODULES, ROOT
from tests.faults.direct_exchange import handle
from tests.gateway.running_gateway import config_for
from tests.gateway.scripted_backends import CHAT, HELLO
from xenoglot import dialect_registry as dialects
from xenoglot import testing
from xenoglot.backends.http.client import Transport
from xenoglot.backends.remote.backend import Remote
from xenoglot.backends.scripted import Scripted
from xenoglot.gateway.app import Gateway
from xenoglot.gateway.config.load import check
from xenoglot.testing import Respond

if TYPE_CHECKING:
    from xenoglot.engine.server.weights import Weights
    from xenoglot.model.json import JSON

PROGRAM = Path(__file__).parent / "offline_gateway.py"
IN_NAMESPACE = ["unshare", "--net", "--map-root-user"]
LOCAL = re.compile(r"socket\.getaddrinfo (127\.0\.0\.1|localhost)|socket\.connect /\S+")
# A log of a gateway that was asked: its requests, and how long a busy machine kept it from working.
EXPECTED_LOG = re.compile(r'.*"request".*|.*the event loop stood still for \d+ ms.*')


def can_unshare_network() -> bool:
    """Whether this machine lets its users have a net of their own."""
    try:
        return subprocess.run([*IN_NAMESPACE, "true"], check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def run_offline(how: str, folder: Path, *flags: str) -> dict[str, JSON]:
    """What a gateway did that was started, asked and stopped `how`: apart from the net, or watched."""
    command = [sys.executable, str(PROGRAM), how, str(folder), *flags]
    if how == "namespace":
        command = [*IN_NAMESPACE, *command]
    # Coverage and the like would open files of their own; what is in the path is this tree.
    environ = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT, env=environ, timeout=120)
    assert done.returncode == 0, done.stderr
    told: dict[str, JSON] = json.loads(done.stdout)
    return told


# Where the machine allows no net of one's own, the gateway is watched twice: there is no case that does not run.
WAYS = ["audit", "namespace" if can_unshare_network() else "audit, for want of a namespace"]


@pytest.mark.parametrize("way", WAYS)
def test_s19_r40_r31_a_default_install_speaks_to_nobody(way: str, weights: Weights, tmp_path: Path) -> None:
    assert weights.path.is_file()
    told = run_offline(way.partition(",")[0], tmp_path)
    assert (told["statuses"], told["exit"], told["nowhere"]) == ([200, 200, 200], 0, {"ipv4": 0, "ipv6": 0})
    assert [line for line in told["seen"] if not LOCAL.fullmatch(line)] == []
    assert told["greeting"].rpartition("http://")[2].startswith("127.0.0.1:")
    assert [line for line in told["log"].splitlines() if not EXPECTED_LOG.fullmatch(line)] == []


@pytest.mark.parametrize("way", WAYS)
def test_s19_the_alarm_hears_who_does_speak(way: str, tmp_path: Path) -> None:
    told = run_offline(way.partition(",")[0], tmp_path, "--upstream", "http://192.0.2.1:9/v1")
    foreign = [line for line in told["seen"] if not LOCAL.fullmatch(line)]
    assert told["nowhere"]["ipv4"] > 0 if way == "namespace" else "192.0.2.1" in str(foreign)


def test_s19_defaults() -> None:
    config = check({}, {}, "here")
    server = config.server
    assert (server.host, server.allowed_hosts, server.allowed_origins) == ("127.0.0.1", (), ())
    assert not config.fetch.enabled


PROXIES = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"]


async def test_s22_proxies_of_the_environment_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        testing.Upstream((Respond(500, (), b""),)) as proxy,
        testing.Upstream(*testing.answers("chat", text=("Hello",)).rules()) as upstream,
    ):
        for name in PROXIES:
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        transport = Transport()
        server = Remote("main", dialects.get("chat"), f"{upstream.url}/v1", transport=transport)
        asked = await handle(Gateway(config_for("main"), {"main": server}), "POST", "/v1/chat/completions", CHAT)
        await transport.aclose()
    assert (asked.status, len(upstream.requests), proxy.connections) == (200, 1, [])


LOOKUP_PROBES = {
    "xenoglot.backends.http.proxies",  # where an operator, or who makes a client, says `environment`
    "xenoglot.programs.environment",  # so that the programs that are launched ask none for this machine
}


def test_s22_few_modules_know_of_the_variables_of_proxies() -> None:
    words = re.compile(r"getproxies|trust_env|ProxyHandler|[\"'](?:https?|all|no)_proxy[\"']", re.IGNORECASE)
    found = [name for name, path in MODULES.items() if words.search(path.read_text(encoding="utf-8"))]
    assert set(found) <= LOOKUP_PROBES


def test_s22_what_counts_of_the_environment_is_documented() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert [word for word in ("SSL_CERT_FILE", "SSL_CERT_DIR", "HTTPS_PROXY") if word not in page] == []


PAGES = ["/docs", "/redoc", "/swagger", "/debug", "/debug/vars", "/admin", "/.env"]


@pytest.mark.parametrize("path", PAGES)
async def test_s17_there_is_no_page_that_nobody_asked_for(path: str) -> None:
    asked = await handle(Gateway(config_for("own"), {"own": Scripted(HELLO)}), "GET", path)
    assert asked.status == 404


async def test_s17_health_says_nothing_more() -> None:
    asked = await handle(Gateway(config_for("own"), {"own": Scripted(HELLO)}), "GET", "/health")
    assert asked.json == {"status": "ok"}
