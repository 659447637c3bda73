"""The container image: linted, and its own steps executed in an empty folder, up to the health check and the drain."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.architecture.tree import ROOT
from tests.deploy import dockerfile
from tests.deploy.tools import tool
from tests.gateway.running_gateway import TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path

TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")
STEPS = list(dockerfile.instructions(TEXT))
CONFIG = """
[server]
port = {port}
[keys]
env = ["GATEWAY_KEYS"]
[upstreams.main]
dialect = "chat"
base_url = "http://127.0.0.1:9/v1"
"""


def test_hadolint_finds_nothing() -> None:
    assert tool("hadolint", "--failure-threshold", "style", "Dockerfile") == ""


def test_no_step_needs_a_shell() -> None:
    kinds = ("RUN", "CMD", "ENTRYPOINT")
    assert [step for step in STEPS if step.keyword in kinds and not step.rest.startswith("[")] == []
    assert [step.rest for step in STEPS if step.keyword == "HEALTHCHECK"] == ['CMD ["xenoglot", "health"]']


def test_the_base_image_is_pinned_and_every_install_checks_hashes() -> None:
    bases = {step.rest.partition(" ")[0] for step in STEPS if step.keyword == "FROM"}
    assert bases == {"${PYTHON}", "install", "runtime-weights-no", "runtime-weights-${WEIGHTS}"}
    pinned = next(step.rest for step in STEPS if step.keyword == "ARG" and step.rest.startswith("PYTHON="))
    assert pinned.partition("@sha256:")[2].isalnum()
    installs = [step.words for step in STEPS if step.keyword == "RUN" and "pip" in step.words]
    assert [words for words in installs if not {"--require-hashes", "--no-index"} & set(words)] == []


def test_the_process_is_not_root_and_only_the_volume_is_its_own() -> None:
    last = {step.keyword: step.rest for step in STEPS}
    assert (last["USER"], last["VOLUME"]) == ("10001:10001", "/var/lib/xenoglot")
    owned = [step.rest for step in STEPS if step.flags.get("chown")]
    assert owned == ["/data /var/lib/xenoglot"]


@pytest.mark.parametrize(
    "path", [".git/config", ".env", "drive/day.py", "requirements/dev.txt", "src/__pycache__/x.pyc"]
)
def test_nothing_else_of_the_work_tree_gets_into_the_build(path: str) -> None:
    assert not dockerfile.ContextFiles(ROOT)._let_in(path)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def files(root: Path) -> Mapping[str, tuple[int, int]]:
    """Return each file of the image outside its volume with size and time of change."""
    volume = root / "var"
    paths = [path for path in root.rglob("*") if path.is_file() and not path.is_relative_to(volume)]
    return {str(path.relative_to(root)): (path.stat().st_size, path.stat().st_mtime_ns) for path in paths}


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Generator[dockerfile.Build]:
    """The stages of the image; their hundreds of megabytes are removed afterwards."""
    folder = tmp_path_factory.mktemp("image")
    yield dockerfile.Build(TEXT, ROOT, folder, {"VERSION": "1.2.3"})
    shutil.rmtree(folder)


@pytest.mark.parametrize("stage", ["wheel", "install"])
def test_the_image_s_own_steps_succeed(build: dockerfile.Build, stage: str) -> None:
    """One stage a test: together they take long on a busy machine."""
    build.stage(stage)


def test_the_image_is_a_gateway_that_is_healthy_and_drains(build: dockerfile.Build) -> None:
    image = build.image()
    port = free_port()
    image.path("/etc/xenoglot").mkdir(parents=True)
    image.path("/etc/xenoglot/xenoglot.toml").write_text(CONFIG.format(port=port), encoding="utf-8")
    before = files(image.root)
    assert not any(path.startswith(("src", "wheels", "opt/build")) for path in before)

    entry = [*json.loads(image.settings["ENTRYPOINT"]), *json.loads(image.settings["CMD"])]
    command, environment = image.command(entry)
    assert command[0] == str(image.path("/opt/xenoglot/bin/xenoglot"))
    told = subprocess.run([command[0], "--version"], env=environment, capture_output=True, check=True)
    assert told.stdout == b"xenoglot 1.2.3\n"
    environment |= {"GATEWAY_KEYS": "k" * 32, "XENOGLOT_URL": f"http://127.0.0.1:{port}"}
    folder = image.path("/var/lib/xenoglot")
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert f":{port}" in process.stdout.readline()
        check, _ = image.command(json.loads(image.settings["HEALTHCHECK"].removeprefix("CMD ")))
        healthy = subprocess.run(check, cwd=folder, env=environment, capture_output=True, timeout=TIMEOUT, check=False)
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT) == 0
    assert healthy.stdout.decode() == f'http://127.0.0.1:{port}/readyz: HTTP 200: {{"status":"ready"}}\n'
    gone = subprocess.run(check, cwd=folder, env=environment, capture_output=True, timeout=TIMEOUT, check=False)
    assert (healthy.returncode, gone.returncode) == (0, 1)
    assert files(image.root) == before  # a read-only root is enough
    assert [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("state.db")] == []
    if os.getuid() == 0:
        assert (folder.stat().st_uid, oct(folder.stat().st_mode & 0o777)) == (10001, "0o750")
