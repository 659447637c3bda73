"""Every id of a case that is cited has an entry on a page: in sources, tests, pages and the notes of vectors."""

import tomllib
from collections import Counter
from typing import Any

import pytest

from tests.architecture.citations import (
    CASES_FILE,
    CATALOGUE,
    PITFALLS,
    citations,
    citing_files,
    entries,
    first_cells,
    keys,
)

CASES: list[dict[str, Any]] = tomllib.loads(CASES_FILE.read_text(encoding="utf-8"))["case"]


def test_every_citation_has_an_entry() -> None:
    known = entries()
    found = [citation for path in citing_files() for citation in citations(path)]
    assert [citation for citation in found if citation.key not in known] == []
    assert len(found) > 2000  # the patterns still find them


def test_pitfalls_are_numbered_without_gaps() -> None:
    numbers = first_cells(PITFALLS.read_text(encoding="utf-8"))
    assert numbers == [str(number) for number in range(1, len(numbers) + 1)]


def test_entries_of_the_catalogue_are_unique_in_their_part() -> None:
    references, findings = CATALOGUE.read_text(encoding="utf-8").split("## Findings")
    for part in (references, findings):
        assert [key for key, count in Counter(first_cells(part)).items() if count > 1 and len(key) > 1] == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_citations_of_a_line(case: dict[str, Any]) -> None:
    assert list(keys(case["line"])) == case["keys"]
    assert (set(case["keys"]) <= entries()) is not case.get("unknown", False)
