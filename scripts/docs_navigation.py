"""The order of the documentation, from `docs/navigation.toml`; `make docs-contents` writes `docs/README.md` from it."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parent.parent
NAVIGATION = ROOT / "docs" / "navigation.toml"
CONTENTS = ROOT / "docs" / "README.md"

HEAD = """\
# Documentation

Find the page for a task here. `make docs-site` builds a site from these pages into `build/site/`, with a search and
generated reference pages: commands, configuration, endpoints, Python, fidelity. `make docs-contents` writes this list
from [navigation.toml](navigation.toml).
"""

GENERATED = ("site/", "build/")
"""Pages that are made with the site."""
REST = ("Guides", "Help")
"""The section and group of pages that are not listed."""

PLACES = {
    "README.md": "index.md",
    "docs/README.md": "index.md",
    "SECURITY.md": "report-a-vulnerability.md",
    "build/docs/reliability.md": "faults.md",
}
"""Pages that are in the site under another name."""
FOLDERS = {"docs/": "", "build/docs/": "", "site/": "reference/"}
"""Where the pages of a folder are in the site."""


class Entry(NamedTuple):
    """One page: its section, where its source is, its short title, what it is for, and its group in the section."""

    section: str
    source: str
    title: str
    about: str
    group: str = ""

    @property
    def place(self) -> str:
        """Where the page is in the site."""
        return place(self.source)


def entries() -> list[Entry]:
    """Return the pages that exist, in order; those that the navigation does not list are last of their section."""
    listed, awaited = _listed()
    there = [entry for entry in listed if entry.source not in awaited or (ROOT / entry.source).is_file()]
    named = {entry.source for entry in listed} | {"docs/README.md"}
    files = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs").glob("*.md"))]
    others = [Entry(REST[0], name, heading(name), "", REST[1]) for name in files if name not in named]
    last = max(index for index, entry in enumerate(there) if (entry.section, entry.group) == REST)
    return [*there[: last + 1], *others, *there[last + 1 :]]


def in_contents() -> list[Entry]:
    """Return the pages that `docs/README.md` lists: those of the repository that are not awaited."""
    listed, awaited = _listed()
    return [entry for entry in listed if entry.source not in awaited and not entry.source.startswith(GENERATED)]


def _listed() -> tuple[list[Entry], list[str]]:
    found = tomllib.loads(NAVIGATION.read_text(encoding="utf-8"))
    listed = [
        Entry(part["title"], source, title, about, part.get("group", ""))
        for part in found["section"]
        for source, title, about in part["pages"]
    ]
    return listed, found["awaited"]


def heading(source: str) -> str:
    """Return the heading of a page of the repository."""
    return (ROOT / source).read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def place(source: str) -> str:
    """Return where a page of the repository is in the site: `docs/run.md` becomes `run.md`."""
    if source in PLACES:
        return PLACES[source]
    for folder, there in FOLDERS.items():
        if source.startswith(folder):
            return there + source.removeprefix(folder)
    return source.lower()


def contents(pages: Sequence[Entry]) -> str:
    """Return the page that lists the others."""
    parts = [HEAD]
    for name, part in parts_of(pages):
        rows = [f"| [{page.title}]({os.path.relpath(page.source, 'docs')}) | {page.about} |" for page in part]
        parts.append("\n".join([f"## {name}", "", "| page | content |", "|---|---|", *rows]) + "\n")
    return "\n".join(parts)


def parts_of(pages: Sequence[Entry]) -> list[tuple[str, list[Entry]]]:
    """Return the pages by section and group, each with a heading."""
    names = dict.fromkeys((page.section, page.group) for page in pages)
    return [
        (
            f"{section}: {group}" if group else section,
            [page for page in pages if page[0] == section and page[4] == group],
        )
        for section, group in names
    ]


def main() -> None:
    """Write the list of pages."""
    CONTENTS.write_text(contents(in_contents()), encoding="utf-8")


if __name__ == "__main__":
    main()
