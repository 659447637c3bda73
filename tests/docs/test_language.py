"""Pages, docstrings, help and error texts are in plain, standard English: no file gets more of the old words."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import pytest

from tests.docs.pages import ROOT

if TYPE_CHECKING:
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


def test_no_file_has_more_places_than_it_may(script: ModuleType) -> None:
    limits = script.allowed()
    wrong = script.exceeding(script.counted(), limits)
    found = [place for path in wrong for place in script.places(path, (ROOT / path).read_text(encoding="utf-8"))]
    assert [f"{place.path}:{place.line}: `{place.found}`: use {place.use}" for place in found] == []


def test_the_list_names_existing_files_in_order(script: ModuleType) -> None:
    limits = script.allowed()
    assert [path for path in limits if not (ROOT / path).is_file()] == []
    assert script.ALLOWED.read_text(encoding="utf-8") == script.written(limits)


def test_the_numbers_only_fall(script: ModuleType) -> None:
    assert script.shrunk({"a": 1, "b": 9, "new": 3}, {"a": 2, "b": 4, "gone": 5}) == {"a": 1, "b": 4}
    assert script.exceeding({"a": 3, "b": 4, "new": 1}, {"a": 2, "b": 4}) == ["a", "new"]


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
        (7, "told"),
        (12, "said"),
        (13, "nobody"),
        (14, "anew"),
        (14, "told"),
    ]
