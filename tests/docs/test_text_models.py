"""The page of the families says what the rows say."""

from __future__ import annotations

import importlib.util
import re
from typing import TYPE_CHECKING

import pytest

from tests.docs.pages import ROOT, code, columns
from xenoglot.codec.loss import Losses
from xenoglot.text.parse_api import ParseRequest, encode_parsed, parse
from xenoglot.text.rows import ROWS

if TYPE_CHECKING:
    from types import ModuleType

PAGE = ROOT / "docs" / "text-models.md"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script that writes the tables."""
    spec = importlib.util.spec_from_file_location("text_models", ROOT / "scripts" / "text_models.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_are_what_the_rows_and_vectors_give(script: ModuleType) -> None:
    """`make text-models` writes them anew."""
    text = PAGE.read_text(encoding="utf-8")
    assert script.page(text) == text


def test_every_row_has_its_line() -> None:
    assert sorted(row[1] for row in columns("text-models.md", "The families", 2)) == sorted(
        code(row.name) for row in ROWS
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("<|tag|>", "`<\\|tag\\|>`", id="bars"),
        pytest.param("```json\n", "```` ```json\\n ````", id="a-fence"),
    ],
)
def test_markers_in_a_cell(script: ModuleType, text: str, shown: str) -> None:
    assert script.code(text) == shown


def test_a_page_without_marks_is_refused(script: ModuleType) -> None:
    with pytest.raises(ValueError, match="marks"):
        script.page("# Nothing\n")


def test_every_field_is_explained() -> None:
    cells = re.findall(r"^\| (`.*?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    explained = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    answered = {*encode_parsed(parse("Hi", Losses()), Losses())}
    assert {*ParseRequest.__struct_fields__} - {"unknown"} | answered <= explained
