"""Every row against what its models write: whole, cut anywhere, told by its name, by the model's, by the marker."""

from __future__ import annotations

from typing import Final

import pytest

from tests.text.vectors import ROOT, Outcome, Vector, declared, load, made, names
from xenoglot.text import registry
from xenoglot.text.json.repair import repaired

ALL: Final = list(names())
ROWS: Final = sorted({row for row, _ in ALL})
SOURCES: Final = ("https://", "F-", "L-", "R")
SERVERS: Final = {"vLLM", "SGLang", "llama.cpp", "Ollama", "OpenVINO", "SMG", "maker"}
CUT_OFF: Final = frozenset({"cut_off", "cut_off_arguments"})
REQUIRED: Final = ("plain", "two_calls", "prose_around", "marker_in_string", "malformed", "undeclared", "no_arguments")
EXEMPT: Final = frozenset(("think", case) for case in (*REQUIRED, "cut_off"))  # thoughts alone: no form of calls


def vectors(row: str) -> dict[str, Vector]:
    """Return the vectors of a row by name."""
    return {case: load(of, case) for of, case in ALL if of == row}


def read(row: str, vector: Vector, *chunks: str) -> Outcome:
    """Return what `row` makes of `chunks`."""
    repair = repaired if vector.repair else None
    return made(registry.get(row), declared(vector.tools), chunks, vector.finish, repair, thinking=vector.thinking)


LOOKED_AT: Final = 16
"""Characters after a cut. A cut is passed over where another vector has all before it and so many after it."""


# A test for each row names the vectors that fail: there are thousands.


@pytest.mark.parametrize("row", ROWS)
def test_whole_and_at_every_split(row: str) -> None:
    """Vectors of a row often begin alike: cut before they differ, a parser is in the same state."""
    seen: set[tuple[str, str]] = set()
    wrong: dict[str, list[str]] = {}
    for case, vector in vectors(row).items():
        text, asked = vector.text, repr((vector.tools, vector.thinking, vector.repair))
        cuts = {"whole": (text,), "one character at a time": tuple(text)}
        for place in range(len(text) + 1):
            if (begins := (asked, text[: place + LOOKED_AT])) not in seen or place + LOOKED_AT > len(text):
                seen.add(begins)
                cuts[f"split at {place}"] = (text[:place], text[place:])
        if failed := [cut for cut, chunks in cuts.items() if read(row, vector, *chunks) != vector.outcome]:
            wrong[case] = failed
    assert wrong == {}


@pytest.mark.parametrize("row", ROWS)
def test_model_tells_row(row: str) -> None:
    models = {case: vector.model for case, vector in vectors(row).items() if vector.model is not None}
    assert [
        case for case, model in models.items() if registry.chosen(registry.AUTO, model) is not registry.get(row)
    ] == []


@pytest.mark.parametrize("row", ROWS)
def test_marker_tells_form(row: str) -> None:
    marked = {case: vector for case, vector in vectors(row).items() if vector.marker}
    for case, vector in marked.items():
        assert read(registry.AUTO, vector, vector.text) == vector.outcome, case
        assert read(registry.AUTO, vector, *vector.text) == vector.outcome, f"{case}, one character at a time"


@pytest.mark.parametrize("row", ROWS)
def test_note_tells_where_from(row: str) -> None:
    unsourced = [
        case
        for case, vector in vectors(row).items()
        if not (vector.agrees or vector.differs or any(word in vector.note for word in SOURCES))
    ]
    assert unsourced == []


@pytest.mark.parametrize("row", ROWS)
def test_cases_of_servers_are_named_and_judged(row: str) -> None:
    for case, vector in vectors(row).items():
        assert {*vector.agrees, *vector.differs} <= SERVERS, case
        assert not {*vector.agrees} & {*vector.differs}, case
        named = (*vector.agrees.values(), *(one.case for one in vector.differs.values()))
        assert all("::" in name for name in named), case
        assert all(one.why and one.parts != vector.parts for one in vector.differs.values()), case


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
