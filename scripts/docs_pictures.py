"""Pictures that are drawn from data when the site is built: fidelity as a heat map, figures of benchmarks as bars.

A page has a mark where its picture is: `<!-- image: NAME -->`, which GitHub does not show.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from bench import plot
from scripts import docs_artefacts
from tests.docs.pages import ROOT, table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

FOLDER = ROOT / "build" / "docs-images"
"""Recordings and screenshots, which `make docs-images` writes; a page without them is without the picture."""
MARK = re.compile(r"<!-- image: (?P<name>[\w-]+) -->")

CELL, LEFT, TOP = 62, 190, 78
STYLE = (
    f"text{{fill:{plot.INK};font:12px sans-serif}}.title{{font-weight:bold}}.small{{font-size:10px}}"
    ".in{fill:#fff;font-weight:bold}"
)


def share_rows(text: str) -> dict[str, list[tuple[str, list[int]]]]:
    """Return the tables of a page's fidelity summary: for `Requests` and `Answers` the percentages by client."""
    found: dict[str, list[tuple[str, list[int]]]] = {}
    title = ""
    summary = text.partition(docs_artefacts.BEGIN)[2].partition(docs_artefacts.END)[0]
    for line in summary.splitlines():
        if line.endswith(":"):
            title = line.removesuffix(":")
            found[title] = []
        elif line.startswith("| `"):
            name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
            found[title].append((name.strip("`"), [int(cell) for cell in cells]))
    return found


def heat_map(title: str, rows: Sequence[tuple[str, Sequence[int]]], columns: Sequence[str]) -> str:
    """Return a heat map: a row for each client, a column for each upstream, per cent in the cells."""
    width, height = LEFT + CELL * len(columns) + 10, TOP + 30 * len(rows) + 14
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" aria-label="{escape(title)}">',
        f"<style>{STYLE}</style>",
        f'<text class="title" x="{width / 2:g}" y="16" text-anchor="middle">{escape(title)}</text>',
        f'<text x="{LEFT - 8}" y="{TOP - 8}" text-anchor="end">client, upstream</text>',
    ]
    for index, name in enumerate(columns):
        x = LEFT + CELL * index + CELL / 2
        words = name.split("_")
        lines = ["_".join(words[:-1]) + "_", words[-1]] if len(name) > len("completions") else [name]
        for line, word in enumerate(reversed(lines)):
            parts.append(f'<text x="{x:g}" y="{TOP - 8 - 14 * line}" text-anchor="middle" class="small">{word}</text>')
    for row, (client, cells) in enumerate(rows):
        y = TOP + 30 * row
        parts.append(f'<text x="{LEFT - 8}" y="{y + 19}" text-anchor="end">{client}</text>')
        parts += [_cell(LEFT + CELL * index, y, value) for index, value in enumerate(cells)]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _cell(x: int, y: int, value: int) -> str:
    """Return a cell: green at 100 per cent, yellow at 60, red at 20 and below."""
    hue = max(0.0, min(1.0, (value - 20) / 80)) * 140
    colour = f"hsl({hue:.0f} 60% 36%)"
    return (
        f'<rect x="{x + 1}" y="{y + 1}" width="{CELL - 2}" height="28" rx="3" fill="{colour}"/>'
        f'<text class="in" x="{x + CELL / 2:g}" y="{y + 19}" text-anchor="middle">{value}</text>'
    )


def _fidelity(part: str, title: str) -> str:
    rows = share_rows((ROOT / "docs" / "losses.md").read_text(encoding="utf-8"))[part]
    return heat_map(title, rows, [client for client, _ in rows])


def _peers() -> str:
    """Return bars of the table `Compared with others`: processor time by gateway."""
    rows = table("performance.md", "Compared with others")
    gateways = ("nginx", "Xenoglot", "Switchyard")
    figures = {
        what: {name: float(re.sub(r" \(.*|,", "", cell)) for name, cell in zip(gateways, cells, strict=True)}
        for what, *cells in rows
    }
    return plot.bars("µs CPU for each request or token", "µs", figures, log=True)


PICTURES: Mapping[str, tuple[str, Callable[[], str]]] = {
    "fidelity-requests": (
        "Share of the features of requests that arrive, by dialect of client and upstream",
        lambda: _fidelity("Requests", "Features of requests that arrive, per cent"),
    ),
    "fidelity-answers": (
        "Share of the features of answers that arrive, by dialect of client and upstream",
        lambda: _fidelity("Answers", "Features of answers that arrive, per cent"),
    ),
    "peers": ("Processor time of nginx, Xenoglot and Switchyard for each request or token", _peers),
}
"""The description of each picture, and what draws it."""

RECORDED = {
    "run-claude": "A terminal: `xenoglot run claude` starts Claude Code on a model of another API",
    "chat": "A terminal: a conversation with tables, code and links in `xenoglot chat`",
    "agent": "A terminal: `xenoglot agent` shows a change as a diff and asks for permission",
    "console-overview": "The console: requests, failures, times, tokens and cost of the last 24 hours",
    "console-requests": "The console: requests with their dialects, times, tokens and losses",
    "console-request": "The console: the four bodies of a request, a field and its counterpart lit up, losses marked",
    "console-translate": "The console: a request of Chat Completions as one of Messages, with its losses",
    "console-playground": "The console: a conversation next to the request and the bytes of the answer",
    "console-usage": "The console: requests by model over time",
    "console-keys": "The console: API keys of the store",
    "console-budgets": "The console: budgets, and what is spent of them",
    "console-upstreams": "The console: upstreams with their circuit breakers",
    "console-configuration": "The console: the configuration that is in force",
    "console-audit": "The console: changes by administrators",
    "console-fidelity": "The console: the share of features that arrive, for every two dialects",
    "console-fidelity-pair": "The console: a tool before and after its translation",
    "console-connect": "The console: the lines to paste for known programs",
}
"""The descriptions of pictures that are recorded, or taken of pages."""


def made() -> dict[str, tuple[str, str]]:
    """Return the description and the SVG text of each picture that exists."""
    drawn = {name: (about, draw()) for name, (about, draw) in PICTURES.items()}
    files = {name: FOLDER / f"{name}.svg" for name in RECORDED}
    recorded = {
        name: (RECORDED[name], path.read_text(encoding="utf-8")) for name, path in files.items() if path.is_file()
    }
    return drawn | recorded
