"""Argument parsers of the commands `run`, `init` and `completion`; their implementations are imported on use."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from xenoglot import model_selection
from xenoglot.dialect_registry import names

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

END = "--"
SHELLS = ("bash", "zsh", "fish")


def add_commands(commands: argparse._SubParsersAction[Any], parser: argparse.ArgumentParser) -> None:
    """Add the commands to `parser`; each sets `run`: options -> exit code."""
    _add_run(commands)
    _add_init(commands)
    completion = commands.add_parser(
        "completion",
        help="print a script by which a shell completes what is typed",
        description="Print a script by which a shell completes what is typed; the shell has to read it when it starts.",
    )
    completion.add_argument("shell", choices=SHELLS, help="which shell")
    completion.set_defaults(run=partial(_complete, parser=parser))


def _add_run(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "run",
        help="start a program (claude, codex, ...) that asks a gateway",
        description="Start a program so that it asks a gateway: one that runs already, or one for this run alone. "
        "What the program keeps for itself is not changed. What stands behind `--` is for the program.",
        usage="%(prog)s PROGRAM [flags] [-- arguments of the program]",
    )
    parser.add_argument("program", nargs="?", metavar="PROGRAM", help="one of those that `--list` names")
    parser.add_argument("--list", action="store_true", help="list the programs known, and where they are")
    parser.add_argument("--print", action="store_true", help="show what would be set, without keys, and end")
    parser.add_argument("--gateway", metavar="URL", help="ask the gateway there, and start none")
    parser.add_argument("--client-key-env", metavar="NAME", help="the variable that holds a key for that gateway")
    parser.add_argument("--log", metavar="FILE", help="append the log of the gateway of this run to this file")
    parser.add_argument(
        "--context", type=_tokens, metavar="N", help="the model's context window in tokens (what the gateway lists)"
    )
    model_selection.add_config(parser)
    model_selection.add_upstream(parser)
    model_selection.add_preserve(parser, "on, for programs of another dialect than the upstream")
    parser.set_defaults(run=_run, passed=())
    _pass_the_rest(parser)


def _tokens(text: str) -> int:
    """Parse a number of tokens.

    Raises:
        ValueError: it is not a number of tokens.
    """
    tokens = int(text)
    if tokens < 1:
        raise ValueError(text)
    return tokens


def _add_init(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "init",
        help="write a configuration file, by asking",
        description="Write a configuration file for `serve --config`, by asking what is not said by flags.",
    )
    parser.add_argument("--output", metavar="FILE", default="xenoglot.toml", help="the file (xenoglot.toml)")
    parser.add_argument("--upstream", metavar="WHO", help="a provider, the URL of a server, or `embedded`")
    parser.add_argument("--dialect", choices=names(), help="what that server speaks")
    parser.add_argument("--key-env", metavar="NAME", help="the variable that holds its key, or `none`")
    parser.add_argument(
        "--setting", action="append", default=[], metavar="NAME=VALUE", help="what a provider's address needs"
    )
    parser.add_argument("--model", action="append", metavar="NAME", help="what may be asked for; `*` is all")
    parser.add_argument(
        "--embedded", action="store_true", default=None, help="have the embedded model answer to its name, too"
    )
    parser.add_argument("--port", metavar="N", help="the port to listen on (8080)")
    parser.add_argument("--client-key-env", metavar="NAME", help="the variable with the keys of clients, or `none`")
    parser.add_argument("--store", metavar="URL", help="where to keep things: sqlite, sqlite:///PATH, memory, off")
    parser.add_argument("--yes", action="store_true", help="ask nothing: take what is usual")
    parser.add_argument("--force", action="store_true", help="write over a file that is there")
    parser.set_defaults(run=_init)


def _pass_the_rest(parser: argparse.ArgumentParser) -> None:
    """Exclude the arguments after `--` from parsing; they become `passed`."""
    parse = parser.parse_known_args

    def parted(args: Sequence[str] | None = None, namespace: Any = None) -> tuple[Any, list[str]]:  # noqa: ANN401  those of the parser
        given = list(sys.argv[1:] if args is None else args)
        at = given.index(END) if END in given else len(given)
        options, unknown = parse(given[:at], namespace)
        options.passed = given[at + 1 :]
        return options, unknown

    parser.parse_known_args = parted  # type: ignore[method-assign, assignment]  # argparse has no other place for it


def _run(options: argparse.Namespace) -> int:
    from xenoglot.launching.run import run  # noqa: PLC0415  only this command needs it

    return run(options)


def _complete(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from xenoglot.launching.completion import script  # noqa: PLC0415  as above

    print(script(parser, options.shell))  # noqa: T201  what was asked for
    return 0


def _init(options: argparse.Namespace) -> int:
    from xenoglot.launching.init import run  # noqa: PLC0415  as above

    return run(options)
