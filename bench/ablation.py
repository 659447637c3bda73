"""What each shortcut is worth: the gateway without sockets, with all shortcuts, and with each group of them off.

`python -m bench.ablation` measures processor time of a request or a token in some scenarios. One round measures every
variant once, in turns, in one process, so that whatever else the machine does falls on all. What counts is the least of
all rounds, for noise only ever adds, and the ratio to the same run with all shortcuts on.

`--gate` compares the ratios with `ablation.json`: a group that is worth less than it was there, by more than the
tolerance, has lost a shortcut, or the shortcut has become slower. What seems so is measured again, up to three times.
Time itself is compared with nothing.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from bench.inmemory import Load, asked, spent, whole
from bench.pieces import told
from bench.samples import MODEL, agent, answer, small, written
from xenoglot.dialect_registry import get
from xenoglot.model.request import Request
from xenoglot.shortcuts import GROUPS, SHORTCUTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xenoglot.shortcuts import Group

    Ratios = dict[str, dict[str, float]]

BASELINE: Final = Path(__file__).with_name("ablation.json")
DOCS: Final = Path("docs/performance.md")
BEGIN: Final = "<!-- ablation -->\n"
END: Final = "<!-- end of ablation -->\n"

ALL_ON: Final = "none"
ALL_OFF: Final = "all"
VARIANTS: Final[dict[str, tuple[Group, ...]]] = {
    ALL_ON: (),
    **{group: (group,) for group in GROUPS},
    ALL_OFF: GROUPS,
}
"""What is off in each: nothing, one group, everything."""

TOLERANCE: Final = 0.15
"""Of a ratio. Repeated runs on a busy machine differ by about 6 %."""
WORTH: Final = 1.1
"""The ratio from which on the gate holds a group to the baseline: what is less may be noise."""
ATTEMPTS: Final = 3
TOKENS: Final = 500
"""Of a stream: so many that its head counts for little."""
MICROSECONDS: Final = 1e6


class Scenario(Struct, frozen=True):
    """What is measured: one request again and again; of a stream each of the `TOKENS` is a read of its own."""

    name: str
    client: str
    upstream: str
    request: Request
    times: int

    def seconds(self) -> float:
        """Return the seconds of CPU of a request, or of a token of a stream, measured once."""
        dialect, stream = get(self.client), self.request.stream
        path = ((dialect.stream_path or dialect.path) if stream else dialect.path).replace("{model}", MODEL)
        reply = told(self.upstream, TOKENS) if stream else whole(answer(self.upstream).body)
        load = Load(self.upstream, asked(path, written(self.client, self.request)), reply, stream, connections=8)
        (taken,) = spent(load, self.times, 1)
        return taken / TOKENS if stream else taken


def scenarios() -> tuple[Scenario, ...]:
    """Return what is measured."""
    stream = small(stream=True)
    return (
        Scenario("passthrough, 1 kB", "chat", "chat", small(), 16),
        Scenario("translated, 1 kB", "messages", "chat", small(), 16),
        Scenario("translated, agent", "messages", "chat", agent(), 2),
        Scenario("passthrough, token", "chat", "chat", stream, 2),
        Scenario("translated, token", "messages", "chat", stream, 2),
    )


Taken = dict[str, dict[str, list[float]]]
"""Seconds of each round, by variant and scenario."""


def measured(chosen: Sequence[Scenario], variants: Sequence[str], rounds: int) -> Taken:
    """Measure every variant in every scenario, in turns, so many times."""
    taken: Taken = {variant: {scenario.name: [] for scenario in chosen} for variant in variants}
    before = SHORTCUTS.off
    gc.collect()
    gc.freeze()  # as the gateway does when it has started
    try:
        for number in range(rounds):
            first = number % len(variants)
            turned = [*variants[first:], *variants[:first]]
            for scenario in chosen:
                for variant in turned:
                    SHORTCUTS.turn_off(VARIANTS[variant])
                    taken[variant][scenario.name].append(scenario.seconds())
    finally:
        SHORTCUTS.turn_off(before)
    return taken


def ratios(taken: Taken) -> Ratios:
    """Return what each variant costs for each second with all shortcuts on."""
    base = taken[ALL_ON]
    return {
        variant: {name: round(min(seconds) / min(base[name]), 3) for name, seconds in by_name.items()}
        for variant, by_name in taken.items()
        if variant != ALL_ON
    }


def broken(found: Ratios, baseline: Ratios, tolerance: float) -> list[str]:
    """Return where a group is worth less than in the baseline, by more than the tolerance; a line for each."""
    lines = []
    for variant, by_name in baseline.items():
        for name, ratio in by_name.items():
            if ratio < WORTH:
                continue
            now = found.get(variant, {}).get(name)
            if now is None:
                lines.append(f"{variant} off, {name}: not measured, {ratio:.2f} in the baseline")
            elif now < ratio * (1 - tolerance):
                lines.append(f"{variant} off, {name}: {now:.2f} times the cost, {ratio:.2f} in the baseline")
    return lines


def table(taken: Taken) -> str:
    """Return the figures as Markdown: microseconds with all shortcuts on, then what each group off adds."""
    names = list(taken[ALL_ON])
    rows = [["off", *names], ["---", *("--:" for _ in names)]]
    rows.append(["nothing, µs", *(f"{min(taken[ALL_ON][name]) * MICROSECONDS:,.1f}" for name in names)])
    for variant, by_name in ratios(taken).items():
        shown = "everything" if variant == ALL_OFF else f"`{variant}`"
        rows.append([shown, *(f"{(by_name[name] - 1) * 100:+.0f} %" for name in names)])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def read(path: Path) -> Ratios:
    """Return the ratios in a file; none where there is no file."""
    found: Mapping[str, dict[str, float]] = msgspec.json.decode(path.read_bytes(), type=dict) if path.exists() else {}
    return dict(found)


def main() -> int:
    """Measure; the exit code is 1 where the gate does not hold."""
    options = _parser().parse_args()
    chosen = [each for each in scenarios() if not options.only or any(word in each.name for word in options.only)]
    taken = measured(chosen, list(VARIANTS), options.rounds)
    text, found = table(taken), ratios(taken)
    sys.stdout.write(text)
    sys.stdout.write(f"\n{options.rounds} rounds; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    if options.docs:
        page = DOCS.read_text()
        before, _, rest = page.partition(BEGIN)
        DOCS.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}")
    if options.set_gate:
        BASELINE.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")
    return _gate(taken, chosen, options) if options.gate else 0


def _gate(taken: Taken, chosen: Sequence[Scenario], options: argparse.Namespace) -> int:
    baseline = {variant: _only(by_name, chosen) for variant, by_name in read(BASELINE).items()}
    wrong = broken(ratios(taken), baseline, options.tolerance)
    for _ in range(ATTEMPTS - 1):
        if not wrong:
            break
        taken = joined(taken, measured(chosen, list(VARIANTS), options.rounds))
        wrong = broken(ratios(taken), baseline, options.tolerance)
    sys.stdout.write("".join(f"{line}\n" for line in wrong))
    return 1 if wrong else 0


def joined(first: Taken, second: Taken) -> Taken:
    """Return the rounds of two runs."""
    return {
        variant: {name: [*seconds, *second[variant][name]] for name, seconds in by_name.items()}
        for variant, by_name in first.items()
    }


def _only(by_name: dict[str, float], chosen: Sequence[Scenario]) -> dict[str, float]:
    names = {scenario.name for scenario in chosen}
    return {name: ratio for name, ratio in by_name.items() if name in names}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("only", nargs="*", help="words: the scenarios whose names hold one of them; none: all")
    parser.add_argument("--rounds", type=int, default=6, help="rounds of every variant (6)")
    parser.add_argument("--docs", action="store_true", help="write the table into docs/performance.md")
    parser.add_argument("--gate", action="store_true", help="fail where a group is worth less than bench/ablation.json")
    parser.add_argument("--tolerance", type=float, default=TOLERANCE, help=f"of the gate, as a share ({TOLERANCE})")
    parser.add_argument("--set-gate", action="store_true", help="write bench/ablation.json")
    return parser


if __name__ == "__main__":
    sys.exit(main())
