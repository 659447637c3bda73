"""The tables of docs/providers.md, made from the rows of `xenoglot.providers`: `make providers`.

    python scripts/providers.py

It writes the page anew between its marks; all else on the page stays.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from xenoglot.providers import catalog

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from xenoglot.model.json import JSON
    from xenoglot.providers.provider import Provider

PAGE = Path(__file__).parent.parent / "docs" / "providers.md"

BEGIN, END = "<!-- made by `make providers`: begin -->\n", "<!-- made by `make providers`: end -->\n"
UNSAID = "-"


def page(text: str) -> str:
    """Return the page `text` with its tables as they are to be now."""
    head, _, rest = text.partition(BEGIN)
    _, found, tail = rest.partition(END)
    if not found:
        message = f"{PAGE.name} has lost the marks between which its tables stand"
        raise ValueError(message)
    return f"{head}{BEGIN}\n{tables()}\n{END}{tail}"


def tables() -> str:
    """Return the table of the rows, and behind it what is peculiar to each."""
    rows = sorted(map(catalog.get, catalog.names()), key=lambda row: row.title.lower())
    lines = ["| provider | name | dialects | key | settings |", "|---|---|---|---|---|"]
    lines += [f"| {' | '.join(_cells(row))} |" for row in rows]
    lines += ["", "| name | what is peculiar |", "|---|---|"]
    lines += [f"| `{row.name}` | {told} |" for row in rows if (told := "; ".join(_peculiar(row)))]
    return "\n".join(lines) + "\n"


def _cells(row: Provider) -> Iterator[str]:
    yield f"[{row.title}]({row.docs})"
    yield f"`{row.name}`"
    yield ", ".join(f"[`{face.dialect}`]({row.sources[f'faces.{face.dialect}']})" for face in row.faces)
    yield UNSAID if row.key_env is None else f"[`{row.key_env}`]({row.sources['key_env']})"
    told = [f"[`{name}`]({row.sources[f'settings.{name}']})" for name in row.settings]
    yield ", ".join(told) or UNSAID


def _peculiar(row: Provider) -> Iterator[str]:
    if row.auth is not None:
        yield f"[`auth = {_toml(row.auth)}`]({row.sources['auth']})"
    if row.sign_in is not None:
        yield f"[`auth = {_toml(row.sign_in)}`]({row.sources['sign_in']}) in place of a key"
    yield from _quirks(row.quirks, "quirks", row.sources)
    for face in row.faces:
        told = ", ".join(_quirks(face.quirks, f"faces.{face.dialect}.quirks", row.sources))
        if told:
            yield f"towards `{face.dialect}` {told}"
    if row.models:
        yield f"[facts of its models]({row.sources['models']})"
    if row.note:
        yield row.note[:1].lower() + row.note[1:].rstrip(".")


def _quirks(quirks: Mapping[str, JSON], path: str, sources: Mapping[str, str]) -> Iterator[str]:
    for name, value in quirks.items():
        yield f"[`{name} = {_toml(value)}`]({sources[f'{path}.{name}']})"


def _toml(value: JSON) -> str:
    return json.dumps(value)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
