"""From samples to figures: medians over rounds, ratios to nginx of the same round, the goals, and their tables."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from bench.plot import Mark, Series, bars, lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from bench.measuring import Result, Sample
    from bench.scenarios import Goal, Measure, Scenario
    from bench.starting import Begun

BASE: Final = "nginx"
"""The gateway that the others are compared with."""

OURS: Final = "xenoglot"

START_GOALS: Final = {"start": 0.25, "idle": 40.0, "import": 100.0}
"""Seconds from spawning to the first 200, megabytes when idle after it, milliseconds of `import xenoglot`."""

HEADS: Final = (
    "scenario",
    "gateway",
    "µs CPU",
    "loop µs",
    "x nginx",
    "per s",
    "p50 µs",
    "p99 µs",
    "first p50",
    "MB",
    "errors",
)
_TEXTS: Final = 2
"""The columns from the left that hold words."""


class Row(Struct, frozen=True, kw_only=True):
    """The figures of one gateway in one scenario: medians over the rounds, of memory the largest, of errors the sum.

    `cpu_us` is for each request or token, `loop_us` the part of it in the thread of the event loop; `ratio` is that of
    `cpu_us` to nginx in the same round; `p50` and `p99` are how long a token took from the mock to the client or, of
    whole answers, a request to its answer; `first` is a stream's first token. All in microseconds.
    """

    scenario: str
    gateway: str
    cpu_us: float | None = None
    loop_us: float | None = None
    ratio: float | None = None
    per_second: float = 0.0
    p50: float | None = None
    p99: float | None = None
    first: float | None = None
    rss_mb: float | None = None
    errors: int = 0
    reason: str | None = None


class Verdict(Struct, frozen=True):
    """A goal, what was found, and whether that is within it; `scenario` is the one that measures it, if one alone does.

    A goal that is not met is a target.
    """

    what: str
    found: str
    limit: str
    met: bool
    scenario: str = ""

    @property
    def command(self) -> str:
        """The command that measures it."""
        return f'make bench ARGS="--only {self.scenario}"' if self.scenario else "make bench"


def rows(scenarios: Iterable[Scenario], results: Sequence[Result]) -> list[Row]:
    """Return the figures of `results`, in the order of `scenarios`."""
    made: list[Row] = []
    for scenario in scenarios:
        here = [result for result in results if result.scenario == scenario.name]
        base = next((result.samples for result in here if result.gateway == BASE), ())
        made += [_row(scenario, result, base) for result in here]
    return made


def _row(scenario: Scenario, result: Result, base: Sequence[Sample]) -> Row:
    if not result.samples:
        return Row(scenario=scenario.name, gateway=result.gateway, reason=result.reason or "nothing was measured")
    samples = result.samples
    costs, base_costs = [_cost(scenario, s, s.cpu_ns) for s in samples], [_cost(scenario, s, s.cpu_ns) for s in base]
    pairs = [ours / theirs for ours, theirs in zip(costs, base_costs, strict=False) if ours and theirs]
    return Row(
        scenario=scenario.name,
        gateway=result.gateway,
        cpu_us=_median(costs),
        loop_us=_median([_cost(scenario, sample, sample.loop_ns) for sample in samples]),
        ratio=_median(pairs),
        per_second=statistics.median(_units(scenario, sample) / sample.seconds for sample in samples),
        p50=_median([_latency(scenario, sample, 0.5) for sample in samples]),
        p99=_median([_latency(scenario, sample, 0.99) for sample in samples]),
        first=_median([sample.first_us.p50 if sample.first_us else None for sample in samples]),
        rss_mb=max(sample.rss_kb for sample in samples) / 1024 or None,
        errors=sum(sum(sample.errors.values()) for sample in samples),
    )


def _units(scenario: Scenario, sample: Sample) -> int:
    return sample.tokens if scenario.stream else sample.answers


def _cost(scenario: Scenario, sample: Sample, nanoseconds: int) -> float | None:
    """Return microseconds for each request or token; `None` if there was none, or nothing was watched."""
    units = _units(scenario, sample)
    return nanoseconds / units / 1000 if units and nanoseconds else None


def _latency(scenario: Scenario, sample: Sample, part: float) -> float | None:
    spread = sample.token_us if scenario.stream else sample.request_us
    if spread is None:
        return None
    return spread.p99 if part > 0.5 else spread.p50  # noqa: PLR2004  the median


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def verdicts(scenarios: Iterable[Scenario], made: Sequence[Row]) -> list[Verdict]:
    """Return each goal of `scenarios` that something was found of."""
    found: list[Verdict] = []
    for scenario in scenarios:
        ours = next((row for row in made if row.scenario == scenario.name and row.gateway == OURS), None)
        if ours is None:
            continue
        found += (_verdict(scenario, goal, ours) for goal in scenario.goals)
    return found


def _verdict(scenario: Scenario, goal: Goal, row: Row) -> Verdict:
    value = _value(scenario, goal.measure, row)
    what = f"{scenario.title}: {_WORDS[goal.measure]}"
    word = "at least" if goal.least else "at most"
    if value is None:
        return Verdict(what, row.reason or "-", f"{word} {goal.limit:g}", met=False, scenario=scenario.name)
    return Verdict(what, figure(value), f"{word} {goal.limit:g}", met=goal.met(value), scenario=scenario.name)


def figure(value: float) -> str:
    """Return `value` with three digits, or all those before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"  # noqa: PLR2004  three digits


_WORDS: Final[Mapping[Measure, str]] = {
    "ratio": "CPU, times nginx",
    "cpu_us": "µs CPU",
    "delivered": "delivered of what was offered",
    "token_p99_us": "µs from the mock to the client, p99",
    "rss_mb": "MB",
}


def _value(scenario: Scenario, measure: Measure, row: Row) -> float | None:
    match measure:
        case "ratio":
            return row.ratio
        case "cpu_us":
            return row.cpu_us
        case "delivered":
            return row.per_second * scenario.pace_us / 1e6 / scenario.connections
        case "token_p99_us":
            return row.p99
        case "rss_mb":
            return row.rss_mb


def start_verdicts(begun: Begun, import_ms: float) -> list[Verdict]:
    """Return how the start holds to its goals."""
    found = {"start": begun.seconds, "idle": begun.idle_mb, "import": import_ms}
    words = {"start": "process start to first 200, s", "idle": "idle memory, MB", "import": "import xenoglot, ms"}
    return [
        Verdict(words[name], figure(value), f"at most {START_GOALS[name]:g}", met=value <= START_GOALS[name])
        for name, value in found.items()
    ]


def cells(row: Row) -> list[str]:
    """Return `row` as the words of a table, under `HEADS`."""
    if row.reason:
        return [row.scenario, row.gateway, row.reason, *[""] * (len(HEADS) - 3)]
    figures = (row.cpu_us, row.loop_us, row.ratio, row.per_second, row.p50, row.p99, row.first, row.rss_mb)
    shown = ["-" if value is None else show(value) for value, show in zip(figures, _SHOW, strict=True)]
    return [row.scenario, row.gateway, *shown, str(row.errors or "")]


def _whole(value: float) -> str:
    return f"{value:,.0f}"


_SHOW: Final[tuple[Callable[[float], str], ...]] = (
    lambda value: f"{value:,.1f}",
    lambda value: f"{value:,.1f}",
    lambda value: f"{value:.2f}",
    _whole,
    _whole,
    _whole,
    _whole,
    _whole,
)


def table(heads: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Return a table for a terminal."""
    widths = [max(len(line[column]) for line in (heads, *body)) for column in range(len(heads))]
    return "".join(
        "  ".join(
            cell.ljust(width) if place < _TEXTS else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        + "\n"
        for line in (heads, *body)
    )


def markdown(heads: Sequence[str], body: Sequence[Sequence[str]], words: int = _TEXTS) -> str:
    """Return a table for the documentation, whose first columns are `words`, the others figures."""
    rule = ["---" if place < words else "---:" for place in range(len(heads))]
    return "".join("| " + " | ".join(line) + " |\n" for line in (heads, rule, *body))


GOAL_HEADS: Final = ("goal", "limit", "found", "met")


def goal_cells(found: Sequence[Verdict]) -> list[list[str]]:
    """Return goals as the words of a table, under `GOAL_HEADS`."""
    return [[each.what, each.limit, each.found, "yes" if each.met else "NO"] for each in found]


PAGE_HEADS: Final = ("what", "limit", "command", "measured")


def sections(found: Sequence[Verdict]) -> str:
    """Return the goals that are met and the targets that are not as two sections of a page."""
    parts = []
    for title, met in (("Goals that are met", True), ("Targets that are not met", False)):
        cells = [[each.what, each.limit, f"`{each.command}`", each.found] for each in found if each.met is met]
        table = markdown(PAGE_HEADS, cells, words=3) if cells else "None.\n"
        parts.append(f"### {title}\n\n{table}")
    return "\n".join(parts)


def matrix(
    made: Sequence[Row], pairs: Sequence[tuple[str, str]], suffix: str = ""
) -> tuple[list[str], list[list[str]]]:
    """Return µs of Xenoglot for each unit: a line for each client's dialect, a column for each upstream's."""
    by_name = {row.scenario: row for row in made if row.gateway == OURS}
    dialects = sorted({client for client, _ in pairs})
    body = [
        [client, *(_cost_cell(by_name.get(f"{client}-{upstream}{suffix}")) for upstream in dialects)]
        for client in dialects
    ]
    return ["client \\ upstream", *dialects], body


def _cost_cell(row: Row | None) -> str:
    if row is None or row.cpu_us is None:
        return "-"
    return f"{row.cpu_us:.1f}" + ("!" if row.errors else "")


def charts(scenarios: Sequence[Scenario], made: Sequence[Row]) -> dict[str, str]:
    """Return SVG images by name: cost of each scenario by gateway, and cost by number of connections."""
    names = {scenario.name: scenario.title for scenario in scenarios if scenario.goals}
    cost = {title: _by_gateway(name, made) for name, title in names.items()}
    drawn = {"cost": bars("µs CPU for each request or token", "µs", {k: v for k, v in cost.items() if v}, log=True)}
    ratios = {title: {OURS: _ratio(name, made)} for name, title in names.items() if _ratio(name, made) is not None}
    if ratios:
        drawn["ratio"] = bars("CPU of Xenoglot, times nginx", "times", ratios, mark=Mark(1.0, "nginx"))
    for base in ("verbatim", "translated"):
        series = _by_connections(f"{base}-c", made)
        if series:
            drawn[f"{base}-connections"] = lines(
                f"{base}, whole: µs CPU by connections", "connections", "µs", series, log=True
            )
    return drawn


def _by_gateway(name: str, made: Sequence[Row]) -> dict[str, float | None]:
    return {row.gateway: row.cpu_us for row in made if row.scenario == name and row.cpu_us is not None}


def _ratio(name: str, made: Sequence[Row]) -> float | None:
    return next((row.ratio for row in made if row.scenario == name and row.gateway == OURS), None)


def _by_connections(prefix: str, made: Sequence[Row]) -> list[Series]:
    points: dict[str, list[tuple[float, float]]] = {}
    for row in made:
        if row.scenario.startswith(prefix) and row.cpu_us is not None:
            count = float(row.scenario.removeprefix(prefix))
            points.setdefault(row.gateway, []).append((count, row.cpu_us))
    return [Series(name, sorted(found)) for name, found in points.items()]
