"""What a drive needs: the clients, a home for each, a scripted server of any dialect, and a gateway in front of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec import Struct

from drive.writer import Writer
from tests.matrix.speaker import Speaker
from xenoglot.codec import dialect as dialects

if TYPE_CHECKING:
    from collections.abc import Iterator

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


class Stage(Struct, frozen=True):
    """A gateway at `url`, the server behind it, and the folders of one client."""

    url: str
    speaker: Speaker
    home: Path
    work: Path

    def run(self, client: str, *arguments: str, **environment: str) -> str:
        """Return what `client` printed; it must have ended well."""
        node = CLIENTS / "bin"
        path = os.pathsep.join((str(node), str(CLIENTS / "node_modules" / ".bin"), os.environ["PATH"]))
        done = subprocess.run(
            [CLIENTS / "node_modules" / ".bin" / client, *arguments],
            cwd=self.work,
            env={"HOME": str(self.home), "PATH": path, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout


@contextmanager
def gateway(folder: Path, *flags: str) -> Iterator[str]:
    """Run a gateway as a process; give its URL."""
    command = [sys.executable, "-m", "xenoglot.cli", "serve", "--port", "0", *flags]
    with (folder / "gateway.log").open("w") as log:
        environment = {**os.environ, "XDG_DATA_HOME": str(folder / "data"), "PYTHONUNBUFFERED": "1"}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
    with process:
        try:
            assert process.stdout is not None
            found = next(filter(None, (re.search(r"http://[\d.]+:\d+", line) for line in process.stdout)))
            yield found[0]
        finally:
            process.terminate()


@pytest.fixture(params=TURNS)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    """Give a stage with a server of each dialect behind the gateway."""
    with (
        Speaker(dialects.get(request.param)) as speaker,
        staged(tmp_path, speaker, "--upstream", speaker.url, "--dialect", request.param) as stage,
    ):
        yield stage


@pytest.fixture(params=FAMILIES)
def writing(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Stage, Writer]]:
    """Give a stage with a server that takes no tools behind the gateway, and the model of each family there."""
    with Speaker(dialects.get("chat"), piece=5) as speaker:
        config = tmp_path / "xenoglot.toml"
        config.write_text(CONFIG.format(url=speaker.url, syntax=request.param))
        with staged(tmp_path, speaker, "--config", str(config)) as stage:
            yield stage, Writer(request.param)


@contextmanager
def staged(folder: Path, speaker: Speaker, *flags: str) -> Iterator[Stage]:
    """Give a stage whose gateway is run with `flags`."""
    home, work = folder / "home", folder / "work"
    home.mkdir()
    work.mkdir()
    with gateway(folder, *flags) as url:
        yield Stage(url=url, speaker=speaker, home=home, work=work)
