"""The wheel as a user installs it: into a clean environment, from an empty home, without the sources."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.architecture.tree import ROOT
from tests.gateway.running_gateway import TIMEOUT, run_gateway
from tests.gateway.scripted_backends import HELLO
from tests.wheels import build_wheel, repack_installed
from xenoglot.backends.scripted import Scripted

if TYPE_CHECKING:
    from collections.abc import Generator

LONG = 10 * TIMEOUT
UV = str(Path(sys.executable).parent / "uv")
LOCKED = re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements" / "run.txt").read_text(encoding="utf-8"), re.MULTILINE)
CALL = '{"model": "m", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 5}'
LIBRARY = """
import sys, xenoglot
from xenoglot import Client
assert "/site-packages/" in xenoglot.__file__, xenoglot.__file__
with Client(sys.argv[1], model="m") as client:
    print(client.complete("Hi").text)
"""


class Installation(NamedTuple):
    """A clean environment with the wheel in it, and a home of its own."""

    python: Path
    home: Path

    @property
    def environ(self) -> dict[str, str]:
        """The variables of a user without any setting."""
        return {"HOME": str(self.home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}

    def run(self, *command: str, given: str = "") -> str:
        """Run a program of the environment to its end; return its standard output."""
        done = subprocess.run(
            [str(self.python.parent / command[0]), *command[1:]],
            env=self.environ,
            cwd=self.home,
            input=given,
            capture_output=True,
            text=True,
            timeout=LONG,
            check=False,
        )
        return done.stdout if done.returncode == 0 else f"{done.returncode}: {done.stderr}"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the project's wheel and those of all that it can need."""
    folder = tmp_path_factory.mktemp("wheels")
    build_wheel(folder)
    repack_installed(folder, LOCKED)
    return folder


def install(folder: Path, wheels: Path, requirement: str) -> Installation:
    """Make an environment, and install what a user would name."""
    made = Installation(folder / "venv" / "bin" / "python", folder / "home")
    made.home.mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(made.python),
        "install",
        "--no-index",
        "--no-compile",
        "--quiet",
    ]
    subprocess.run(
        [*pip, "--disable-pip-version-check", "--find-links", str(wheels), requirement],
        check=True,
        env={**os.environ, "PIP_CONFIG_FILE": os.devnull},
    )
    return made


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Installation:
    """What `pip install xenoglot` gives."""
    return install(tmp_path_factory.mktemp("plain"), wheels, "xenoglot")


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Installation:
    """What `pip install 'xenoglot[all]'` gives."""
    return install(tmp_path_factory.mktemp("everything"), wheels, "xenoglot[all]")


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Installation:
    """What `uv tool install 'xenoglot[all]'` gives."""
    folder = tmp_path_factory.mktemp("tool")
    made = Installation(folder / "tools" / "xenoglot" / "bin" / "python", folder / "home")
    made.home.mkdir()
    places = {
        "UV_TOOL_DIR": str(folder / "tools"),
        "UV_TOOL_BIN_DIR": str(folder / "bin"),
        "UV_PYTHON_DOWNLOADS": "never",
    }
    uv = [UV, "tool", "install", "--offline", "--no-index", "--no-config", "--quiet"]
    subprocess.run(
        [*uv, "--python", sys.executable, "--find-links", str(wheels), "xenoglot[all]"],
        check=True,
        env=made.environ | places,
    )
    return made


@pytest.fixture(params=["plain", "everything", "tool"])
def installed(request: pytest.FixtureRequest) -> Installation:
    """Each of them."""
    found: Installation = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def server() -> Generator[str]:
    """The URL of a server that says hello."""
    with run_gateway({"main": Scripted(HELLO)}) as gateway:
        yield gateway.url


def test_the_version_is_that_of_the_package(installed: Installation, wheels: Path) -> None:
    [wheel] = wheels.glob("xenoglot-*.whl")
    version = wheel.name.split("-")[1]
    assert installed.run("xenoglot", "--version") == f"xenoglot {version}\n"
    assert installed.run("python", "-m", "xenoglot", "--version") == f"xenoglot {version}\n"


def test_translate_works(installed: Installation) -> None:
    done = installed.run("xenoglot", "translate", "--from", "chat", "--to", "messages", given=CALL)
    assert json.loads(done) == {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}]}


def test_the_library_asks_a_server(installed: Installation, server: str) -> None:
    assert installed.run("python", "-c", LIBRARY, server) == "Hello\n"


def test_ask_asks_a_server(installed: Installation, server: str) -> None:
    assert installed.run("xenoglot", "ask", "Hi", "--upstream", server, "--model", "m") == "Hello\n"


def test_serve_starts_and_answers(installed: Installation, server: str) -> None:
    command = [str(installed.python.parent / "xenoglot"), "serve", "--port", "0", "--upstream", server]
    with subprocess.Popen(command, env=installed.environ, cwd=installed.home, stdout=subprocess.PIPE, text=True) as one:
        try:
            assert one.stdout is not None
            urls = (re.search(r"http://127\.0\.0\.1:\d+", line) for line in one.stdout)
            url = next(found[0] for found in urls if found)
            assert installed.run("python", "-c", LIBRARY, url) == "Hello\n"
        finally:
            one.terminate()


def test_what_the_embedded_model_needs_is_named(plain: Installation) -> None:
    told = plain.run("xenoglot", "ask", "Hi")
    assert told == "2: xenoglot: xllamacpp is not installed: pip install 'xenoglot[local]'\n"


def test_the_extra_brings_every_command(everything: Installation) -> None:
    assert everything.run("xenoglot", "completion", "bash").startswith(
        "# AUTOMATICALLY GENERATED by https://github.com/tqdm/shtab"
    )
    imports = "import asyncpg, genai_prices, json_repair, jsonschema_rs, mcp, prompt_toolkit, redis, rich, xllamacpp"
    assert everything.run("python", "-c", imports) == ""
