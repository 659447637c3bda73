"""The house in which the faults happen, one for each file of tests."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.faults.house import House

if TYPE_CHECKING:
    from collections.abc import Generator


@pytest.fixture(scope="module")
def house() -> Generator[House]:
    """Give a house that retries nothing: what is wrong shows at once."""
    with ExitStack() as stack:
        yield House().start(stack)
