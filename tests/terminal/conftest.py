"""What the tests of the terminal share."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

Home: TypeAlias = Path


@pytest.fixture
def home() -> Generator[Home]:
    """A folder with a short path: that of a socket may have a hundred characters."""
    with tempfile.TemporaryDirectory(prefix="xt") as folder:
        yield Path(folder)
