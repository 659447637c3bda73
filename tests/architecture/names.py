"""The names of modules, packages and public classes, held to the words of `docs/glossary.md`."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING, Final

from tests.architecture.tree import MODULES, ROOT, module_name

if TYPE_CHECKING:
    from collections.abc import Collection

GLOSSARY: Final = ROOT / "docs" / "glossary.md"

SPEECH: Final = frozenset(
    {"ask", "asked", "asking", "hear", "heard", "hearing", "said", "say", "saying", "says", "speak", "speaking"}
    | {"spoken", "tell", "telling", "tells", "told", "unheard"}
)
"""Verbs of speech: they do not say what a module holds."""

COMMAND: Final = "_command"
"""How the module of a command of `xenoglot` ends; before it stands the command's own name."""

MOST_OWNERS: Final = 2
"""The most public classes of one name outside the dialects."""

DIALECTS: Final = "xenoglot.dialects."

_WORD: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
_TERM: Final = re.compile(r"^\| ([a-z][a-z -]*) \|", re.MULTILINE)
_PLAIN: Final = re.compile(r"^## Plain words$.*?^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def terms(page: str) -> list[str]:
    """Return the terms in the table of the glossary, in its order."""
    return [term for term in _TERM.findall(page) if term != "term"]


@cache
def glossary() -> frozenset[str]:
    """Return every word that a name may be made of."""
    page = GLOSSARY.read_text(encoding="utf-8")
    plain = _PLAIN.search(page)
    assert plain, "the glossary has no list of plain words"
    return frozenset([*re.findall(r"[a-z]+", " ".join(terms(page))), *plain[1].split()])


def words(name: str) -> list[str]:
    """Return the words of a name, small: `http1_server` and `HTTPServer` are `http` and `server`."""
    return [word.lower() for word in _WORD.findall(name.replace("SQLite", "Sqlite"))]


def unknown(name: str, allowed: Collection[str]) -> list[str]:
    """Return the words of a name that are not among `allowed`; a plural in `-s` is as good as its singular."""
    return [word for word in words(name) if word not in allowed and word.removesuffix("s") not in allowed]


def fault(stem: str, allowed: Collection[str]) -> str | None:
    """Return what is wrong with the name of a module or package; None: nothing."""
    rest = stem.partition(COMMAND)[0]
    if stem.endswith(COMMAND) and rest.isalpha():
        return None
    if spoken := SPEECH & set(words(stem)):
        return f"a verb of speech: {', '.join(sorted(spoken))}"
    if gerunds := [word for word in unknown(stem, allowed) if word.endswith("ing")]:
        return f"a gerund: {', '.join(gerunds)}"
    if others := unknown(stem, allowed):
        return f"not in the glossary: {', '.join(others)}"
    return None


def own_name(module: str) -> str:
    """Return the last part of a module's dotted name: its stem, or the name of its package."""
    return module.rpartition(".")[2]


def wrong_modules() -> dict[str, str]:
    """Return the modules and packages whose own name is wrong, and why."""
    found = {module: fault(own_name(module), glossary()) for module in MODULES}
    return {module: why for module, why in found.items() if why}


@cache
def public_classes() -> dict[str, list[str]]:
    """Return the public classes at the top level of modules: each name with the modules that define it."""
    owners: defaultdict[str, list[str]] = defaultdict(list)
    for path in MODULES.values():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                owners[node.name].append(module_name(path))
    return owners


def wrong_classes() -> dict[str, str]:
    """Return the public classes whose name has words that are not in the glossary."""
    found = {name: ", ".join(unknown(name, glossary())) for name in public_classes()}
    return {name: why for name, why in found.items() if why}


def shared_names() -> dict[str, list[str]]:
    """Return the names of more than `MOST_OWNERS` public classes, with their modules.

    The dialects count as one owner: what does the same in each of them has the same name in each of them.
    """
    outside = {
        name: [owner for owner in owners if not owner.startswith(DIALECTS)] for name, owners in public_classes().items()
    }
    return {name: owners for name, owners in outside.items() if len(owners) > MOST_OWNERS}
