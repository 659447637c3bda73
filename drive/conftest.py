"""What a drive needs: the clients, a home for each, a scripted server of any dialect, and a gateway in front of it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from msgspec import Struct

from drive.writer import Writer
from tests.matrix.dialect_server import DialectServer
from xenoglot import dialect_registry as dialects
from xenoglot.codec.json.json_io import decode_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.model.json import JSONObject

CLIENTS = Path(__file__).parent.parent / ".venv" / "clients"
PATIENCE = 180
"""Seconds after which a client that should have ended has not."""

TURNS = [name for name in dialects.names() if not name.endswith(("completion", "completions", "generate"))]
"""Dialects in which a conversation with tools can be held; the others continue a text."""

FAMILIES = ("hermes", "qwen3_coder", "gpt_oss", "deepseek_v31")
"""Of the models that write their calls as text."""

CONFIG = """
[upstreams.main]
dialect = "chat"
base_url = "{url}"
text_syntax = "{syntax}"
emulate = {{ tools = true }}
"""


class Place(Struct, frozen=True):
    """A gateway at `url`, and the folders of one client."""

    url: str
    home: Path
    work: Path

    def run(self, client: str, *arguments: str, **environment: str) -> str:
        """Return what `client` printed; it must have ended well."""
        done = self.ran(client, *arguments, **environment)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    def ran(self, client: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Return how `client` ended, and what it printed; all of it, for it is a program that starts others."""
        node = CLIENTS / "bin"
        path = os.pathsep.join((str(node), str(CLIENTS / "node_modules" / ".bin"), os.environ["PATH"]))
        process = subprocess.Popen(
            [CLIENTS / "node_modules" / ".bin" / client, *arguments],
            cwd=self.work,
            env={"HOME": str(self.home), "PATH": path, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        with process:
            try:
                printed, complained = process.communicate(timeout=PATIENCE)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        return subprocess.CompletedProcess(process.args, process.returncode, printed, complained)


class DriveSetup(Place, frozen=True):
    """A place, and the server behind its gateway."""

    speaker: DialectServer


class Gateway(Struct, frozen=True):
    """A gateway that runs as a process, and the file it writes its log to."""

    url: str
    process: subprocess.Popen[str]
    log: Path

    def lines(self) -> list[JSONObject]:
        """Return what its log says of each request, in the order in which they ended.

        A line is written just behind the end of its answer: that of one more request comes after all of them.
        """
        last = b""
        try:
            with urlopen(f"{self.url}/health", timeout=PATIENCE) as answer:  # noqa: S310  our own gateway
                last = str(answer.headers["x-request-id"]).encode()
        except URLError:  # it has been told to stop
            self.process.wait(PATIENCE)
        until = monotonic() + PATIENCE
        while last not in (said := self.log.read_bytes()):
            assert monotonic() < until, said
        return [decode_json(line) for line in said.splitlines() if line.startswith(b"{")]


@contextmanager
def gateway(folder: Path, *flags: str, **environment: str) -> Iterator[Gateway]:
    """Run a gateway as a process, until it has ended."""
    command = [sys.executable, "-m", "xenoglot.cli", "serve", "--port", "0", *flags]
    log = folder / "gateway.log"
    given = {**os.environ, "XDG_DATA_HOME": str(folder / "data"), "PYTHONUNBUFFERED": "1", **environment}
    with log.open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=given)
    with process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://[\d.]+:\d+", process.stdout.readline())
            assert found is not None, log.read_text()
            yield Gateway(url=found[0], process=process, log=log)
        finally:
            process.terminate()


@pytest.fixture(params=TURNS)
def drive_setup(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DriveSetup]:
    """Give a setup with a server of each dialect behind the gateway."""
    with (
        DialectServer(dialects.get(request.param)) as speaker,
        run_drive_setup(tmp_path, speaker, "--upstream", speaker.url, "--dialect", request.param) as drive_setup,
    ):
        yield drive_setup


@pytest.fixture(params=FAMILIES)
def writing(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[DriveSetup, Writer]]:
    """Give a setup with a server that takes no tools behind the gateway, and the model of each family there."""
    with DialectServer(dialects.get("chat"), piece=5) as speaker:
        config = tmp_path / "xenoglot.toml"
        config.write_text(CONFIG.format(url=speaker.url, syntax=request.param))
        with run_drive_setup(tmp_path, speaker, "--config", str(config)) as drive_setup:
            yield drive_setup, Writer(request.param)


@contextmanager
def run_drive_setup(folder: Path, speaker: DialectServer, *flags: str) -> Iterator[DriveSetup]:
    """Give a setup whose gateway is run with `flags`."""
    with gateway(folder, *flags) as served:
        home, work = furnished(folder)
        yield DriveSetup(url=served.url, speaker=speaker, home=home, work=work)


def furnished(folder: Path) -> tuple[Path, Path]:
    """Return a new home for a client, and a folder that it works in."""
    home, work = folder / "home", folder / "work"
    home.mkdir()
    work.mkdir()
    return home, work
