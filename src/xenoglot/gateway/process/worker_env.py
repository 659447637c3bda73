"""What a worker is told by the supervisor that starts it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE: Final = "XENOGLOT_WORKER"
"""The environment variable by which a worker knows that it is one."""


class WorkerEnv(Struct, frozen=True):
    """What a worker is told: the socket that reserves the address, its number, and the folder in which all meet."""

    descriptor: int
    number: int
    folder: str

    @property
    def limits(self) -> str:
        """Where the limits are kept that all share: a unix socket."""
        return str(Path(self.folder) / "limits")


def read_worker_env(environ: Mapping[str, str]) -> WorkerEnv | None:
    """Return what this process is told as a worker; `None` if it is none."""
    said = environ.get(VARIABLE)
    return None if said is None else msgspec.json.decode(said, type=WorkerEnv)
