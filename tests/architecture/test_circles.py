"""No circle of imports, no folder with too many modules, and packages inside a package that import downwards only.

Imports for the type checker alone count: a circle of them is as hard to read as any other.
"""

from collections import Counter

import pytest

from tests.architecture.graph import Graph, circles, first_party_imports, import_graph, upward
from tests.architecture.tree import ROOT, SOURCES, Import

MOST_MODULES = 16
"""The most modules of a folder, without `__init__`."""

LAYERS = {
    "xenoglot.gateway": (
        "process",
        "app",
        "console",
        "admin",
        "api",
        "batches",
        "stored",
        "relay",
        "upstream",
        "tool_execution",
        "cache",
        "media",
        "routing",
        "limits",
        "store_service",
        "endpoint",
        "ledger",
        "observability",
        "auth",
        "http",
        "config",
    ),
}
"""The parts of a package in the order of their imports: each may import those below it."""


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circles(import_graph()) == []


def test_no_folder_has_too_many_modules() -> None:
    counts = Counter(path.parent.relative_to(ROOT).as_posix() for path in SOURCES if path.stem != "__init__")
    assert {folder: count for folder, count in counts.items() if count > MOST_MODULES} == {}


def test_parts_import_downwards() -> None:
    assert [edge for edge in first_party_imports() if upward(edge, LAYERS)] == []


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        pytest.param({"a": {"b"}, "b": {"c"}, "c": set()}, [], id="line"),
        pytest.param({"a": {"b"}, "b": {"a"}, "c": {"a"}}, [["a", "b"]], id="two-and-one-outside"),
        pytest.param({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"c"}}, [["a", "b", "c"]], id="three"),
        pytest.param(
            {"a": {"b"}, "b": {"a", "c"}, "c": {"d"}, "d": {"e"}, "e": {"c"}},
            [["c", "d", "e"], ["a", "b"]],
            id="two-circles-with-a-bridge",
        ),
        pytest.param({"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": set()}, [], id="diamond"),
    ],
)
def test_circles_are_found(graph: Graph, expected: list[list[str]]) -> None:
    assert circles(graph) == expected


def test_imports_for_the_type_checker_count() -> None:
    imported = import_graph()["xenoglot.errors"]
    assert "xenoglot.model.failure" in imported


@pytest.mark.parametrize(
    ("importer", "imported", "expected"),
    [
        pytest.param("p.api.models", "p.routing.plan", False, id="down"),
        pytest.param("p.routing.plan", "p.api.models", True, id="up"),
        pytest.param("p.api.models", "p.api.errors", False, id="within-a-part"),
        pytest.param("p.context", "p.http.exchange", True, id="module-to-package"),
        pytest.param("p.http", "p.context", False, id="package-to-module"),
        pytest.param("p.routing.plan", "p.elsewhere", False, id="part-without-an-order"),
        pytest.param("p.routing.plan", "q.api.models", False, id="other-package"),
        pytest.param("p.routing.plan", "p.api_keys", False, id="name-that-begins-alike"),
    ],
)
def test_order_of_parts(importer: str, imported: str, expected: bool) -> None:  # noqa: FBT001 (a case)
    layers = {"p": ("api", "routing", "http", "context")}
    assert upward(Import(importer, imported, ""), layers) is expected
