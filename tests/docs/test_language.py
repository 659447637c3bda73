"""Pages, docstrings, help and error texts are in plain, standard English."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import pytest

from tests.docs.pages import ROOT

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script that finds the words."""
    spec = importlib.util.spec_from_file_location("check_language", ROOT / "scripts" / "check_language.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_text_has_such_a_word(script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(script.files()) > 900
    assert (script.main([]), capsys.readouterr().out) == (0, "")


def test_each_place_is_shown(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(script, "ROOT", tmp_path)
    (tmp_path / "page.md").write_text("It is here.\nNobody asks.\n", encoding="utf-8")
    assert script.main(["page.md"]) == 1
    assert capsys.readouterr().out.startswith("page.md:2: `Nobody`: use ")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("Nobody asks.", ["Nobody"], id="nobody"),
        pytest.param("What you do not say is not sent.", ["say"], id="say"),
        pytest.param("It stands behind a proxy, then comes behind it.", ["behind"], id="behind"),
        pytest.param("xenoglot.toml is there. Is there another?", ["is there"], id="is-there"),
        pytest.param("It runs.\nOf a request, two are kept.", ["Of a"], id="of"),
        pytest.param("The `said` value, and `nobody`.", [], id="code"),
        pytest.param("```text\nsaid nobody\n```\nIt was said.", ["said"], id="block"),
        pytest.param("See [it](told.md).", [], id="link"),
        pytest.param("`[a](`b) is said by `nobody`", ["said"], id="code-that-looks-like-a-link"),
        pytest.param("| `a | it said `b` |\n| c | it tells `d` |", ["tells"], id="one-backtick-of-a-row"),
        pytest.param("Use your home directory.", [], id="home-directory"),
    ],
)
def test_pages(script: ModuleType, text: str, found: list[str]) -> None:
    assert [place.found for place in script.places("page.md", text)] == found


def test_modules(script: ModuleType) -> None:
    source = '''"""Tell it."""

said = "said"  # said
NAMES = {"said": 1}


def ask(parser):
    """Ask. See https://example.com/told-again (https://example.com/said), as told.

    >>> said = 1
    """
    parser.add_argument("--said", help="what was said")
    _logger.warning("nobody is %s", said)
    raise ValueError(f"{said} is told anew")
'''
    assert [(place.line, place.found) for place in script.places("module.py", source)] == [
        (1, "Tell"),
        (8, "told"),
        (12, "said"),
        (13, "nobody"),
        (14, "anew"),
        (14, "told"),
    ]
