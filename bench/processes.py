"""Processes that are measured: started on a core of their own, found with all their children, stopped at the end."""

from __future__ import annotations

import http.client
import os
import resource
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bench.wires import Question

START_SECONDS: Final = 60.0
STOP_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.002
_ASK_SECONDS: Final = 30.0
_FINE: Final = 200


class Cores(Struct, frozen=True):
    """Where the gateway runs, and where the mock and the load tool do."""

    gateway: int
    others: int

    @staticmethod
    def here() -> Cores:
        """Return the first two cores that this process may use; where there is but one, all share it."""
        usable = sorted(os.sched_getaffinity(0))
        return Cores(usable[0], usable[1] if len(usable) > 1 else usable[0])


def many_files() -> None:
    """Let this process and its children open as many files as the system allows."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def on_core(core: int, command: Sequence[str]) -> list[str]:
    """Return `command` pinned to `core`."""
    return ["taskset", "-c", str(core), *command]


@contextmanager
def running(
    command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run `command` until the block is left, with what it prints in the file `log`."""
    with log.open("ab") as file:
        process = subprocess.Popen(  # noqa: S603  our own commands
            command, stdout=file, stderr=file, env={**os.environ, **(environment or {})}, start_new_session=True
        )
    try:
        yield process
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def family(pid: int) -> list[int]:
    """Return `pid` and every process that descends from it."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, new = [pid], [pid]
    while new:
        new = [child for parent in new for child in children.get(parent, ())]
        found += new
    return found


def memory_mb(pids: Sequence[int]) -> float:
    """Return the resident memory of `pids` together, in megabytes of 1024 x 1024 bytes."""
    pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids)
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024**2


def ask(port: int, question: Question, headers: Sequence[str] = ()) -> int:
    """Post `question` once and return the status; 0 where there is no answer, or not a whole one."""
    fields = dict(line.split(": ", 1) for line in ("content-type: application/json", *question.headers, *headers))
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_ASK_SECONDS)
    try:
        connection.request("POST", question.path, question.body, fields)
        with connection.getresponse() as response:
            response.read()
            return response.status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


def wait_for(port: int, question: Question, headers: Sequence[str] = (), *, seconds: float = START_SECONDS) -> float:
    """Ask until there is an answer of 200; return the seconds that took.

    Raises:
        TimeoutError: it did not come in time.
    """
    begun = time.perf_counter()
    status = 0
    while time.perf_counter() - begun < seconds:
        status = ask(port, question, headers)
        if status == _FINE:
            return time.perf_counter() - begun
        time.sleep(_POLL_SECONDS)
    raise TimeoutError(f"nothing but {status or 'silence'} at port {port} in {seconds:.0f} s")


def set_mock(port: int, *, pieces: int, pace_us: int, batch: bool) -> None:
    """Tell the mock how to play the streams that begin from now on."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_ASK_SECONDS)
    connection.request("GET", f"/set?pieces={pieces}&pace={pace_us}&batch={int(batch)}")
    with connection.getresponse() as response:
        response.read()
    connection.close()


def needed(*programs: str) -> None:
    """End this process where one of `programs` is not installed, with a word on what to install.

    Raises:
        SystemExit: one is missing.
    """
    packages = {"taskset": "util-linux", "callgrind_control": "valgrind"}
    missing = [program for program in programs if found(program) is None]
    if missing:
        names = " ".join(packages.get(program, program) for program in missing)
        sys.exit(f"The benchmark needs {', '.join(missing)}: apt-get install {names}")


def found(program: str) -> str | None:
    """Return where `program` is; the system's own folders are looked into too."""
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
