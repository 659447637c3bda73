"""The page of the providers says what the rows say."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import pytest

from tests.docs.pages import ROOT, code, columns
from xenoglot.providers import catalog

if TYPE_CHECKING:
    from types import ModuleType

PAGE = ROOT / "docs" / "providers.md"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script that writes the tables."""
    spec = importlib.util.spec_from_file_location("providers", ROOT / "scripts" / "providers.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_are_what_the_rows_give(script: ModuleType) -> None:
    """`make providers` writes them anew."""
    text = PAGE.read_text(encoding="utf-8")
    assert script.page(text) == text


def test_every_row_has_its_line() -> None:
    assert sorted(row[1] for row in columns("providers.md", "The rows", 2)) == sorted(map(code, catalog.names()))


def test_a_page_without_marks_is_refused(script: ModuleType) -> None:
    with pytest.raises(ValueError, match="marks"):
        script.page("# Nothing\n")
