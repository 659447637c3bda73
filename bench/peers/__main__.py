"""Xenoglot and nginx beside other gateways, in the same scenarios and the same turns (`make bench-peers`).

Each is installed at a locked version, started once, and asked. What cannot be installed, does not start or does not
answer stands in the table with the reason.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from bench import report
from bench.gateway import OUT, run
from bench.gateways import CLIENT_KEY, NGINX, XENOGLOT
from bench.measuring import Result, Settings, mocked, standing
from bench.peers.installing import MissingError
from bench.peers.peers import CHAT, PEERS
from bench.plot import bars
from bench.processes import Cores, ask, many_files, needed
from bench.scenarios import EVERY, Scenario
from bench.wires import question, small

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.gateways import Gateway, Site
    from bench.peers.peers import Peer

SCENARIOS: Final = ("verbatim", "translated", "agent", "unpaced", "paced-64", "paced-256")
INSTALLED: Final = Path(".venv/peers")
FINE: Final = 200
CLIENTS: Final = ("chat", "messages")


def able(peer: Peer, place: Path, shared: Site, settings: Settings) -> Gateway | str:
    """Return the gateway of a peer that answers; else why it does not."""
    gateway = peer.gateway(place, shared)
    model = gateway.models.get(CHAT, CHAT)
    try:
        with standing(gateway, shared, settings) as stand:
            asked = [question(one, small(one, model=model), CLIENT_KEY) for one in CLIENTS if gateway.offers(one, CHAT)]
            statuses = [ask(stand.port(), one, gateway.headers) for one in asked]
    except (TimeoutError, OSError) as error:
        return f"it does not start: {error}"
    return gateway if FINE in statuses else f"it answers {', '.join(map(str, statuses))}"


def gathered(peers: Sequence[Peer], folder: Path, shared: Site, settings: Settings) -> dict[str, Gateway | str]:
    """Return each peer's gateway by its name; in place of one that is not to be had, the reason."""
    found: dict[str, Gateway | str] = {}
    for peer in peers:
        sys.stderr.write(f"{peer.name}: installing and trying\n")
        try:
            found[peer.name] = able(peer, peer.install(folder), shared, settings)
        except MissingError as error:
            found[peer.name] = str(error)
    return found


def measured(chosen: Sequence[Scenario], peers: Sequence[Peer], folder: Path, settings: Settings) -> list[Result]:
    """Measure nginx, Xenoglot and the peers; tell of those that are not to be had."""
    with mocked(settings) as site:
        found = gathered(peers, folder, site, settings)
        gateways = [each for each in found.values() if not isinstance(each, str)]
        results = run([NGINX, XENOGLOT, *gateways], chosen, site, settings)
    missing = {name: reason for name, reason in found.items() if isinstance(reason, str)}
    return results + [
        Result(scenario.name, name, reason=reason) for scenario in chosen for name, reason in missing.items()
    ]


def main() -> None:
    """Read the flags, measure, and tell."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--only", action="append", metavar="NAME", help="one scenario; may be said again")
    parser.add_argument(
        "--peer", action="append", metavar="WORD", help="a peer whose name holds this; may be said again"
    )
    parser.add_argument("--rounds", type=int, default=2, help="windows of each gateway in each scenario (2)")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each window (3)")
    parser.add_argument("--out", type=Path, default=OUT, help=f"folder for peers.json, peers.md and a plot ({OUT})")
    parser.add_argument("--tools", type=Path, default=OUT, help=f"where upstream and load were built ({OUT})")
    parser.add_argument("--installed", type=Path, default=INSTALLED, help=f"where peers are installed ({INSTALLED})")
    options = parser.parse_args()
    needed("taskset", "nginx")
    many_files()
    names = options.only or SCENARIOS
    chosen = [scenario for scenario in EVERY if scenario.name in names]
    peers = [peer for peer in PEERS if not options.peer or any(word in peer.name for word in options.peer)]
    with tempfile.TemporaryDirectory(prefix="bench-peers-") as folder:
        settings = Settings(
            rounds=options.rounds,
            seconds=options.seconds,
            tools=options.tools,
            folder=Path(folder),
            cores=Cores.here(),
        )
        results = measured(chosen, peers, options.installed.absolute(), settings)
    tell(chosen, results, options.out)


def tell(chosen: Sequence[Scenario], results: Sequence[Result], out: Path) -> None:
    """Print the table, and write it, its figures and a chart of them into `out`."""
    rows = report.rows(chosen, results)
    body = [report.cells(row) for row in rows]
    sys.stdout.write(report.table(report.HEADS, body))
    out.mkdir(parents=True, exist_ok=True)
    (out / "peers.json").write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")
    (out / "peers.md").write_text(report.markdown(report.HEADS, body), encoding="utf-8")
    drawn: dict[str, dict[str, float | None]] = {}
    titles = {scenario.name: scenario.title for scenario in chosen}
    for row in rows:
        drawn.setdefault(row.gateway, {})[titles[row.scenario]] = row.ratio
    chart = bars("CPU, times nginx", "times nginx (logarithmic)", drawn, log=True)
    (out / "peers.svg").write_text(chart, encoding="utf-8")


if __name__ == "__main__":
    main()
