"""Finds words that the project does not use, in pages, docstrings, help and error texts: `make language`.

    python scripts/check_language.py [FILE ...]   show each place in these files, or in all; fail if there is one

`RULES` has the words and what to write in their place. Code in pages, texts in backticks, addresses and names in the
code are not looked at: `tests/architecture/test_names.py` checks names.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT: Final = Path(__file__).parent.parent

EXEMPT: Final = ("docs/decisions/", "docs/performance/", "docs/glossary.md", "CHANGELOG.md")
"""Records of the past, and the page that lists old names."""


class Rule(NamedTuple):
    """A word or phrase that is not used, and what is used."""

    pattern: re.Pattern[str]
    use: str


def _rule(pattern: str, use: str) -> Rule:
    return Rule(re.compile(pattern, re.IGNORECASE | re.MULTILINE), use)


_PROXY: Final = r"(?:proxy|proxies|gateway|balancer|nginx|firewall|NAT|CDN|VPN)"

RULES: Final = (
    _rule(r"\b(?:nobody|somebody|anybody|whoever|whomever|whom)\b", "the client, the caller, no client, one"),
    _rule(r"(?:^|[.:;!] )who \w+(?! [^.]*\?)", "name the subject: the client, the caller"),
    _rule(r"\b(?:anew|once more)\b", "again"),
    _rule(r"\bparted by\b", "separated by"),
    _rule(r"\bblanks?\b(?! lines?\b)", "space, blank line"),
    _rule(rf"\bbehind\b(?! (?:an? |the |your |another |its )?(?:[\w-]+ )?{_PROXY}\b)", "after"),
    _rule(
        r"\b(?:is|are|was|were) (?:already |still |not )?there\b(?! (?:an?|any|no|another)\b)",
        "exists, is installed, is set",
    ),
    _rule(r"\b(?:say|says|said|saying|unsaid)\b", "set, specify, state, send, report"),
    _rule(r"\b(?:tell|tells|told|telling|untold)\b", "report, send, show, distinguish"),
    _rule(r"\b(?:hear|hears|heard|unheard)\b", "receive, detect"),
    _rule(r"\b(?:try|tries|tried|trying) (?:it )?again\b", "retry"),
    _rule(r"\b(?:am|is|are|was|were|be|been|being|not) asked\b|\basked for\b", "requested, called"),
    _rule(r"\b(?:shelf|shelves|ward|wards|broom|rooms?|passages?|crossings?)\b", "the technical term"),
    _rule(r"\b(?:at|come|comes|came|go|goes|sends?|sent) home\b", "same target, returned unchanged"),
    _rule(r"\bthoughts?\b(?! signatures?\b)", "reasoning"),
    _rule(r"\b(?:un)?sealed\b|\bseals?\b", "signature, signed"),
    _rule(r"\bof late\b", "recently"),
    _rule(r"\bon the way\b", "in transit, in between"),
    _rule(r"\bunder way\b", "in progress"),
    _rule(r"\b(?:go|goes|gone|going|went) on\b(?! \w*(?:line|disk)\b)", "continue"),
    _rule(r"(?:^|[.:;] )of (?:an?|the|what|each|those|all|these|one|this|that)\b", "subject first"),
    _rule(
        r"\b(?:clients?|callers?|users?) (?:left|leaves|leave|has left|is gone|are gone|went away)\b", "disconnected"
    ),
    _rule(r"\b(?:un)?lawful\b", "valid, allowed"),
    _rule(r"\bmend(?:s|ed|ing)?\b", "repair, fix"),
    _rule(r"\bpictures?\b", "image"),
    _rule(r"\b(?:beside|besides)\b", "next to, in addition to, apart from"),
    _rule(r"\bwherever\b", "in all places where"),
)


class Place(NamedTuple):
    """A place that a rule matches."""

    path: str
    line: int
    found: str
    use: str


def files() -> list[str]:
    """Return the pages and modules that are checked."""
    listed = subprocess.run(
        ["git", "ls-files", "*.md", "src/*.py"],  # noqa: S607  git is found as a shell finds it
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    return [path for path in listed if not path.startswith(("tests/", "drive/", "bench/", *EXEMPT))]


def places(path: str, text: str) -> list[Place]:
    """Return each place of a file that a rule matches, in order."""
    texts = module_texts(text) if path.endswith(".py") else [(1, prose(text))]
    found = [
        Place(path, line + part.count("\n", 0, match.start()), match[0].strip(" .:;!\n"), rule.use)
        for line, part in texts
        for rule in RULES
        for match in rule.pattern.finditer(part)
    ]
    return sorted(found, key=lambda place: place.line)


_CODE: Final = re.compile(r"(?<![`\\])(`+)(?!`)(?:(?!\n *\n|\n\|).)+?(?<!`)\1(?!`)", re.DOTALL)
"""Code between as many backticks before and after: within a paragraph, or a row of a table."""


def prose(text: str) -> str:
    """Return a page with its code blocks, code and addresses blanked out; every line stays where it is."""
    text = re.sub(r"^ *(`{3,})[^`\n]*\n.*?^ *\1 *$", _lines_only, text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!--.*?-->", _lines_only, text, flags=re.DOTALL)
    return re.sub(r"\]\([^)]*\)", "]", without_code(text))


def without_code(text: str) -> str:
    """Return a text without its addresses and what stands in backticks."""
    return re.sub(r"https?://[^\s)]+", "_", _CODE.sub(lambda code: "_" + _lines_only(code), text))


def _lines_only(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


def module_texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield the texts of a module that people read, each with its line: docstrings, errors, help and logs."""
    seen: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str()) as text):
                yield from _shown([text], seen, docstring=True)
            case ast.Raise() | ast.Call() if isinstance(node, ast.Raise) or _called(node) in SHOWING:
                yield from _shown(ast.walk(node), seen)
            case ast.keyword(arg=str(name)) if name in SHOWN:
                yield from _shown(ast.walk(node), seen)
            case _:
                pass


SHOWING: Final = frozenset(
    {"add_argument", "add_parser", "add_argument_group", "debug", "info", "warning", "error", "exception", "critical"}
    | {"print", "say", "_say", "Failure", "failure", "dropped", "approximated", "emulated", "Metric"}
)
"""Functions whose texts people read."""

SHOWN: Final = frozenset({"help", "description", "epilog", "message", "problem", "reason", "prompt", "why"})
"""Keyword arguments that people read."""


def _called(node: ast.Call) -> str:
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _shown(
    nodes: Iterator[ast.AST] | Sequence[ast.AST], seen: set[int], *, docstring: bool = False
) -> Iterator[tuple[int, str]]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in seen:
            seen.add(id(node))
            if docstring or " " in node.value:
                text = re.sub(r"^ *>>> .*$|^ *\.\.\. .*$", "", node.value, flags=re.MULTILINE)
                yield node.lineno, without_code(text)


def main(arguments: Sequence[str]) -> int:
    """Run the check; return the exit code."""
    parser = argparse.ArgumentParser(description="Find words that the project does not use.")
    parser.add_argument("files", nargs="*", help="look at these files only")
    found = [
        place
        for path in parser.parse_args(arguments).files or files()
        for place in places(path, (ROOT / path).read_text(encoding="utf-8"))
    ]
    for place in found:
        print(f"{place.path}:{place.line}: `{place.found}`: use {place.use}")  # noqa: T201  the result
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
