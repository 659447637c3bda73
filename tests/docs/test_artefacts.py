"""The generated pages of the documentation: they can be made, and their summaries in `docs/` are what they say now."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import pytest

from tests.docs.pages import ROOT, broken, links_in

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

NAMES = ("fidelity.md", "reliability.md")
SUMMARIZED = ("losses.md", "reliability.md")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script that writes the pages."""
    spec = importlib.util.spec_from_file_location("docs_artefacts", ROOT / "scripts" / "docs_artefacts.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_these_are_generated(script: ModuleType) -> None:
    assert (tuple(script.PAGES), tuple(script.SUMMARIES)) == (NAMES, SUMMARIZED)
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert f"/{script.FOLDER.relative_to(ROOT).parts[0]}/" in ignored


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_whole_and_its_links_resolve(script: ModuleType, name: str) -> None:
    text = script.PAGES[name]()
    assert text.startswith("# ")
    assert text.endswith("|\n")
    assert "\n## " in text
    found = links_in(text)
    assert [link for link in found if broken(script.FOLDER / name, link)] == []
    assert found


@pytest.mark.parametrize("name", SUMMARIZED)
def test_a_summary_is_current(script: ModuleType, name: str) -> None:
    """`make docs-artefacts` writes it."""
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert script.with_summary(text, script.SUMMARIES[name]()) == text


def test_pages_and_summaries_are_written(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.md").write_text(f"# A\n\n{script.BEGIN}old\n{script.END}", encoding="utf-8")
    monkeypatch.setattr(script, "FOLDER", tmp_path / "build" / "docs")
    monkeypatch.setattr(script, "DOCS", tmp_path)
    monkeypatch.setattr(script, "PAGES", {"whole.md": lambda: "# Whole\n"})
    monkeypatch.setattr(script, "SUMMARIES", {"a.md": lambda: "new"})
    script.main()
    assert (tmp_path / "build" / "docs" / "whole.md").read_text(encoding="utf-8") == "# Whole\n"
    assert (tmp_path / "a.md").read_text(encoding="utf-8") == f"# A\n\n{script.BEGIN}\nnew\n\n{script.END}"


def test_a_page_without_marks_is_refused(script: ModuleType) -> None:
    with pytest.raises(ValueError, match="marks"):
        script.with_summary("# Nothing\n", "")
