"""The cost of each stage of the hot path, in nanoseconds of CPU for each request or event, and against another tree.

`python -m bench.stages` measures this tree; `--against PATH/src` another one beside it. The measuring is done in
processes of their own, the two trees in turns, so that whatever else the machine does falls on both. What counts is the
least of all rounds: noise only ever adds. The median tells how much there was of it.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from bench.pieces import Piece, pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HERE = Path(__file__).resolve().parent.parent
NANOSECONDS = 1e9


class Taken(Struct, frozen=True):
    """What a process found, by the names of the pieces: seconds for each round, or why there are none."""

    rounds: dict[str, list[float]]
    problems: dict[str, str]


class Row(Struct, frozen=True):
    """A piece and what came of it, in nanoseconds: here, and in the other tree. `None`: it could not be measured."""

    part: str
    name: str
    unit: str
    least: float | None = None
    median: float | None = None
    other_least: float | None = None
    other_median: float | None = None
    ratio: float | None = None
    """What it costs here for each nanosecond that it costs there."""
    problem: str | None = None


def chosen(words: Sequence[str]) -> list[Piece]:
    """Return the pieces whose names hold any of `words`; without any, all."""
    return [piece for piece in pieces() if not words or any(word in called(piece) for word in words)]


def called(piece: Piece) -> str:
    """Return the name of a piece with that of its part."""
    return f"{piece.part}: {piece.name}"


def measured(words: Sequence[str], rounds: int) -> Taken:
    """Measure in this process."""
    taken = Taken({}, {})
    for piece in chosen(words):
        gc.collect()
        gc.freeze()  # as the gateway does when it has started
        try:
            taken.rounds[called(piece)] = piece.measure(rounds)
        except Exception as error:  # noqa: BLE001  another tree may have it otherwise: that is told, and the rest goes on
            taken.problems[called(piece)] = f"{type(error).__name__}: {error}"[:200]
    return taken


def apart(source: Path, words: Sequence[str], rounds: int) -> Taken:
    """Measure the tree of `source` in a process of its own."""
    command = [sys.executable, "-m", "bench.stages", "--once", "--rounds", str(rounds), *words]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run(command, cwd=HERE, env=environment, stdout=subprocess.PIPE, check=True)  # noqa: S603
    return msgspec.json.decode(done.stdout, type=Taken)


def row(piece: Piece, here: Sequence[Taken], there: Sequence[Taken]) -> Row:
    """Return what came of one piece."""
    name = called(piece)
    ours, others = (
        [seconds * NANOSECONDS for taken in each for seconds in taken.rounds.get(name, ())] for each in (here, there)
    )
    problems = [taken.problems[name] for taken in (*here, *there) if name in taken.problems]
    return Row(
        part=piece.part,
        name=piece.name,
        unit=piece.unit,
        least=_of(min, ours),
        median=_of(statistics.median, ours),
        other_least=_of(min, others),
        other_median=_of(statistics.median, others),
        ratio=round(min(ours) / min(others), 3) if ours and others else None,
        problem=problems[0] if problems else None,
    )


def _of(what: Callable[[list[float]], float], values: list[float]) -> float | None:
    return round(what(values), 1) if values else None


def table(rows: Sequence[Row], *, compared: bool) -> str:
    """Return the rows as text, in columns."""
    width = max((len(each.name) for each in rows), default=0) + 2
    lines, part = [], ""
    other = f"{'other':>11} {'ratio':>7}" if compared else ""
    for each in rows:
        if each.part != part:
            part = each.part
            lines += ["", f"{part:<{width}} {'for each':<8} {'ns':>11} {'median':>11} {other}".rstrip()]
        against = f"{_number(each.other_least):>11} {_ratio(each.ratio):>7}" if compared else ""
        figures = f"{_number(each.least):>11} {_number(each.median):>11} {against}"
        problem = f"  {each.problem}" if each.problem else ""
        lines.append(f"{each.name:<{width}} {each.unit:<8} {figures}".rstrip() + problem)
    return "\n".join(lines[1:]) + "\n"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def main() -> None:
    """Read the flags, and measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("only", nargs="*", help="words: the pieces whose names hold one of them; none: all")
    parser.add_argument("--against", type=Path, metavar="SRC", help="the `src` folder of another tree, for comparison")
    parser.add_argument("--rounds", type=int, default=12, help="rounds of a process (12)")
    parser.add_argument("--turns", type=int, default=3, help="processes for each tree (3)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the figures are written, too")
    parser.add_argument("--once", action="store_true", help="measure in this process, and say the rounds as JSON")
    options = parser.parse_args()
    if options.once:
        sys.stdout.buffer.write(msgspec.json.encode(measured(options.only, options.rounds)))
        return
    here, there = [], []
    for _ in range(options.turns):
        here.append(apart(HERE / "src", options.only, options.rounds))
        if options.against is not None:
            there.append(apart(options.against.resolve(), options.only, options.rounds))
    rows = [row(piece, here, there) for piece in chosen(options.only)]
    if options.json is not None:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(rows), indent=1) + b"\n")
    sys.stdout.write(table(rows, compared=options.against is not None))


if __name__ == "__main__":
    main()
