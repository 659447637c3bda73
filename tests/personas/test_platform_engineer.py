"""Ten minutes of a platform engineer: two upstreams, keys, limits, metrics, a reload, a drain, a unit for systemd."""

from __future__ import annotations

import json
import signal
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.architecture.tree import ROOT
from tests.gateway.scripted_backends import HELLO
from tests.matrix.dialect_server import DialectServer
from tests.personas.new_home import BIN, TIMEOUT
from xenoglot import dialect_registry as dialects

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.personas.new_home import Home
    from xenoglot.model.request import Request
    from xenoglot.model.response import Response

CONFIG = """
[server]
port = 0

[keys]
env = ["ADA_KEY", "BEN_KEY"]
admin_env = ["ADMIN_KEY"]
limits = {{ requests = ["3/1h"] }}

[upstreams.local]                     # vLLM, say
dialect = "chat"
base_url = "{local}"

[upstreams.vendor]
dialect = "messages"
base_url = "{vendor}"
key_env = "VENDOR_KEY"

[[models]]
name = "fast"
upstream = "local"
model = "qwen3"

[[models]]
name = "smart"
upstream = "vendor"
model = "large-1"
"""
MORE = """
[[models]]
name = "new"
upstream = "local"
"""
KEYS = {"ADA_KEY": "ada" * 12, "BEN_KEY": "ben" * 12, "ADMIN_KEY": "admin" * 8, "VENDOR_KEY": "vendor" * 6}


class Team:
    """The engineer's home, with a configuration file in front of two servers."""

    def __init__(self, home: Home, local: DialectServer, vendor: DialectServer) -> None:
        self.home, self.local, self.vendor = home, local, vendor
        home.write("team.toml", CONFIG.format(local=local.url, vendor=vendor.url))
        home.environment |= KEYS | {"WRONG_KEY": "wrong" * 8}

    def status(self, url: str, key: str, model: str = "fast", path: str = "v1/chat/completions") -> int:
        """Ask a model with the key in a variable; return the status."""
        body = json.dumps({"model": model, "max_tokens": 8, "messages": [{"role": "user", "content": "Hi"}]})
        head = f"-H 'content-type: application/json' -H \"authorization: Bearer ${key}\""
        return int(self.home.run(f"curl -sS -o answer.json -w '%{{http_code}}' {head} -d '{body}' {url}/{path}"))

    def get(self, url: str, key: str) -> str:
        """Return the status, and what stands at a URL."""
        return self.home.run(f"curl -sS -w '\\n%{{http_code}}' -H \"authorization: Bearer ${key}\" {url}")


@pytest.fixture
def team(home: Home) -> Generator[Team]:
    """A team's configuration."""
    with ExitStack() as stack:
        servers = [stack.enter_context(DialectServer(dialects.get(name))) for name in ("chat", "messages")]
        yield Team(home, *servers)


def test_a_variable_that_is_not_set_is_named_before_anything_starts(team: Team) -> None:
    assert '"vendor"' in team.home.run("xenoglot serve --config team.toml --print-config")
    del team.home.environment["VENDOR_KEY"]
    assert "VENDOR_KEY" in team.home.run("xenoglot serve --config team.toml", code=2)


def test_keys_limits_and_metrics(team: Team) -> None:
    team.local.script(HELLO, HELLO)
    team.vendor.script(HELLO)
    with team.home.serving("xenoglot serve --config team.toml") as server:
        assert team.home.run(f"xenoglot health {server.url}").endswith('{"status":"ready"}\n')
        assert team.status(server.url, "WRONG_KEY") == 401
        assert team.status(server.url, "ADA_KEY") == 200
        assert team.status(server.url, "ADA_KEY", "smart", "v1/messages") == 200
        assert team.status(server.url, "ADA_KEY", "unknown") == 404
        assert team.status(server.url, "BEN_KEY") == 200
        assert team.status(server.url, "ADMIN_KEY") in (401, 403)  # it opens no model

        assert team.get(f"{server.url}/metrics", "ADA_KEY").splitlines()[-1] in ("401", "403")
        metrics = team.get(f"{server.url}/metrics", "ADMIN_KEY").splitlines()
        assert metrics[-1] == "200"
        assert 'xenoglot_target_attempts_total{backend="local",model="qwen3",outcome="answered"} 2' in metrics
        assert 'xenoglot_target_attempts_total{backend="vendor",model="large-1",outcome="answered"} 1' in metrics
    assert [request.model for request in team.vendor.requests] == ["large-1"]
    sent = json.dumps([*team.local.headers, *team.vendor.headers])
    assert KEYS["VENDOR_KEY"] in sent
    assert [name for name in ("ADA_KEY", "BEN_KEY", "ADMIN_KEY") if KEYS[name] in sent] == []
    assert [name for name, key in KEYS.items() if key in "".join(server.output)] == []


def test_a_limit_is_each_key_s_own(team: Team) -> None:
    team.local.script(*[HELLO] * 4)
    with team.home.serving("xenoglot serve --config team.toml") as server:
        assert [team.status(server.url, "ADA_KEY") for _ in range(4)] == [200, 200, 200, 429]
        assert team.status(server.url, "BEN_KEY") == 200


def test_a_reload_adds_a_model_and_a_mistake_changes_nothing(team: Team) -> None:
    with team.home.serving("xenoglot serve --config team.toml") as server:
        wait = f'until curl -sS -H "authorization: Bearer $ADA_KEY" {server.url}/v1/models | grep -q %s; do :; done'
        text = (team.home.folder / "team.toml").read_text(encoding="utf-8")
        team.home.write("team.toml", text + MORE)
        server.process.send_signal(signal.SIGHUP)
        team.home.run(wait % "'\"new\"'")
        team.home.write("team.toml", text + "mistake = true\n")
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("mistake")
        team.home.run(wait % "'\"new\"'")


def test_a_request_in_flight_ends_before_the_gateway_does(team: Team) -> None:
    asked, answer = threading.Event(), threading.Event()

    def slow(_: Request) -> Response:
        asked.set()
        assert answer.wait(TIMEOUT)
        return HELLO

    team.local.script(slow)
    statuses: list[int] = []
    with team.home.serving("xenoglot serve --config team.toml") as server:
        client = threading.Thread(target=lambda: statuses.append(team.status(server.url, "ADA_KEY")))
        client.start()
        assert asked.wait(TIMEOUT)
        server.process.send_signal(signal.SIGTERM)
        team.home.run(f"until ! xenoglot health {server.url}; do :; done")  # it takes no more
        answer.set()
        client.join(TIMEOUT)
        assert (statuses, server.wait()) == ([200], 0)


def test_a_backup_restores_a_conversation_after_the_disk_is_lost(team: Team) -> None:
    home = team.home
    store = f'[store]\nurl = "sqlite://{home.folder}/state.db"\n'
    home.write("team.toml", (home.folder / "team.toml").read_text(encoding="utf-8") + store)
    with home.serving("xenoglot serve --config team.toml") as server:
        head = "-H 'content-type: application/json' -H \"authorization: Bearer $ADA_KEY\""
        made = json.loads(home.run(f"curl -sS {head} -d '{{}}' {server.url}/v1/conversations"))
        home.run("""python -c "import sqlite3; sqlite3.connect('state.db').backup(sqlite3.connect('copy.db'))" """)
    home.run("rm state.db* && mv copy.db state.db && chmod 600 state.db")
    with home.serving("xenoglot serve --config team.toml") as server:
        told = team.get(f"{server.url}/v1/conversations/{made['id']}", "ADA_KEY")
    assert told.endswith("\n200")
    assert made["id"] in told


def test_systemd_accepts_the_unit_with_the_engineer_s_paths(team: Team) -> None:
    unit = (ROOT / "deploy" / "systemd" / "xenoglot.service").read_text(encoding="utf-8")
    team.home.write("xenoglot.service", unit.replace("/opt/xenoglot/bin", str(BIN)))
    assert team.home.run("systemd-analyze verify ./xenoglot.service") == ""
