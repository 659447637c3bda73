"""Every target takes its corpus, what once crashed it, and some mutants of both: the same ones on every run."""

from __future__ import annotations

import pytest

from tests.fuzz.mutating import mutants
from tests.fuzz.targets import CRASHES, crashes, targets

MUTANTS = 250
SEED = 20_261_121


@pytest.mark.parametrize("name", targets())
def test_it_takes_whatever_comes(name: str) -> None:
    target = targets()[name]
    corpus = [b"", *target.corpus(), *crashes(name)]
    assert len(corpus) > 1
    for data in (*corpus, *mutants(corpus, MUTANTS, SEED)):
        try:
            target.fuzz(data)
        except Exception as error:
            raise AssertionError(f"{name} does not take {data!r}") from error


def test_every_crash_belongs_to_a_target() -> None:
    assert {path.name for path in CRASHES.glob("*") if path.is_dir()} - set(targets()) == set()
