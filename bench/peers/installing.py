"""Installs the peers at the versions and hashes that are locked beside this file, each into a folder of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Final

from bench.processes import found

HERE: Final = Path(__file__).parent
STAMP: Final = "installed"
NODE_LOCKS: Final = ("package.json", "package-lock.json")
LONGEST_REASON: Final = 120


class MissingError(Exception):
    """It cannot be installed; the text says why, in a few words."""


def from_pypi(name: str, folder: Path) -> Path:
    """Install what `NAME.txt` locks into an environment of its own; return where that is.

    Raises:
        MissingError: it cannot be installed here.
    """
    place, lock = folder / name, HERE / f"{name}.txt"
    if not _is_there(place, lock):
        shutil.rmtree(place, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(place)])
        pip = [str(place / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
        _run([*pip, "--quiet", "--require-hashes", "--no-deps", "--only-binary", ":all:", "-r", str(lock)])
        _note(place, lock)
    return place


def from_npm(folder: Path) -> Path:
    """Install what `package-lock.json` locks; return the folder of the packages. No package runs a script of its own.

    Raises:
        MissingError: they cannot be installed here, or there is no Node.
    """
    place, lock = folder / "node", HERE / "package-lock.json"
    if found("node") is None or found("npm") is None:
        raise MissingError("there is no Node here: install nodejs and npm")
    if not _is_there(place, lock):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        for file in NODE_LOCKS:
            shutil.copy(HERE / file, place)
        _run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], place)
        _note(place, lock)
    return place / "node_modules"


def _run(command: list[str], folder: Path | None = None) -> None:
    """Run a command.

    Raises:
        MissingError: it failed.
    """
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False, text=True)  # noqa: S603  our own
    if done.returncode:
        said = [line for line in (done.stderr + done.stdout).splitlines() if "rror" in line]
        reason = said[0].strip() if said else f"exit code {done.returncode}"
        raise MissingError(f"it cannot be installed: {reason}"[:LONGEST_REASON])


def _is_there(place: Path, lock: Path) -> bool:
    stamp = place / STAMP
    return stamp.exists() and stamp.read_text(encoding="ascii") == _digest(lock)


def _note(place: Path, lock: Path) -> None:
    (place / STAMP).write_text(_digest(lock), encoding="ascii")


def _digest(lock: Path) -> str:
    return sha256(lock.read_bytes()).hexdigest()
