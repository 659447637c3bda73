"""The page of the faults says what the catalogue and the tests say."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import pytest

from tests.docs.pages import ROOT
from tests.faults.catalogue import catalogue

if TYPE_CHECKING:
    from types import ModuleType

PAGE = ROOT / "docs" / "reliability.md"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script that writes the tables."""
    spec = importlib.util.spec_from_file_location("reliability", ROOT / "scripts" / "reliability.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_are_what_the_catalogue_and_the_tests_give(script: ModuleType) -> None:
    """`make reliability` writes them anew."""
    text = PAGE.read_text(encoding="utf-8")
    assert script.page(text) == text


def test_every_case_and_every_requirement_is_tested_somewhere(script: ModuleType) -> None:
    listed = catalogue()
    names = [*(case.id for case in listed.case), *(one.id for one in listed.requirement)]
    places = script.tested()
    assert [name for name in names if not places.get(name)] == []


def test_a_page_without_marks_is_refused(script: ModuleType) -> None:
    with pytest.raises(ValueError, match="marks"):
        script.page("# Nothing\n")
