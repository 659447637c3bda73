"""Counted steps: the project's modules, compiled once more so that each place in them counts what it costs.

Theory of operation. A module of the project is parsed, and in its functions every place that takes steps is made to say
so: a call of a function, a round of a loop or of a comprehension count one, and what the interpreter does in one step
over many values counts their number: `in` a list, `[*values]`, `{**fields}`, `+`, `|`, `==`, a slice, an f-string, and
each call of a function of C. So the cost of a place is a number that is the same on every machine, and a place whose
cost grows as a square is found at a few dozen values, whatever the rest costs. The modules live apart from those that
the tests import: `Counted` puts them into `sys.modules` while it is entered.
"""

from __future__ import annotations

import ast
import builtins
import operator
import re
import sys
from collections import Counter
from functools import cache
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, MethodWrapperType
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import CodeType, ModuleType, TracebackType

PACKAGE: Final = "xenoglot"

HOOKS: Final = "__counted_steps__"
"""What the instrumented code calls the object that counts."""

TAKEN: Final = "__counted_steps_taken__"
"""What it calls that object's counts."""

SIZED: Final = (str, bytes, bytearray, memoryview, list, tuple, dict, set, frozenset)

FREE: Final = frozenset(
    {
        *("abs", "add", "append", "appendleft", "callable", "chr", "clear", "discard", "divmod", "end", "endswith"),
        *("get", "getattr", "group", "hasattr", "hash", "id", "isinstance", "issubclass", "items", "iter", "keys"),
        *("len", "max", "min", "next", "ord", "pop", "popleft", "popitem", "repr", "round", "setattr"),
        *("setdefault", "span", "start", "startswith", "values", "__init__", "__new__"),
    }
)
"""Calls whose cost does not hang on the size of what they get, or not on the whole of it."""

UNCOUNTED: Final = FREE - {"pop"}
"""Methods that take no steps whatever they belong to: those of a list that do are counted by what is left of it."""

TYPES: Final = frozenset({list, tuple, dict, set, frozenset, str, bytes, bytearray, int, float})
"""Types whose call walks the value that they get."""

WALKERS: Final = frozenset({map, filter, zip, enumerate, reversed})
"""Types whose call makes something that walks all values that they get."""

PLAIN_CALLS: Final = frozenset({"super", "locals", "globals"})
"""Functions that look at the frame that calls them."""

SEEKING: Final = frozenset({"find", "index"})
"""Methods that walk to what they find, from where their second argument says."""


class _SizedTypes(dict[type, bool]):
    """Whether a type is a built-in collection or text, or is derived from one."""

    def __missing__(self, kind: type) -> bool:
        self[kind] = issubclass(kind, SIZED)
        return self[kind]


_SIZED: Final = _SizedTypes()


def size(value: Any) -> int:  # noqa: ANN401  any value
    """Return how many steps it takes to walk `value`, where it is a built-in collection or text."""
    return len(value) if _SIZED[type(value)] else 0


class Steps:
    """What each place cost so far."""

    def __init__(self) -> None:
        self.taken: Counter[str] = Counter()

    def tick(self, place: str) -> bool:
        """Count one step; true, so that a comprehension can have it for a condition."""
        self.taken[place] += 1
        return True

    def walk(self, place: str, value: Any) -> Any:  # noqa: ANN401  any value
        """Count the size of what is walked or copied, and return it."""
        if _SIZED[type(value)]:
            self.taken[place] += len(value)
        return value

    def within(self, place: str, value: Any, values: Any) -> bool:  # noqa: ANN401
        """Return whether `value in values`; what is no mapping or set is walked."""
        if isinstance(values, (list, tuple, str, bytes, bytearray)):
            self.taken[place] += len(values)
        return value in values

    def equal(self, place: str, left: Any, right: Any) -> Any:  # noqa: ANN401
        """Return `left == right`; two of one size are compared to the end."""
        kind = type(left)
        if kind is type(right) and _SIZED[kind] and len(left) == len(right):
            self.taken[place] += len(left)
        return left == right

    def combined(self, place: str, left: Any, right: Any, work: Callable[[Any, Any], Any]) -> Any:  # noqa: ANN401
        """Return what an operator makes of two values, both of which it copies where they are collections."""
        if _SIZED[type(left)] or _SIZED[type(right)]:
            self.taken[place] += size(left) + size(right)
        return work(left, right)

    Add, BitOr, BitAnd, Sub, Mod = operator.add, operator.or_, operator.and_, operator.sub, operator.mod

    def grown(self, place: str, value: Any) -> None:  # noqa: ANN401
        """Count what `value += more` copies: nothing of a list, a set, a dict or a byte array."""
        if isinstance(value, (str, bytes, tuple, frozenset)):
            self.taken[place] += len(value)

    def call(self, place: str, function: Any, /, *args: Any, **named: Any) -> Any:  # noqa: ANN401
        """Call a function, and count what one of C walks."""
        kind = type(function)
        if kind is FunctionType or kind is MethodType:
            return function(*args, **named)
        if isinstance(function, (BuiltinFunctionType, MethodWrapperType)):
            name, owner = function.__name__, function.__self__
            if name in FREE and not isinstance(owner, list):
                return function(*args, **named)
            if name in SEEKING and isinstance(owner, SIZED):
                found = function(*args, **named)
                begin = args[1] if len(args) > 1 else 0
                self.taken[place] += (found if found >= 0 else len(owner)) - begin
                return found
            self.taken[place] += cost(name, owner, args, named)
        elif isinstance(function, type):
            if function in TYPES:
                self.taken[place] += sum(map(size, args[:1]))
            elif function in WALKERS:
                self.taken[place] += sum(map(size, args))
        return function(*args, **named)


def cost(name: str, owner: Any, args: Sequence[Any], named: Mapping[str, Any]) -> int:  # noqa: ANN401, PLR0911  one for each kind
    """Return how many steps a function of C takes, at most."""
    if isinstance(owner, list) and name in ("pop", "insert"):
        place = args[0] if args else -1
        return len(owner) - place if place >= 0 else -place
    if isinstance(owner, dict) and name == "update":
        return sum(map(size, args))
    if isinstance(owner, re.Pattern):
        return walked_text(args)
    if name in FREE:
        return 0
    if name == "join":
        return sum(map(len, args[0])) + len(args[0]) if isinstance(args[0], (list, tuple)) else 0
    if name in ("extend", "update", "decode_into"):
        return sum(map(size, args))
    return size(owner) + sum(map(size, args)) + sum(map(size, named.values()))


def walked_text(args: Sequence[Any]) -> int:
    """Return how much text a pattern can look at; one that is held to a place is taken to look at little."""
    return 0 if len(args) > 1 else size(args[0]) // 64


class _Instrument(ast.NodeTransformer):
    """Have the bodies of functions count their steps."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._functions: list[str] = []

    # What counts.

    def _place(self, node: ast.AST, what: str) -> ast.Constant:
        inside = ".".join([self._name, *self._functions])
        return ast.Constant(f"{inside}:{getattr(node, 'lineno', 0)} {what}")

    def _hook(self, name: str, *args: ast.expr) -> ast.Call:
        return ast.Call(ast.Attribute(ast.Name(HOOKS, ast.Load()), name, ast.Load()), [*args], [])

    def _tick(self, node: ast.AST, what: str) -> ast.stmt:
        """Return a statement that counts one step, without a call."""
        count = ast.Subscript(ast.Name(TAKEN, ast.Load()), self._place(node, what), ast.Store())
        return ast.copy_location(ast.AugAssign(count, ast.Add(), ast.Constant(1)), node)

    # Functions: nothing outside of them is run more than once.

    def _function(self, node: Any) -> Any:  # noqa: ANN401  of three kinds
        self._functions.append(node.name)
        body = [self.visit(statement) for statement in node.body]
        flat = [each for one in body for each in (one if isinstance(one, list) else [one])]
        documented = isinstance(flat[0], ast.Expr) and isinstance(flat[0].value, ast.Constant)
        node.body = [*flat[:documented], self._tick(node.body[0], "called"), *flat[documented:]]
        self._functions.pop()
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = _function  # noqa: N815  names of `ast`

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self._functions.append("lambda")
        node.body = self.visit(node.body)
        self._functions.pop()
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        node.guard = None if node.guard is None else self.visit(node.guard)
        node.body = [each for one in node.body for each in _flat(self.visit(one))]
        return node

    # Loops.

    def _loop(self, node: Any) -> Any:  # noqa: ANN401  of three kinds
        self.generic_visit(node)
        if self._functions:
            node.body = [self._tick(node, "round"), *node.body]
        return node

    visit_For = visit_AsyncFor = visit_While = _loop  # noqa: N815  the same

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        if self._functions:
            node.ifs = [self._hook("tick", self._place(node.iter, "round")), *node.ifs]
        return node

    # What the interpreter does in one step.

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not self._functions or _uncounted(node.func):
            return node
        hook = self._hook("call", self._place(node, f"{ast.unparse(node.func)[-40:]}()"), node.func, *node.args)
        hook.keywords = node.keywords
        return ast.copy_location(hook, node)

    def visit_Starred(self, node: ast.Starred) -> ast.AST:
        self.generic_visit(node)
        if self._functions and isinstance(node.ctx, ast.Load):
            node.value = self._hook("walk", self._place(node, "*"), node.value)
        return node

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        self.generic_visit(node)
        if self._functions:
            pairs = zip(node.keys, node.values, strict=True)
            node.values = [
                self._hook("walk", self._place(node, "**"), value) if key is None else value for key, value in pairs
            ]
        return node

    def visit_YieldFrom(self, node: ast.YieldFrom) -> ast.AST:
        self.generic_visit(node)
        node.value = self._hook("walk", self._place(node, "yield from"), node.value)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        for part in node.values:  # its constants must stay constants
            if isinstance(part, ast.FormattedValue):
                part.value = self.visit(part.value)
        return ast.copy_location(self._hook("walk", self._place(node, "text"), node), node) if self._functions else node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if not self._functions or len(node.ops) != 1:
            return node
        hooks = {ast.In: "within", ast.NotIn: "within", ast.Eq: "equal"}
        hook = hooks.get(type(node.ops[0]))
        if hook is None:
            return node
        made: ast.expr = self._hook(hook, self._place(node, hook), node.left, node.comparators[0])
        if isinstance(node.ops[0], ast.NotIn):
            made = ast.UnaryOp(ast.Not(), made)
        return ast.copy_location(made, node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if not self._functions or not isinstance(node.op, (ast.Add, ast.BitOr, ast.BitAnd, ast.Sub, ast.Mod)):
            return node
        work = ast.Attribute(ast.Name(HOOKS, ast.Load()), type(node.op).__name__, ast.Load())
        made = self._hook("combined", self._place(node, "operator"), node.left, node.right, work)
        return ast.copy_location(made, node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST | list[ast.AST]:
        self.generic_visit(node)
        if not self._functions or isinstance(node.target, ast.Subscript):
            return node
        node.value = self._hook("walk", self._place(node, "more"), node.value)
        target = _read(node.target)
        grown = ast.copy_location(ast.Expr(self._hook("grown", self._place(node, "grown"), target)), node)
        return [grown, node]

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if not self._functions or not isinstance(node.slice, ast.Slice):
            return node
        if isinstance(node.ctx, ast.Load):
            return ast.copy_location(self._hook("walk", self._place(node, "slice"), node), node)
        node.value = self._hook("walk", self._place(node, "moved"), node.value)
        return node


def _uncounted(function: ast.expr) -> bool:
    """Return whether a call takes no steps of its own, by its name."""
    if isinstance(function, ast.Attribute):
        return function.attr in UNCOUNTED
    plain = isinstance(function, ast.Name) and function.id
    return plain in PLAIN_CALLS or (plain in UNCOUNTED and plain in vars(builtins))


def _flat(made: Any) -> list[ast.stmt]:  # noqa: ANN401  a statement or several
    return made if isinstance(made, list) else [made]


def _read(target: ast.expr) -> ast.expr:
    """Return what reads the target of an assignment."""
    if isinstance(target, ast.Attribute):
        return ast.Attribute(target.value, target.attr, ast.Load())
    return ast.Name(target.id, ast.Load()) if isinstance(target, ast.Name) else ast.Constant(None)


@cache
def _instrumented(name: str, path: str) -> CodeType:
    """Return a module's code, counting: the same for all tests of a process."""
    tree = _Instrument(name.removeprefix(f"{PACKAGE}.")).visit(ast.parse(Path(path).read_bytes()))
    return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


class _Loading(SourceFileLoader):
    """Load a module, its functions counting."""

    steps: Steps

    def get_code(self, fullname: str) -> CodeType:
        return _instrumented(fullname, self.get_filename(fullname))

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__.update({HOOKS: self.steps, TAKEN: self.steps.taken})
        super().exec_module(module)


class Counted(MetaPathFinder):
    """The project in another world, where it counts. Entered, `import` finds its modules there; left, it does not."""

    def __init__(self) -> None:
        self.steps = Steps()
        self._inside: dict[str, ModuleType] = {}
        self._outside: dict[str, ModuleType] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module of the project, to be loaded by us."""
        if fullname.partition(".")[0] != PACKAGE:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin is not None and isinstance(spec.loader, Loader):
            loader = _Loading(fullname, spec.origin)
            loader.steps = self.steps
            spec.loader = loader
        return spec

    def __enter__(self) -> Self:
        self._outside = _taken_out()
        sys.modules.update(self._inside)
        sys.meta_path.insert(0, self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        sys.meta_path.remove(self)
        self._inside = _taken_out()
        sys.modules.update(self._outside)

    def module(self, name: str) -> ModuleType:
        """Return one of the modules that count, by its name in the package."""
        return import_module(f"{PACKAGE}.{name}")

    def function(self, source: str, module: ModuleType) -> Callable[..., Any]:
        """Return the function in `source`, counting, as if it stood in `module`."""
        tree = _Instrument("put_back").visit(ast.parse(source))
        found: dict[str, Callable[..., Any]] = {}
        exec(compile(ast.fix_missing_locations(tree), "<put back>", "exec"), module.__dict__, found)  # noqa: S102  ours
        (function,) = found.values()
        return function

    def cost(self, work: Callable[[], object]) -> Counter[str]:
        """Return what each place cost while `work` was done."""
        self.steps.taken.clear()
        work()
        return Counter(self.steps.taken)


def _taken_out() -> dict[str, ModuleType]:
    """Return the project's modules, and take them out of `sys.modules`."""
    names = [name for name in sys.modules if name.partition(".")[0] == PACKAGE]
    return {name: sys.modules.pop(name) for name in names}


def steep(once: Mapping[str, int], twice: Mapping[str, int], most: float, slack: int) -> dict[str, str]:
    """Return the places that cost more than `most` times as much at twice the size, and what they cost."""
    found = [place for place in twice if twice[place] > most * once.get(place, 0) + slack]
    return {place: f"{once.get(place, 0)} -> {twice[place]}" for place in sorted(found, key=twice.__getitem__)}
