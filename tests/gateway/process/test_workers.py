"""Several processes at one address: they answer, are replaced when they die, and leave nothing behind."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from collections import Counter
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.backends.raw_server import advance, leakless, turns
from tests.gateway.running_gateway import TIMEOUT, read_until
from tests.gateway.scripted_backends import CHAT
from tests.gateway.server_on_loop import post_bytes
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.api.metrics import merge_texts
from xenoglot.gateway.config.load import check
from xenoglot.gateway.process.supervisor import Supervisor
from xenoglot.gateway.process.worker import POST_SECONDS, VARIABLE, WorkerEnv, _Numbers
from xenoglot.testing import ScriptRule, Upstream, WaitEvent, answers

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from xenoglot.model.json import JSONObject
    from xenoglot.testing import Steps

FILE = """
[server]
port = 0
drain_seconds = 1
[upstreams.main]
dialect = "chat"
base_url = "http://upstream.invalid"
[store]
url = "off"
"""
LIMITED = FILE.replace("http://upstream.invalid", "{}/v1").replace(
    "[store]", 'limits = {{ requests = ["20/1h"] }}\n[store]'
)
UPSTREAM: JSONObject = {"main": {"dialect": "chat", "base_url": "http://upstream.invalid"}}


class Gateway:
    """The command, run."""

    def __init__(self, path: Path, workers: int = 2) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "xenoglot", "serve", "--config", str(path), "--workers", str(workers)],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline().rpartition(":")[2])

    def ask(self, path: str, method: str = "GET") -> tuple[int, bytes]:
        """Return the status and body of a request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
        try:
            connection.request(method, path)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def post(self) -> int:
        """Return the status of a request to a model, on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
        try:
            connection.request("POST", "/v1/chat/completions", json.dumps(CHAT))
            return connection.getresponse().status
        finally:
            connection.close()

    def stream(self) -> socket.socket:
        """Return a connection on which a stream has begun."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=TIMEOUT)
        connection.sendall(post_bytes("/v1/chat/completions", {**CHAT, "stream": True}))
        read_until(connection, b"\r\n\r\n")
        return connection

    def connections(self, pid: int) -> int:
        """Return how many of its clients are connected to that worker."""
        rows = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
        sockets = {f"socket:[{row[9]}]" for row in rows if row[1].endswith(f":{self.port:04X}") and row[3] == "01"}
        return len(sockets & {str(file.readlink()) for file in Path(f"/proc/{pid}/fd").iterdir()})

    def folder(self) -> Path:
        """Return the folder in which its workers meet."""
        environ = Path(f"/proc/{min(self.workers())}/environ").read_bytes().split(b"\0")
        said = next(value for name, _, value in (line.partition(b"=") for line in environ) if name == VARIABLE.encode())
        return Path(msgspec.json.decode(said, type=WorkerEnv).folder)

    def workers(self) -> set[int]:
        """Return the process ids of the workers."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return {int(pid) for pid in children.read_text(encoding="ascii").split()}

    def line(self) -> str:
        """Return the next message of its log."""
        assert self.process.stderr is not None
        read = map(json.loads, self.process.stderr)
        return str(next(line for line in read if line["event"] == "message")["message"])


@pytest.fixture
def gateway(tmp_path: Path) -> Generator[Gateway]:
    """Give a gateway of two workers."""
    file = tmp_path / "xenoglot.toml"
    file.write_text(FILE)
    file.chmod(0o600)
    running = Gateway(file)
    yield running
    running.process.kill()
    running.process.communicate(timeout=TIMEOUT)


def test_k12_k15_the_life_of_workers(gateway: Gateway) -> None:
    before = gateway.workers()
    assert len(before) == 2
    assert gateway.ask("/admin/v1/reload", "POST") == (200, b'{"object":"reload","ok":true}')
    told = sorted(gateway.line().partition(",")[0].strip() for _ in range(4))
    assert told == ["configuration reloaded"] * 3 + ["local has reloaded the configuration"]  # one worker, then both
    os.kill(min(before), signal.SIGKILL)
    assert re.fullmatch(r"worker \d ended with status -9; it is started again in 0\.5 s", gateway.line())
    assert gateway.ask("/health/ready") == (200, b'{"status":"ready"}')
    status, metrics = gateway.ask("/metrics")
    assert (status, b'worker="' in metrics) == (200, True)
    gateway.process.send_signal(signal.SIGHUP)
    while "configuration reloaded" not in gateway.line():
        pass
    gateway.process.send_signal(signal.SIGTERM)
    gateway.process.communicate(timeout=TIMEOUT)
    assert gateway.process.returncode == 0
    with pytest.raises(ConnectionRefusedError):
        gateway.ask("/health")


def test_k13_workers_do_not_outlive_a_supervisor_that_is_killed(gateway: Gateway) -> None:
    workers = gateway.workers()
    folder = gateway.folder()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    gateway.process.kill()
    gateway.process.communicate(timeout=TIMEOUT)  # ends when the last of them has let go of standard error
    assert [pid for pid in workers if Path(f"/proc/{pid}/exe").exists()] == []
    assert not folder.exists()


def test_k15_k08_a_worker_that_is_killed_takes_its_own_connections_alone_and_limits_hold_for_all(
    tmp_path: Path,
) -> None:
    script = ScriptRule(steps=lambda received: _answer(received.body))
    with Upstream(script) as upstream:
        file = tmp_path / "limited.toml"
        file.write_text(LIMITED.format(upstream.url))
        file.chmod(0o600)
        running = Gateway(file)
        streams = [running.stream() for _ in range(12)]
        victim = min(running.workers())
        its_own = running.connections(victim)
        os.kill(victim, signal.SIGKILL)
        assert running.line().startswith("worker ")
        upstream.release("go on")
        whole = [stream for stream in streams if _rest(stream)]
        assert len(whole) == len(streams) - its_own
        statuses = Counter(running.post() for _ in range(30))
        assert statuses == {200: 20 - len(streams), 429: 30 + len(streams) - 20}
        running.process.kill()
        running.process.communicate(timeout=TIMEOUT)


def _answer(asked: bytes) -> Steps:
    """Answer at once; a stream when the test says so."""
    answer = answers("chat", text=("Hel", "lo."))
    if b'"stream": true' not in asked:
        return answer.complete()
    head, first, *rest = answer.streamed()
    return (head, first, WaitEvent("go on"), *rest)


def _rest(connection: socket.socket) -> bytes:
    """Return what comes until a stream, or its connection, ends."""
    data = b""
    with connection, suppress(ConnectionResetError):
        while not data.endswith(b"0\r\n\r\n"):
            piece = connection.recv(65_536)
            if not piece:
                return b""
            data += piece
    return data if data.endswith(b"0\r\n\r\n") else b""


async def test_workers_that_cannot_start_are_told_of() -> None:
    with socket.socket() as shared:
        posts = [WorkerEnv(shared.fileno(), number, "/nowhere") for number in range(2)]
        supervisor = Supervisor([sys.executable, "-c", "raise SystemExit(2)"], posts)
        with pytest.raises(ConfigurationError, match="a worker did not start; see its message above"):
            await supervisor.run(print)
    assert [process.returncode for process in supervisor.processes.values()] == [2, 2]


WAITING = """
import signal, sys, time
signal.signal(signal.SIGHUP, lambda *_: sys.exit(7))
print("here", flush=True)
while True:
    time.sleep(0.01)
"""
"""A worker that takes the usual time to start, knows SIGHUP once it serves, and knows no SIGTERM."""


@asynccontextmanager
async def starting(listener: socket.socket) -> AsyncGenerator[tuple[Supervisor, WorkerEnv, asyncio.Task[str]]]:
    """Give a supervisor with a worker that begins to start."""
    post_ = WorkerEnv(listener.fileno(), 0, "/nowhere")
    supervisor = Supervisor([sys.executable, "-c", WAITING], [post_], listener=listener)
    task = asyncio.get_running_loop().create_task(supervisor._start(post_))
    yield supervisor, post_, task
    await supervisor._end()


async def test_k13_k14_a_worker_that_starts_is_told_to_read_anew_when_it_can_hear() -> None:
    with socket.create_server(("127.0.0.1", 0)) as shared:
        async with starting(shared) as (supervisor, _, task):
            await asyncio.sleep(0)
            supervisor.reload()  # before there is a process; a SIGHUP would kill it for some time yet
            assert await task == "here"
            assert await supervisor.processes[0].wait() == 7


async def test_k12_nobody_is_left_in_the_line_of_a_gateway_that_stops_nor_a_worker_that_was_starting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as shared:
        address = shared.getsockname()
        async with starting(shared) as (supervisor, _, task):
            await asyncio.sleep(0)
            supervisor._stopping.set()  # the signal came before there was a process to pass it on to
            assert await task in ("", "here")
            assert await supervisor.processes[0].wait() == -signal.SIGTERM
            supervisor.stop()
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(address, timeout=TIMEOUT)


class NumberedGateway:
    """A gateway that has numbers."""

    merge = None

    def __init__(self, number: int) -> None:
        self._number = number

    def own_metrics(self) -> bytes:
        """Tell them."""
        return b"a %d\n" % self._number


@leakless
async def test_k14_k18_the_numbers_are_those_of_the_gateway_that_serves_and_survive_a_full_disk(tmp_path: Path) -> None:
    folder = tmp_path / "workers"
    numbers = _Numbers(WorkerEnv(0, 3, str(folder)))
    for number in (1, 2):
        numbers.tell_of(NumberedGateway(number))  # type: ignore[arg-type]  # as much of one as is asked for
    await advance(POST_SECONDS)  # there is no such folder
    folder.mkdir()
    await advance(POST_SECONDS)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == {"3.metrics": b"a 2\n"}
    assert numbers._task is not None
    numbers._task.cancel()
    await turns()


@pytest.mark.parametrize(
    ("plain", "problem"),
    [
        pytest.param({}, "server.workers: found 2, and each would load the embedded model", id="embedded"),
        pytest.param(
            {"upstreams": UPSTREAM, "store": {"url": "memory"}},
            "server.workers: found 2, and each would have a `memory` of its own for a store",
            id="memory",
        ),
        pytest.param({"upstreams": UPSTREAM}, None, id="upstreams"),
    ],
)
def test_what_several_processes_cannot_share(plain: JSONObject, problem: str | None) -> None:
    said = {"server": {"workers": 2}, **plain}
    if problem is None:
        assert check(said, {}, "the test").server.workers == 2
    else:
        with pytest.raises(ConfigurationError, match=re.escape(problem)):
            check(said, {}, "the test")


def test_numbers_of_workers_stand_beside_each_other() -> None:
    text = '# HELP a A.\n# TYPE a counter\na{{b="c"}} {0}\n# HELP d D.\n# TYPE d gauge\nd {0}\n'
    assert merge_texts({"0": text.format(1), "1": text.format(2)}).decode().splitlines() == [
        "# HELP a A.",
        "# TYPE a counter",
        'a{worker="0",b="c"} 1',
        'a{worker="1",b="c"} 2',
        "# HELP d D.",
        "# TYPE d gauge",
        'd{worker="0"} 1',
        'd{worker="1"} 2',
    ]
