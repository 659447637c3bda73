"""The tables of docs/text-models.md, made from the rows of `xenoglot.text.rows` and the vectors: `make text-models`.

    python scripts/text_models.py

It writes the page anew between its marks; all else on the page stays.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from xenoglot.text.rows import ROWS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from xenoglot.text.syntax import CallSyntax, ReasoningSyntax, Syntax

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "text-models.md"
VECTORS = ROOT / "tests" / "vectors" / "text"

BEGIN, END = "<!-- made by `make text-models`: begin -->\n", "<!-- made by `make text-models`: end -->\n"
AGREEMENT, AGREEMENT_END = BEGIN.replace("begin", "agreement"), END.replace("end", "end of agreement")
SERVERS = ("vLLM", "SGLang", "llama.cpp", "Ollama", "OpenVINO", "SMG", "maker")
UNSAID = "-"


def page(text: str) -> str:
    """Return the page `text` with its tables as they are to be now."""
    for begin, end, made in ((BEGIN, END, tables()), (AGREEMENT, AGREEMENT_END, agreement())):
        text = _replaced(text, begin, end, made)
    return text


def _replaced(text: str, begin: str, end: str, made: str) -> str:
    head, _, rest = text.partition(begin)
    _, found, tail = rest.partition(end)
    if not found:
        message = f"{PAGE.name} has lost the marks between which its tables stand"
        raise ValueError(message)
    return f"{head}{begin}\n{made}\n{end}{tail}"


def agreement() -> str:
    """Return, per family, how many test cases of each server agree of how many, and the judged differences."""
    counts: Counter[tuple[str, str]] = Counter()
    differences: list[tuple[str, str, str, str]] = []
    for path in sorted(VECTORS.glob("*/*.json")):
        row, vector = path.parent.name, json.loads(path.read_text(encoding="utf-8"))
        for server in vector.get("agrees", {}):
            counts[row, server] += 1
        differences += [
            (row, server, one["case"], one["why"]) for server, one in sorted(vector.get("differs", {}).items())
        ]
    differing = Counter((row, server) for row, server, _, _ in differences)
    rows = [row for row in ROWS if any(counts[row.name, server] + differing[row.name, server] for server in SERVERS)]
    lines = [f"| `text_syntax` | {' | '.join(SERVERS)} |", f"|---|{'---|' * len(SERVERS)}"]
    for row in sorted(rows, key=lambda row: row.name):
        cells = (_share(counts[row.name, server], differing[row.name, server]) for server in SERVERS)
        lines.append(f"| {code(row.name)} | {' | '.join(cells)} |")
    lines += ["", "| `text_syntax` | server and case | why Xenoglot differs |", "|---|---|---|"]
    lines += [
        f"| {code(row)} | {server}, {code(case.partition('::')[2])} | {_cell(why)} |"
        for row, server, case, why in differences
    ]
    return "\n".join(lines) + "\n"


def _share(agreeing: int, differing: int) -> str:
    return f"{agreeing} of {agreeing + differing}" if agreeing + differing else UNSAID


def tables() -> str:
    """Return the table of the rows, and behind it what is peculiar to each."""
    counts = Counter(path.parent.name for path in VECTORS.glob("*/*.json"))
    rows = sorted(ROWS, key=lambda row: row.title.lower())
    lines = ["| family | `text_syntax` | names of models | calls | reasoning | vectors |", "|---|---|---|---|---|---|"]
    lines += [_row(row, counts[row.name]) for row in rows]
    lines += ["", "| family | what is peculiar |", "|---|---|"]
    lines += [f"| {row.title} | {_cell(row.note)} |" for row in rows if row.note]
    return "\n".join(lines) + "\n"


def _row(row: Syntax, vectors: int) -> str:
    cells = (
        f"[{row.title}]({row.source})",
        code(row.name),
        _joined(map(code, row.models), ", "),
        "its own" if row.own is not None else _joined(map(_call, row.calls), "; "),
        _joined(map(_thought, row.thoughts), "; "),
        str(vectors),
    )
    return f"| {' | '.join(cells)} |"


def _call(form: CallSyntax) -> str:
    """Return the markers of a form, each in its first spelling, with dots where the payload stands."""
    before = [spelled[0] for spelled in (form.begin, form.open) if spelled]
    behind = [spelled[0] for spelled in (form.close, form.end) if spelled]
    if not before:
        return "no marker" if form.auto else "no marker (not by `auto`)"
    spellings = max(len(spelled) for spelled in (form.begin, form.open, form.close, form.end))
    more = f" ({spellings} spellings)" if spellings > 1 else ""
    return " ".join([*map(code, before), "...", *map(code, behind)]) + more


def _thought(thoughts: ReasoningSyntax) -> str:
    markers = f"{code(thoughts.open[0])} ... {code(thoughts.close[0])}"
    return f"{markers} (begun by the prompt)" if thoughts.implied else markers


def _joined(words: Iterable[str], by: str) -> str:
    return by.join(dict.fromkeys(words)) or UNSAID


def _cell(text: str) -> str:
    """Return prose for a cell: what looks like a tag in it would vanish from the page."""
    return "".join(_escaped(text)).replace("|", "\\|").replace("\n", " ")


def _escaped(text: str) -> Iterator[str]:
    for number, piece in enumerate(re.split(r"(`[^`]*`)", text)):
        yield piece if number % 2 else piece.replace("<", "&lt;").replace("[", "\\[")


def code(text: str) -> str:
    """Return `text` as code in a cell of a table."""
    shown = text.replace("\n", "\\n").replace("|", "\\|")
    if "`" not in shown:
        return f"`{shown}`"
    fence = "`" * (max(map(len, re.findall(r"`+", shown))) + 1)
    return f"{fence} {shown} {fence}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
