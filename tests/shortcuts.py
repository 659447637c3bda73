"""Shortcuts on or off within one test, whatever `XENOGLOT_SHORTCUTS` says of the whole run."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from xenoglot.shortcuts import SHORTCUTS

if TYPE_CHECKING:
    from collections.abc import Generator


@contextmanager
def switched(*, on: bool) -> Generator[None]:
    """Take shortcuts, or the general way, until the block ends."""
    before = SHORTCUTS.taken
    SHORTCUTS.take(taken=on)
    try:
        yield
    finally:
        SHORTCUTS.take(taken=before)


@pytest.fixture(scope="module")
def with_shortcuts() -> Generator[None]:
    """Take shortcuts in all tests of a module: they test the shortcuts themselves."""
    with switched(on=True):
        yield
