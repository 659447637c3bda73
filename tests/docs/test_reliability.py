"""Which tests play which fault, as the generated page of the faults says it."""

from __future__ import annotations

import ast

import pytest

from tests.faults import reliability_page
from tests.faults.catalogue import catalogue


def test_every_case_and_every_requirement_is_tested_somewhere() -> None:
    listed = catalogue()
    names = [*(case.id for case in listed.case), *(one.id for one in listed.requirement)]
    places = reliability_page.tested()
    assert [name for name in names if not places.get(name)] == []


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
def test_an_id_is_one_only_as_the_catalogue_writes_it(code: str, ids: list[str]) -> None:
    assert list(reliability_page.ids_in(ast.parse(code))) == ids
