"""The tables of docs/testing.md say what the code says."""

from __future__ import annotations

from typing import get_args

from tests.docs.pages import code, columns, table
from xenoglot.testing.faults import FAULTS
from xenoglot.testing.script import Step


def test_steps() -> None:
    steps = [[f"`{step.__struct_config__.tag}`", code(*step.__struct_fields__)] for step in get_args(Step)]
    assert columns("testing.md", "Steps", 2) == steps


def test_faults() -> None:
    faults = [[f"`{name}`", fault.description, "yes" if fault.fails else "no"] for name, fault in FAULTS.items()]
    assert table("testing.md", "Ready faults") == faults
