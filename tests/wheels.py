"""Wheels made of what is installed here, so that a clean environment needs no network."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import zipfile
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from tests.architecture.tree import ROOT


def build_wheel(folder: Path) -> Path:
    """Build the project's wheel as a release does; the sources are not written to."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    return next(folder.glob("xenoglot-*.whl"))


def repack_installed(folder: Path, names: list[str]) -> None:
    """Write a wheel for each of the distributions `names` that is installed, from its files and their record."""
    for name in names:
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue  # for another Python or system: the lock names it with its marker, and pip is the judge of that
        _repack(found, folder)


def _repack(found: Distribution, folder: Path) -> None:
    metadata = next(str(path.parent) for path in found.files or () if path.name == "METADATA")
    tags = [line.partition(": ")[2] for line in (found.read_text("WHEEL") or "").splitlines() if line[:5] == "Tag: "]
    stem = metadata.removesuffix(".dist-info")
    wheel = folder / f"{stem}-{_compressed(tags)}.whl"
    kept = [path for path in found.files or () if ".." not in path.parts and path.suffix != ".pyc"]
    written = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}
    lines = []
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_STORED) as archive:
        for path in kept:
            if str(path.parent) == metadata and path.name in written:
                continue
            content = Path(path.locate()).read_bytes()
            archive.writestr(str(path), content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{path},sha256={digest},{len(content)}\n")
        archive.writestr(f"{metadata}/RECORD", "".join([*lines, f"{metadata}/RECORD,,\n"]))


def _compressed(tags: list[str]) -> str:
    """Return the tags of a wheel as its name has them: `py3-none-any`, `cp311-cp311-manylinux_2_17.manylinux2014`."""
    columns = zip(*(tag.split("-") for tag in tags), strict=True)
    return "-".join(".".join(dict.fromkeys(column)) for column in columns)
