"""`python -m tests.fuzz [--seconds 60] [TARGET ...]`: coverage-guided fuzzing, each target in a process of its own.

What crashes a target is left in `tests/fuzz/crashes/<target>/`, where the tests find it from then on.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

LAST = 4_000
"""Characters that are shown of what a crashed target said."""

AT_ONCE = 2
"""Processes: as many as a small machine has processors."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz; return how many targets crashed."""
    from tests.fuzz.targets import targets  # noqa: PLC0415  in the child, what is fuzzed is imported later

    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="how long each target is fuzzed (60)")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"any of {', '.join(targets())}; all of them")
    options = parser.parse_args(arguments)
    chosen = options.targets or list(targets())
    if unknown := sorted(set(chosen) - set(targets())):
        parser.error(f"no such target: {', '.join(unknown)}")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        ended = list(pool.map(lambda name: _fuzzed(name, options.seconds), chosen))
    crashed = [name for name, well in zip(chosen, ended, strict=True) if not well]
    say(f"{len(chosen)} targets, {len(crashed)} crashed: {', '.join(crashed) or 'none'}")
    return len(crashed)


def say(text: str) -> None:
    """Tell whoever waits."""
    print(text, flush=True)  # noqa: T201  a command line prints


def _fuzzed(name: str, seconds: int) -> bool:
    """Fuzz one target in a process of its own; return whether it stood."""
    command = [sys.executable, "-m", "tests.fuzz.child", name, str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    runs = [line for line in done.stderr.splitlines() if "DONE" in line or "Done" in line]
    say(f"{name}: {'stands' if done.returncode == 0 else 'CRASHED'} {runs[-1].strip() if runs else ''}")
    if done.returncode:
        say(done.stdout[-LAST:])
        say(done.stderr[-LAST:])
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
