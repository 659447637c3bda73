"""The import graph of the source tree: its circles, and the order of the packages inside a package."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tests.architecture.tree import MODULES, SOURCES, Import, imports

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

Graph = dict[str, set[str]]
"""Each module with the modules that it imports."""


@cache
def first_party_imports() -> tuple[Import, ...]:
    """Return every import of a module of the package in another, those for the type checker alone included."""
    edges = (edge for path in SOURCES for edge in imports(path))
    return tuple(edge for edge in edges if edge.imported in MODULES and edge.imported != edge.importer)


def import_graph() -> Graph:
    """Return every module of the package with those of the package that it imports."""
    graph: Graph = {module: set() for module in MODULES}
    for edge in first_party_imports():
        graph[edge.importer].add(edge.imported)
    return graph


def circles(graph: Mapping[str, Collection[str]]) -> list[list[str]]:
    """Return the strongly connected components with more than one module, largest first, each sorted.

    This is Kosaraju's algorithm: in the order in which a first walk leaves the modules, latest first, a walk along the
    reversed imports reaches one component at a time.
    """
    reverse: Graph = {module: set() for module in graph}
    for importer, imported in graph.items():
        for module in imported:
            reverse[module].add(importer)
    order: list[str] = []
    seen: set[str] = set()
    for module in sorted(graph):
        order += _walk(module, graph, seen)
    seen = set()
    found = [sorted(_walk(module, reverse, seen)) for module in reversed(order)]
    return sorted((circle for circle in found if len(circle) > 1), key=lambda circle: (-len(circle), circle))


def _walk(start: str, graph: Mapping[str, Collection[str]], seen: set[str]) -> list[str]:
    """Return the modules that are reached from `start` and not seen yet, in the order in which the walk leaves them."""
    if start in seen:
        return []
    seen.add(start)
    left: list[str] = []
    path = [(start, iter(sorted(graph[start])))]
    while path:
        module, rest = path[-1]
        following = next((each for each in rest if each not in seen), None)
        if following is None:
            left.append(module)
            path.pop()
        else:
            seen.add(following)
            path.append((following, iter(sorted(graph[following]))))
    return left


def upward(edge: Import, layers: Mapping[str, Sequence[str]]) -> bool:
    """Whether an import points up in one of `layers`: packages, each with its parts in order, the highest first.

    A part is a package or a module directly inside the package. Parts that are not listed are not ordered.
    """
    for package, parts in layers.items():
        importer, imported = part_of(edge.importer, package), part_of(edge.imported, package)
        if importer in parts and imported in parts and parts.index(imported) < parts.index(importer):
            return True
    return False


def part_of(module: str, package: str) -> str:
    """Return the part of `package` that a module belongs to; an empty string for a module elsewhere."""
    inside = module.removeprefix(f"{package}.")
    return "" if inside == module else inside.partition(".")[0]
