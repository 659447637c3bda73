"""The proxies of docs/deploy.md in front of a gateway: Caddy is run, with its file changed in addresses alone."""

from __future__ import annotations

import json
import ssl
import subprocess
from http.client import HTTPSConnection
from typing import TYPE_CHECKING

import pytest
import trustme

from tests.architecture.tree import ROOT
from tests.deploy.test_image import free_port
from tests.deploy.tools import BIN, tool
from tests.gateway.running_gateway import TIMEOUT, RunningGateway, config_for
from tests.gateway.scripted_backends import HELLO, BlockingBackend
from xenoglot.gateway.app import Gateway
from xenoglot.model.fold import unfold

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

FILE = ROOT / "deploy" / "tls" / "Caddyfile"
BODY = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "Hi"}]})
JSON = {"content-type": "application/json"}
EVENTS = tuple(unfold(HELLO))


@pytest.fixture
def backend() -> BlockingBackend:
    """A model that stops in the middle of its answer."""
    return BlockingBackend(EVENTS[:3], EVENTS[3:])


@pytest.fixture
def connection(tmp_path: Path, backend: BlockingBackend) -> Generator[HTTPSConnection]:
    """A client of Caddy in front of a gateway in front of `backend`."""
    authority = trustme.CA()
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "pair.pem"))
    port = free_port()
    with RunningGateway(Gateway(config_for("main"), {"main": backend})) as gateway:
        text = FILE.read_text(encoding="utf-8").replace("127.0.0.1:8080", f"127.0.0.1:{gateway.port}")
        site = f"https://localhost:{port} {{\n\tbind 127.0.0.1\n\ttls {tmp_path}/pair.pem {tmp_path}/pair.pem\n"
        text = "{\n\tadmin off\n\tauto_https disable_redirects\n}\n" + text.replace("gateway.example {\n", site)
        (tmp_path / "Caddyfile").write_text(text, encoding="utf-8")
        command = [str(BIN / "caddy"), "run", "--config", str(tmp_path / "Caddyfile"), "--adapter", "caddyfile"]
        environment = {"HOME": str(tmp_path)}
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr
            log = []
            for line in process.stderr:
                log.append(line)
                if "serving initial configuration" in line:
                    break
            else:
                pytest.fail("".join(log))
            context = ssl.create_default_context()
            authority.configure_trust(context)
            client = HTTPSConnection("localhost", port, context=context, timeout=TIMEOUT)
            try:
                yield client
            finally:
                client.close()
                process.terminate()
                process.communicate(timeout=TIMEOUT)


def test_caddy_passes_each_event_on_at_once(connection: HTTPSConnection, backend: BlockingBackend) -> None:
    connection.request("POST", "/v1/chat/completions", BODY, JSON)
    response = connection.getresponse()
    assert (response.status, response.readline()[:6]) == (200, b"data: ")  # the model has not ended
    backend.resume()
    assert response.read().endswith(b"data: [DONE]\n\n")


def test_caddy_keeps_metrics_inside(connection: HTTPSConnection) -> None:
    connection.request("GET", "/metrics")
    assert connection.getresponse().status == 404


def test_the_caddyfile_is_in_form() -> None:
    assert tool("caddy", "fmt", FILE) == FILE.read_text(encoding="utf-8")
