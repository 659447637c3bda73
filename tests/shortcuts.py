"""Shortcuts on or off within one test, whatever `XENOGLOT_SHORTCUTS` says of the whole run."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from xenoglot.shortcuts import GROUPS, SHORTCUTS

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from xenoglot.shortcuts import Group


@contextmanager
def switched(*, on: bool) -> Generator[None]:
    """Take shortcuts, or the general way, until the block ends."""
    with without(() if on else GROUPS):
        yield


@contextmanager
def without(groups: Iterable[Group]) -> Generator[None]:
    """Take all shortcuts but those of these groups, until the block ends."""
    before = SHORTCUTS.off
    SHORTCUTS.turn_off(groups)
    try:
        yield
    finally:
        SHORTCUTS.turn_off(before)


@pytest.fixture(scope="module")
def with_shortcuts() -> Generator[None]:
    """Take shortcuts in all tests of a module: they test the shortcuts themselves."""
    with switched(on=True):
        yield
