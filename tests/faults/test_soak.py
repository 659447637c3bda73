"""The soak (`make soak`) in small: one second of faults and bad clients, then nothing may be left."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

SOAK = Path(__file__).parents[2] / "bench" / "soak.py"


@pytest.fixture(scope="module")
def soak() -> ModuleType:
    """Give the script as a module."""
    spec = importlib.util.spec_from_file_location("soak", SOAK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # msgspec looks the types of its structs up there
    spec.loader.exec_module(module)
    return module


async def test_k22_nothing_is_left_of_a_second_of_mixed_faults(soak: ModuleType) -> None:
    report = soak.Report(seed=7)
    await soak.soak(report, 1.0, 4)
    assert (report.mistakes, report.exit_code) == ([], 0)
    assert report.counted > 0


@pytest.mark.parametrize(("kibibytes_each", "slope"), [(0, 0.0), (10, 300.0), (-10, -300.0)])
def test_k22_growth_is_seen(soak: ModuleType, kibibytes_each: int, slope: float) -> None:
    samples = [
        soak.Sample(at=2.0 * number, memory=50_000 + kibibytes_each * number, descriptors=0, sockets=0)
        for number in range(20)
    ]
    assert soak.growth(samples) == pytest.approx(slope)
