"""Ids of cases that sources, tests and pages cite, and the pages that say what each means."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.architecture.tree import ROOT
from tests.faults.catalogue import catalogue as catalogue_of_faults

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PITFALLS: Final = ROOT / "docs" / "pitfalls.md"
CATALOGUE: Final = ROOT / "docs" / "catalogue.md"

CITING: Final = ("src", "tests", "docs", "bench", "drive", "scripts")
"""The folders whose files may cite an id; beside them the pages at the root."""
SUFFIXES: Final = frozenset({".md", ".py", ".toml"})
CASES_FILE: Final = ROOT / "tests" / "architecture" / "citation_cases.toml"

NO_CITATION: Final = frozenset({"A0", "C0", "F16", "F32", "U99"})
"""What has the form of an id and is none: characters, types of numbers, the fault that a test makes up."""

_NOQA: Final = re.compile(r"noqa: [A-Z0-9, ]+|ignore\[[^]]*\]")
_FIRST_CELL: Final = re.compile(r"^\| ([A-Za-z]*-?[A-Z]?[0-9]*) \|", re.MULTILINE)
_PITFALL: Final = re.compile(r"pitfall-(\d+)")
_CLIENTS: Final = re.compile(r"(?<![\w-])clients-(\d+)(?![\w-])")
_FINDING: Final = re.compile(r"findings-((?:clients-\d+|[A-Z]-[SW]\d+|[A-Z]?\d+|[A-Z])(?![A-Za-z0-9]))")
# Two digits for faults of upstreams (U), load (K) and security (S): `K2` and `S3` are names of other things.
_BARE: Final = re.compile(
    r"(?<![\w.#/$%-])((?:[UKS]\d\d|[ACFLR]\d{1,2}|[ACFLR]-[SW]\d{1,2}))(?![\w%]|\.\d|-[A-Z0-9]|[-/]bit)"
)
# In the ids of test cases, and in the names of tests, ids are small.
_SMALL: Final = re.compile(r"(?:\bid=\"|\btest_)((?:[uks]\d\d|[acflr]\d{1,2}|[acflr]-[sw]\d{1,2}))(?=[-_\"])")


class Citation(NamedTuple):
    """An id where it is cited: the key of its entry, which page has it, and the place."""

    key: str
    place: str


def _section(text: str, heading: str) -> str:
    """Return the part of a page from a heading of the second level to the next of them."""
    found = re.search(rf"^## {heading}$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"there is no section `{heading}`"
    return found[1]


def entries() -> set[str]:
    """Return the keys of all entries: `pitfall-31`, `findings-A1`, and the ids of faults and reference systems bare."""
    catalogue = CATALOGUE.read_text(encoding="utf-8")
    references = first_cells(_section(catalogue, "Reference systems"))
    findings = first_cells(_section(catalogue, "Findings"))
    faults = catalogue_of_faults()
    pitfalls = first_cells(PITFALLS.read_text(encoding="utf-8"))
    return {
        *references,
        *(case.id for case in faults.case),
        *(requirement.id for requirement in faults.requirement),
        *(f"findings-{key}" for key in [*findings, *references]),
        *(f"pitfall-{key}" for key in pitfalls),
    }


def first_cells(text: str) -> list[str]:
    """Return the ids in the first cells of tables, without the heads."""
    return [cell for cell in _FIRST_CELL.findall(text) if cell[-1:].isdigit() or cell.isupper()]


def keys(line: str) -> Iterator[str]:
    """Yield the keys of the entries that a line cites."""
    text = _NOQA.sub("", line)
    yield from (f"pitfall-{number}" for number in _PITFALL.findall(text))
    yield from (f"findings-{name}" for name in _FINDING.findall(text))
    yield from (f"findings-clients-{number}" for number in _CLIENTS.findall(text))
    yield from (name for name in _BARE.findall(text) if name not in NO_CITATION)
    yield from (name.upper() for name in _SMALL.findall(text) if name.upper() not in NO_CITATION)


def citing_files() -> list[Path]:
    """Return the files that may cite an id: sources, tests, pages and the notes of vectors."""
    found = [path for folder in CITING for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    return [
        path for path in sorted([*found, *ROOT.glob("*.md")]) if path != CASES_FILE and "node_modules" not in path.parts
    ]


def citations(path: Path) -> Iterator[Citation]:
    """Yield what a file cites, line by line."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        for key in keys(line):
            yield Citation(key, f"{path.relative_to(ROOT)}:{number}")
