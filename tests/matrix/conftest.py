"""One gateway for each file of tests, and the SDKs that call at it."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import pytest

from tests.gateway.running_gateway import AccessLines
from tests.matrix.matrix_gateway import MatrixGateway
from tests.matrix.sdk import Sdk, sdk

if TYPE_CHECKING:
    from collections.abc import Callable, Generator


@pytest.fixture(scope="module")
def matrix_gateway() -> Generator[MatrixGateway]:
    """Give a running gateway with its upstreams."""
    with MatrixGateway() as running:
        yield running


@pytest.fixture(autouse=True)
def _anew(request: pytest.FixtureRequest) -> Generator[None]:
    """Leave no script and no memory in the upstreams of a gateway for the next test."""
    yield
    if "matrix_gateway" in request.fixturenames:
        running: MatrixGateway = request.getfixturevalue("matrix_gateway")
        for upstream in running.upstreams.values():
            upstream.forget()


@pytest.fixture(scope="module")
def runner() -> Generator[asyncio.Runner]:
    """Give the event loop of the asynchronous SDKs."""
    with asyncio.Runner() as running:
        yield running


@pytest.fixture(scope="module")
def client(matrix_gateway: MatrixGateway, runner: asyncio.Runner) -> Generator[Callable[..., Sdk]]:
    """Give a function that returns the SDK of a dialect in a mode, calling at the gateway, or at another `url`."""
    made: dict[tuple[str, str, str], Sdk] = {}

    def give(dialect: str, mode: str, url: str | None = None) -> Sdk:
        key = (dialect, mode, url or matrix_gateway.url)
        if key not in made:
            made[key] = sdk(*key, runner)
        return made[key]

    yield give
    for one in made.values():
        one.close()


@pytest.fixture
def lines() -> Generator[AccessLines]:
    """Give the lines of the gateway's access log from now on."""
    handler = AccessLines()
    logger = logging.getLogger("xenoglot.access")
    before = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(before)
