"""The generated pages of the documentation, and the summaries of them in the pages of `docs/`: `make docs-artefacts`.

    python scripts/docs_artefacts.py

The pages are written to `build/docs/`, which is not in the repository. Of a page in `docs/` the text between its marks
is replaced.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.faults import reliability_page as reliability  # noqa: E402  made from the tests
from tests.laws import fidelity  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = ROOT / "build" / "docs"
DOCS = ROOT / "docs"
BEGIN, END = "<!-- made by `make docs-artefacts`: begin -->\n", "<!-- made by `make docs-artefacts`: end -->\n"

PAGES: dict[str, Callable[[], str]] = {"fidelity.md": fidelity.page, "reliability.md": reliability.page}
"""The generated pages."""
SUMMARIES: dict[str, Callable[[], str]] = {"losses.md": fidelity.summary, "reliability.md": reliability.summary}
"""The pages in `docs/` that have a summary."""


def with_summary(text: str, summary: str) -> str:
    """Return the page `text` with this summary between its marks."""
    head, _, rest = text.partition(BEGIN)
    _, found, tail = rest.partition(END)
    if not found:
        message = "the page has lost the marks between which its summary stands"
        raise ValueError(message)
    return f"{head}{BEGIN}\n{summary}\n\n{END}{tail}"


def main() -> None:
    """Write the pages and the summaries."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), encoding="utf-8")
    for name, summary in SUMMARIES.items():
        path = DOCS / name
        path.write_text(with_summary(path.read_text(encoding="utf-8"), summary()), encoding="utf-8")


if __name__ == "__main__":
    main()
