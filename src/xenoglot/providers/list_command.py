"""The command `xenoglot providers`: lists the known providers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator


def add_command(commands: argparse._SubParsersAction[Any], say: Callable[[str], None]) -> None:
    """Add the command to the others; `say` prints a line."""
    parser = commands.add_parser(
        "providers",
        help="list the known providers",
        description="List the providers that --upstream accepts: name, dialects (default first), environment variable "
        "with the API key.",
    )
    parser.set_defaults(run=lambda _: _print(say))


def lines() -> Iterator[str]:
    """Yield a line for each provider: its name, the dialects it speaks, the variable that holds its key.

    Raises:
        ConfigurationError: another package brings a row that cannot be used.
    """
    from xenoglot.providers import catalog  # noqa: PLC0415  only this command needs it

    rows = [catalog.get(name) for name in catalog.names()]
    told = [(row.name, " ".join(face.dialect for face in row.faces), row.key_env or "-") for row in rows]
    name, spoken = (max((len(cells[place]) for cells in told), default=0) for place in (0, 1))
    for cells in told:
        yield f"{cells[0]:{name}}  {cells[1]:{spoken}}  {cells[2]}"


def _print(say: Callable[[str], None]) -> int:
    for line in lines():
        say(line)
    return 0
