"""What a gateway loads before its first request: what every one needs, and nothing for what it was not asked to do."""

import subprocess
import sys

import pytest

from tests.architecture.tree import ROOT

# Assemble a gateway as `xenoglot serve` does, from the flags given, and tell which modules that took.
START = """
import asyncio, sys
from xenoglot import cli, model_selection
from xenoglot.gateway.process.build import build_gateway
from xenoglot.gateway.process.serve import GatewayServer

async def start(config):
    async with build_gateway(config) as gateway:
        GatewayServer(gateway)

asyncio.run(start(model_selection.config_of(cli._parser().parse_args(["serve", *sys.argv[1:]]))))
print(*sys.modules)
"""

UPSTREAM = ("--upstream", "http://127.0.0.1:9/v1")


def loaded(*flags: str) -> set[str]:
    """The modules that are there when a gateway could answer."""
    command = [sys.executable, "-c", START, *flags]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.fixture(scope="module")
def usual() -> set[str]:
    """The modules of a gateway with one upstream and nothing else configured."""
    return loaded(*UPSTREAM)


@pytest.mark.parametrize(
    "unneeded",
    [
        pytest.param(("xenoglot.engine.backend", "xenoglot.engine.server.weights"), id="embedded-model"),
        pytest.param(
            ("xenoglot.backends.wrappers.json_output", "xenoglot.text.json.schema"), id="answers-held-to-schemas"
        ),
        pytest.param(("xenoglot.backends.wrappers.text_tools", "xenoglot.text.parser.text_parser"), id="calls-in-text"),
        pytest.param(
            ("xenoglot.gateway.process.supervisor", "xenoglot.gateway.process.worker"), id="several-processes"
        ),
        pytest.param(("xenoglot.gateway.admin",), id="administration"),
        pytest.param(("xenoglot.providers.probe.runner", "xenoglot.testing"), id="other-commands"),
        pytest.param(("sqlite3", "asyncpg", "redis"), id="databases"),
        pytest.param(
            ("xenoglot.gateway.batches.runner", "xenoglot.store.batches", "python_multipart"),
            id="files-and-batches",
        ),
        pytest.param(("importlib.metadata", "email", "zipfile"), id="metadata-of-packages"),
        pytest.param(("http.client", "urllib.request", "json"), id="http-of-the-standard-library"),
    ],
)
def test_a_start_leaves_out(usual: set[str], unneeded: tuple[str, ...]) -> None:
    assert usual.intersection(unneeded) == set()
