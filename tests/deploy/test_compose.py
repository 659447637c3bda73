"""The compose file: in form, in agreement with the files that it mounts, and its gateway run with real servers."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.tree import ROOT
from tests.deploy.test_image import free_port
from tests.deploy.tools import tool, yaml
from tests.gateway.limits import valkey
from tests.gateway.running_gateway import TIMEOUT
from tests.store import postgresql
from xenoglot.gateway.config.settings import ServerSettings
from xenoglot.gateway.process.serve import GRACE_SECONDS

FOLDER = ROOT / "deploy" / "compose"
KEYS = {"GATEWAY_KEYS": "k" * 32, "GATEWAY_ADMIN_KEY": "a" * 32, "OPENAI_API_KEY": "o" * 32}
PROGRAM = str(Path(sys.executable).parent / "xenoglot")


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    """The services by name."""
    documents: list[Any] = yaml((FOLDER / "compose.yml").read_text(encoding="utf-8"))
    found: dict[str, Any] = documents[0]["services"]
    return found


def test_the_file_has_the_form_of_the_specification() -> None:
    tool("check-jsonschema", "--builtin-schema", "vendor.compose-spec", FOLDER / "compose.yml")
    tool("yamllint", "--strict", "--config-file", "deploy/yamllint.yml", FOLDER)


def test_what_is_mounted_exists(services: dict[str, Any]) -> None:
    mounts = [mount for service in services.values() for mount in service.get("volumes", ()) if mount.startswith(".")]
    assert len(mounts) == 5
    assert [mount for mount in mounts if not (FOLDER / mount.split(":")[0]).exists()] == []


def test_every_container_is_hardened_and_every_image_has_a_version(services: dict[str, Any]) -> None:
    for name, service in services.items():
        assert (service["cap_drop"], service["security_opt"]) == (["ALL"], ["no-new-privileges:true"]), name
        assert name == "gateway" or re.search(r":v?\d", service["image"]), name
    published = [port for service in services.values() for port in service.get("ports", ())]
    assert [port for port in published if not port.startswith("127.0.0.1:")] == []


def test_compose_waits_longer_than_the_drain(services: dict[str, Any]) -> None:
    assert float(services["gateway"]["stop_grace_period"][:-1]) >= ServerSettings().drain_seconds + GRACE_SECONDS


def test_prometheus_scrapes_the_gateway_with_the_admin_key(services: dict[str, Any]) -> None:
    documents: list[Any] = yaml((ROOT / "deploy" / "monitoring" / "prometheus.yml").read_text(encoding="utf-8"))
    [job] = documents[0]["scrape_configs"]
    assert job["static_configs"] == [{"targets": ["gateway:8080"]}]
    [secret] = services["prometheus"]["secrets"]
    assert job["authorization"]["credentials_file"] == f"/run/secrets/{secret}"
    mounted = {mount.split(":")[1] for mount in services["prometheus"]["volumes"]}
    assert {f"/etc/prometheus/{file}" for file in documents[0]["rule_files"]} <= mounted


def test_grafana_finds_the_dashboard(services: dict[str, Any]) -> None:
    documents: list[Any] = yaml((FOLDER / "grafana/dashboards/xenoglot.yml").read_text(encoding="utf-8"))
    folder = documents[0]["providers"][0]["options"]["path"]
    assert f"../monitoring/dashboard.json:{folder}/xenoglot.json:ro" in services["grafana"]["volumes"]


def test_the_gateway_of_the_file_works_with_postgresql_and_valkey(services: dict[str, Any]) -> None:
    """Its configuration, with the variables that the file passes on, on servers that tests have."""
    with postgresql.running() as store, valkey.running() as limits:
        environment = KEYS | {"STORE_URL": store.url(), "LIMITS_URL": limits.url, "HOME": str(FOLDER)}
        assert set(environment) - {"HOME"} == set(services["gateway"]["environment"])
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        command = [PROGRAM, "serve", "--config", str(FOLDER / "xenoglot.toml"), "--port", str(port)]
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout
            assert url in process.stdout.readline()
            healthy = subprocess.run([PROGRAM, "health", url], capture_output=True, timeout=TIMEOUT, check=False)
            conversation = ["curl", "-sS", "-X", "POST", f"{url}/v1/conversations", "-d", "{}"]
            headers = ["-H", f"authorization: Bearer {KEYS['GATEWAY_KEYS']}", "-H", "content-type: application/json"]
            stored = subprocess.run([*conversation, *headers], capture_output=True, text=True, check=True)
            process.send_signal(signal.SIGTERM)
            errors = process.communicate(timeout=TIMEOUT)[1]
    assert healthy.returncode == 0
    assert '"object":"conversation"' in stored.stdout  # kept in PostgreSQL
    assert (process.returncode, [line for line in errors.splitlines() if '"route"' not in line]) == (0, [])
