"""The harness in which the faults happen, one for each file of tests."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.faults.harness import GatewayHarness

if TYPE_CHECKING:
    from collections.abc import Generator


@pytest.fixture(scope="module")
def harness() -> Generator[GatewayHarness]:
    """Give a harness that retries nothing: what is wrong shows at once."""
    with ExitStack() as stack:
        yield GatewayHarness().start(stack)
