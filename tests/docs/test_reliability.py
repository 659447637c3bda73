"""The page of the faults says what the catalogue and the tests say."""

from __future__ import annotations

import ast
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


@pytest.mark.parametrize(
    ("code", "ids"),
    [
        ("def test_u13_u14_a_cut(): pass", ["U13", "U14"]),
        ("async def test_a_cut_c02(): pass", ["C02"]),
        ("def test_s20_r1_the_lock(): pass", ["S20", "R1"]),
        ("x = 'U21-blank-lines'", ["U21"]),
        ("x = 'pitfall-118-C02-mid-stream'", ["C02"]),
        ("def test_findings_c13_a_word(): pass", []),
        ("x = 'findings-C13'", []),
        ("x = 'reference-C13-indented'", []),
        ("x = 'c-s10-json'", []),
        ("x = 'k20-endless-calls'", []),
        ("x = 'r1'", []),
        ("x = 'r11'", []),
        ("x = 'deepseek-ai/DeepSeek-R1'", []),
        ("x = 'moonshotai/Kimi-K25'", []),
        ("x = 'LFM2-U21b'", []),
        ("def f():\n    'U21 is played elsewhere.'", []),
    ],
)
def test_an_id_is_one_only_as_the_catalogue_writes_it(script: ModuleType, code: str, ids: list[str]) -> None:
    assert list(script.ids_in(ast.parse(code))) == ids
