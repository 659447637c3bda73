"""Fixtures for tests over HTTP: gateways that run, and their access log."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from tests.gateway.running_gateway import AccessLines, RunningGateway, run_gateway

if TYPE_CHECKING:
    from collections.abc import Callable, Generator


@pytest.fixture
def gateway_server(request: pytest.FixtureRequest) -> Generator[Callable[..., RunningGateway]]:
    """Give a function that starts a gateway (see `run_gateway`); all of them are stopped at the end.

    A file that parametrizes it with `SERVERS` has its tests run over our own server, and over the ASGI application.
    """
    usual: dict[str, Any] = {"asgi": getattr(request, "param", "native") == "asgi"}
    with ExitStack() as stack:
        yield lambda *arguments, **settings: stack.enter_context(run_gateway(*arguments, **usual | settings))


@pytest.fixture
def access_lines() -> Generator[AccessLines]:
    """Give the lines that the gateway writes to its access log."""
    lines = AccessLines()
    logger = logging.getLogger("xenoglot.access")
    before = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(lines)
    yield lines
    logger.removeHandler(lines)
    logger.setLevel(before)
