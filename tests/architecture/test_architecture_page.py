"""ARCHITECTURE.md names the packages, their order and the modules of a request's way as they are."""

from __future__ import annotations

import re
from typing import Final

import pytest

from tests.architecture.tree import ROOT, SOURCES, imports

PACKAGE: Final = ROOT / "src" / "xenoglot"
PAGE: Final = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
FOLDERS: Final = tuple(sorted(path.name for path in (PACKAGE / "dialects").iterdir() if (path / "request").is_dir()))

PATH: Final = re.compile(r"(?<![\w/])[a-z_0-9]+(?:/(?:[a-z_0-9]+|<[a-z]+>))+")
"""A path of modules: `gateway/relay/answer`, `dialects/<client>/request/decoder`."""


def section(heading: str) -> str:
    """Return the text under a heading of the page."""
    found = re.search(rf"^## {heading}$(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, heading
    return found[1]


def tables() -> list[tuple[str, ...]]:
    """Return the first cells of the two tables of packages: those of the product, and those of the gateway."""
    found = [re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) for table in section("Packages").split("\n\n")]
    return [tuple(names) for names in found if names]


def packages(folder: str) -> set[str]:
    """Return the packages in a folder of the source."""
    return {path.parent.relative_to(PACKAGE / folder).parts[0] for path in (PACKAGE / folder).glob("*/**/*.py")}


def upward(folder: str, order: tuple[str, ...]) -> list[str]:
    """Return the imports between the packages of a folder that go to a package below in `order`."""
    prefix = ".".join(("xenoglot", *filter(None, [folder]))) + "."
    found = []
    for one in (one for path in SOURCES for one in imports(path)):
        if one.importer.startswith(prefix) and one.imported.startswith(prefix):
            importer, imported = (name.removeprefix(prefix).partition(".")[0] for name in (one.importer, one.imported))
            known = importer in order and imported in order
            if known and order.index(imported) > order.index(importer):
                found.append(f"{one.place} imports {one.imported}")
    return found


@pytest.mark.parametrize(("table", "folder"), [(0, ""), (1, "gateway")], ids=["product", "gateway"])
def test_each_package_is_listed_below_those_that_it_imports(table: int, folder: str) -> None:
    order = tables()[table]
    assert set(order) == packages(folder)
    assert upward(folder, order) == []


def test_modules_outside_the_packages_are_listed() -> None:
    listed = set(
        re.findall(r"`(\w+)`", section("Packages").partition("Modules outside the packages")[2].split("\n\n")[0])
    )
    assert listed == {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__"}


def test_modules_on_the_way_of_a_request_exist() -> None:
    named = PATH.findall(section("One request").partition("```text")[2].partition("```")[0])
    assert len(named) > 30
    missing = [path for path in named if not any((PACKAGE / f"{real}.py").exists() for real in real_paths(path))]
    assert missing == []


def real_paths(path: str) -> list[str]:
    """Return a path, for each dialect where it has a place for one."""
    return [re.sub("<[a-z]+>", name, path) for name in FOLDERS]


def test_names_within_the_folder_of_a_dialect_mean_the_same() -> None:
    sentence = section("Packages").partition("the same names mean the same:")[2].split("\n\n")[0]
    names = re.findall(r"`([\w/]+)`", sentence)
    assert names
    rare = [name for name in names if sum((PACKAGE / "dialects" / one / f"{name}.py").exists() for one in FOLDERS) < 3]
    assert rare == []
