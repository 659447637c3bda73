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

from tests.matrix.speaker import Speaker
from xenoglot.codec import dialect as dialects

if TYPE_CHECKING:
    from collections.abc import Iterator

CLIENTS = Path(__file__).parent.parent / ".venv" / "clients"
PATIENCE = 180
"""Seconds after which a client that should have ended has not."""

TURNS = [name for name in dialects.names() if not name.endswith(("completion", "completions", "generate"))]
"""Dialects in which a conversation with tools can be held; the others continue a text."""


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
def gateway(speaker: Speaker, folder: Path) -> Iterator[str]:
    """Run a gateway in front of `speaker` as a process; give its URL."""
    command = [sys.executable, "-m", "xenoglot.cli", "serve", "--port", "0"]
    command += ["--upstream", speaker.url, "--dialect", speaker.dialect.name]
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
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    with Speaker(dialects.get(request.param)) as speaker, gateway(speaker, tmp_path) as url:
        yield Stage(url=url, speaker=speaker, home=home, work=work)
