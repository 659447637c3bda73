"""The rows of programs can be used, and cite what they say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from msgspec import to_builtins

from tests.docs.pages import UNSET, code, columns
from xenoglot import dialect_registry as dialects
from xenoglot.errors import ConfigurationError
from xenoglot.programs import catalog as programs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.model.json import JSON
    from xenoglot.programs.program import Program

EACH = pytest.mark.parametrize("name", programs.names())
HOLES = {"context", "=context", "url", "key", "model", "folder", '"model"'}
OF_THE_PROGRAM = {"env:XENOGLOT_KEY"}
"""Braces that the program itself fills."""


def texts(value: JSON) -> Iterator[str]:
    """Yield all texts in a value, keys included."""
    if isinstance(value, str):
        yield value
    for item in value if isinstance(value, list | tuple) else ():
        yield from texts(item)
    for key, item in value.items() if isinstance(value, dict) else ():
        yield from (key, *texts(item))


def template_texts(row: Program) -> list[str]:
    """Return all texts with holes."""
    plain = to_builtins(row)
    return list(texts([plain["arguments"], plain["env"], plain["files"], plain["login"]]))


@EACH
def test_a_row_is_called_as_its_file_and_speaks_a_dialect(name: str) -> None:
    row = programs.get(name)
    assert row.name == name
    assert row.dialect in dialects.names()


@EACH
def test_every_fact_is_cited(name: str) -> None:
    row = programs.get(name)
    facts = {fact for fact in ("arguments", "env", "files", "unset", "login") if getattr(row, fact)}
    assert set(row.sources) == facts
    assert [url for url in (row.docs, *row.sources.values()) if not re.fullmatch(r"https://[!-~]+", url)] == []
    assert not row.commands or "https://" in row.install


@EACH
def test_a_row_has_the_holes_that_are_filled(name: str) -> None:
    row = programs.get(name)
    holes = {hole for text in template_texts(row) for hole in re.findall(r"\{([^{}\s=]+)\}", text)} - OF_THE_PROGRAM
    assert holes <= HOLES
    assert {"url", "key"} <= holes
    assert row.model == "own" or holes & {"model", '"model"'}
    assert not row.files or "folder" in holes


@EACH
def test_a_key_is_no_argument(name: str) -> None:
    """Whoever else is on the machine may read the arguments of a process."""
    row = programs.get(name)
    groups = row.arguments if row.login is None else (*row.arguments, *row.login.arguments)
    assert [group for group in groups if any("{key}" in text for text in group)] == []


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        pytest.param("claud", "did you mean `claude`?", id="near"),
        pytest.param("zzz", f"expected one of {', '.join(programs.names())}", id="far"),
        pytest.param("../rows/claude", "did you mean `claude`?", id="path"),
    ],
)
def test_an_unknown_program_is_told(name: str, advice: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        programs.get(name)
    assert str(error.value) == f"unknown program `{name}`; {advice}"


def test_the_page_lists_the_programs() -> None:
    rows = [programs.get(name) for name in programs.names()]
    told = [[code(row.name), code(row.dialect), row.tested or UNSET] for row in rows]
    assert columns("run.md", "Programs", 3) == told
