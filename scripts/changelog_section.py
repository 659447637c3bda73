"""The section of CHANGELOG.md for a version, as the notes of its release.

    python scripts/changelog_section.py VERSION

Prints the section without its heading. It fails if there is none: a release without notes is a mistake.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

CHANGELOG = Path(__file__).resolve().parents[1] / "CHANGELOG.md"


def section(text: str, version: str) -> str | None:
    """Return what stands below `## [VERSION]`, up to the next heading of that kind; `None` if there is none."""
    parts = re.split(r"^## \[([^\]]+)\].*$", text, flags=re.MULTILINE)
    found = dict(zip(parts[1::2], parts[2::2], strict=True)).get(version, "").strip()
    return found or None


def main() -> int:
    """Print the section of the version that the command line names."""
    version = sys.argv[1].removeprefix("v")
    notes = section(CHANGELOG.read_text(encoding="utf-8"), version)
    if notes is None:
        sys.stderr.write(f"CHANGELOG.md has no section `## [{version}]`: rename `## [Unreleased]`, and add a new one\n")
        return 1
    sys.stdout.write(f"{notes}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
