"""Every case of the catalogue that this release covers is cited by a vector or by a test."""

import re
from pathlib import Path

TESTS = Path(__file__).parent.parent

# The numbers name cases of translation between wire formats.
COVERED = set(range(1, 130))

CITATION = re.compile(r"pitfall-(\d+(?:-\d+)*)\b")
"""`pitfall-89`, or `pitfall-88-89` for two."""


def cited() -> dict[int, set[str]]:
    """Return the numbers cited anywhere under the tests, and where."""
    found: dict[int, set[str]] = {}
    for path in TESTS.rglob("*"):
        if path.suffix in {".py", ".md"} and path != Path(__file__):
            for match in CITATION.finditer(path.read_text(encoding="utf-8")):
                for number in match[1].split("-"):
                    found.setdefault(int(number), set()).add(str(path.relative_to(TESTS)))
    return found


def test_every_case_is_cited() -> None:
    assert sorted(COVERED - cited().keys()) == []


def test_no_case_is_made_up() -> None:
    assert {number: where for number, where in cited().items() if not 1 <= number <= 129} == {}
