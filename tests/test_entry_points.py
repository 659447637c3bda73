"""What other packages bring is found without `importlib.metadata`, and is what that would find."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint, distributions, entry_points
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest

from xenoglot import entry_points as xenoglot_entry_points
from xenoglot.entry_points import PluginEntry, entries

if TYPE_CHECKING:
    from pathlib import Path

GROUPS = sorted({entry.group for distribution in distributions() for entry in distribution.entry_points})
GROUP = "xenoglot.dialects"
TEXT = """\
# a remark
[console_scripts]
other = other:main

[xenoglot.dialects]
# another
mine = mine.wire:DIALECTS.first [extra]
 their.s=theirs:DIALECT

[xenoglot.providers]
mine = mine:ROW
"""


def package(place: Path, name: str, text: str) -> None:
    """Write the metadata of a package."""
    folder = place / f"{name}-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "entry_points.txt").write_text(text, encoding="utf-8")


def registered(group: str) -> dict[str, str]:
    """What the library finds."""
    return {entry.name: entry.value for entry in entry_points(group=group)}


@pytest.mark.parametrize("group", [*GROUPS, "nobody.has.this"])
def test_what_is_installed_here(group: str) -> None:
    assert {name: entry.value for name, entry in entries(group).items()} == registered(group)


def test_folders_need_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path, "some_pack", TEXT)
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "missing")])
    monkeypatch.setattr(xenoglot_entry_points, "_entries", None)
    assert entries(GROUP) == {
        "mine": PluginEntry("mine", "mine.wire:DIALECTS.first [extra]", "some_pack"),
        "their.s": PluginEntry("their.s", "theirs:DIALECT", "some_pack"),
    }
    assert {name: entry.value for name, entry in entries(GROUP).items()} == registered(GROUP)


def test_of_two_packages_of_one_name_the_first_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path / "one", "some_pack", "[g]\nname = one:X\n")
    package(tmp_path / "two", "Some.Pack", "[g]\nname = two:X\nmore = two:Y\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "one"), str(tmp_path / "two")])
    assert entries("g") == {"name": PluginEntry("name", "one:X", "some_pack")}
    assert {name: entry.value for name, entry in entries("g").items()} == registered("g")


def test_an_archive_is_left_to_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ZipFile(tmp_path / "packages.zip", "w") as archive:
        archive.writestr("some_pack-1.0.dist-info/METADATA", "Name: some-pack\nVersion: 1.0\n")
        archive.writestr("some_pack-1.0.dist-info/entry_points.txt", TEXT)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "packages.zip")])
    assert entries(GROUP)["their.s"] == PluginEntry("their.s", "theirs:DIALECT", "some-pack")


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        pytest.param("xenoglot.entry_points:PluginEntry", PluginEntry, id="plain"),
        pytest.param("xenoglot.entry_points : PluginEntry [extra]", PluginEntry, id="extra"),
        pytest.param("xenoglot.entry_points:PluginEntry.load", PluginEntry.load, id="attribute-of-an-attribute"),
        pytest.param("xenoglot.entry_points", xenoglot_entry_points, id="module"),
    ],
)
def test_what_is_brought_is_loaded(value: str, wanted: object) -> None:
    assert PluginEntry("name", value).load() is wanted
    assert EntryPoint("name", value, "group").load() is wanted
