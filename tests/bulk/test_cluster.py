"""A batch on a Ray cluster of two nodes: who is killed, the run or a worker, no line is lost and none stands twice."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil  # type: ignore[import-untyped]  # it has none
import pytest

from tests.bulk.batches import ids, numbers, running, write_input
from tests.bulk.test_killed import PATIENCE, XENOGLOT, complete_lines, has_received, requested_lines
from xenoglot.backends.batch_lines import BatchLine, LineOutcome, decode_line
from xenoglot.bulk.cluster import COOLDOWN_SECONDS, GONE, ActorPool, _of_this_machine, connect, wait_until_open
from xenoglot.bulk.line_request import LineReport
from xenoglot.cli import main
from xenoglot.errors import MISUSE, ConfigurationError
from xenoglot.testing import ScriptRule, Upstream, WaitEvent, answers

if TYPE_CHECKING:
    from collections.abc import Generator

COUNT = 200
CONCURRENCY = 8
TWO_NODES = Path(__file__).with_name("two_nodes.py")


class Nodes:
    """A cluster that runs; `workers` are the processes of its actors."""

    def __init__(self, process: subprocess.Popen[bytes], address: str) -> None:
        self.address = address
        self._process = psutil.Process(process.pid)

    def workers(self) -> list[psutil.Process]:
        found = []
        for process in self._process.children(recursive=True):
            try:
                if process.cmdline()[:1] and process.cmdline()[0].startswith("ray::Worker"):
                    found.append(process)
            except psutil.NoSuchProcess:
                continue
        return found

    def settle(self) -> None:
        """Wait until no actor is left."""
        _, left = psutil.wait_procs(self.workers(), timeout=PATIENCE)
        assert left == []


@pytest.fixture(scope="module")
def nodes() -> Generator[Nodes]:
    """A cluster of two nodes, of which nothing is left behind."""
    environ = os.environ | {"RAY_USAGE_STATS_ENABLED": "0"}
    command = [sys.executable, str(TWO_NODES)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().decode().strip()
        assert address
        family = psutil.Process(process.pid).children(recursive=True)
        yield Nodes(process, address)
        process.communicate(timeout=PATIENCE)
    gone, left = psutil.wait_procs(family, timeout=PATIENCE)
    assert (len(gone) > 0, left) == (True, [])


def test_neither_the_death_of_the_run_nor_that_of_a_worker_costs_a_line(tmp_path: Path, nodes: Nodes) -> None:
    source, output = write_input(tmp_path / "in.jsonl", COUNT), tmp_path / "out.jsonl"
    ready = answers("chat").complete()
    with Upstream(*answers("chat").rules()) as upstream:
        command = [XENOGLOT, "batch", str(source), str(output), "--upstream", f"{upstream.url}/v1"]
        command += ["--concurrency", str(CONCURRENCY), "--ray", nodes.address]
        with running(*command) as run:
            upstream.wait(lambda: has_received(upstream, 60), PATIENCE)
            run.kill()
        nodes.settle()  # until they learn that nobody waits, actors go on with what they were at
        upstream.script(ScriptRule(steps=ready, times=40), (WaitEvent("go"), *ready))
        before, first = complete_lines(output), requested_lines(upstream)
        with running(*command) as run:
            upstream.wait(lambda: has_received(upstream, len(first) + 40 + CONCURRENCY), PATIENCE)
            workers = nodes.workers()
            at_the_kill = complete_lines(output)
            workers[0].kill()
            upstream.release("go")
            _, said = run.communicate(timeout=PATIENCE)
        second = requested_lines(upstream)[len(first) :]
    assert (run.returncode, b"200 of 200 lines answered" in said) == (0, True), said
    assert len(workers) == 2
    assert numbers(output) == dict.fromkeys(range(1, COUNT + 1), 1)
    assert before.isdisjoint(second)
    assert len(at_the_kill) > len(before)
    again = {number for number, times in Counter(second).items() if times > 1}
    assert again.isdisjoint(at_the_kill)
    assert len(again) <= CONCURRENCY
    nodes.settle()


def test_an_actor_may_hold_the_embedded_model(tmp_path: Path, nodes: Nodes, weights: object) -> None:
    assert weights
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    question = '{"max_tokens": 2, "messages": [{"role": "user", "content": "Say hi"}]}\n'
    source.write_text(question * 3, encoding="utf-8")
    with running(XENOGLOT, "batch", str(source), str(output), "--ray", nodes.address, "--actors", "1") as run:
        _, said = run.communicate(timeout=PATIENCE)
    assert run.returncode == 0, said
    assert sorted(ids(output)) == ["line-1", "line-2", "line-3"]


class Opening:
    """An actor that tells, as it begins, what is wrong; or dies."""

    def __init__(self, problem: str | Exception | None) -> None:
        self._problem = problem
        self.open = self

    async def remote(self) -> str | None:
        if isinstance(self._problem, Exception):
            raise self._problem
        return self._problem


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        pytest.param("the weights are not there", "--ray: the weights are not there", id="says-so"),
        pytest.param(ConnectionError(), "--ray: an actor did not start (ConnectionError): is xenoglot", id="dies"),
    ],
)
async def test_an_actor_that_cannot_begin_is_told_in_a_line(problem: str | Exception, told: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        await wait_until_open([Opening(None), Opening(problem)], ConnectionError)
    assert str(caught.value).startswith(told)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "no-such-host.invalid:6379", "ray://127.0.0.1:1"])
def test_a_cluster_that_is_not_there_is_told_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], address: str
) -> None:
    source = write_input(tmp_path / "in.jsonl", 1)
    assert main(["batch", str(source), str(tmp_path / "out.jsonl"), "--ray", address]) == MISUSE
    assert f"no cluster listens at {address}" in capsys.readouterr().err


class Ray:
    """The module as far as it is asked to connect: there is a cluster at some addresses, and at others none."""

    def __init__(self, *there: str) -> None:
        self.tried: list[str] = []
        self._there = there

    def init(self, *, address: str, **_: object) -> None:
        self.tried.append(address)
        if address not in self._there:
            raise ConnectionError


@pytest.fixture
def listening() -> Generator[str]:
    """An address where somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("form", ["{}", "ray://{}"])
@pytest.mark.parametrize("address", ["auto", "said"])
def test_a_cluster_that_is_there_is_joined(listening: str, address: str, form: str) -> None:
    there = form.format(listening)
    ray = Ray(there)
    connect(ray, there if address == "said" else "auto", lambda: there)
    assert ray.tried == [there]


@pytest.mark.parametrize("found", [None, "local", "127.0.0.1:1"], ids=["none", "local", "one-that-is-gone"])
def test_where_none_is_there_one_is_started(monkeypatch: pytest.MonkeyPatch, found: str | None) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    ray = Ray("local")
    connect(ray, "auto", lambda: found)
    assert ray.tried == ["local"]


def test_one_that_the_environment_names_has_to_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    ray = Ray("local")
    with pytest.raises(ConfigurationError, match=r"no cluster listens at 127\.0\.0\.1:1"):
        connect(ray, "auto", _of_this_machine)
    assert ray.tried == []


@pytest.mark.parametrize("form", ["{}", "ray://{}"])
def test_only_who_asks_for_any_cluster_gets_one_of_this_machine(listening: str, form: str) -> None:
    ray = Ray("local")
    with pytest.raises(ConfigurationError, match="no cluster at that address"):
        connect(ray, form.format(listening), lambda: None)
    assert ray.tried == [form.format(listening)]


LINE = decode_line(b'{"model": "m", "messages": []}', 1)
ANSWER = LineReport(outcome=LineOutcome(body={}))


class Actor:
    """An actor as Ray gives it: `actor.answer.remote(line)` is awaited."""

    def __init__(self, *, dead: bool = False) -> None:
        self.asked = 0
        self.dead = dead
        self.go = asyncio.Event()
        self.answer = self

    async def remote(self, _line: BatchLine) -> LineReport:
        self.asked += 1
        if self.dead:
            raise ConnectionError
        await self.go.wait()
        return ANSWER


def crew(*actors: Actor, clock: Any = lambda: 0.0) -> ActorPool:  # noqa: ANN401  whatever tells the time
    return ActorPool([*actors], (ConnectionError,), clock)


async def test_lines_go_to_the_actor_that_has_the_fewest() -> None:
    actors = (Actor(), Actor())
    asking = crew(*actors)
    tasks = [asyncio.create_task(asking.answer(LINE)) for _ in range(6)]
    await asyncio.sleep(0)
    assert [actor.asked for actor in actors] == [3, 3]
    for actor in actors:
        actor.go.set()
    assert await asyncio.gather(*tasks) == [ANSWER] * 6


async def test_an_actor_that_died_is_asked_last_for_a_while() -> None:
    now = 0.0
    dead, alive = Actor(dead=True), Actor()
    alive.go.set()
    asking = crew(dead, alive, clock=lambda: now)
    first = await asking.answer(LINE)
    assert (first.failure, first.outcome.ok) == (GONE, False)
    assert [await asking.answer(LINE) for _ in range(5)] == [ANSWER] * 5
    dead.dead = False
    dead.go.set()
    now = COOLDOWN_SECONDS + 1
    assert await asking.answer(LINE) == ANSWER
    assert (dead.asked, alive.asked) == (2, 5)


async def test_where_all_have_died_one_is_asked_all_the_same() -> None:
    dead = Actor(dead=True)
    asking = crew(dead)
    assert [(await asking.answer(LINE)).failure for _ in range(3)] == [GONE] * 3
    assert dead.asked == 3
