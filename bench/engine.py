"""The embedded model behind the gateway against its runtime alone: tokens per second at 1, 4 and 16 requests at once.

Both are the same kind of process with the same settings and write the same number of tokens to the same prompts. They
are measured in turns, so that whatever else the machine does falls on both, and compared pair by pair.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

from msgspec import Struct

from xenoglot.backends.http.client import Transport
from xenoglot.codec.json.json_io import encode_json
from xenoglot.codec.loss import Losses
from xenoglot.engine.backend import STREAMED
from xenoglot.engine.prompting.prompt_plan import PromptPlanner
from xenoglot.engine.sampling import completion_fields
from xenoglot.engine.server import weights
from xenoglot.engine.server.lifecycle import EngineProcess
from xenoglot.engine.server.runtime import Runtime
from xenoglot.engine.server.server_process import Settings
from xenoglot.model.content import Text
from xenoglot.model.json import JSONObject
from xenoglot.model.request import Message, Request, Sampling

LARGEST_LINE = 1 << 20
HEAD = f"{'at once':>8} {'bare':>10} {'gateway':>10} {'ratio':>8} {'middle half':>15} {'own µs/token':>12}\n"
MICROSECONDS = 1e6
NEVER = -100.0
"""The bias of a token that is never written: the answers have all the same length."""


class Side(Struct, frozen=True):
    """One of the two: how it is connected to, where it is asked, and with what."""

    name: str
    connect: Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
    path: str
    key: str
    body: Callable[[str], bytes]
    tokens: Callable[[JSONObject], int]
    pid: int


class Pair(Struct, frozen=True):
    """Tokens per second of one round on either side, and what the gateway itself computed, in seconds a token."""

    bare: float
    gateway: float
    spent: float


async def ask(side: Side, question: str) -> int:
    """Send one request and read its stream to the end; return the tokens that were written."""
    body = side.body(question)
    reader, writer = await side.connect()
    try:
        head = f"POST {side.path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {side.key}\r\n"
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        status = await reader.readline()
        if b" 200 " not in status:
            raise RuntimeError(f"{side.name}: {status!r} {await reader.read()!r}")
        found = 0
        while line := await reader.readline():
            if line.startswith(b"data: {"):
                found = max(found, side.tokens(json.loads(line[6:])))
        return found
    finally:
        writer.close()


async def round_of(side: Side, concurrency: int, count: int, length: int, number: int) -> float:
    """Have `count` requests answered, `concurrency` at a time; return tokens per second."""
    waiting = iter(questions(concurrency, number, count))
    started = time.perf_counter()

    async def work() -> int:
        return sum([await ask(side, question) for question in waiting])

    written = sum(await asyncio.gather(*(work() for _ in range(concurrency))))
    spent = time.perf_counter() - started
    if written != count * length:
        raise RuntimeError(f"{side.name}: {written} tokens, expected {count * length}")
    return written / spent


def questions(concurrency: int, number: int, count: int) -> list[str]:
    """Return what is asked in a round: nothing twice, so that nothing but the template is remembered."""
    return [f"Tell story {concurrency}-{number}-{index} of a fox, please." for index in range(count)]


def computed(pid: int) -> float:
    """Return the seconds that a process has computed, its children apart (https://man7.org/linux/man-pages/man5/proc.5.html)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return math.nan
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def bare_side(stack: AsyncExitStack, arguments: argparse.Namespace) -> Side:
    """Return the runtime alone, asked over its own socket with prompts that are tokens already."""
    found, shape = weights.fetch(), Settings(context=8192)
    process = EngineProcess(found, shape)
    stack.push_async_callback(process.stop)
    transport = Transport()
    stack.push_async_callback(transport.aclose)
    endpoint = await process.ready()
    socket = endpoint.socket_path
    if socket is None:
        raise RuntimeError("the runtime has no socket here")
    runtime = Runtime(process, transport)
    asking = PromptPlanner(runtime, found.name, shape.syntax)
    sampling = Sampling(temperature=0.0, logit_bias={"2": NEVER})
    fields = {**completion_fields(sampling, await runtime.facts(), shape.slots), **STREAMED}
    bodies = {}
    rounds = [(at_once, number) for at_once in arguments.concurrency for number in range(arguments.rounds + 1)]
    most = max(arguments.least, *arguments.concurrency)
    for question in [one for at_once, number in rounds for one in questions(at_once, number, most)]:
        said = Message(role="user", content=(Text(text=question),))
        asked = await asking.asked(Request(model="any", messages=(said,)), Losses())
        bodies[question] = encode_json({**fields, "prompt": asked.prompt, "n_predict": arguments.tokens})
    return Side(
        name="bare",
        connect=lambda: asyncio.open_unix_connection(socket, limit=LARGEST_LINE),
        path="/completion",
        key=endpoint.key,
        body=bodies.__getitem__,
        tokens=lambda item: item.get("tokens_predicted", 0),
        pid=process.health().pid or 0,
    )


async def gateway_side(stack: AsyncExitStack, arguments: argparse.Namespace) -> Side:
    """Return the gateway in a process of its own, asked as clients ask it."""
    serve = ("-c", "from xenoglot.cli import main; main()", "serve", "--port", "0")
    process = await asyncio.create_subprocess_exec(
        sys.executable, *serve, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    stack.push_async_callback(process.wait)
    stack.callback(process.terminate)
    if process.stdout is None:
        raise RuntimeError("the gateway has no output")
    greeting = (await process.stdout.readline()).decode().split()
    port = int(greeting[-1].rpartition(":")[2].strip("/"))

    def body(question: str) -> bytes:
        fields: JSONObject = {"model": "any", "messages": [{"role": "user", "content": question}], "temperature": 0.0}
        fields |= {"max_tokens": arguments.tokens, "logit_bias": {"2": NEVER}}
        return encode_json(fields | {"stream": True, "stream_options": {"include_usage": True}})

    return Side(
        name="gateway",
        connect=lambda: asyncio.open_connection("127.0.0.1", port, limit=LARGEST_LINE),
        path="/v1/chat/completions",
        key="none",
        body=body,
        tokens=lambda item: (item.get("usage") or {}).get("completion_tokens", 0),
        pid=process.pid,
    )


async def measure(arguments: argparse.Namespace) -> None:
    """Measure both sides in turns and print what came of it."""
    async with AsyncExitStack() as stack:
        bare = await bare_side(stack, arguments)
        gateway = await gateway_side(stack, arguments)
        sys.stdout.write(HEAD)
        for concurrency in arguments.concurrency:
            pairs = await pairs_at(concurrency, bare, gateway, arguments)
            sys.stdout.write(line(concurrency, pairs))
            sys.stdout.flush()


async def pairs_at(concurrency: int, bare: Side, gateway: Side, arguments: argparse.Namespace) -> list[Pair]:
    """Return the rounds at so many requests at once; who goes first alternates, and the first pair only warms up."""
    pairs: list[Pair] = []
    count = max(arguments.least, concurrency)
    for number in range(arguments.rounds + 1):
        sides = (bare, gateway) if number % 2 else (gateway, bare)
        rates = {}
        before = computed(gateway.pid)
        for side in sides:
            rates[side.name] = await round_of(side, concurrency, count, arguments.tokens, number)
        spent = (computed(gateway.pid) - before) / (count * arguments.tokens)
        pairs.append(Pair(rates["bare"], rates["gateway"], spent))
    return pairs[1:]


def line(concurrency: int, pairs: list[Pair]) -> str:
    """Return one row: the medians, that of the ratios with their middle half, and the gateway's own work."""
    ratios = sorted(pair.gateway / pair.bare for pair in pairs)
    quarter = len(ratios) // 4
    bare = statistics.median(pair.bare for pair in pairs)
    gateway = statistics.median(pair.gateway for pair in pairs)
    spread = f"{ratios[quarter]:.3f}-{ratios[-1 - quarter]:.3f}"
    spent = statistics.median(pair.spent for pair in pairs) * MICROSECONDS
    figures = f"{bare:>10.1f} {gateway:>10.1f} {statistics.median(ratios):>8.3f} {spread:>15} {spent:>12.0f}"
    return f"{concurrency:>8} {figures}\n"


def main() -> None:
    """Read the flags and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8, help="pairs of rounds at each number of requests")
    parser.add_argument("--tokens", type=int, default=64, help="tokens of each answer")
    parser.add_argument("--least", type=int, default=4, help="requests of a round at least")
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 4, 16], help="requests at once")
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
