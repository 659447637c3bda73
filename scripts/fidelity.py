"""How many cells of the fidelity tables are exact, emulated, approximated, dropped and refused: `make fidelity`.

    python scripts/fidelity.py [--dropped] [DIALECT ...]

A cell is a feature of requests, answers or errors of one dialect towards another, as in `build/docs/fidelity.md`; with
dialects only those among them count. `--dropped` lists the features that are dropped and between which dialects (client
and upstream), those with the most cells first.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.laws import fidelity  # noqa: E402  made from the tests
from xenoglot.dialect_registry import names  # noqa: E402  the same


def main(arguments: list[str]) -> int:
    """Print the counts; return the exit code."""
    chosen = {one for one in arguments if not one.startswith("-")} or {*names()}
    cells = [cell for cell in fidelity.cells() if {cell.client, cell.upstream} <= chosen]
    counts = Counter(cell.fate for cell in cells)
    sys.stdout.write(f"{len(cells)} cells: " + ", ".join(f"{counts[fate]} {fate}" for fate in fidelity.FATES) + "\n")
    if "--dropped" in arguments:
        dropped: dict[tuple[str, str], list[str]] = {}
        for cell in cells:
            if cell.fate == "dropped":
                dropped.setdefault((cell.part, cell.feature), []).append(f"{cell.client}>{cell.upstream}")
        for (part, feature), pairs in sorted(dropped.items(), key=lambda item: -len(item[1])):
            sys.stdout.write(f"{len(pairs):5} {part}: {feature}: {' '.join(pairs)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
