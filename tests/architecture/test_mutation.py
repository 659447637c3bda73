"""The changes that `make mutation` tries are those that are meant, and what it lets pass is there."""

from __future__ import annotations

import ast
import importlib.util
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.architecture.tree import ROOT

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType


@pytest.fixture(scope="module")
def mutate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutate", ROOT / "scripts" / "mutate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("source", "changed"),
    [
        pytest.param("a < b", ["a <= b", "a >= b"], id="comparison"),
        pytest.param("0 <= a", ["0 < a", "0 > a", "1 <= a", "-1 <= a"], id="comparison-and-number"),
        pytest.param("a is not None", ["a is None"], id="identity"),
        pytest.param("a and not b", ["a or not b", "a and (not not b)"], id="truth"),
        pytest.param("f(x=True)", ["f(x=False)"], id="truth-value"),
        pytest.param("x = 1.0", ["x = 1.25", "x = 0.8"], id="number"),
        pytest.param("x = 0.0", ["x = 0.25", "x = -0.25"], id="nothing"),
        pytest.param("min(a, b - c)", ["max(a, b - c)", "min(a, b + c)"], id="arithmetic"),
        pytest.param("a + 'text'", [], id="a-join-is-no-sum"),
        pytest.param("class A(S, frozen=True): pass", [], id="a-flag-of-a-class"),
    ],
)
def test_what_is_changed(mutate: Any, tmp_path: Path, source: str, changed: list[str]) -> None:  # noqa: ANN401 (a script)
    path = tmp_path / "module.py"
    path.write_text(source, encoding="utf-8")
    assert [ast.unparse(mutate.mutated(one)) for one in mutate.mutants(path)] == changed


def test_what_makes_no_difference_is_still_there(mutate: Any) -> None:  # noqa: ANN401 (a script)
    modules = {module for module, _, _ in mutate.harmless()}
    there = {(module, one.text, one.change) for module in modules for one in mutate.mutants(mutate.SOURCE / module)}
    assert mutate.harmless() - there == set()


def test_every_hardened_module_has_tests(mutate: Any) -> None:  # noqa: ANN401 (a script)
    empty = {"__init__.py"}
    paths = [path for path in mutate.chosen([]) if path.name not in empty and mutate.mutants(path)]
    assert [str(path.relative_to(ROOT)) for path in paths if not mutate.tests_of(path)] == []
