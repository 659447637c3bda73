"""The tables of docs/reliability.md, made from the fault catalogue and the tests that play it: `make reliability`.

    python scripts/reliability.py

It writes the page anew between its marks; all else on the page stays. Which test plays a case is read from the tests
themselves: the case is named in the name of a test, or in a text that becomes a part of its id.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.faults.catalogue import catalogue  # noqa: E402  it stands beside the tests

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.faults.catalogue import Case

PAGE = ROOT / "docs" / "reliability.md"
TESTS = ROOT / "tests"

BEGIN, END = "<!-- made by `make reliability`: begin -->\n", "<!-- made by `make reliability`: end -->\n"
IN_TEXTS = re.compile(r"(?<![A-Za-z0-9])(?<![A-Za-z]-)([UCKSR]\d\d)(?![A-Za-z0-9])")
"""An id in a text that becomes a part of a test's id, as the catalogue writes it. Behind a word and a hyphen it is of
another catalogue, or a part of a name (`findings-C13`, `Kimi-K25`)."""
IN_NAMES = re.compile(r"(?<=_)(?<!findings_)(?<!reference_)([uckrs]\d\d?)(?=_|$)")
"""An id in the name of a test."""
APART = ("test_catalogue.py", "test_reliability.py")
"""Tests that name cases and play none."""
KINDS = {
    "U": "Faults of upstreams",
    "C": "Faults and abuse of clients",
    "K": "Concurrency, overload, lifecycle",
    "S": "Security",
}


def page(text: str) -> str:
    """Return the page `text` with its tables as they are to be now."""
    head, _, rest = text.partition(BEGIN)
    _, found, tail = rest.partition(END)
    if not found:
        message = f"{PAGE.name} has lost the marks between which its tables stand"
        raise ValueError(message)
    return f"{head}{BEGIN}\n{tables()}\n{END}{tail}"


def tables() -> str:
    """Return the table of each kind of case, and that of the requirements."""
    places = tested()
    listed = catalogue()
    lines: list[str] = []
    for kind, title in KINDS.items():
        lines += [f"## {title}", "", "| case | fault | expected | here | played in |", "|---|---|---|---|---|"]
        lines += [_row(case, places) for case in listed.case if case.id.startswith(kind)]
        lines.append("")
    lines += ["## Requirements", "", "| requirement | what | tested in |", "|---|---|---|"]
    lines += [f"| {one.id} | {_cell(one.what)} | {_links(places, one.id)} |" for one in listed.requirement]
    return "\n".join(lines) + "\n"


def tested() -> Mapping[str, set[str]]:
    """Return the files of tests by the cases that they name, where a name can become a part of a test's id."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in sorted(TESTS.rglob("test_*.py")):
        if path.name in APART:
            continue
        for name in ids_in(ast.parse(path.read_text(encoding="utf-8"))):
            found[name].add(path.relative_to(ROOT).as_posix())
    return found


def ids_in(tree: ast.AST) -> Iterator[str]:
    """Yield the ids in the names of functions, and in the texts in code that are no documentation."""
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from (name.upper() for name in IN_NAMES.findall(node.name))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield from IN_TEXTS.findall(node.value)


def _row(case: Case, places: Mapping[str, set[str]]) -> str:
    cells = (case.id, _cell(case.fault), _cell(case.expected), _cell(case.ours), _links(places, case.id))
    return f"| {' | '.join(cells)} |"


def _links(places: Mapping[str, set[str]], name: str) -> str:
    files = sorted(places.get(name, ()))
    return ", ".join(f"[{Path(file).stem.removeprefix('test_')}](../{file})" for file in files)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> None:
    """Write the page anew."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
