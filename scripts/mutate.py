"""Does a test notice when a limit, a comparison or a truth value of the hardened modules is another one?

    python scripts/mutate.py                # all of them, see HARDENED
    python scripts/mutate.py policy/target_health   # those whose path has this in it
    python scripts/mutate.py --list policy  # what would be changed, without any run

Each change is made to the module in memory, in a process of its own, and the module's tests are run on it. What no test
notices survives, and is listed; a change that makes no difference stands in `mutants.toml` with the reason.
"""

from __future__ import annotations

import argparse
import ast
import os
import resource
import signal
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import hypothesis
import pytest

if TYPE_CHECKING:
    from types import CodeType

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "xenoglot"
HARMLESS = Path(__file__).with_name("mutants.toml")

HARDENED = {
    "policy/limits/admission_queue.py": ("policy/limits/test_fair_queue.py", "policy/limits/test_admission_queue.py"),
    "policy/limits/usage_ledger.py": (
        "policy/limits/test_usage_ledger.py",
        "policy/limits/test_sliding_window.py",
        "policy/limits/test_admission_queue.py",
        "gateway/limits/test_limiter.py",
    ),
    "policy/auth_throttle.py": ("policy/test_throttle.py", "faults/test_security_keys.py"),
    "policy/target_health.py": (
        "policy/test_breaker.py",
        "policy/test_retry.py",
        "policy/test_keys.py",
        "policy/test_rolling_counter.py",
    ),
    "policy/token_estimate.py": (
        "policy/test_token_estimate.py",
        "policy/test_prompt_estimate.py",
        "policy/test_answer_tokens.py",
    ),
    "policy/*.py": ("policy/test_{name}.py",),
    "policy/limits/*.py": ("policy/limits/test_{name}.py",),
    "gateway/limits*.py": ("gateway/test_{name}.py", "gateway/limits/test_limiter.py"),
    "backends/retry_after.py": ("backends/test_retry_after.py",),
    "backends/http/content_encoding.py": ("backends/http/test_content_encoding.py",),
    "backends/http/timeouts.py": ("backends/http/test_*.py",),
    "backends/http/exchange.py": ("backends/http/test_*.py",),
}
"""Modules, and the tests that are theirs; the first row that fits counts."""

OPTIONS = [
    "-x",
    "-q",
    "--tb=no",
    "-o",
    f"cache_dir={tempfile.gettempdir()}/mutate",
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
]
"""How pytest is called; the warning is that it finds hypothesis imported, once for all runs."""

SECONDS = 120
"""A run that is not over by then was noticed: something goes round in circles."""
MEMORY = 8 << 30

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
}
OPPOSITES = {"min": "max", "max": "min", "any": "all", "all": "any"}

Change = tuple[str, Callable[[], None]]


class Mutant(NamedTuple):
    """One change of one module: the `number`-th of its changes, at a place, in words."""

    path: Path
    number: int
    line: int
    text: str
    change: str

    @property
    def place(self) -> str:
        """Return where it is, for a person."""
        return f"{self.path.relative_to(ROOT)}:{self.line}"


def changes(node: ast.AST) -> Iterator[Change]:
    """Yield what can be changed about one node: in words, and as the deed."""
    match node:
        case ast.Compare():
            yield from _of_comparison(node)
        case ast.Constant(value=bool() | int() | float()):
            yield from _of_number(node)
        case ast.BoolOp():
            other = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
            yield f"{_word(node.op)} -> {_word(other)}", lambda: setattr(node, "op", other)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "not -> nothing", lambda: setattr(node, "operand", ast.UnaryOp(ast.Not(), operand))
        case ast.BinOp(op=operator) if type(operator) in ARITHMETIC and not _joins(node):
            swapped = ARITHMETIC[type(operator)]()
            yield f"{_word(operator)} -> {_word(swapped)}", lambda: setattr(node, "op", swapped)
        case ast.Call(func=ast.Name(id=name)) if name in OPPOSITES:
            yield f"{name} -> {OPPOSITES[name]}", lambda: setattr(node.func, "id", OPPOSITES[name])
        case _:
            pass  # nothing that is counted or decided


def _of_comparison(node: ast.Compare) -> Iterator[Change]:
    for index, operator in enumerate(node.ops):
        for other in COMPARISONS[type(operator)]:
            yield f"{_word(operator)} -> {other.__name__}", _setter(node.ops, index, other())


def _of_number(node: ast.Constant) -> Iterator[Change]:
    match node.value:
        case bool(value):
            others: tuple[float, ...] = (not value,)
        case int(value):
            others = (value + 1, value - 1)
        case float(value):
            others = (value * 1.25 or 0.25, value * 0.8 or -0.25)
        case _:
            others = ()
    for other in others:
        yield f"{node.value!r} -> {other if isinstance(other, int) else format(other, 'g')}", _value(node, other)


def _word(node: ast.AST) -> str:
    return type(node).__name__


def _joins(node: ast.BinOp) -> bool:
    """Whether a sum is one of texts or lists: another sign would be no program."""
    kinds = (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp)
    return any(
        isinstance(side, kinds) or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
        for side in (node.left, node.right)
    )


def _setter(operators: list[ast.cmpop], index: int, other: ast.cmpop) -> Callable[[], None]:
    return lambda: operators.__setitem__(index, other)


def _value(node: ast.Constant, value: float) -> Callable[[], None]:
    return lambda: setattr(node, "value", value)


def nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield what of a module is worth a change: all but the flags of classes and of `zip`."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.keyword) and child.arg in ("frozen", "kw_only", "tag", "strict", "order"):
            continue
        yield child
        yield from nodes(child)


def mutants(path: Path) -> list[Mutant]:
    """Return all changes of a module."""
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines()
    found: list[Mutant] = []
    for node in nodes(ast.parse(source)):
        for words, _ in changes(node):
            line: int = getattr(node, "lineno", 0)
            found.append(Mutant(path, len(found), line, lines[line - 1].strip(), words))
    return found


def mutated(mutant: Mutant) -> ast.Module:
    """Return the module with its change."""
    tree = ast.parse(mutant.path.read_text(encoding="utf-8"))
    deeds = [deed for node in nodes(tree) for _, deed in changes(node)]
    deeds[mutant.number]()
    return ast.fix_missing_locations(tree)


class Loader(SourceFileLoader):
    """Loads a module with its change, whatever is cached."""

    def __init__(self, mutant: Mutant) -> None:
        parts = mutant.path.relative_to(SOURCE.parent).with_suffix("").parts
        super().__init__(".".join(parts), str(mutant.path))
        self._tree = mutated(mutant)

    def get_code(self, _fullname: str) -> CodeType:
        """Return the changed code."""
        return compile(self._tree, self.path, "exec")


class Finder(MetaPathFinder):
    """Finds one module, the changed one."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def find_spec(self, fullname: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        """Return what is known of the module, if it is the one."""
        loader = self._loader
        return spec_from_file_location(fullname, loader.path, loader=loader) if fullname == loader.name else None


class Hasty:
    """A plug-in that keeps hypothesis from making a failing example small: it is enough that there is one."""

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        """Settings count as they are when a test is read."""
        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        hypothesis.settings.register_profile("hasty", hypothesis.settings.get_profile("xenoglot"), phases=phases)
        hypothesis.settings.load_profile("hasty")


def tests_of(path: Path) -> list[str]:
    """Return the tests of a module, as far as they exist."""
    place = path.relative_to(SOURCE)
    patterns = next(patterns for pattern, patterns in HARDENED.items() if place.match(pattern))
    found = {str(test) for pattern in patterns for test in (ROOT / "tests").glob(pattern.format(name=place.stem))}
    return sorted(found)


def run(mutant: Mutant | None, tests: Sequence[str]) -> int:
    """Start the tests in a process of their own, on a change; return the process's number."""
    child = os.fork()
    if child:
        return child
    signal.alarm(SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    if mutant is not None:
        sys.meta_path.insert(0, Finder(Loader(mutant)))
    code = pytest.ExitCode.INTERNAL_ERROR
    try:
        code = pytest.ExitCode(pytest.main([*OPTIONS, *tests], [Hasty()]))
    finally:
        os._exit(code)


def survivors(every: Sequence[Mutant], jobs: int) -> Iterator[Mutant]:
    """Yield each change that no test noticed, with a dot for each that one did; nor does one that ended otherwise."""
    waiting = list(reversed(every))
    running: dict[int, Mutant] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant = waiting.pop()
            running[run(mutant, tests_of(mutant.path))] = mutant
        child, status = os.wait()
        mutant = running.pop(child)
        code = os.waitstatus_to_exitcode(status)
        if code == pytest.ExitCode.OK or code > pytest.ExitCode.INTERRUPTED:
            yield mutant
        else:
            sys.stderr.write(".")


def harmless() -> set[tuple[str, str, str]]:
    """Return the changes that are known to make no difference: module, line, change."""
    rows = tomllib.loads(HARMLESS.read_text(encoding="utf-8")).get("harmless", ())
    return {(row["module"], row["line"], change) for row in rows for change in row["changes"]}


def chosen(wanted: Sequence[str]) -> list[Path]:
    """Return the modules whose path has one of `wanted` in it; without any, all."""
    found = dict.fromkeys(path for pattern in HARDENED for path in sorted(SOURCE.glob(pattern)))
    return [path for path in found if not wanted or any(word in str(path.relative_to(SOURCE)) for word in wanted)]


def checked(path: Path) -> bool:
    """Return whether the tests of a module pass as it is; without that, every change is noticed."""
    tests = tests_of(path)
    passes = bool(tests) and os.waitstatus_to_exitcode(os.waitpid(run(None, tests), 0)[1]) == 0
    if not passes:
        say(f"{path.relative_to(ROOT)}: its tests fail as it is, or it has none")
    return passes


def say(*lines: str) -> None:
    """Write lines, now."""
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


def main() -> int:
    """Change the modules; return how many that makes too many survivors, as an exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", help="a part of the path of a module")
    parser.add_argument("--jobs", type=int, default=2, help="runs at once")
    parser.add_argument("--list", action="store_true", help="only tell the changes")
    told = parser.parse_args()
    os.chdir(ROOT)
    known = harmless()
    left, total, began = Counter[str](), 0, time.monotonic()
    for path in chosen(told.modules):
        module = str(path.relative_to(SOURCE))
        every = [one for one in mutants(path) if (module, one.text, one.change) not in known]
        if told.list:
            say(*(f"{one.place}: {one.change}: {one.text}" for one in every))
            continue
        if not every:
            continue
        if not checked(path):
            left[module] += 1
            continue
        total += len(every)
        for one in survivors(every, told.jobs):
            left[module] += 1
            say(f"{one.place}: {one.change}: {one.text}")
        if not checked(path):  # somebody was at work on the tests meanwhile
            left[module] += 1
    say(f"{total} changes, {left.total()} not noticed, {time.monotonic() - began:.0f} s")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
