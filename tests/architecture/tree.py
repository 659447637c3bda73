"""The source tree as the tests of the architecture see it: its files, their modules and what they import."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))


class Import(NamedTuple):
    """One import: who imports what, and where it says so."""

    importer: str
    imported: str
    place: str


def module_name(path: Path) -> str:
    """The dotted name of a source file: `src/xenoglot/codec/__init__.py` is `xenoglot.codec`."""
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in SOURCES}


def place(path: Path, node: ast.stmt | ast.expr) -> str:
    """Where a node stands, as editors and terminals link it."""
    return f"{path.relative_to(ROOT)}:{node.lineno}"


def imported_names(node: ast.AST, modules: frozenset[str] = frozenset(MODULES)) -> list[str]:
    """The modules that a statement imports; `from package import module` names the module, not the package."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        members = [f"{node.module}.{alias.name}" for alias in node.names]
        return [member if member in modules else node.module for member in members]
    return []


def imports(path: Path) -> Iterator[Import]:
    """Every import of a file, also those inside functions and for the type checker alone."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for name in imported_names(node):
            if isinstance(node, ast.stmt):
                yield Import(module_name(path), name, place(path, node))
