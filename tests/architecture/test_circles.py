"""No circle of imports, no folder with too many modules, and packages inside a package that import downwards only.

Imports for the type checker alone count: a circle of them is as hard to read as any other. What is wrong today stands
in `structure_allowed.toml`, which may only get shorter.
"""

import pytest

from tests.architecture.allowances import COMMAND, STRUCTURE, crowded_folders, read
from tests.architecture.graph import Graph, circles, first_party_imports, import_graph, upward
from tests.architecture.tree import Import

LAYERS = {
    "xenoglot.gateway": (
        "process",
        "app",
        "api",
        "batches",
        "stored",
        "relay",
        "upstream",
        "media",
        "routing",
        "limits",
        "store_service",
        "endpoint",
        "observability",
        "auth",
        "http",
        "config",
    ),
}
"""The parts of a package in the order of their imports: each may import those below it."""


def test_circles_are_those_allowed() -> None:
    allowed = [circle["modules"] for circle in read(STRUCTURE).get("circles", [])]
    assert circles(import_graph()) == allowed, COMMAND


def test_large_folders_are_those_allowed() -> None:
    assert crowded_folders() == read(STRUCTURE)["folders"], COMMAND


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
