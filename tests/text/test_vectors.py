"""Every row against what its models write: whole, cut anywhere, told by its name, by the model's, by the marker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.text.vectors import ROOT, Outcome, Vector, declared, load, made, names
from xenoglot.text import registry
from xenoglot.text.json.repair import repaired

if TYPE_CHECKING:
    from collections.abc import Iterable

    from _pytest.mark import ParameterSet

ALL: Final = list(names())


def cases(chosen: Iterable[tuple[str, str]] = ALL) -> list[ParameterSet]:
    """Return vectors as parameters."""
    return [pytest.param(row, case, id=f"{row}/{case}") for row, case in chosen]


SERVERS: Final = {"vLLM", "SGLang", "llama.cpp", "Ollama", "SMG", "maker"}
CUT_OFF: Final = frozenset({"cut_off", "cut_off_arguments"})
REQUIRED: Final = ("plain", "two_calls", "prose_around", "marker_in_string", "malformed", "undeclared", "no_arguments")
EXEMPT: Final = frozenset(("think", case) for case in (*REQUIRED, "cut_off"))  # thoughts alone: no form of calls


def read(row: str, vector: Vector, *chunks: str) -> Outcome:
    """Return what `row` makes of `chunks`."""
    repair = repaired if vector.repair else None
    return made(registry.get(row), declared(vector.tools), chunks, vector.finish, repair, thinking=vector.thinking)


@pytest.mark.parametrize(("row", "case"), cases())
def test_whole_and_at_every_split(row: str, case: str) -> None:
    vector = load(row, case)
    text = vector.text
    assert read(row, vector, text) == vector.outcome
    for place in range(len(text) + 1):
        assert read(row, vector, text[:place], text[place:]) == vector.outcome, f"split at {place}"
    assert read(row, vector, *text) == vector.outcome, "one character at a time"


@pytest.mark.parametrize(("row", "case"), cases(name for name in ALL if load(*name).model is not None))
def test_model_tells_row(row: str, case: str) -> None:
    model = load(row, case).model
    assert model is not None
    assert registry.chosen(registry.AUTO, model) is registry.get(row)


@pytest.mark.parametrize(("row", "case"), cases(name for name in ALL if load(*name).marker))
def test_marker_tells_form(row: str, case: str) -> None:
    vector = load(row, case)
    assert read(registry.AUTO, vector, vector.text) == vector.outcome
    assert read(registry.AUTO, vector, *vector.text) == vector.outcome, "one character at a time"


@pytest.mark.parametrize(("row", "case"), cases())
def test_note_tells_where_from(row: str, case: str) -> None:
    vector = load(row, case)
    note = vector.note
    assert vector.agrees or vector.differs or "https://" in note or "F-" in note or "L-" in note or "R" in note


@pytest.mark.parametrize(("row", "case"), cases(name for name in ALL if load(*name).agrees or load(*name).differs))
def test_cases_of_servers_are_named_and_judged(row: str, case: str) -> None:
    vector = load(row, case)
    assert {*vector.agrees, *vector.differs} <= SERVERS
    assert not {*vector.agrees} & {*vector.differs}
    assert all("::" in named for named in (*vector.agrees.values(), *(one.case for one in vector.differs.values())))
    assert all(one.why and one.parts != vector.parts for one in vector.differs.values())


@pytest.mark.parametrize("row", registry.names())
def test_row_has_every_case(row: str) -> None:
    there = {path.stem for path in (ROOT / row).glob("*.json")}
    missing = [case for case in REQUIRED if case not in there and (row, case) not in EXEMPT]
    if not there & CUT_OFF and (row, "cut_off") not in EXEMPT:
        missing.append("cut_off")
    if registry.get(row).thoughts and not any("think" in case or "thought" in case for case in there):
        missing.append("thinking")
    assert missing == []


def test_vectors_belong_to_rows() -> None:
    assert sorted({row for row, _ in ALL} - set(registry.names())) == []
