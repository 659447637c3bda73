"""Run the published test suite of Open Responses against a gateway: `make compliance`.

    python -m drive.compliance

The gateway stands before a scripted upstream of each dialect, then before the embedded model. The suite is
fetched with git at a commit, whose id is its hash; `OPENRESPONSES` names another place to fetch it from, such as a
clone on this machine. The exit code is 1 if a case fails that an upstream can
hold, or if one passes that none can.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.matrix.all_dialects_gateway import AllDialectsGateway
from tests.matrix.embedded_gateway import EmbeddedGateway
from tests.matrix.open_responses import REFUSED, TEXT_ONLY, answer
from xenoglot import dialect_registry as dialects
from xenoglot.codec.json.json_io import decode_json

if TYPE_CHECKING:
    from collections.abc import Iterator

PLACE = Path(__file__).parent.parent.parent / ".venv" / "compliance"
SOURCE = "https://github.com/openresponses/openresponses"
COMMIT = "92c12d96d7b61d6d15e2214daa5e9c6000ab6e1c"
"""Of July 2026: 17 cases, and the specification of 2026-04-24."""

CASES = 100
"""Answers that an upstream has ready: more than the suite can want."""


def fetch_suite() -> Path:
    """Return the folder of the suite, fetched if it is not there at that commit."""
    folder = PLACE / "suite"
    folder.mkdir(parents=True, exist_ok=True)
    git = ["git", "-C", str(folder)]
    subprocess.run([*git, "init", "--quiet"], check=True)
    has_it = subprocess.run([*git, "cat-file", "-e", COMMIT], check=False, stderr=subprocess.DEVNULL).returncode == 0
    if not has_it:
        source = os.environ.get("OPENRESPONSES", SOURCE)
        subprocess.run([*git, "fetch", "--quiet", "--depth", "1", source, COMMIT], check=True)
    subprocess.run([*git, "-c", "advice.detachedHead=false", "checkout", "--quiet", "--force", COMMIT], check=True)
    return folder


def outcomes(suite: Path, url: str, model: str) -> dict[str, str]:
    """Return the errors of each case against `model`; empty for one that passed."""
    bun = str(PLACE / "node_modules" / ".bin" / "bun")
    arguments = ("--base-url", f"{url}/v1", "--api-key", "none", "--model", model, "--json")
    command = [bun, "bin/compliance-test.ts", *arguments]
    done = subprocess.run(command, cwd=suite, check=False, capture_output=True)
    if not done.stdout.lstrip().startswith(b"{"):
        sys.exit(f"The suite of Open Responses did not run: {done.stderr.decode()}")
    results = decode_json(done.stdout)["results"]
    failed = {result["id"] for result in results if result["status"] == "failed"}
    return {one["id"]: "; ".join(one["errors"]) or "failed" if one["id"] in failed else "" for one in results}


def each_failure(suite: Path) -> Iterator[tuple[str, str, str]]:
    """Yield upstream, case and error of each case that does not end as it should: refused in `REFUSED`, else passed."""
    structured, textual = AllDialectsGateway(), AllDialectsGateway(text_syntax="hermes", emulate={"tools": True})
    with structured, textual:
        for name in dialects.names():
            gateway = textual if name in TEXT_ONLY else structured
            gateway.speakers[name].script(*[answer] * CASES)
            for case, error in outcomes(suite, gateway.url, f"{name}-m").items():
                if bool(error) != ((name, case) in REFUSED):
                    yield name, case, error or "passes, although it is listed as refused"
    with EmbeddedGateway() as embedded:
        for case, error in outcomes(suite, embedded.url, "any").items():
            if error:
                yield "embedded", case, error


def main() -> int:
    """Print the failures and return the exit code."""
    found = 0
    for upstream, case, error in each_failure(fetch_suite()):
        found += 1
        sys.stdout.write(f"{upstream}\t{case}\t{error}\n")
    upstreams = f"{len(dialects.names())} dialects and the embedded model"
    sys.stdout.write(f"Open Responses at {COMMIT[:8]}: {found} failures over {upstreams}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
