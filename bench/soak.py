"""A soak: a gateway in a process of its own, between clients that misbehave and servers that do, for some minutes.

`python bench/soak.py --minutes 5 --seed 7`. Every request draws a fault of `xenoglot.testing.faults`, a pair of
dialects, and a way in which its client behaves; the seed says which. What every answer has to be is known, and looked
at. Meanwhile the process is watched; at the end its memory must have become flat, and nothing may be left: no request,
no socket, no descriptor, and one line in the access log for each request. The report is JSON, on standard output.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import sys
import time
from collections import Counter
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from random import Random, SystemRandom
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from msgspec import Struct, field, to_builtins

from xenoglot.codec.json.json_io import encode_json
from xenoglot.testing import AsyncRawClient, Upstream
from xenoglot.testing.client import request as written
from xenoglot.testing.faults import FAULTS, by_request

if TYPE_CHECKING:
    from xenoglot.model.json import JSONObject
    from xenoglot.testing.client import RawReply

CLIENTS = ("chat", "messages", "responses", "ollama")
UPSTREAMS = ("chat", "messages", "responses", "gemini", "ollama")
PATHS = {
    "chat": "/v1/chat/completions",
    "messages": "/v1/messages",
    "responses": "/v1/responses",
    "ollama": "/api/chat",
}
WAYS = ("patient", "patient", "patient", "leaves", "resets", "slow", "pipelines", "half-asks", "garbage")
"""How clients behave; the patient ones look at what they get."""

HANGING = ("no-head", "silence", "hints-storm", "slow-head")
"""Faults that take their whole deadline: drawn less often, so that something happens."""

KEYS = ("rate-limit", "unauthorised")
"""Faults that have a key rest, after which nobody is asked for a while: they have upstreams of their own."""

DEADLINES = {"connect": 1.0, "first_byte": 1.0, "idle": 1.0, "total": 8.0}
PATIENCE = 60.0
"""Seconds after which an answer has not come."""

WARM_UP = 0.4
"""The part of the time in which memory may still grow: pools fill, caches too."""

MOST_GROWTH = 512.0
"""KiB a minute that the memory may seem to grow behind that, by the line of least squares."""

SETTLING = 45.0
"""Seconds within which idle connections are closed (30 for those to upstreams)."""


class Sample(Struct):
    """The process at one moment: seconds since the start, KiB of memory, and what it has open."""

    at: float
    memory: int
    descriptors: int
    sockets: int


class Report(Struct):
    """What came of it."""

    seed: int
    seconds: float = 0.0
    requests: int = 0
    counted: int = 0
    """By the gateway's own metric, the last look at it not included."""
    lines: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    growth: float = 0.0
    mistakes: list[str] = field(default_factory=list)
    exit_code: int | None = None


class Gateway:
    """The process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.url = ""
        self.lines = 0
        self.complaints: list[str] = []

    async def read_log(self) -> None:
        """Count the lines of the access log, and keep all others."""
        async for line in _piped(self.process.stderr):
            if b'"event":"request"' in line:
                self.lines += 1
            elif len(self.complaints) < 100:  # noqa: PLR2004 - enough to see
                self.complaints.append(line.decode("utf-8", "replace").rstrip())

    async def listening(self) -> None:
        """Wait until it says where it listens."""
        async for line in _piped(self.process.stdout):
            if found := re.search(rb"http://[\d.]+:\d+", line):
                self.url = found[0].decode()
                return
        raise SystemExit("the gateway ended before it served:\n" + "\n".join(self.complaints))

    def sample(self, at: float) -> Sample:
        """Return what it has."""
        folder = Path(f"/proc/{self.process.pid}")
        said = (folder / "status").read_text(encoding="ascii", errors="replace")
        memory = re.search(r"VmRSS:\s+(\d+)", said)
        links = []
        for link in (folder / "fd").iterdir():
            with suppress(OSError):  # closed in the meantime
                links.append(os.readlink(link))  # noqa: PTH115 - no path of a file
        sockets = sum(link.startswith("socket:") for link in links)
        return Sample(round(at, 1), int(memory[1]) if memory else 0, len(links), sockets)

    async def metric(self, name: str) -> int:
        """Return the sum of a metric."""
        async with AsyncRawClient(self.url) as client:
            reply = await client.request("GET", "/metrics", headers={"connection": "close"})
        return sum(int(found) for found in re.findall(rb"^%b(?:{.*})? (\d+)" % name.encode(), reply.body, re.MULTILINE))

    async def running(self) -> int:
        """Return how many requests are under way, this one not counted."""
        return await self.metric("xenoglot_gateway_requests_running") - 1


def _piped(stream: asyncio.StreamReader | None) -> asyncio.StreamReader:
    if stream is None:
        raise RuntimeError("the process was started without pipes")
    return stream


class Soak:
    """The clients, and what they make of it."""

    def __init__(self, gateway: Gateway, report: Report) -> None:
        self._gateway = gateway
        self._report = report
        self._outcomes: Counter[str] = Counter()
        self.over = False

    async def client(self, number: int) -> None:
        """Ask one question after another."""
        chance = Random(f"{self._report.seed}-{number}")  # noqa: S311 - the same for a seed
        while not self.over:
            await self._ask(chance)

    async def _ask(self, chance: Random) -> None:
        fault = chance.choice(list(FAULTS))
        if fault in HANGING and chance.random() < 0.8:  # noqa: PLR2004 - see `HANGING`
            fault = "fine"
        source, target, way = chance.choice(CLIENTS), chance.choice(UPSTREAMS), chance.choice(WAYS)
        streamed = chance.random() < 0.6  # noqa: PLR2004 - more than half, as in life
        data = written("POST", PATHS[source], encode_json(asking(source, target, fault, streamed=streamed)))
        name = f"{fault}{'-streamed' if streamed else ''}: {source} to {target}, {way}"
        try:
            async with asyncio.timeout(PATIENCE), AsyncRawClient(self._gateway.url, window=4096) as client:
                await self._behave(client, way, data, fault, name, streamed=streamed, chance=chance)
        except TimeoutError:
            self._mistake(f"{name}: no answer within {PATIENCE:.0f} s")
        except OSError as error:
            if way == "patient":
                self._mistake(f"{name}: {error!r}")

    async def _behave(  # noqa: PLR0913  what a request is
        self, client: AsyncRawClient, way: str, data: bytes, fault: str, name: str, *, streamed: bool, chance: Random
    ) -> None:
        self._report.requests += 1
        match way:
            case "leaves" | "resets":
                await client.send(data)
                await asyncio.sleep(chance.random() ** 3)
                if way == "resets":
                    client.reset()
            case "slow":
                await client.send(data, split=chance.randint(50, 500))
                await client.reply(count=64)
            case "pipelines":
                self._report.requests += 1
                await client.send(data + data)
                if (await client.reply()).ending == "whole":
                    await client.reply()
            case "half-asks":
                await client.send(data[: chance.randint(1, len(data) - 1)])
                await asyncio.sleep(chance.random() ** 3)
            case "garbage":
                await client.send(bytes(chance.randrange(256) for _ in range(50)) + b"\r\n\r\n")
                await client.reply()
            case _:
                await client.send(data)
                self._look(await client.reply(), fault, name, streamed=streamed)

    def _look(self, reply: RawReply, fault: str, name: str, *, streamed: bool) -> None:
        """Look whether an answer is what it has to be."""
        whole = reply.ending == "whole"
        self._outcomes[f"{fault}: {reply.status}{'' if whole else ', broken off'}"] += 1
        well = reply.status == 200 and whole  # noqa: PLR2004 - HTTP's
        if well == FAULTS[fault].fails:
            self._mistake(f"{name}: {reply.status} {reply.ending} {reply.raw[-300:]!r}")
        elif not whole and not (streamed and reply.status == 200):  # noqa: PLR2004 - HTTP's
            self._mistake(f"{name}: broken off without having begun: {reply.raw[-300:]!r}")

    def _mistake(self, text: str) -> None:
        if len(self._report.mistakes) < 50:  # noqa: PLR2004 - enough to see
            self._report.mistakes.append(text)

    def told(self) -> None:
        """Write down how often which outcome was."""
        self._report.outcomes = dict(sorted(self._outcomes.items()))


def asking(source: str, target: str, fault: str, *, streamed: bool) -> JSONObject:
    """Return the body of a question that has `fault` answer it."""
    said: JSONObject = {"model": f"{'key' if fault in KEYS else target}-x", "stream": streamed}
    turn = [{"role": "user", "content": f"fault:{fault}! {'word ' * 50}"}]
    if source == "responses":
        return said | {"input": turn}
    return said | {"messages": turn} | ({"max_tokens": 64} if source == "messages" else {})


def configuration(ports: dict[str, int]) -> str:
    """Return the gateway's configuration, as TOML. Nothing is kept: what is would look like a leak."""
    lines = ["[server]", "port = 0", "drain_seconds = 5.0", "[store]", 'url = "off"']
    deadlines = ", ".join(f"{name} = {seconds}" for name, seconds in DEADLINES.items())
    dialects = {**dict(zip(ports, ports, strict=True)), "key": "chat"}
    for name, dialect in dialects.items():
        port = ports[dialect]
        lines += [
            f"[upstreams.{name}]",
            f'dialect = "{dialect}"',
            f'base_url = "http://127.0.0.1:{port}"',
            f"deadlines = {{ {deadlines} }}",
            "retry = { attempts = 2, base = 0.01 }",
            "breaker = { failures = 1000000 }",
            'limits = { concurrency = 200, queue = 500, requests = ["1000000/1m"] }',
        ]
    for name in dialects:
        lines += ["[[models]]", f'name = "{name}-*"', f'upstream = "{name}"']
    return "\n".join(lines) + "\n"


async def soak(report: Report, seconds: float, clients: int) -> None:
    """Run it."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        upstreams = {name: await stack.enter_async_context(Upstream(*by_request(name))) for name in UPSTREAMS}
        config = folder / "soak.toml"
        config.write_text(configuration({name: each.port for name, each in upstreams.items()}), encoding="utf-8")
        gateway = await _start(config, folder)
        log = asyncio.create_task(gateway.read_log())
        try:
            await gateway.listening()
            await _measured(gateway, report, upstreams, seconds, clients)
        finally:
            with suppress(ProcessLookupError):
                gateway.process.send_signal(signal.SIGTERM)
            report.exit_code = await gateway.process.wait()
            await log
        report.lines = gateway.lines
        if report.lines != report.counted + 1:
            report.mistakes.append(f"{report.counted} requests were counted, and {report.lines - 1} are in the log")
        report.mistakes += [
            f"the gateway said: {line}" for line in gateway.complaints if "Traceback" in line or "never" in line
        ]


async def _start(config: Path, folder: Path) -> Gateway:
    command = [sys.executable, "-m", "xenoglot.cli", "serve", "--config", str(config)]
    process = await asyncio.create_subprocess_exec(
        *command,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "XDG_DATA_HOME": str(folder)},
    )
    return Gateway(process)


async def _measured(
    gateway: Gateway, report: Report, upstreams: dict[str, Upstream], seconds: float, clients: int
) -> None:
    """Let the clients do their worst, then look at what is left."""
    await gateway.running()
    before, start = gateway.sample(0.0), time.monotonic()
    work = Soak(gateway, report)
    async with asyncio.TaskGroup() as group:
        for number in range(clients):
            group.create_task(work.client(number))
        while (at := time.monotonic() - start) < seconds:
            report.samples.append(gateway.sample(at))
            for upstream in upstreams.values():
                upstream.forget()
            await asyncio.sleep(min(2.0, seconds - at + 0.01))
        work.over = True
    work.told()
    report.seconds = round(time.monotonic() - start, 1)
    report.growth = round(growth([each for each in report.samples if each.at > seconds * WARM_UP]), 1)
    await _settled(gateway, report, before)


async def _settled(gateway: Gateway, report: Report, before: Sample) -> None:
    """Wait until nothing is left; say what is."""
    limit = time.monotonic() + SETTLING
    while True:
        running, now = await gateway.running(), gateway.sample(report.seconds)
        report.counted = await gateway.metric("xenoglot_gateway_requests_total")
        if running == 0 and now.sockets <= before.sockets and now.descriptors <= before.descriptors:
            return
        if time.monotonic() > limit:
            report.mistakes.append(f"left at the end: {running} requests; {before} became {now}")
            return
        await asyncio.sleep(1.0)


def growth(samples: list[Sample]) -> float:
    """Return the slope of the memory, KiB a minute, by least squares; 0 where there are too few samples to tell."""
    count = len(samples)
    if count < 10:  # noqa: PLR2004 - a line through fewer says nothing
        return 0.0
    x, y = sum(each.at for each in samples) / count, sum(each.memory for each in samples) / count
    over = sum((each.at - x) ** 2 for each in samples)
    return 60.0 * sum((each.at - x) * (each.memory - y) for each in samples) / over


def main() -> int:
    """Soak; return 0 where all went as it has to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, default=5.0, help="how long (5)")
    parser.add_argument("--seed", type=int, default=None, help="what is drawn; without it, something new")
    parser.add_argument("--clients", type=int, default=24, help="clients at once (24)")
    parser.add_argument("--out", type=Path, default=None, help="a file for the report")
    options = parser.parse_args()
    report = Report(seed=SystemRandom().randrange(1 << 32) if options.seed is None else options.seed)
    sys.stderr.write(f"seed {report.seed}\n")
    asyncio.run(soak(report, options.minutes * 60.0, options.clients))
    if report.growth > MOST_GROWTH:
        report.mistakes.append(f"the memory grows by {report.growth:.0f} KiB a minute")
    if report.exit_code != 0:
        report.mistakes.append(f"the gateway ended with {report.exit_code}")
    text = json.dumps(to_builtins(report), indent=1)
    if options.out is not None:
        options.out.write_text(text + "\n", encoding="utf-8")
    sys.stdout.write(text + "\n")
    return 1 if report.mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
