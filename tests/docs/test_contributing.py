"""The recipes of CONTRIBUTING.md name what is in the files that they link."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest

from tests.docs.pages import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PAGE = ROOT / "CONTRIBUTING.md"
RECIPES = (
    "Add a dialect",
    "Add a provider",
    "Add a request field",
    "Add an endpoint",
    "Add a metric",
    "Change a retry rule",
)

NAMED = re.compile(r"`(\w+)` (?:of|in)\s+\[`[\w/.]+`\]\((\S+?\.py)\)")
"""`rows` of [`gateway/api/table.py`](src/...)."""
PATH = re.compile(r"`((?:tests|docs|src)/[\w/]+\.(?:py|toml|jsonl|md))`")
"""A path that is not a link."""


def names_in(path: Path) -> set[str]:
    """Return what a module defines: functions, classes and constants, members of classes included."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return names | {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


@pytest.mark.parametrize("recipe", RECIPES)
def test_there_is_a_recipe(recipe: str) -> None:
    assert f"\n## {recipe}\n" in PAGE.read_text(encoding="utf-8")


def test_names_and_paths_exist() -> None:
    text = PAGE.read_text(encoding="utf-8")
    named = NAMED.findall(text)
    assert {name for name, _ in named} >= {"_rows", "let_in", "RequestMetrics"}
    assert [name for name, path in named if name not in names_in(ROOT / path)] == []
    assert [path for path in PATH.findall(text) if not (ROOT / path).exists()] == []


def test_the_tables_of_a_recipe_are_where_it_says() -> None:
    """Names that stand apart from the link to their file."""
    metrics = names_in(ROOT / "src/xenoglot/gateway/observability/request_metrics.py")
    policy = names_in(ROOT / "src/xenoglot/policy/failure_policy.py")
    table = names_in(ROOT / "src/xenoglot/gateway/api/table.py")
    assert {"RequestMetrics", "add", "lines"} <= metrics
    assert "ENGINE" in names_in(ROOT / "src/xenoglot/gateway/api/metrics.py")
    assert {"CAUSES", "STATUSES", "KINDS"} <= policy
    assert {"rows", "_rows"} <= table
