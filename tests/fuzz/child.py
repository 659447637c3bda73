"""One target under atheris (https://github.com/google/atheris), for `python -m tests.fuzz`."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import atheris

with atheris.instrument_imports(include=["xenoglot"]):
    from tests.fuzz.targets import CRASHES, crashes, targets

LONGEST = 16_384


def main(name: str, seconds: str) -> None:
    """Fuzz until the time is over, or something crashes; atheris ends the process."""
    target = targets()[name]
    found = CRASHES / name
    with TemporaryDirectory() as folder:
        for number, data in enumerate((*target.corpus(), *crashes(name))):
            (Path(folder) / str(number)).write_bytes(data)
        found.mkdir(parents=True, exist_ok=True)
        flags = [
            f"-max_total_time={seconds}",
            f"-max_len={LONGEST}",
            f"-artifact_prefix={found}/",
            "-rss_limit_mb=2048",
        ]
        atheris.Setup([sys.argv[0], *flags, folder], target.fuzz)
        atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
