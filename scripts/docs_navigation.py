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
    """One page: its section, where its source is, its short title, and what it is for."""

    section: str
    source: str
    title: str
    about: str

    @property
    def place(self) -> str:
        """Where the page is in the site."""
        return place(self.source)


def entries() -> list[Entry]:
    """Return the pages of the navigation, in order."""
    sections = tomllib.loads(NAVIGATION.read_text(encoding="utf-8"))["section"]
    return [Entry(section["title"], *page) for section in sections for page in section["pages"]]


def place(source: str) -> str:
    """Return where a page of the repository is in the site: `docs/run.md` becomes `run.md`."""
    if source in PLACES:
        return PLACES[source]
    for folder, there in FOLDERS.items():
        if source.startswith(folder):
            return there + source.removeprefix(folder)
    return source.lower()


def contents(pages: Sequence[Entry]) -> str:
    """Return the page that lists the others; those that are generated with the site are left out."""
    parts = [HEAD]
    for section in dict.fromkeys(entry.section for entry in pages):
        rows = [
            f"| [{entry.title}]({os.path.relpath(entry.source, 'docs')}) | {entry.about} |"
            for entry in pages
            if entry.section == section and not entry.source.startswith(("site/", "build/"))
        ]
        parts.append("\n".join([f"## {section}", "", "| page | content |", "|---|---|", *rows]) + "\n")
    return "\n".join(parts)


def main() -> None:
    """Write the list of pages."""
    CONTENTS.write_text(contents(entries()), encoding="utf-8")


if __name__ == "__main__":
    main()
