"""Shortcuts: functions that do in one step what the general way does in several, and the switch that turns them off.

Theory of operation. A shortcut takes data of the most common form, and returns nothing (`None`) for any other; then
its caller takes the general way. What it returns is what the general way returns: `tests/laws` compares the two. If
one of them is wrong all the same, an operator sets `XENOGLOT_SHORTCUTS=off` and everything takes the general way, or
turns off some groups alone: `XENOGLOT_SHORTCUTS=-templates,-frames`. The body of each shortcut that is off is
replaced by one that returns nothing, when its module is imported. So the switch costs nothing where it is not used:
no call and no comparison is added.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast, get_args

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import CodeType, FunctionType

Group = Literal["callbacks", "chunks", "frames", "heads", "messages", "templates", "usage"]
"""What shortcuts are turned off together.

- `callbacks`: requests served by the connections' own callbacks, without a task;
- `chunks`: chunks of a stream of the common shapes, read without a `Reader`; templates are made of them;
- `frames`: frames of a stream written from ready bytes;
- `heads`: heads of requests that repeat;
- `messages`: messages, tools, answers and usage of the common shapes, read and written without a `Reader`;
- `templates`: events of a stream read by the bytes that they share with the event before;
- `usage`: usage and finish reason found in answers whose bytes pass.
"""

GROUPS: Final[tuple[Group, ...]] = get_args(Group)
VARIABLE: Final = "XENOGLOT_SHORTCUTS"
OFF: Final = frozenset({"off", "0", "false", "no"})
ON: Final = frozenset({"", "on", "1", "true", "yes"})

Function = TypeVar("Function", bound=Callable[..., Any])


def _nothing(*_: object, **__: object) -> None:
    """Return `None`: the body of a shortcut that is off."""


def turned_off(value: str) -> frozenset[Group]:
    """Return the groups that a value of `XENOGLOT_SHORTCUTS` turns off.

    Raises:
        ValueError: the value is neither on nor off, nor a list of groups, each with a minus in front.
    """
    word = value.strip().lower()
    if word in ON:
        return frozenset()
    if word in OFF:
        return frozenset(GROUPS)
    names = [name.strip() for name in word.split(",")]
    off = frozenset(group for group in GROUPS if f"-{group}" in names)
    unknown = [name for name in names if name.removeprefix("-") not in off]
    if unknown:
        known = ", ".join(f"-{group}" for group in GROUPS)
        raise ValueError(f"{VARIABLE}: found {unknown[0]!r}; expected on, off or a list of: {known}")
    return off


class Shortcuts:
    """All shortcuts whose modules have been imported, and the groups of them that are off."""

    def __init__(self, off: Iterable[Group] = ()) -> None:
        self.off = frozenset(off)
        self._bodies: dict[FunctionType, tuple[Group, CodeType]] = {}

    def add(self, group: Group) -> Callable[[Function], Function]:
        """Return a decorator that makes a function a shortcut. It has no variables of an enclosing function."""

        def decorate(function: Function) -> Function:
            body = cast("FunctionType", function)
            self._bodies[body] = group, body.__code__
            self._set(body)
            return function

        return decorate

    def turn_off(self, groups: Iterable[Group]) -> None:
        """Turn these groups off and all others on, for the whole process.

        Requests in progress may continue with the shortcuts that they hold.
        """
        self.off = frozenset(groups)
        for function in self._bodies:
            self._set(function)

    def names(self) -> dict[str, Group]:
        """Return the names of the functions, with their modules, sorted, and the group of each."""
        found = {
            f"{function.__module__}.{function.__qualname__}": group for function, (group, _) in self._bodies.items()
        }
        return dict(sorted(found.items()))

    def _set(self, function: FunctionType) -> None:
        group, body = self._bodies[function]
        function.__code__ = _nothing.__code__ if group in self.off else body


SHORTCUTS: Final = Shortcuts(turned_off(os.environ.get(VARIABLE, "")))

shortcut: Final = SHORTCUTS.add
"""Gives the decorator of a shortcut of a group."""
