"""The benchmark of the gateway: Xenoglot, nginx and no gateway at all, in turns, in front of one mock (`make bench`).

Without options the goals alone are measured, in some minutes; `bench/README.md` says how, and what the figures mean.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from bench import instructions, report
from bench.gateways import LEDGER, USUAL, XENOGLOT, Gateway
from bench.measuring import Result, Settings, measured, mocked, standing
from bench.processes import Cores, many_files, needed
from bench.scenarios import EVERY, GOALS, MATRIX, Scenario
from bench.starting import Begun, begun, imported
from xenoglot.dialect_registry import names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.gateways import Site

OUT: Final = Path(".venv/bench")
DOCS: Final = Path("docs/performance.md")
IMAGES: Final = Path("docs/performance")
BUSY: Final = 0.5
"""The load average above which figures are not to be trusted."""

STANDING: Final = msgspec.structs.replace(XENOGLOT, slow_to_start=True)
"""For the matrix: 162 short windows, and one start."""

GATE: Final = Path(__file__).with_name("gate.json")
COUNTS: Final = "instructions.json"
"""In the folder for results: what the last run with `--instructions` found."""

BEGIN: Final = "<!-- figures -->\n"
END: Final = "<!-- end of figures -->\n"


class Report(Struct, frozen=True):
    """All that a run found."""

    machine: dict[str, str]
    results: list[Result]
    starts: list[Begun]
    import_ms: float | None = None
    counts: dict[str, dict[str, int]] = {}


def machine() -> dict[str, str]:
    """Return what the figures depend on."""
    processor = next(
        (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "unknown"
    )
    return {
        "processor": processor,
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "load before": f"{os.getloadavg()[0]:.2f}",
    }


def _lines(path: str) -> list[str]:
    file = Path(path)
    return file.read_text().splitlines() if file.exists() else []


def run(gateways: Sequence[Gateway], scenarios: Sequence[Scenario], shared: Site, settings: Settings) -> list[Result]:
    """Measure `gateways` in each of `scenarios`; those that start slowly run all the while."""
    results: list[Result] = []
    with ExitStack() as stack:
        slow = [each for each in gateways if each.slow_to_start]
        running = [stack.enter_context(standing(each, shared, settings)) for each in slow]
        for scenario in scenarios:
            here = measured(scenario, gateways, shared, settings, running)
            sys.stdout.write(
                report.table(report.HEADS, [report.cells(row) for row in report.rows([scenario], here)]) + "\n"
            )
            sys.stdout.flush()
            results += here
    return results


def chosen(options: argparse.Namespace) -> tuple[Scenario, ...]:
    """Return the scenarios that the command line asks for.

    Raises:
        SystemExit: there is none of a name.
    """
    if options.matrix:
        return MATRIX
    known = {scenario.name: scenario for scenario in (*EVERY, *MATRIX)}
    if options.only:
        unknown = [name for name in options.only if name not in known]
        if unknown:
            sys.exit(f"there is no scenario {', '.join(unknown)}; --list tells all")
        return tuple(known[name] for name in options.only)
    return EVERY if options.all else GOALS


def main() -> int:
    """Run what the command line asks for; the exit code is 1 where a gate does not hold."""
    options = _parser().parse_args()
    if options.list:
        sys.stdout.write("".join(f"{each.name:28} {each.title}\n" for each in (*EVERY, *MATRIX)))
        return 0
    needed("taskset", *(() if options.instructions or options.ledger else ("nginx",)))
    many_files()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        settings = Settings(
            rounds=options.rounds,
            seconds=options.seconds,
            tools=options.tools,
            folder=Path(options.keep or folder).absolute(),
            cores=Cores.here(),
        )
        with mocked(settings) as site:
            return _count(options, site, settings) if options.instructions else _measure(options, site, settings)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="every scenario, and the matrix of dialects")
    parser.add_argument("--matrix", action="store_true", help="the matrix of dialects alone")
    parser.add_argument("--only", action="append", metavar="NAME", help="one scenario; may be said again")
    parser.add_argument("--ledger", action="store_true", help="Xenoglot without and with a ledger, and nothing else")
    parser.add_argument("--list", action="store_true", help="tell the names of all scenarios")
    parser.add_argument("--rounds", type=int, default=3, help="windows of each gateway in each scenario (3)")
    parser.add_argument("--seconds", type=float, default=1.5, help="of each window (1.5)")
    parser.add_argument("--docs", action="store_true", help="write the tables and plots into docs/performance.md")
    parser.add_argument("--out", type=Path, default=OUT, help=f"folder for results.json and plots ({OUT})")
    parser.add_argument("--tools", type=Path, default=OUT, help=f"where upstream and load were built ({OUT})")
    parser.add_argument("--keep", metavar="FOLDER", help="set the gateways up there, and leave their files")
    parser.add_argument("--instructions", action="store_true", help="count instructions in place of time")
    parser.add_argument(
        "--gate", action="store_true", help="with --instructions: fail at more than bench/gate.json allows"
    )
    parser.add_argument("--set-gate", action="store_true", help="with --instructions: write bench/gate.json")
    return parser


def _measure(options: argparse.Namespace, site: Site, settings: Settings) -> int:
    scenarios = chosen(options)
    about = machine()
    if os.getloadavg()[0] > BUSY:
        sys.stderr.write(
            "This machine is busy: what waits for the processor is delayed, and tokens then travel together.\n"
        )
    gateways = (STANDING,) if options.matrix else (XENOGLOT, LEDGER) if options.ledger else USUAL
    results = run(gateways, scenarios, site, settings)
    if options.all:
        results += run((STANDING,), MATRIX, site, msgspec.structs.replace(settings, rounds=1))
        scenarios += MATRIX
    starts, import_ms = list[Begun](), None
    if not options.only and not options.matrix and not options.ledger:
        starts = [begun(gateway, site, settings) for gateway in gateways if gateway.start]
        import_ms = imported()
    counts = instructions.read(options.out / COUNTS)
    _tell(Report(about, results, starts, import_ms, counts), scenarios, options)
    return 0


def _tell(found: Report, scenarios: Sequence[Scenario], options: argparse.Namespace) -> None:
    goals = _goals(found, scenarios)
    if goals:
        sys.stdout.write(report.table(report.GOAL_HEADS, report.goal_cells(goals)))
    made = report.rows(scenarios, found.results)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "results.json").write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1))
    folders = [options.out, IMAGES] if options.docs else [options.out]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        for name, image in report.charts(scenarios, made).items():
            (folder / f"{name}.svg").write_text(image)
    if options.docs:
        DOCS.write_text(between(DOCS.read_text(), document(found, scenarios)))


def _goals(found: Report, scenarios: Sequence[Scenario]) -> list[report.Verdict]:
    goals = report.verdicts(scenarios, report.rows(scenarios, found.results))
    ours = next((each for each in found.starts if each.gateway == XENOGLOT.name), None)
    if ours is not None and found.import_ms is not None:
        goals += report.start_verdicts(ours, found.import_ms)
    return goals


def document(found: Report, scenarios: Sequence[Scenario]) -> str:
    """Return the tables of a run in Markdown."""
    made = report.rows(scenarios, found.results)
    pairs = [(client, upstream) for client in names() for upstream in names()]
    main = [row for row in made if not _in_matrix(row.scenario)]
    about = "; ".join(f"{name}: {value}" for name, value in found.machine.items())
    parts = [f"{about}.\n", report.sections(_goals(found, scenarios)), "### All figures\n"]
    starts = [[each.gateway, "", f"{each.seconds:.3f}", f"{each.idle_mb:.0f}"] for each in found.starts]
    if starts:
        parts.append(report.markdown(("gateway", "", "start to first 200, s", "idle, MB"), starts))
    parts += [_counted(by, counts) for by, counts in found.counts.items()]
    parts.append(report.markdown(report.HEADS, [report.cells(row) for row in main]))
    if len(main) < len(made):
        parts.append("µs CPU for a request:\n\n" + report.markdown(*report.matrix(made, pairs), words=1))
        parts.append(
            "µs CPU for a token, un-paced:\n\n" + report.markdown(*report.matrix(made, pairs, "-stream"), words=1)
        )
    parts += [f"![{name}](performance/{name}.svg)\n" for name in report.charts(scenarios, made)]
    return "\n".join(parts)


def _counted(by: str, counts: dict[str, int]) -> str:
    body = [[name, by, f"{count / 1000:,.1f}"] for name, count in counts.items()]
    return report.markdown(("instructions", "counted by", "thousand"), body)


def _in_matrix(name: str) -> bool:
    return any(name == scenario.name for scenario in MATRIX)


def between(page: str, text: str) -> str:
    """Return `page` with `text` between its marks."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}"


def _count(options: argparse.Namespace, site: Site, settings: Settings) -> int:
    by = instructions.counter()
    items = [each for each in instructions.COUNTED if not options.only or each.scenario.name in options.only]
    counts = instructions.counted(site, settings, chosen=items)
    sys.stdout.write(instructions.told(counts, by))
    if options.ledger:
        recorded = instructions.counted(site, settings, LEDGER, items)
        sys.stdout.write("with the ledger: " + instructions.told(recorded, by))
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    for file in (options.out / COUNTS, GATE) if options.set_gate else (options.out / COUNTS,):
        instructions.write(file, by, counts)
    broken = instructions.gate(counts, instructions.read(GATE).get(by, {})) if options.gate else []
    sys.stdout.write("".join(f"{line}\n" for line in broken))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
