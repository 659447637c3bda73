"""What the client costs beside the SDKs of OpenAI and Anthropic: processor time of the process that asks.

All ask the same mock for the same, in turns, each in a process of its own: `python -m bench.client`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from bench import samples
from bench.clients import CLIENTS, KEY, PIECES, Site, Task, Took
from bench.gateways import free_port
from bench.processes import running, set_mock, wait_for
from bench.report import table
from bench.wires import mock_options, question, small
from xenoglot.model.request import Sampling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

TOOLS: Final = Path(".venv/bench")
HERE: Final = Path(__file__).resolve().parent.parent
HEADS: Final = ("measure", "client", "CPU", "least", "x SDK")

SDKS: Final = {"chat": "openai", "messages": "anthropic"}
"""The SDK of each dialect."""

STARTS: Final = {
    "openai": "from openai import OpenAI as C; begun = now()"
    "\nC(base_url=site.url + '/v1', api_key='k').chat.completions.create(**site.chat)",
    "xenoglot": "from xenoglot import Client as C; begun = now()"
    "\nC(site.url + '/v1', key='k').complete(site.chat['messages'], model='m')",
    "anthropic": "from anthropic import Anthropic as C; begun = now()"
    "\nC(base_url=site.url, api_key='k').messages.create(**site.messages)",
}
"""Programs that import a client, say that they have (`begun`), and ask once."""

_START: Final = """
import json, sys, time
from bench.clients import Site
now = time.process_time_ns
site = Site(*json.loads(sys.argv[1]))
none = now()
{program}
print(json.dumps([(begun - none) / 1e6, (now() - none) / 1e6]))
"""


class Measure(NamedTuple):
    """One thing to measure: the task of each process, and how the mock streams meanwhile."""

    name: str
    unit: str
    task: Task
    pace_us: int = 0
    batch: bool = False


MEASURES: Final = (
    Measure("whole, one after the other", "us/request", Task(stream=False, answers=200, at_once=1)),
    Measure("whole, 64 at once", "us/request", Task(stream=False, answers=640, at_once=64)),
    Measure("stream, each token alone", "us/token", Task(stream=True, answers=2, at_once=1), pace_us=2000),
    Measure("stream, 64 x 50 tokens/s", "us/token", Task(stream=True, answers=64, at_once=64), pace_us=20_000),
    Measure("stream, un-paced", "us/token", Task(stream=True, answers=20, at_once=1)),
    Measure("stream, in one write", "us/token", Task(stream=True, answers=40, at_once=1), batch=True),
)


class Row(NamedTuple):
    """The figures of a client in a measure: median and least of all rounds, the median of its ratios to the SDK."""

    measure: str
    client: str
    median: float
    least: float
    ratio: float | None


def beside(name: str, among: Iterable[str]) -> str | None:
    """Return whom the client `name` is compared with: the SDK of the same dialect and kind; `None` for all others."""
    dialect, _, rest = name.partition(": ")
    sdk = SDKS.get(dialect)
    if sdk is None or not rest.startswith("xenoglot"):
        return None
    found = f"{dialect}: {sdk}" + (", async" if "async" in rest else "")
    return found if found in among else None


def rows(measure: str, taken: Mapping[str, Sequence[float]], sdk_of: Callable[[str], str | None]) -> list[Row]:
    """Return the figures of one measure; each ratio is of two values of the same round."""
    made = list[Row]()
    for name, values in taken.items():
        sdk = sdk_of(name)
        ratios = [ours / theirs for ours, theirs in zip(values, taken[sdk], strict=True)] if sdk else []
        ratio = statistics.median(ratios) if ratios else None
        made.append(Row(measure, name, statistics.median(values), min(values), ratio))
    return made


def cells(row: Row) -> list[str]:
    """Return `row` as the words of a table, under `HEADS`."""
    return [row.measure, row.client, f"{row.median:,.1f}", f"{row.least:,.1f}", f"{row.ratio:.2f}" if row.ratio else ""]


class Worker:
    """A process in which one client asks."""

    def __init__(self, process: subprocess.Popen[str], site: Site) -> None:
        self._process = process
        self._say(site)

    def __call__(self, task: Task) -> Took:
        """Have `task` done.

        Raises:
            ChildProcessError: the process ended, or did not get what it asked for.
        """
        self._say(task)
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise ChildProcessError(f"{self._process.args!r} ended")
        took = Took(*json.loads(line))
        due = task.answers * (PIECES if task.stream else 1)
        if took.units < due:
            raise ChildProcessError(f"{self._process.args!r}: {took.units} of {due}")
        return took

    def _say(self, what: object) -> None:
        if self._process.stdin:
            self._process.stdin.write(json.dumps(what) + "\n")
            self._process.stdin.flush()


@contextmanager
def working(name: str, site: Site) -> Iterator[Worker]:
    """Run the client `name` until the block is left."""
    command = [sys.executable, "-m", "bench.clients", name]
    with subprocess.Popen(  # noqa: S603  our own
        command, cwd=HERE, env=_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Worker(process, site)
        finally:
            process.terminate()


def measured(measure: Measure, workers: Mapping[str, Worker], port: int, rounds: int) -> list[Row]:
    """Measure the clients in turns, each round beginning with another one."""
    set_mock(port, pieces=PIECES, pace_us=measure.pace_us, batch=measure.batch)
    taken: dict[str, list[float]] = {name: [] for name in workers}
    names = list(workers)
    for name in names:  # connections are made, code is warm
        workers[name](measure.task)
    for turn in range(rounds):
        for name in _from(names, turn):
            took = workers[name](measure.task)
            taken[name].append(took.cpu_us / took.units)
    return rows(f"{measure.name}, {measure.unit}", taken, lambda name: beside(name, workers))


def started(site: Site, rounds: int) -> list[Row]:
    """Measure imports and first requests, in milliseconds, each in a fresh interpreter, in turns."""
    imports: dict[str, list[float]] = {name: [] for name in STARTS}
    firsts: dict[str, list[float]] = {name: [] for name in STARTS}
    for turn in range(rounds):
        for name in _from(list(STARTS), turn):
            command = [sys.executable, "-c", _START.format(program=STARTS[name]), json.dumps(site)]
            done = subprocess.run(command, cwd=HERE, env=_environment(), check=True, stdout=subprocess.PIPE)  # noqa: S603  our own
            imported, asked = json.loads(done.stdout)
            imports[name].append(imported)
            firsts[name].append(asked)

    def sdk_of(name: str) -> str | None:
        return "openai" if name == "xenoglot" else None

    return rows("import, ms", imports, sdk_of) + rows("import and first answer, ms", firsts, sdk_of)


@contextmanager
def mocked(tools: Path) -> Iterator[tuple[int, Site]]:
    """Run the mock; give its port, and what clients are told."""
    with tempfile.TemporaryDirectory(prefix="bench-client-") as made:
        folder, port = Path(made), free_port()
        command = [str(tools / "upstream"), "--port", str(port), *mock_options(folder)]
        with running(command, folder / "mock.log"):
            wait_for(port, question("chat", small("chat", model="m"), KEY))
            asked = replace(samples.small(), sampling=Sampling(max_tokens=1024))  # what both SDKs have a parameter for
            bodies = [samples.body(dialect, asked) for dialect in ("chat", "messages")]
            yield port, Site(f"http://127.0.0.1:{port}", *bodies)


def main() -> None:
    """Measure what the command line asks for, and tell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="of each client in each measure (7)")
    parser.add_argument(
        "--only", default="", metavar="WORD", help="measures whose names hold it: whole, stream, import"
    )
    parser.add_argument(
        "--client", default="", metavar="WORD", help="clients whose names hold it: messages, async, raw"
    )
    parser.add_argument("--tools", type=Path, default=TOOLS, help=f"where `upstream` was built ({TOOLS})")
    options = parser.parse_args()
    with ExitStack() as stack:
        port, site = stack.enter_context(mocked(options.tools))
        names = [name for name in CLIENTS if options.client in name]
        workers = {name: stack.enter_context(working(name, site)) for name in names}
        for measure in MEASURES:
            if options.only in measure.name:
                _tell(measured(measure, workers, port, options.rounds))
        if options.only in "import":
            _tell(started(site, options.rounds))


def _tell(found: Sequence[Row]) -> None:
    sys.stdout.write(table(HEADS, [cells(row) for row in found]) + "\n")
    sys.stdout.flush()


def _from(names: list[str], turn: int) -> list[str]:
    first = turn % max(len(names), 1)
    return names[first:] + names[:first]


def _environment() -> dict[str, str]:
    """Return the environment without a proxy: nobody is to ask one for this machine."""
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}


if __name__ == "__main__":
    main()
