"""A run: what is asked how often, what is written in which order, and how it ends early."""

from __future__ import annotations

import asyncio
import json
import os
from itertools import cycle
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from tests.bulk.batches import Batch, ids, numbers, until
from xenoglot.backends.batch_lines import BatchLine, LineOutcome
from xenoglot.bulk import runner as running
from xenoglot.bulk.line_request import LineReport, failed_line
from xenoglot.bulk.runner import Runner, RunnerSettings, Task
from xenoglot.errors import ConfigurationError
from xenoglot.model.failure import Failure, FailureKind
from xenoglot.model.response import Usage
from xenoglot.policy.target_health import Retry

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

COUNT = 60
ANSWER = LineReport(outcome=LineOutcome(body={}), usage=Usage(input_tokens=1, output_tokens=1))
NOBODY = Failure(kind="upstream", message="nobody there", cause="connect")
OPEN = Failure(kind="overloaded", message="it has failed too often of late")
AT_ONCE = Retry(attempts=3, base=0.0, cap=0.0, wait_limit=60.0, timeouts=True)


class Asker:
    """Answers lines by what is scripted for each number: failures, one after another, and an answer at last."""

    def __init__(self, script: dict[int, list[Failure | Exception]] | None = None) -> None:
        self.asked: list[int] = []
        self.most = 0
        self.under_way = 0
        self.always: Failure | None = None
        self._script = script or {}

    async def __call__(self, line: BatchLine) -> LineReport:
        self.asked.append(line.number)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            for _ in range(1 + line.number * 7 % 5):  # some take longer than others
                await asyncio.sleep(0)
        finally:
            self.under_way -= 1
        what = self.always or next(iter(self._script.get(line.number, [])), None)
        if self._script.get(line.number):
            self._script[line.number].pop(0)
        if isinstance(what, Exception):
            raise what
        return ANSWER if what is None else failed_line(line, what)


@pytest.fixture
def batch(tmp_path: Path) -> Generator[Batch]:
    """A batch of sixty lines."""
    made = Batch(tmp_path, COUNT)
    with made.source:
        yield made


async def run(batch: Batch, asker: Asker, rules: RunnerSettings = RunnerSettings(retry=AT_ONCE)) -> Runner:  # noqa: B008  it is frozen
    with batch.journal() as journal:
        runner = Runner(asker, journal, replace(rules, chance=lambda: 0.0))
        await runner.run(batch.tasks())
    return runner


async def test_every_line_is_asked_and_answered_once(batch: Batch) -> None:
    asker = Asker()
    runner = await run(batch, asker)
    assert (runner.stopped, asker.most) == (None, 8)
    assert sorted(asker.asked) == [*range(1, COUNT + 1)]
    assert numbers(batch.output) == dict.fromkeys(range(1, COUNT + 1), 1)
    assert ids(batch.output) != sorted(ids(batch.output), key=lambda name: int(name[3:]))  # as they came


@pytest.mark.parametrize(
    ("failure", "tries", "status"),
    [
        pytest.param(Failure(kind="invalid_request", message="no"), 1, 400, id="a-wrong-request"),
        pytest.param(Failure(kind="overloaded", message="no", status=503), 3, 503, id="overloaded"),
        pytest.param(Failure(kind="rate_limit", message="no", status=429), 3, 429, id="rate-limit"),
        pytest.param(
            Failure(kind="internal", message="no", status=500, non_retryable=True), 3, 500, id="tried-on-the-way"
        ),
        pytest.param(Failure(kind="upstream", message="no", non_retryable=True), 1, 502, id="not-the-form-asked-for"),
        pytest.param(Failure(kind="upstream", message="no", cause="closed"), 3, 502, id="broken-connection"),
        pytest.param(Failure(kind="rate_limit", message="no", retry_after=90.0), 1, 429, id="too-long-a-wait"),
        pytest.param(Failure(kind="permission", message="no", non_retryable=True), 1, 403, id="futile"),
    ],
)
async def test_a_line_is_asked_again_where_that_may_help(
    batch: Batch, failure: Failure, tries: int, status: int
) -> None:
    asker = Asker({5: [failure] * 9})
    runner = await run(batch, asker)
    assert (runner.stopped, asker.asked.count(5)) == (None, tries)
    line = next(line for line in batch.output.read_bytes().splitlines() if b'"id-5"' in line)
    assert json.loads(line)["response"]["status_code"] == status
    assert numbers(batch.output) == dict.fromkeys(range(1, COUNT + 1), 1)


async def test_a_line_that_fails_and_then_is_answered_is_answered(batch: Batch) -> None:
    asker = Asker({5: [Failure(kind="overloaded", message="no")] * 2})
    await run(batch, asker)
    assert asker.asked.count(5) == 3
    assert b'"id-5","response":{"status_code":200' in batch.output.read_bytes()


async def test_a_bug_takes_no_other_line_with_it_and_tells_no_content(batch: Batch) -> None:
    runner = await run(batch, Asker({5: [RuntimeError("What is 5?")]}))
    assert runner.stopped is None
    line = next(line for line in batch.output.read_bytes().splitlines() if b'"id-5"' in line)
    assert json.loads(line)["response"]["status_code"] == 500
    assert b"What is 5?" not in line
    assert b"RuntimeError" in line
    assert numbers(batch.output) == dict.fromkeys(range(1, COUNT + 1), 1)


async def test_a_line_has_only_so_long(batch: Batch, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of one line passes when it has been asked; by the clock, that of others could pass as well."""
    asker = Asker()
    scopes: dict[object, asyncio.Timeout] = {}

    def timeout(delay: float) -> asyncio.Timeout:
        assert delay == 0.05
        scope = scopes[asyncio.current_task()] = asyncio.timeout_at(None)
        return scope

    async def ask(line: BatchLine) -> LineReport:
        if line.number == 5:
            scopes[asyncio.current_task()].reschedule(0)
            await asyncio.Event().wait()
        return await asker(line)

    monkeypatch.setattr(asyncio, "timeout", timeout)
    with batch.journal() as journal:
        await Runner(ask, journal, RunnerSettings(timeout=0.05)).run(batch.tasks())
    line = next(line for line in batch.output.read_bytes().splitlines() if b'"id-5"' in line)
    assert json.loads(line)["error"]["code"] == "request_timeout"
    assert numbers(batch.output) == dict.fromkeys(range(1, COUNT + 1), 1)


@pytest.mark.parametrize("kind", ["authentication", "billing"])
async def test_a_server_that_refuses_us_is_not_asked_on(batch: Batch, kind: FailureKind) -> None:
    asker = Asker()
    asker.always = Failure(kind=kind, message="the key is wrong")
    runner = await run(batch, asker)
    assert runner.stopped == "the model's server refuses all that is asked: the key is wrong"
    assert (len(asker.asked) <= 8, batch.output.read_bytes()) == (True, b"")


@pytest.mark.parametrize(
    ("answered", "seconds"), [(0, running.SILENCE_AT_FIRST), (20, running.SILENCE)], ids=["at-first", "in-the-middle"]
)
async def test_a_server_that_is_down_is_not_asked_for_ever(batch: Batch, answered: int, seconds: float) -> None:
    asker, now = Asker(), 0.0
    failures = cycle([NOBODY, OPEN])

    async def ask(line: BatchLine) -> LineReport:
        nonlocal now
        now += 1.0
        return failed_line(line, next(failures)) if len(asker.asked) >= answered else await asker(line)

    with batch.journal() as journal:
        runner = Runner(ask, journal, RunnerSettings(retry=AT_ONCE, clock=lambda: now))
        await runner.run(batch.tasks())
    assert runner.stopped is not None
    assert runner.stopped.endswith("the last failure: nobody there")
    assert seconds <= now - answered <= seconds + 20
    assert len(ids(batch.output)) == answered  # no line is to blame: the next run asks them again


async def test_one_line_that_nobody_hears_fails_while_others_are_answered(batch: Batch) -> None:
    runner = await run(batch, Asker({5: [NOBODY] * 99}))
    assert runner.stopped is None
    assert b'"id-5","response":{"status_code":502' in batch.output.read_bytes()
    assert len(ids(batch.output)) == COUNT


async def test_lines_that_a_server_fails_at_are_left_behind(batch: Batch) -> None:
    asker = Asker()
    asker.always = Failure(kind="internal", message="no", status=500)
    runner = await run(batch, asker)  # in no time
    assert (runner.stopped, len(ids(batch.output)), len(asker.asked)) == (None, COUNT, COUNT * AT_ONCE.attempts)


async def test_wrong_lines_in_a_row_are_no_sign_of_that(batch: Batch) -> None:
    asker = Asker()
    asker.always = Failure(kind="not_found", message="no such model")
    runner = await run(batch, asker)
    assert (runner.stopped, len(ids(batch.output))) == (None, COUNT)


async def test_who_stops_a_run_gets_what_is_under_way(batch: Batch) -> None:
    asker = Asker()
    with batch.journal() as journal:
        runner = Runner(asker, journal, RunnerSettings(concurrency=4), heard=lambda _: runner.stop("enough"))
        await runner.run(batch.tasks())
        assert (runner.stopped, len(asker.asked)) == ("enough", 4)
    assert sorted(numbers(batch.output)) == sorted(asker.asked)


async def test_who_stops_a_run_waits_for_no_retry(batch: Batch) -> None:
    asker = Asker()
    asker.always = Failure(kind="overloaded", message="no", retry_after=3000.0)
    with batch.journal() as journal:
        runner = Runner(asker, journal, RunnerSettings(concurrency=4))
        going = asyncio.create_task(runner.run(batch.tasks()))
        await until(lambda: bool(asker.asked) and not asker.under_way)
        runner.stop("enough")
        await going
    assert batch.output.read_bytes() == b""


@pytest.mark.parametrize("how", ["abandon", "cancel"])
async def test_a_run_can_be_given_up_at_once(batch: Batch, how: str) -> None:
    asking = asyncio.Event()

    async def ask(_line: BatchLine) -> LineReport:
        asking.set()
        await asyncio.Event().wait()
        return ANSWER

    with batch.journal() as journal:
        runner = Runner(ask, journal, RunnerSettings())
        going = asyncio.create_task(runner.run(batch.tasks()))
        await asking.wait()
        if how == "abandon":
            runner.stop("enough")
            runner.abandon()
            await going
        else:
            going.cancel()
            with pytest.raises(asyncio.CancelledError):
                await going
    assert batch.output.read_bytes() == b""
    assert len(asyncio.all_tasks()) == 1


async def test_an_input_that_fails_ends_the_run(batch: Batch) -> None:
    tasks = batch.tasks()

    def broken() -> Generator[Task]:
        yield next(tasks)
        raise ConfigurationError("the input was changed")

    with batch.journal() as journal, pytest.raises(ConfigurationError, match="was changed"):
        await Runner(Asker(), journal, RunnerSettings()).run(broken())
    assert len(asyncio.all_tasks()) == 1


async def test_a_disk_that_is_full_ends_the_run(batch: Batch, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_fd: int, _data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with batch.journal() as journal:
        monkeypatch.setattr(os, "write", full)
        runner = Runner(Asker(), journal, RunnerSettings())
        await runner.run(batch.tasks())
        monkeypatch.undo()
    assert runner.stopped == "the output cannot be written: No space left on device"
    assert batch.output.read_bytes() == b""


async def test_no_more_are_asked_in_a_minute_than_may_be(batch: Batch) -> None:
    asker, now = Asker(), 0.0
    with batch.journal() as journal:
        runner = Runner(asker, journal, RunnerSettings(requests_per_minute=20, clock=lambda: now))
        going = asyncio.create_task(runner.run(batch.tasks()))
        await until(lambda: len(asker.asked) >= 20 and not asker.under_way)
        assert len(asker.asked) == 20
        runner.stop("enough")
        await going
    assert len(ids(batch.output)) == 20


async def test_tokens_of_a_minute_are_shared_by_what_was_used(batch: Batch) -> None:
    asker = Asker()
    with batch.journal() as journal:
        runner = Runner(asker, journal, RunnerSettings(tokens_per_minute=1000))
        await runner.run(batch.tasks())
    assert len(asker.asked) == COUNT  # sixty times the two that were used, not what was estimated
