"""Shortcuts: functions that do in one step what the general way does in several, and the switch that turns them off.

Theory of operation. A shortcut takes data of the most common form, and returns nothing (`None`) for any other; then its
caller takes the general way. What it returns is what the general way returns: `tests/laws` compares the two. If one of
them is wrong all the same, an operator sets `XENOGLOT_SHORTCUTS=off` and everything takes the general way. The body of
each shortcut is then replaced by one that returns nothing, when its module is imported. So the switch costs nothing
where it is not used: no call and no comparison is added.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

if TYPE_CHECKING:
    from types import CodeType, FunctionType

VARIABLE: Final = "XENOGLOT_SHORTCUTS"
OFF: Final = frozenset({"off", "0", "false", "no"})

Function = TypeVar("Function", bound=Callable[..., Any])


def _nothing(*_: object, **__: object) -> None:
    """Return `None`: the body of a shortcut that is off."""


class Shortcuts:
    """All shortcuts whose modules have been imported, and whether they are taken."""

    def __init__(self, *, taken: bool) -> None:
        self.taken = taken
        self._bodies: dict[FunctionType, CodeType] = {}

    def add(self, function: Function) -> Function:
        """Return `function`, which is a shortcut from now on. It has no variables of an enclosing function."""
        body = cast("FunctionType", function)
        self._bodies[body] = body.__code__
        self._set(body)
        return function

    def take(self, *, taken: bool) -> None:
        """Turn all shortcuts on or off, for the whole process. What has begun may go on with those that it holds."""
        self.taken = taken
        for function in self._bodies:
            self._set(function)

    def names(self) -> list[str]:
        """Return the names of the functions, with their modules, sorted."""
        return sorted(f"{function.__module__}.{function.__qualname__}" for function in self._bodies)

    def _set(self, function: FunctionType) -> None:
        function.__code__ = self._bodies[function] if self.taken else _nothing.__code__


SHORTCUTS: Final = Shortcuts(taken=os.environ.get(VARIABLE, "").strip().lower() not in OFF)

shortcut: Final = SHORTCUTS.add
"""Decorates a shortcut."""
