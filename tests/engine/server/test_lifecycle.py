"""The engine comes when it is asked for, comes back after a crash, says why it does not, and leaves nothing behind."""

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import msgspec
import pytest
import uvloop

from tests.engine.worker_process import LONG
from xenoglot.backends.http.client import Transport
from xenoglot.engine.errors import EngineError, StartError, UnavailableError
from xenoglot.engine.server.lifecycle import Backoff, EngineHealth, EngineProcess
from xenoglot.engine.server.server_process import COMMAND, EngineEndpoint, Settings
from xenoglot.engine.server.weights import Weights

SMALL = Settings(slots=1, context=256, threads=1)


class Time:
    """A clock that moves when somebody sleeps, or when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.naps: list[float] = []

    def clock(self) -> float:
        """The time, in seconds."""
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Let the time pass at once."""
        self.naps.append(seconds)
        self.now += seconds


Make = Callable[..., EngineProcess]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
async def time() -> Time:
    return Time()


@pytest.fixture
async def make(weights: Weights, time: Time, temporary: Path) -> AsyncGenerator[Make, None]:
    """Make engines that live in the fixture's time; at the end all are stopped and nothing of them may be left."""
    engines: list[EngineProcess] = []

    def make_one(
        file: Weights = weights, settings: Settings = SMALL, command: tuple[str, ...] = COMMAND
    ) -> EngineProcess:
        engines.append(EngineProcess(file, settings, clock=time.clock, sleep=time.sleep, command=command))
        return engines[-1]

    yield make_one
    for engine in engines:
        await engine.stop()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert names(temporary) == []


async def get(endpoint: EngineEndpoint, path: str, key: str | None = None) -> tuple[int, object]:
    """One request to the engine: its status and JSON."""
    transport = Transport()
    headers = [("authorization", f"Bearer {endpoint.key if key is None else key}")]
    async with await transport.send("GET", endpoint.url + path, headers, socket_path=endpoint.socket_path) as reply:
        answer = reply.status, msgspec.json.decode(await reply.read())
    await transport.aclose()
    return answer


async def crash(engine: EngineProcess) -> None:
    """Kill the running child, and return when that is noted."""
    pid, watch = engine.health().pid, engine._watch
    assert pid is not None
    assert watch is not None
    os.kill(pid, signal.SIGKILL)
    await asyncio.wait_for(watch, LONG)


async def refusal(engine: EngineProcess, patience: float = LONG) -> EngineError:
    """The error of an engine that has to refuse."""
    with pytest.raises(EngineError) as caught:
        await engine.ready(patience)
    return caught.value


async def test_k24_starts_when_first_asked_and_all_who_ask_share_the_start(make: Make) -> None:
    engine = make()
    assert engine.health() == EngineHealth(state="idle", pid=None, starts=0, crashes=0, problem="")
    endpoints = await asyncio.gather(*(engine.ready(LONG) for _ in range(5)))
    assert endpoints == [endpoints[0]] * 5
    health = engine.health()
    assert health == EngineHealth(state="ready", pid=health.pid, starts=1, crashes=0, problem="")
    assert await engine.ready(0.0) == endpoints[0]


async def test_answers_on_a_private_socket_to_its_key_only(make: Make, weights: Weights) -> None:
    endpoint = await make().ready(LONG)
    assert endpoint.socket_path is not None
    assert Path(endpoint.socket_path).parent.stat().st_mode & 0o777 == 0o700
    assert await get(endpoint, "/health") == (200, {"status": "ok"})
    status, properties = await get(endpoint, "/props")
    assert (status, msgspec.convert(properties, Properties)) == (200, Properties(256, 1, str(weights.path)))
    invalid = {"error": {"message": "Invalid API Key", "type": "authentication_error", "code": 401}}
    assert await get(endpoint, "/props", "another key") == (401, invalid)


class Properties(msgspec.Struct):
    """What the runtime says of itself, as far as we set it."""

    class Generation(msgspec.Struct):
        """Its settings for one request."""

        n_ctx: int

    default_generation_settings: Generation | int
    total_slots: int
    model_path: str

    def __post_init__(self) -> None:
        if isinstance(self.default_generation_settings, Properties.Generation):
            self.default_generation_settings = self.default_generation_settings.n_ctx


async def test_listens_on_loopback_with_a_key_where_a_socket_path_would_be_too_long(
    make: Make, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = temporary / ("x" * 100)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    endpoint = await make().ready(LONG)
    assert (endpoint.socket_path, endpoint.url.rpartition(":")[0]) == (None, "http://127.0.0.1")
    assert await get(endpoint, "/health") == (200, {"status": "ok"})
    status, _ = await get(endpoint, "/props", "another key")
    assert status == 401
    folder.rmdir()


async def test_k15_comes_back_after_a_crash_at_a_new_address(make: Make, time: Time) -> None:
    engine = make()
    first = await engine.ready(LONG)
    await crash(engine)
    problem = "the engine's process ended with status -9"
    assert engine.health() == EngineHealth(state="resting", pid=None, starts=1, crashes=1, problem=problem)
    second = await engine.ready(LONG)
    assert {first.socket_path, first.key}.isdisjoint({second.socket_path, second.key})
    assert await get(second, "/health") == (200, {"status": "ok"})
    assert time.naps == [0.0, 0.5]


async def test_asks_after_a_crash_that_is_not_noted_yet(
    make: Make, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make()
    first = await engine.ready(LONG)
    child = engine._child
    assert child is not None
    last_words: asyncio.Future[bytes] = asyncio.Future()
    monkeypatch.setattr(child, "_errors", last_words)
    os.kill(child.pid, signal.SIGKILL)
    await child._process.wait()
    second = asyncio.create_task(engine.ready(LONG))
    await asyncio.sleep(0)
    assert engine.health().crashes == 0
    last_words.set_result(b"")
    assert await second != first
    assert engine.health().crashes == 1
    assert time.naps == [0.0, 0.5]


async def test_k15_rests_longer_after_each_crash_and_forgets_after_a_long_life(make: Make, time: Time) -> None:
    engine = make()
    for _ in range(3):
        await engine.ready(LONG)
        await crash(engine)
    time.now += 0.5
    await engine.ready(LONG)
    time.now += 60.0
    await crash(engine)
    await engine.ready(LONG)
    assert time.naps == [0.0, 0.5, 1.0, 1.5, 0.5]


async def test_refuses_at_once_when_the_rest_is_longer_than_the_patience(make: Make, time: Time) -> None:
    engine = make()
    await engine.ready(LONG)
    await crash(engine)
    error = await refusal(engine, 0.25)
    assert isinstance(error, UnavailableError)
    assert (str(error), error.retry_after) == ("the embedded model is restarting after a crash; retry later", 0.5)
    assert time.naps == [0.0]


async def test_patience_ends_while_it_loads_and_the_load_goes_on(make: Make) -> None:
    engine = make()
    error = await refusal(engine, 0.0)
    assert isinstance(error, UnavailableError)
    assert str(error) == "the embedded model is still being loaded; retry later"
    assert engine.health().state == "starting"
    await engine.ready(LONG)
    assert engine.health().starts == 1


async def test_one_who_gives_up_does_not_take_the_start_away_from_the_others(make: Make) -> None:
    engine = make()
    tasks = [asyncio.create_task(engine.ready(LONG)) for _ in range(2)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    assert await tasks[1] == await engine.ready(0.0)
    assert tasks[0].cancelled()
    assert engine.health().starts == 1


async def test_k24_a_failed_start_is_told_to_all_and_not_repeated_before_the_rest_is_over(
    make: Make, time: Time, tmp_path: Path
) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(b"GGUF\x03\0\0\0" + b"\xa5" * 4000)
    engine = make(Weights(path=path, name="x"))
    message = "the runtime cannot load the model file: it is damaged, or of a kind that it does not know"
    errors = [*await asyncio.gather(refusal(engine), refusal(engine)), await refusal(engine)]
    assert [(type(error), str(error)) for error in errors] == [(StartError, message)] * 3
    assert "failed to load model" in errors[0].detail
    assert engine.health() == EngineHealth(state="resting", pid=None, starts=0, crashes=1, problem=message)
    time.now += 0.5
    assert str(await refusal(engine)) == message
    assert engine.health().crashes == 2


def script(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", f"import os, sys, signal; {code}")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        pytest.param(
            ("/there/is/no/python",),
            "the engine's process cannot be started (No such file or directory)",
            id="no-interpreter",
        ),
        pytest.param(
            script("print('hello', flush=True); sys.stdin.read()"),
            "the engine's process answered with something else than its report",
            id="nonsense",
        ),
        pytest.param(
            script("sys.exit(3)"),
            "the engine's process ended with status 3 while it loaded the model",
            id="silent-exit",
        ),
        pytest.param(
            script("os.kill(os.getpid(), signal.SIGKILL)"),
            "the engine's process ended by SIGKILL while it loaded the model; "
            "somebody killed it, perhaps the system for want of memory: try a smaller model",
            id="killed",
        ),
        pytest.param(
            script("os.kill(os.getpid(), signal.SIGILL)"),
            "the engine's process ended by SIGILL while it loaded the model; "
            "this CPU lacks instructions that the runtime is built for (AVX2)",
            id="old-cpu",
        ),
        pytest.param(
            (sys.executable, "-S", *COMMAND[1:]),
            "xllamacpp is not installed: pip install 'xenoglot[local]'",
            id="no-runtime",
        ),
    ],
)
async def test_a_child_that_does_not_get_to_serve(make: Make, command: tuple[str, ...], message: str) -> None:
    error = await refusal(make(command=command))
    assert (type(error), str(error)) == (StartError, message)


async def test_a_load_that_takes_too_long_is_a_failure(make: Make) -> None:
    settings = msgspec.structs.replace(SMALL, load_seconds=0.0)
    error = await refusal(make(settings=settings))
    assert (type(error), str(error)) == (StartError, "the engine did not load its model within 0 s")


async def test_stop_ends_the_child_and_refuses_what_comes_later(make: Make) -> None:
    engine = make()
    await engine.ready(LONG)
    await engine.stop()
    await engine.stop()
    assert engine.health() == EngineHealth(state="stopped", pid=None, starts=1, crashes=0, problem="")
    assert str(await refusal(engine)) == "the embedded model was stopped"


async def test_stop_while_it_loads(make: Make) -> None:
    engine = make()
    waiting = asyncio.create_task(refusal(engine))
    await refusal(engine, 0.0)
    await engine.stop()
    assert str(await waiting) == "the embedded model was stopped"
    assert engine.health().starts == 0


async def test_stop_kills_a_child_that_does_not_leave(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xenoglot.engine.server.server_process.LEAVE_SECONDS", 0.0)
    report = """print('{"address": "unix:///x"}', flush=True); signal.pause()"""
    engine = make(command=script(report))
    await engine.ready(LONG)
    await engine.stop()
    assert engine.health().state == "stopped"


def test_works_on_uvloop_too(weights: Weights) -> None:
    async def scenario() -> object:
        engine = EngineProcess(weights, SMALL)
        endpoint = await engine.ready(LONG)
        health = await get(endpoint, "/health")
        await engine.stop()
        return health

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(scenario()) == (200, {"status": "ok"})


@pytest.mark.parametrize(
    ("crashes", "rest"),
    [(0, 0.0), (1, 0.5), (2, 1.0), (3, 2.0), (6, 16.0), (7, 30.0), (8, 30.0), (10**9, 30.0)],
    ids=str,
)
def test_backoff(crashes: int, rest: float) -> None:
    assert Backoff().rest(crashes) == rest


def test_the_gateway_process_does_not_load_the_runtime() -> None:
    assert "xllamacpp" not in sys.modules
