"""`make install` and `make serve` as a user sees them: a few lines, and pip's own words only where it fails."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.architecture.tree import ROOT
from tests.gateway.running_gateway import TIMEOUT

if TYPE_CHECKING:
    from pathlib import Path

# Stands for Python: it makes an environment, and its pip is as noisy as the real one, or fails as $PIP_FAILS says.
PYTHON = """#!/bin/sh
case "$*" in
*version_info*) echo 3.11 ;;
*ensurepip*) ;;
*"venv --clear"*) for target; do :; done; mkdir -p "$target/bin"; cp "$0" "$target/bin/python" ;;
*"pip"*"install"*)
    for line in $(seq 150); do echo "Collecting package $line"; done
    echo "Ignoring async-timeout: markers do not match" >&2
    [ -z "$PIP_FAILS" ] || { echo "ERROR: $PIP_FAILS" >&2; exit 7; }
    bin=$(dirname "$0"); echo '#!/bin/sh' > "$bin/xenoglot"; echo 'echo "xenoglot $*"' >> "$bin/xenoglot"
    chmod +x "$bin/xenoglot" ;;
*) exit 99 ;;
esac
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What `make install` needs of a clone, and a Python that needs no network."""
    clone = tmp_path / "clone"
    for name in ("scripts", "requirements"):
        shutil.copytree(ROOT / name, clone / name)
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, clone / name)
    python = tmp_path / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    return clone


def make(clone: Path, *arguments: str, fails: str = "") -> subprocess.CompletedProcess[str]:
    """Run one target, its output in one stream as on a terminal."""
    return subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=clone,
        env={"PATH": "/usr/bin:/bin", "PYTHON": str(clone.parent / "python"), "PIP_FAILS": fails},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )


def test_installing_takes_two_lines_and_serving_two_more(clone: Path) -> None:
    done = make(clone, "serve", "ARGS=--port 9000")
    assert (done.returncode, done.stdout.splitlines()) == (
        0,
        [
            f"Making .venv with Python 3.11 ({clone.parent / 'python'})",
            "Installing Xenoglot and what it runs on: up to a minute (log: .venv/install.log)",
            "xenoglot pull",
            "xenoglot serve --port 9000",
        ],
    )
    log = (clone / ".venv" / "install.log").read_text()
    assert (log.count("Collecting package 150\n"), log.count("$ .venv/bin/python -m pip ")) == (2, 2)
    assert make(clone, "install").stdout == "make: Nothing to be done for 'install'.\n"


def test_what_failed_is_shown_with_its_log(clone: Path) -> None:
    done = make(clone, "install", fails="No matching distribution found")
    lines = done.stdout.splitlines()
    assert (done.returncode, len(lines)) == (2, 2 + 30 + 1 + 1)
    assert lines[-4:-1] == [
        "Ignoring async-timeout: markers do not match",
        "ERROR: No matching distribution found",
        "error: exit code 7; complete log: .venv/install.log",
    ]
    assert "Collecting package 1\n" in (clone / ".venv" / "install.log").read_text()
    assert make(clone, "install").returncode == 0


def test_a_log_goes_on_and_shows_its_own_part_alone(tmp_path: Path) -> None:
    quiet, log = ROOT / "scripts" / "quiet", tmp_path / "logs" / "a.log"
    first = subprocess.run([quiet, log, "echo", "one"], capture_output=True, text=True, check=False)
    second = subprocess.run([quiet, log, "sh", "-c", "echo two; exit 3"], capture_output=True, text=True, check=False)
    assert (first.returncode, first.stdout, first.stderr) == (0, "", "")
    assert (second.returncode, second.stdout, second.stderr) == (
        3,
        "",
        f"two\nerror: exit code 3; complete log: {log}\n",
    )
    assert log.read_text() == "$ echo one\none\n$ sh -c echo two; exit 3\ntwo\n"
