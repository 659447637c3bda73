"""The command `xenoglot completion`: a shell completion script for commands, flags, names and files."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from xenoglot.programs import catalog as programs
from xenoglot.providers import catalog
from xenoglot.text import registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

FILES = {"FILE", "PATH", "INPUT", "OUTPUT"}
FOLDERS = {"DIR"}
"""How a value is called where it is a file, or a folder."""


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the script for `shell`; the parser is not good for reading arguments afterwards.

    Raises:
        ModuleNotFoundError: the extra that writes it is not installed.
    """
    import shtab  # noqa: PLC0415  an extra

    for action in _actions(parser):
        told: Any = action
        if action.metavar in FILES:
            told.complete = shtab.FILE
        elif action.metavar in FOLDERS:
            told.complete = shtab.DIRECTORY
        elif action.choices is None and action.dest in _NAMES:
            action.choices = _NAMES[action.dest]()
    return shtab.complete(parser, shell=shell)


_NAMES: dict[str, Callable[[], Sequence[str]]] = {
    "upstream": catalog.names,
    "program": programs.names,
    "text_syntax": lambda: (registry.AUTO, registry.OFF, *registry.names()),
    "syntax": lambda: (registry.AUTO, registry.OFF, *registry.names()),
}
"""What a value may be that can be something else, too."""


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield all flags and arguments, including those of the commands."""
    for action in parser._actions:  # noqa: SLF001  argparse tells them in no other way
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001  as above
            for one in action.choices.values():
                yield from _actions(one)
        else:
            yield action
