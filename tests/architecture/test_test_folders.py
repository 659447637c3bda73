"""Tests are in the folders that mirror the packages of the source."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.architecture.tree import ROOT, SOURCES

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE: Final = ROOT / "src" / "xenoglot"
TESTS: Final = ROOT / "tests"

OTHERS: Final = {
    "architecture": "rules for the source tree",
    "bench": "tests of bench/, which is not part of the package",
    "deploy": "tests of deploy/ and of the container image",
    "docs": "tests of docs/",
    "faults": "the catalogue of faults, played on a whole gateway",
    "fuzz": "targets of the fuzzer",
    "laws": "properties of all dialects",
    "matrix": "official SDKs before a whole gateway",
    "oracles": "official SDKs and published schemas as readers",
    "personas": "the first minutes of each kind of user, from an empty home",
}
"""Folders that mirror no package, and what is in them."""


def folders() -> list[str]:
    """Return the folders of tests that hold Python files, those inside `OTHERS` left out."""
    found = {path.parent.relative_to(TESTS) for path in TESTS.rglob("*.py")}
    return sorted(folder.as_posix() for folder in found if folder.parts and folder.parts[0] not in OTHERS)


def homes() -> dict[str, set[str]]:
    """Return the packages that have a module of a name: `sse` -> `codec/framing`."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in SOURCES:
        found[path.stem].add(path.parent.relative_to(PACKAGE).as_posix())
    return found


def misplaced() -> Iterator[str]:
    """Yield the tests that are named after a module of another sub-package of theirs."""
    by_name = homes()
    for path in sorted(TESTS.rglob("test_*.py")):
        folder = path.parent.relative_to(TESTS)
        if not folder.parts or folder.parts[0] in OTHERS:
            continue
        near = {home for home in by_name[path.stem.removeprefix("test_")] if Path(home).parts[:1] == folder.parts[:1]}
        if near and folder.as_posix() not in near:
            yield f"{path.relative_to(ROOT)} belongs to {', '.join(sorted(near))}"


def test_each_folder_mirrors_a_package() -> None:
    assert [folder for folder in folders() if not (PACKAGE / folder).is_dir()] == []


def test_the_other_folders_exist_and_mirror_nothing() -> None:
    assert [name for name in OTHERS if not (TESTS / name).is_dir() or (PACKAGE / name).exists()] == []


def test_a_test_named_after_a_module_is_in_the_folder_of_its_package() -> None:
    assert list(misplaced()) == []
