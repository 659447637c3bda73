"""What the tests of the structure still allow, as files that may only get shorter.

Each file names exactly what is wrong today: a test fails if something is wrong that its file does not name, and if the
file names something that is no longer wrong. After a change that mends something, or after a rename, write the files:

    python -m tests.architecture.allowances

and read the difference: a line that was not there before is a fault that the change brings in.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path
from typing import Any, Final

from tests.architecture.graph import circles, import_graph
from tests.architecture.names import public_classes, shared_names, wrong_classes, wrong_modules
from tests.architecture.tree import MODULES, ROOT, SOURCES

HERE: Final = Path(__file__).parent
STRUCTURE: Final = HERE / "structure_allowed.toml"
NAMES: Final = HERE / "names_allowed.toml"
COMMAND: Final = "run `python -m tests.architecture.allowances`, and read the difference"

MOST_MODULES: Final = 16
"""The most modules of a folder, without `__init__`."""


def read(path: Path) -> dict[str, Any]:
    """Return what an allowance file holds."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def crowded_folders() -> dict[str, int]:
    """Return the folders with more modules than `MOST_MODULES`, and how many they have."""
    counts = Counter(path.parent.relative_to(ROOT).as_posix() for path in SOURCES if path.stem != "__init__")
    return {folder: count for folder, count in sorted(counts.items()) if count > MOST_MODULES}


def structure() -> str:
    """Return what `structure_allowed.toml` has to hold today."""
    lines = [
        "# Circles of imports and folders with too many modules. It may only get shorter: see `allowances.py`.",
        "",
        f"# Folders with more than {MOST_MODULES} modules.",
        "[folders]",
        *(f'"{folder}" = {count}' for folder, count in crowded_folders().items()),
    ]
    for circle in circles(import_graph()):
        lines += ["", "[[circles]]", "modules = [", *(f'  "{module}",' for module in circle), "]"]
    return "\n".join(lines) + "\n"


def names() -> str:
    """Return what `names_allowed.toml` has to hold today; the new names in it are those that it has already."""
    listed = read(NAMES) if NAMES.exists() else {}
    modules: dict[str, str] = dict.fromkeys(wrong_modules(), "")
    modules |= {module: new for module, new in listed.get("modules", {}).items() if module in modules or new}
    classes: dict[str, str] = dict.fromkeys(wrong_classes(), "")
    classes |= {name: new for name, new in listed.get("classes", {}).items() if name in classes or new}
    lines = [
        "# Names that do not follow `docs/glossary.md`, with those that they will have; empty: not decided yet.",
        "# It may only get shorter: see `allowances.py`.",
        "",
        "[modules]",
        *(f'"{module}" = "{new}"' for module, new in sorted(modules.items()) if module in MODULES),
        "",
        "[classes]",
        *(f'{name} = "{new}"' for name, new in sorted(classes.items()) if name in public_classes()),
        "",
        "# Names of three or more public classes, and how many have each. To be reached: 8 names at most.",
        "[owners]",
        *(f"{name} = {count}" for name, count in sorted(shared_names().items())),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the files."""
    NAMES.write_text(names(), encoding="utf-8")
    STRUCTURE.write_text(structure(), encoding="utf-8")


if __name__ == "__main__":
    main()
