"""An agent's work over a WebSocket and over posted requests: 20 calls of a tool, each with its result.

    python -m bench.web_socket [--rounds N]

Both ways are taken in turns, through one gateway, to the same scripted server of another dialect. A posted request has
the whole conversation, as clients post it that have nothing stored; over the WebSocket each has only the new result.
The scripted server takes most of the time; the gateway's own is read from `/proc`.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from websockets.sync.client import connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from xenoglot.model.json import JSON, JSONObject

TURNS = 20
INSTRUCTIONS = "You work in a folder. " * 1_000
RESULT = "a line of what the command printed\n" * 60
TOOL: JSONObject = {"type": "function", "name": "run", "parameters": {"type": "object", "properties": {}}}
FIRST: JSONObject = {"type": "message", "role": "user", "content": "Mend the tests."}
SCRIPT = '[[rule]]\nanswer = { dialect = "chat", tool = { name = "run", arguments = "{}" } }\n'
TICK = os.sysconf("SC_CLK_TCK")


class Sample(NamedTuple):
    """One agent's work: seconds, bytes that the client sent in bodies, and the gateway's processor time in seconds."""

    seconds: float
    sent: int
    processor: float


@contextmanager
def running(*arguments: str) -> Iterator[tuple[str, int]]:
    """Run a command of xenoglot; give the URL that it prints, and its process."""
    command = [sys.executable, "-m", "xenoglot.cli", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)  # noqa: S603  our own
    with process:
        try:
            found = re.search(r"http://[\d.]+:\d+", "" if process.stdout is None else process.stdout.readline())
            if found is None:
                sys.exit(f"`xenoglot {arguments[0]}` did not start")
            yield found[0], process.pid
        finally:
            process.terminate()


def body(items: JSON, **more: JSON) -> JSONObject:
    """Return a request."""
    return {"model": "m", "instructions": INSTRUCTIONS, "tools": [TOOL], "store": False, "input": items, **more}


def result(event: JSONObject) -> list[JSON]:
    """Return the items of an answer, and the result of its call."""
    output = event["response"]["output"]
    (call,) = [item for item in output if item["type"] == "function_call"]
    return [*output, {"type": "function_call_output", "call_id": call["call_id"], "output": RESULT}]


def posted(url: str) -> int:
    """Do the work by posted requests on one connection; return the bytes of their bodies."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"))
    items: list[JSON] = [FIRST]
    sent = 0
    for _ in range(TURNS):
        data = json.dumps(body(items, stream=True)).encode()
        sent += len(data)
        connection.request("POST", "/v1/responses", data, {"content-type": "application/json"})
        events = [line[6:] for line in connection.getresponse().read().split(b"\n") if line.startswith(b"data: ")]
        items += result(json.loads(events[-1]))
    connection.close()
    return sent


def connected(url: str) -> int:
    """Do the work over a WebSocket; return the bytes of its messages."""
    sent = 0
    more: JSONObject = {}
    items: list[JSON] = [FIRST]
    with connect(url.replace("http", "ws") + "/v1/responses", max_size=None, compression=None) as socket:
        for _ in range(TURNS):
            message = json.dumps({"type": "response.create", **body(items, **more)})
            sent += len(message)
            socket.send(message)
            event: JSONObject = {"type": ""}
            while event["type"] != "response.completed":
                event = json.loads(socket.recv())
                if event["type"] == "error":
                    sys.exit(str(event))
            items, more = result(event)[-1:], {"previous_response_id": event["response"]["id"]}
    return sent


def processor_seconds(pid: int) -> float:
    """Return the processor time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def sample(work: Callable[[str], int], url: str, pid: int) -> Sample:
    """Measure one agent's work."""
    spent, begun = processor_seconds(pid), time.perf_counter()
    sent = work(url)
    return Sample(time.perf_counter() - begun, sent, processor_seconds(pid) - spent)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "script.toml")
        script.write_text(SCRIPT, encoding="utf-8")
        with (
            running("mock", "--script", str(script)) as (upstream, _),
            running("serve", "--port", "0", "--upstream", upstream, "--dialect", "chat") as (url, pid),
        ):
            ways: dict[str, Callable[[str], int]] = {"posted": posted, "WebSocket": connected}
            for work in ways.values():
                work(url)
            samples: dict[str, list[Sample]] = {name: [] for name in ways}
            for _ in range(rounds):
                for name, work in ways.items():
                    samples[name].append(sample(work, url, pid))
    sys.stdout.write("| 20 calls of a tool | ms | gateway, ms CPU | kB sent |\n| --- | ---: | ---: | ---: |\n")
    for name, found in samples.items():
        columns = [statistics.median(values) for values in zip(*found, strict=True)]
        mean = statistics.fmean(one.processor for one in found)
        sys.stdout.write(f"| {name} | {columns[0] * 1e3:.0f} | {mean * 1e3:.0f} | {columns[1] / 1e3:.0f} |\n")


if __name__ == "__main__":
    main()
