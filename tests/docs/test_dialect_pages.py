"""The tables of the pages of dialects are those that the field tables and encoders give."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import pytest

from tests.docs.pages import ROOT

if TYPE_CHECKING:
    from types import ModuleType

FOLDER = ROOT / "docs" / "dialects"
NAMES = sorted(path.stem for path in FOLDER.glob("*.md") if path.stem != "README")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script that writes the tables."""
    spec = importlib.util.spec_from_file_location("dialect_pages", ROOT / "scripts" / "dialect_pages.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", NAMES)
def test_the_tables_are_current(script: ModuleType, name: str) -> None:
    """`make dialect-pages` writes them."""
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    assert script.page(name, text) == text


def test_every_page_has_tables(script: ModuleType) -> None:
    assert sorted(script.PAGES) == NAMES


def test_a_page_without_marks_is_refused(script: ModuleType) -> None:
    with pytest.raises(ValueError, match="marks"):
        script.page("chat", "# Nothing\n")
