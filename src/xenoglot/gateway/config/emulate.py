"""What the configuration says of models that only write text, and of servers that cannot do all that is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.backends.wrappers.emulation_settings import Emulation as Emulate
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.config.schema import join, shown, unknown
from xenoglot.text.registry import AUTO, OFF, names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from xenoglot.gateway.config.schema import Problems

__all__ = ["Emulate", "check_emulate", "check_syntax"]


def check_syntax(name: str | None, path: str, problems: Problems) -> None:
    """Note a text syntax that nobody knows; the rows are read only where one is named."""
    if name is None or name in (OFF, AUTO):
        return
    known = (AUTO, OFF, *names())
    if name not in known:
        problems.add(join(path, "text_syntax"), f"found {shown(name)}: {unknown(name, known)}")


def check_emulate(emulate: Emulate, path: str, problems: Problems) -> None:
    """Note what needs an extra that is not installed."""
    for key, require in _required(emulate):
        try:
            require()
        except ConfigurationError as error:
            problems.add(join(join(path, "emulate"), key), str(error))


def _required(emulate: Emulate) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield what makes sure of an extra, under the key that asks for it; few configurations ask for any."""
    if emulate.repair != "off":
        from xenoglot.text.json import repair  # noqa: PLC0415

        yield "repair", repair.require
    if emulate.checks:
        from xenoglot.text.json import schema  # noqa: PLC0415

        yield "check", schema.require
