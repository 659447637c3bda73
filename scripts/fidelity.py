"""How many cells of the fidelity tables are exact, emulated, approximated, dropped and refused: `make fidelity`.

    python scripts/fidelity.py [--dropped]

A cell is a feature of requests, answers or errors of one dialect towards another, as in `build/docs/fidelity.md`.
`--dropped` lists the features that are dropped, those with the most cells first.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.laws import fidelity  # noqa: E402  made from the tests


def main(arguments: list[str]) -> int:
    """Print the counts; return the exit code."""
    cells = [*fidelity.cells()]
    counts = Counter(cell.fate for cell in cells)
    sys.stdout.write(f"{len(cells)} cells: " + ", ".join(f"{counts[fate]} {fate}" for fate in fidelity.FATES) + "\n")
    if "--dropped" in arguments:
        dropped = Counter((cell.part, cell.feature) for cell in cells if cell.fate == "dropped")
        for (part, feature), count in dropped.most_common():
            sys.stdout.write(f"{count:5} {part}: {feature}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
