"""Instructions of the gateway for each request and token: a figure that a busy machine does not change.

Where the processor's counters can be read, `perf stat` counts those of process and kernel. Else the gateway runs under
callgrind, which counts what the process executes itself, and nothing of the kernel's. Either way the difference between
two windows of N and 2 N answers is taken, so that nothing counts but the answers.
"""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bench.gateways import XENOGLOT
from bench.measuring import Sample, Settings, Stand, load_command, site_for, wait_for_port
from bench.processes import family, found, needed, on_core, running, set_mock
from bench.scenarios import AGENT, TRANSLATED, VERBATIM, Scenario

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from bench.gateways import Gateway, Site

Counter: TypeAlias = Literal["perf", "callgrind"]

TOLERANCE: Final = 1.05
"""How far above the committed figure a count may be."""

GOALS: Final = {"translated": 220_000, "token": 60_000}
"""Of process and kernel together, as the prototype of the hot path suggests."""

_SECONDS: Final = 600.0
_TOTALS: Final = re.compile(r"^(?:summary|totals): (\d+)", re.MULTILINE)


class Counted(Struct, frozen=True):
    """Something whose instructions are counted, and over how many answers."""

    scenario: Scenario
    answers: int


_ONE: Final = {"connections": 1, "goals": ()}
_PACED: Final = Scenario(
    name="token", title="translated token, paced", stream=True, connections=1, pace_us=25_000, warmup=0
)
"""Slow enough that each token is read and written by itself, also under callgrind on a busy machine."""

COUNTED: Final = (
    Counted(replace(VERBATIM, **_ONE), 400),
    Counted(replace(TRANSLATED, **_ONE), 400),
    Counted(replace(AGENT, **_ONE), 40),
    Counted(_PACED, 4),
    Counted(replace(_PACED, name="token-verbatim", title="verbatim token, paced", client="chat"), 4),
    Counted(replace(_PACED, name="token-batch", title="translated token, in one write", batch=True), 40),
)


def counter() -> Counter:
    """Return what counts here: `perf` where the machine lets its counter be read."""
    perf = found("perf")
    if perf is None:
        return "callgrind"
    done = subprocess.run(  # noqa: S603  as it stands
        (perf, "stat", "-x,", "-e", "instructions", "true"), capture_output=True, text=True, check=False
    )
    return "perf" if _perf_count(done.stderr) else "callgrind"


def _perf_count(report: str) -> int:
    counts = (line.partition(",")[0] for line in report.splitlines() if "instructions" in line)
    return sum(int(count) for count in counts if count.isdecimal())


def counted(
    site: Site, settings: Settings, gateway: Gateway = XENOGLOT, chosen: Sequence[Counted] = COUNTED
) -> dict[str, int]:
    """Return instructions of `gateway` for each request, or token, of each of `chosen`."""
    by = counter()
    if by == "callgrind":
        needed("valgrind", "callgrind_control")
    with _standing(gateway, site, settings, by) as stand:
        return {item.scenario.name: _difference(item, stand, settings, by) for item in chosen}


@contextmanager
def _standing(gateway: Gateway, shared: Site, settings: Settings, by: Counter) -> Iterator[Stand]:
    site = site_for(f"{gateway.name}-{by}", shared)
    if gateway.start is None:
        raise ValueError(f"{gateway.name} is not started")
    start = gateway.start(site)
    under = ("valgrind", "--tool=callgrind", f"--callgrind-out-file={site.folder}/counts.%p")
    command = on_core(settings.cores.gateway, (*under, *start.command) if by == "callgrind" else start.command)
    for old in site.folder.glob("counts.*"):
        old.unlink()
    environment = {**start.environment, "PYTHONHASHSEED": "0"}  # dictionaries collide alike in every run
    with running(command, site.folder / "output.log", environment) as process:
        wait_for_port(site.port, process, 300.0)
        yield Stand(gateway, site, process.pid)


def _difference(item: Counted, stand: Stand, settings: Settings, by: Counter) -> int:
    scenario = item.scenario
    set_mock(stand.site.mock, pieces=scenario.pieces, pace_us=scenario.pace_us, batch=scenario.batch)
    _count(item, stand, settings, by, max(item.answers // 2, 4))  # warms up
    few, less = _count(item, stand, settings, by, item.answers)
    many, more = _count(item, stand, settings, by, 2 * item.answers)
    return round((more - less) / (many - few))


def _count(item: Counted, stand: Stand, settings: Settings, by: Counter, answers: int) -> tuple[int, int]:
    """Return the requests or tokens of a window of so many answers, and the instructions in it."""
    quiet = replace(item.scenario, warmup=0)
    load = load_command(quiet, stand, settings, _SECONDS)
    options = {"settle": "0", "ramp": "0", "count": str(answers)}
    for name, value in options.items():
        load += [f"--{name}", value]
    measure = _by_perf if by == "perf" else _by_callgrind
    instructions, sample = measure(on_core(settings.cores.others, load), stand)
    if any(sample.errors.values()):
        raise ValueError(f"{item.scenario.name}: {sample.errors}")
    return sample.tokens if item.scenario.stream else sample.answers, instructions


def _by_perf(load: list[str], stand: Stand) -> tuple[int, Sample]:
    pids = ",".join(map(str, family(stand.pid or 0)))
    report = stand.site.folder / "perf.csv"
    command = ("perf", "stat", "-x,", "-o", str(report), "-e", "instructions", "-p", pids, "--", *load)
    done = subprocess.run(command, capture_output=True, check=True)  # noqa: S603  our own programs
    return _perf_count(report.read_text()), msgspec.json.decode(done.stdout, type=Sample)


def _by_callgrind(load: list[str], stand: Stand) -> tuple[int, Sample]:
    pid = str(stand.pid or 0)
    subprocess.run(("callgrind_control", "--zero", pid), capture_output=True, check=True)  # noqa: S603, S607
    done = subprocess.run(load, capture_output=True, check=True)  # noqa: S603  our own program
    before = set(stand.site.folder.glob("counts.*"))
    subprocess.run(("callgrind_control", "--dump", pid), capture_output=True, check=True)  # noqa: S603, S607
    new = set(stand.site.folder.glob("counts.*")) - before
    return sum(total(file.read_text()) for file in new), msgspec.json.decode(done.stdout, type=Sample)


def total(dump: str) -> int:
    """Return the instructions that a dump of callgrind tells of."""
    found_totals = _TOTALS.findall(dump)
    return int(found_totals[-1]) if found_totals else 0


def gate(counts: dict[str, int], allowed: dict[str, int]) -> list[str]:
    """Return what is more than 5 % above what is allowed, a line for each."""
    return [
        f"{name}: {counts[name]:,} instructions, allowed are {limit:,} and 5 %"
        for name, limit in allowed.items()
        if counts.get(name, 0) > limit * TOLERANCE
    ]


def read(path: Path) -> dict[str, dict[str, int]]:
    """Return the counts in the file `path`, by what counted them; none where there is no file."""
    return msgspec.json.decode(path.read_bytes(), type=dict[str, dict[str, int]]) if path.exists() else {}


def write(path: Path, by: Counter, counts: dict[str, int]) -> None:
    """Write what `by` counted over what it had counted before; what it did not count now stays."""
    old = read(path)
    made = {**old, by: {**old.get(by, {}), **counts}}
    path.write_bytes(msgspec.json.format(msgspec.json.encode(made), indent=2) + b"\n")


def told(counts: dict[str, int], by: Counter) -> str:
    """Return the counts as lines of text."""
    what = "process and kernel" if by == "perf" else "the process alone, as callgrind counts"
    lines = [f"thousand instructions of {what}; Python {sys.version.split()[0]}"]
    for name, count in counts.items():
        goal = f"   (goal, with the kernel's: {GOALS[name] / 1000:,.0f})" if name in GOALS else ""
        lines.append(f"{name:>20} {count / 1000:>10,.1f}{goal}")
    return "\n".join(lines) + "\n"
