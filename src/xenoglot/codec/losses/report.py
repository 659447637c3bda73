"""Renders losses as a report: a table for people, or one JSON object a line for programs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from msgspec.structs import asdict, astuple

from xenoglot.codec.json.json_io import encode_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from xenoglot.codec.loss import Loss

HEADINGS = ("where", "what", "how", "why")


def lines(losses: Iterable[Loss]) -> Iterator[str]:
    """Yield one line for each loss."""
    for loss in losses:
        yield f"loss: {loss}"


def table(losses: Iterable[Loss]) -> Iterator[str]:
    """Yield a table of the losses, and how many there are of each kind. It is ASCII, as `str(loss)` is."""
    told = list(losses)
    if not told:
        yield "no losses"
        return
    rows = [HEADINGS, *(tuple(ascii(said)[1:-1] for said in astuple(loss)) for loss in told)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    counts = ", ".join(f"{count} {how}" for how, count in sorted(Counter(loss.how for loss in told).items()))
    yield f"{len(told)} {'loss' if len(told) == 1 else 'losses'}: {counts}"


def json_lines(losses: Iterable[Loss]) -> Iterator[str]:
    """Yield one JSON object for each loss: its four fields."""
    for loss in losses:
        yield encode_json(asdict(loss)).decode()
