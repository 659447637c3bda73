"""The pictures that are drawn from data, and the places that pages have for them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from scripts import docs_pictures, docs_site
from tests.docs.pages import PAGES, ROOT
from tests.laws import fidelity
from xenoglot.dialect_registry import names

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = [*(page.read_text(encoding="utf-8") for page in PAGES), fidelity.HEAD]
HAND_MADE = sorted((ROOT / "docs" / "images").glob("*.svg"))


def test_every_mark_has_its_picture_and_every_picture_a_mark() -> None:
    marked = {name for text in TEXTS for name in docs_pictures.MARK.findall(text)}
    assert marked == {*docs_pictures.PICTURES, *docs_pictures.RECORDED}


@pytest.mark.parametrize("name", docs_pictures.PICTURES)
def test_a_picture_is_svg_without_files_of_others(name: str) -> None:
    text = docs_pictures.PICTURES[name][1]()
    assert ET.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314  we made it
    assert re.findall(r"(?:href|src|url)\W", text) == []


@pytest.mark.parametrize("path", HAND_MADE, ids=lambda path: path.name)
def test_a_picture_in_the_repository_is_small_and_has_a_title(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    root = ET.fromstring(text)  # noqa: S314  ours
    assert root.findtext("{http://www.w3.org/2000/svg}title")
    assert "prefers-color-scheme: dark" in text
    assert len(text) < 12_000


def test_the_heat_map_has_each_pair_of_dialects() -> None:
    text = docs_pictures.PICTURES["fidelity-requests"][1]()
    values = re.findall(r'class="in"[^>]*>(\d+)<', text)
    assert len(values) == len(names()) ** 2
    assert values[:: len(names()) + 1] == ["100"] * len(names())


def test_a_page_shows_the_pictures_that_exist() -> None:
    text = "a\n\n<!-- image: one -->\n\n<!-- image: two -->\n"
    shown = docs_site.with_pictures("docs/a/b.md", text, {"one": "The first"})
    assert shown == "a\n\n![The first](../images/one.svg)\n\n\n"
