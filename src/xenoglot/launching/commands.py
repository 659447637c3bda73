"""Argument parsers of `run`, `init`, `health` and `completion`; the implementations are imported on use."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from xenoglot import model_selection
from xenoglot.dialect_registry import argument, names

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

END = "--"
SHELLS = ("bash", "zsh", "fish")
DEFAULT_URL = "http://127.0.0.1:8080"
LONGEST_WAIT = 3600.0
"""Seconds that a check may be allowed, and less."""


def add_commands(commands: argparse._SubParsersAction[Any], parser: argparse.ArgumentParser) -> None:
    """Add the commands to `parser`; each sets `run`: options -> exit code."""
    _add_run(commands)
    _add_init(commands)
    _add_config(commands)
    _add_health(commands)
    _add_console(commands)
    completion = commands.add_parser(
        "completion",
        help="print a completion script for a shell",
        description="Print a completion script for a shell, which must load it when it starts. Packages install it.",
    )
    completion.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash, zsh or fish")
    completion.set_defaults(run=partial(_complete, parser=parser))


def _add_run(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "run",
        help="start a program (claude, codex, ...) that uses a gateway",
        description="Start a program that uses a gateway: one that is running already, or one for this run only. "
        "The program's own configuration files are not changed. Arguments after `--` are passed to the program.",
        usage="%(prog)s PROGRAM [flags] [-- arguments of the program]",
    )
    parser.add_argument("program", nargs="?", metavar="PROGRAM", help="a name from `--list`")
    parser.add_argument("--list", action="store_true", help="list the known programs and their paths")
    parser.add_argument("--print", action="store_true", help="print the settings without keys, and exit")
    parser.add_argument("--gateway", metavar="URL", help="use the gateway at this URL, and start none")
    parser.add_argument(
        "--client-key-env", metavar="NAME", help="environment variable with a client key for that gateway"
    )
    parser.add_argument("--log", metavar="FILE", help="append the log of this run's gateway to this file")
    parser.add_argument(
        "--context",
        type=_tokens,
        metavar="N",
        help="the model's context window in tokens (default: as the gateway lists it)",
    )
    model_selection.add_config(parser)
    model_selection.add_upstream(parser, logins=True)
    model_selection.add_preserve(parser, "default: on, for programs of another dialect than the upstream")
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
        help="create a configuration file interactively",
        description="Create a configuration file for `xenoglot serve`. Prompts for everything that no flag sets.",
    )
    parser.add_argument(
        "--output", metavar="FILE", default="xenoglot.toml", help="output file (default: xenoglot.toml)"
    )
    parser.add_argument("--upstream", metavar="WHO", help="provider name, URL of a server, or `embedded`")
    parser.add_argument("--dialect", type=argument, choices=names(), help="dialect of that server")
    parser.add_argument("--key-env", metavar="NAME", help="environment variable with its API key, or `none`")
    parser.add_argument(
        "--setting",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting that the provider's URL requires",
    )
    parser.add_argument("--model", action="append", metavar="NAME", help="model that clients can request; `*` for all")
    parser.add_argument(
        "--embedded", action="store_true", default=None, help="serve the embedded model too, under its own name"
    )
    parser.add_argument("--port", metavar="N", help="port to listen on (default: 8080)")
    parser.add_argument("--client-key-env", metavar="NAME", help="environment variable with the client keys, or `none`")
    parser.add_argument(
        "--store", metavar="URL", help="store of responses and files: sqlite, sqlite:///PATH, memory, off"
    )
    parser.add_argument("--yes", action="store_true", help="do not prompt: use the defaults")
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")
    parser.set_defaults(run=_init)


def _add_config(commands: argparse._SubParsersAction[Any]) -> None:
    config = commands.add_parser(
        "config",
        help="show or change the configuration",
        description="Show or change the configuration that the other commands use if no file is named.",
    )
    actions = config.add_subparsers(title="actions", required=True, metavar="ACTION")
    show = actions.add_parser("show", help="print what is set and where it comes from, without keys")
    model_selection.add_config(show)
    show.set_defaults(finds_defaults=False)  # it shows the source of each
    show.add_argument("--all", action="store_true", help="print the defaults too")
    setting = actions.add_parser(
        "set",
        help="set values in the file, keeping its comments",
        description="Set values in ./xenoglot.toml if it exists, else in the user's file, as in: "
        "xenoglot config set upstreams.main.provider groq server.port 9000",
    )
    setting.add_argument("values", nargs="+", metavar="KEY VALUE", help="keys as in the file: models[0].name")
    setting.add_argument("--user", action="store_true", help="change the user's file even if ./xenoglot.toml exists")
    setting.add_argument("--config", metavar="FILE", help="change this file")
    actions.add_parser("path", help="print the path of the file that is used")
    trust = actions.add_parser(
        "trust",
        help="trust ./xenoglot.toml as it is now",
        description="Trust a file of the current directory as it is now: it may send keys and prompts to the "
        "hosts that it names. After a change it has to be trusted again.",
    )
    trust.add_argument("file", nargs="?", metavar="FILE", default="xenoglot.toml", help="default: ./xenoglot.toml")
    for name, action in actions.choices.items():
        action.set_defaults(run=partial(_config, action=name))


def _config(options: argparse.Namespace, action: str) -> int:
    from xenoglot.launching import config_command  # noqa: PLC0415  only this command needs it

    do = {"set": config_command.set_values, "show": config_command.show, "path": config_command.path}
    return do.get(action, config_command.trust)(options, partial(print, flush=True))


def _add_health(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "health",
        help="check whether a gateway is ready",
        description="Check whether a gateway is ready. Exit code 0: it is; 1: it is not, or cannot be reached.",
    )
    parser.add_argument(
        "url",
        nargs="?",
        metavar="URL",
        default=os.environ.get("XENOGLOT_URL") or DEFAULT_URL,
        help=f"base URL (default: $XENOGLOT_URL, else {DEFAULT_URL})",
    )
    parser.add_argument("--live", action="store_true", help="check only that the process answers, also while it drains")
    parser.add_argument("--timeout", type=_seconds, metavar="SECONDS", default=3.0, help="time limit (default: 3)")
    parser.set_defaults(run=_health)


def _add_console(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "console",
        help="open the web console of a gateway",
        description="Open the web console of a running gateway in the browser.",
    )
    parser.add_argument(
        "url",
        nargs="?",
        metavar="URL",
        default=os.environ.get("XENOGLOT_URL") or DEFAULT_URL,
        help=f"base URL (default: $XENOGLOT_URL, else {DEFAULT_URL})",
    )
    parser.add_argument("--print", action="store_true", help="print the URL of the console, and open nothing")
    parser.set_defaults(run=_console)


def _console(options: argparse.Namespace) -> int:
    from xenoglot.launching import console_command  # noqa: PLC0415  only this command needs it

    return console_command.run(options)


def _seconds(text: str) -> float:
    """Parse a time limit.

    Raises:
        ValueError: it is not a positive number.
    """
    seconds = float(text)
    if not 0 < seconds < LONGEST_WAIT:
        raise ValueError(text)
    return seconds


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


def _health(options: argparse.Namespace) -> int:
    from xenoglot.launching.health import run  # noqa: PLC0415  as above

    return run(options)
