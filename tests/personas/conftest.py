"""A home for each newcomer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.personas.new_home import Home

if TYPE_CHECKING:
    from pathlib import Path

    from xenoglot.engine.server.weights import Weights


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An empty home."""
    return Home(tmp_path)


@pytest.fixture
def home_with_weights(home: Home, weights: Weights) -> Home:
    """An empty home on a machine that has downloaded the embedded model: `make serve` has run."""
    home.environment["XENOGLOT_MODELS"] = str(weights.path.parent)
    return home
