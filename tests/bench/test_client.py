"""The clients beside the SDKs: who is compared with whom, what a process says it took, and the table."""

from __future__ import annotations

import asyncio
import io
import json
from typing import TYPE_CHECKING

import pytest

from bench import samples
from bench.client import HEADS, MEASURES, STARTS, Row, beside, cells, rows
from bench.clients import CLIENTS, PIECES, Awaited, Blocking, Site, Task, did, serve

if TYPE_CHECKING:
    from collections.abc import Callable

NOWHERE = Site("http://127.0.0.1:9", *[samples.body(dialect, samples.small()) for dialect in ("chat", "messages")])


@pytest.mark.parametrize(
    ("name", "sdk"),
    [
        ("chat: xenoglot, async", "chat: openai, async"),
        ("chat: xenoglot", "chat: openai"),
        ("messages: xenoglot, async", "messages: anthropic, async"),
        ("messages: xenoglot", "messages: anthropic"),
        ("chat: xenoglot, async, raw", "chat: openai, async"),
        ("in process: xenoglot, async", None),
        ("chat: openai", None),
        ("messages: anthropic, async", None),
    ],
)
def test_each_is_compared_with_the_sdk_of_its_dialect_and_kind(name: str, sdk: str | None) -> None:
    assert name in CLIENTS
    assert beside(name, CLIENTS) == sdk
    assert beside(name, [name]) is None


def test_ratios_are_of_the_same_round() -> None:
    taken = {"chat: openai": [10.0, 20.0, 40.0], "chat: xenoglot": [5.0, 5.0, 5.0]}
    made = rows("whole", taken, lambda name: beside(name, taken))
    assert made == [
        Row("whole", "chat: openai", 20.0, 10.0, None),
        Row("whole", "chat: xenoglot", 5.0, 5.0, 0.25),
    ]
    assert [cells(row) for row in made] == [
        ["whole", "chat: openai", "20.0", "10.0", ""],
        ["whole", "chat: xenoglot", "5.0", "5.0", "0.25"],
    ]
    assert len(HEADS) == len(cells(made[0]))


async def _answered() -> str:
    return "answered"


async def _streamed() -> int:
    return PIECES


@pytest.mark.parametrize("at_once", [1, 4])
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: Awaited(_answered, _streamed), id="awaited"),
        pytest.param(lambda: Blocking(lambda: "answered", lambda: PIECES), id="blocking"),
    ],
)
def test_requests_and_tokens_are_counted(make: Callable[[], Awaited | Blocking], at_once: int) -> None:
    whole = did(make(), Task(stream=False, answers=8, at_once=at_once), asyncio.run)
    streamed = did(make(), Task(stream=True, answers=8, at_once=at_once), asyncio.run)
    assert (whole.units, streamed.units) == (8, 8 * PIECES)


def test_a_process_answers_each_line(monkeypatch: pytest.MonkeyPatch) -> None:
    told = io.StringIO()
    monkeypatch.setattr("sys.stdout", told)
    task = Task(stream=True, answers=2, at_once=2)
    serve(CLIENTS["in process: xenoglot, async"](NOWHERE), [json.dumps(task)] * 2)
    assert [json.loads(line)[1] for line in told.getvalue().splitlines()] == [2 * PIECES] * 2


def test_every_task_can_be_divided_among_those_at_once() -> None:
    assert all(measure.task.answers % measure.task.at_once == 0 for measure in MEASURES)


@pytest.mark.parametrize("program", [pytest.param(program, id=name) for name, program in STARTS.items()])
def test_programs_that_are_started_can_be_read(program: str) -> None:
    compile(program, "start", "exec")
