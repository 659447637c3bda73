"""Docstrings: the errors that they say are raised exist."""

import ast
import builtins
import re

from tests.architecture.tree import MODULES, module_name

_NAMED = re.compile(r"\b(?:[A-Z]\w*)?[A-Z]\w*Error\b")


def test_each_error_that_a_docstring_names_exists() -> None:
    known = set(dir(builtins))
    named: dict[str, set[str]] = {}
    for path in MODULES.values():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                    known.add(name.rpartition(".")[2])
                case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                    known.add(getattr(node, "name", ""))
                    for name in _NAMED.findall(ast.get_docstring(node) or ""):
                        named.setdefault(name, set()).add(module_name(path))
                case _:
                    pass
    assert len(named) > 50
    assert {name: modules for name, modules in named.items() if name not in known} == {}
