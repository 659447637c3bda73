"""The examples on the pages do what the pages say, against a gateway that really runs."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from doctest import ELLIPSIS, OutputChecker
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.docs.pages import PAGES, Block, Example, examples
from xenoglot.testing import Upstream, polyglot

BIN = Path(sys.executable).parent
PROGRAMS = Path(__file__).parent / "programs"
PATIENCE = 120.0  # seconds until something that hangs is ended; nothing is judged by it
EXAMPLES = [example for page in PAGES for example in examples(page)]


class Gateway(NamedTuple):
    """A running gateway: its base URL and what it has written so far."""

    url: str
    log: list[str]


def listening(process: subprocess.Popen[str], log: list[str]) -> str:
    """Wait until a gateway says where it listens; gives its base URL."""
    assert process.stdout
    for line in process.stdout:
        log.append(line)
        if found := re.search(r"http://127\.0\.0\.1:\d+", line):
            return found[0]
    pytest.fail("`xenoglot serve` ended without saying where it listens:\n" + "".join(log))


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """What `make serve` starts, on a free port and with a store of its own."""
    command = [str(BIN / "xenoglot"), "serve", "--port", "0"]
    log: list[str] = []
    env = {**os.environ, "XDG_DATA_HOME": str(tmp_path_factory.mktemp("data"))}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        watchdog = threading.Timer(PATIENCE, process.kill)
        watchdog.start()
        url = listening(process, log)
        watchdog.cancel()
        assert process.stdout
        reader = threading.Thread(target=log.extend, args=[process.stdout])
        reader.start()
        yield Gateway(url, log)
        process.terminate()
        process.wait(PATIENCE)
        reader.join(PATIENCE)


@pytest.fixture(scope="module")
def model_server() -> Iterator[str]:
    """The base URL of a server that answers every request with a greeting."""
    with Upstream(*polyglot(text=["Hello."])) as server:
        yield server.url


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty home directory, where curl reports an HTTP error as its own failure."""
    (tmp_path / ".curlrc").write_text("fail-with-body\nshow-error\n", encoding="utf-8")
    return tmp_path


def command(block: Block, gateway: str, model_server: str) -> list[str]:
    """The command that runs a block against a gateway; line numbers in a traceback are those of the page."""
    text = re.sub(r"http://(127\.0\.0\.1|localhost):8080", gateway, block.text)
    text = text.replace("http://127.0.0.1:8000", model_server)
    if block.language == "python":
        return [sys.executable, "-c", "\n" * (block.line - 1) + text]
    return ["bash", "-euo", "pipefail", "-c", text]


def environment(home: Path) -> dict[str, str]:
    """What a user's shell has after `make install`, and the weights that are already there."""
    cache = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))
    kept = {name: value for name, value in os.environ.items() if name in {"LANG", "LD_LIBRARY_PATH", "XENOGLOT_MODELS"}}
    path = os.pathsep.join((str(PROGRAMS), str(BIN), os.environ["PATH"]))
    return {**kept, "HOME": str(home), "PATH": path, "XDG_CACHE_HOME": cache}


@pytest.mark.parametrize("example", [pytest.param(example, id=example.block.place) for example in EXAMPLES])
def test_examples_do_what_the_page_says(example: Example, gateway: Gateway, model_server: str, home: Path) -> None:
    done = subprocess.run(
        command(example.block, gateway.url, model_server),
        cwd=home,
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    story = f"{example.block.place}\n{done.stdout}{done.stderr}\nthe gateway wrote:\n{''.join(gateway.log)}"
    assert done.returncode == 0, story
    if example.output is None:
        assert done.stdout.strip(), f"{example.block.place} printed nothing; show its output, or do not run it"
    else:
        assert OutputChecker().check_output(example.output, done.stdout, ELLIPSIS), story
