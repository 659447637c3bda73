"""The catalogue of faults, and how often each of its cases was played: `make test` lists them at its end.

A test names the cases that it plays in its id, as in `test_a_broken_stream[U13-reset-chat-to-messages]`. A run of all
tests fails where a case of the catalogue has none.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

PATH = Path(__file__).with_name("catalogue.toml")
NAME = re.compile(r"(?:\b|_)([UCKS]\d\d)(?=\b|_)", re.IGNORECASE)
"""The name of a case in the id of a test."""


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of the catalogue; `ours` is what we do, where the expectation leaves a choice or there is more to say."""

    id: str
    fault: str
    expected: str
    runs: str
    ours: str = ""


class Requirement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A requirement, in short."""

    id: str
    what: str


class Catalogue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All there is in the file."""

    case: tuple[Case, ...]
    requirement: tuple[Requirement, ...]


def catalogue() -> Catalogue:
    """Return what the file holds."""
    return msgspec.convert(tomllib.loads(PATH.read_text(encoding="utf-8")), Catalogue)


class CaseCoverage:
    """How often each case was played, and how often it went well."""

    def __init__(self, ids: Iterable[str]) -> None:
        self._ids = tuple(ids)
        self._ran: Counter[str] = Counter()
        self._passed: Counter[str] = Counter()

    def record(self, report: pytest.TestReport) -> None:
        """Count a test under each case that it names: where it ran, or failed before it could."""
        if report.when != "call" and not report.failed:
            return
        for name in {found.upper() for found in NAME.findall(report.nodeid)}:
            self._ran[name] += report.when == "call" or report.failed
            self._passed[name] += report.passed

    @property
    def missing(self) -> list[str]:
        """The cases that nothing has played."""
        return [name for name in self._ids if not self._ran[name]]

    def lines(self) -> list[str]:
        """Return a line for each case: its name, and how many of its plays went well."""
        shown = [f"{name} {self._passed[name]}/{self._ran[name]}" for name in self._ids]
        return [
            "".join(f"{entry:<16}" for entry in shown[start : start + 7]).rstrip() for start in range(0, len(shown), 7)
        ]
