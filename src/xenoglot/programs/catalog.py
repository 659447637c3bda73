"""Catalogue of the programs that `xenoglot run` knows by name."""

from __future__ import annotations

import tomllib
from difflib import get_close_matches
from functools import cache
from pathlib import Path

import msgspec

from xenoglot.errors import ConfigurationError
from xenoglot.programs.program import Program

_ROWS = Path(__file__).with_name("rows")


@cache
def names() -> tuple[str, ...]:
    """Return the names of all rows, sorted."""
    return tuple(sorted(path.stem for path in _ROWS.glob("*.toml")))


@cache
def get(name: str) -> Program:
    """Return the row `name`.

    Raises:
        ConfigurationError: no row has that name.
    """
    if name not in names():
        near = get_close_matches(name, names(), n=1)
        advice = f"did you mean `{near[0]}`?" if near else f"expected one of {', '.join(names())}"
        raise ConfigurationError(f"unknown program `{name}`; {advice}")
    plain = tomllib.loads(_ROWS.joinpath(f"{name}.toml").read_text(encoding="utf-8"))
    return msgspec.convert(plain, Program)
