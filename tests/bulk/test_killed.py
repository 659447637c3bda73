"""C-bulk: a run that is killed, three times, in the middle of a thousand lines: each is answered once, none twice."""

from __future__ import annotations

import signal
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.bulk.batches import numbers, question, running, write_input
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from collections.abc import Sequence

COUNT = 1_000
CONCURRENCY = 16
KILLS = (150, 480, 810)
"""After so many requests in all a run is killed."""

PATIENCE = 120.0
XENOGLOT = str(Path(sys.executable).parent / "xenoglot")


class Life(NamedTuple):
    """One run: the lines that stood in the output when it began, and those that it asked."""

    before: set[int]
    asked: list[int]


def requested_lines(upstream: Upstream) -> list[int]:
    """The lines that were asked of the upstream, in order."""
    words = [request.json["messages"][0]["content"] for request in upstream.requests]
    return [int(word.removeprefix("What is ").removesuffix("?")) for word in words]


def has_received(upstream: Upstream, times: int) -> bool:
    """Whether so many requests have come."""
    return len(upstream.requests) >= times


def complete_lines(output: Path) -> set[int]:
    """The lines that stand in an output; one that is cut off does not."""
    if not output.exists():
        return set()
    text = output.read_bytes()
    kept = output.with_suffix(".kept")
    kept.write_bytes(text[: text.rfind(b"\n") + 1])
    return set(numbers(kept))


@pytest.mark.parametrize("more", [[], ["--ordered"]], ids=["as-they-come", "in-order"])
def test_a_thousand_lines_survive_three_kills(tmp_path: Path, more: Sequence[str]) -> None:
    source, output = write_input(tmp_path / "in.jsonl", COUNT), tmp_path / "out.jsonl"
    lives: list[Life] = []
    with Upstream(*answers("chat").rules()) as upstream:
        command = [XENOGLOT, "batch", str(source), str(output), "--upstream", f"{upstream.url}/v1", *more]
        command += ["--concurrency", str(CONCURRENCY)]
        for most in (*KILLS, None):
            before, so_far = complete_lines(output), len(upstream.requests)
            with running(*command) as run:
                if most is not None:
                    upstream.wait(partial(has_received, upstream, most), PATIENCE)
                    run.send_signal(signal.SIGKILL)
                run.communicate(timeout=PATIENCE)
            assert run.returncode == (0 if most is None else -signal.SIGKILL)
            lives.append(Life(before, requested_lines(upstream)[so_far:]))
    assert numbers(output) == dict.fromkeys(range(1, COUNT + 1), 1)
    for life in lives:
        assert life.before.isdisjoint(life.asked)
        assert max(Counter(life.asked).values()) == 1
    assert [bool(life.before) for life in lives] == [False, True, True, True]
    assert COUNT <= sum(len(life.asked) for life in lives) <= COUNT + len(KILLS) * CONCURRENCY
    if more:
        assert [*numbers(output)] == [*range(1, COUNT + 1)]
    assert question(COUNT) in source.read_text(encoding="utf-8")
