"""A fresh folder for sockets and caches for each test."""

import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Generator[Path, None, None]:
    """A new, short folder in which all temporary files of the test are made (a socket's path must be short)."""
    tmp_path_factory.getbasetemp()  # is made at its first use, and not in here
    folder = Path(tempfile.mkdtemp(prefix="xg"))
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield folder
    shutil.rmtree(folder)
