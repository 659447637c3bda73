"""What the SDKs' types have and no dialect reads is listed, with a reason, and the page has the reasons."""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING

import pytest

from tests.docs.pages import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

DIALECTS = ("responses", "chat", "completions", "messages", "converse", "gemini", "interactions")


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    """The script that compares."""
    spec = importlib.util.spec_from_file_location("wire_diff", ROOT / "scripts" / "wire_diff.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["wire_diff"] = module  # its types are looked up there
    spec.loader.exec_module(module)
    yield module
    del sys.modules["wire_diff"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_name_is_read_or_has_a_reason(script: ModuleType, dialect: str) -> None:
    """`make wire-diff` also finds reasons for nothing; a name that a dialect learns to read is no failure here."""
    assert script.compare(dialect).unlisted == {}


def test_all_dialects_with_an_sdk_are_compared(script: ModuleType) -> None:
    assert tuple(script.SURFACES) == DIALECTS
    every = [entry for dialect in DIALECTS for entry in script.entries(dialect)]
    assert all(entry.reason.endswith(".") and (entry.names or entry.objects) for entry in every)


def test_the_page_has_the_reasons(script: ModuleType) -> None:
    page = script.PAGE.read_text(encoding="utf-8")
    assert script.with_table(page) == page


@pytest.mark.parametrize(
    ("name", "known"),
    [
        pytest.param("seed", True, id="a-word"),
        pytest.param("type=web_search_20250305", True, id="a-date"),
        pytest.param("type=web_fetch_20250910", False, id="a-date-of-another"),
        pytest.param("type=response.audio.delta", True, id="in-parts"),
        pytest.param("type=response.video.delta", False, id="not-all-parts"),
        pytest.param("type=unheard_of", False, id="unknown"),
    ],
)
def test_what_counts_as_known(script: ModuleType, name: str, known: bool) -> None:  # noqa: FBT001  a case
    source = frozenset({"seed", "web_search_", "response", "audio", "delta"})
    assert script.is_known(name, source) is known
