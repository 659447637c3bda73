"""Argument parser of the command `xenoglot agent`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from xenoglot import model_selection

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.agent.screen import Screen

ROUNDS = 50
DELEGATED = 16
_OF_BACKGROUND = ("background", "ps", "logs", "kill", "follow", "detached")
_EPILOG = (
    "Exit codes: 0 the model is done, 2 usage error, 4 --max-rounds reached, 5 a budget is spent, "
    "6 the model refused, 7 the server refused the request, 8 the server cannot be reached or failed, 130 interrupted."
)


def add_command(
    commands: argparse._SubParsersAction[Any],
    screen_of: Callable[[], Screen] | None = None,
) -> None:
    """Add the command; `screen_of` creates the interactive screen, without it the screen is plain lines."""
    parser = commands.add_parser(
        "agent",
        help="let a model work in a folder",
        description="Let a model work in a folder. It can read files; it asks before it changes files or runs "
        "commands, unless flags allow that. Without a terminal it can only read.",
        epilog=_EPILOG,
    )
    parser.add_argument(
        "prompt",
        nargs="?",
        metavar="PROMPT",
        help="the task; `-` reads it from standard input (default: prompt for it)",
    )
    _add_permissions(parser)
    _add_session(parser)
    _add_background(parser)
    _add_limits(parser)
    parser.add_argument("--system", metavar="TEXT", help="additional instructions")
    parser.add_argument("--no-notes", action="store_true", help="do not read AGENTS.md or CLAUDE.md in the folder")
    parser.add_argument(
        "--schema", metavar="FILE", help="JSON Schema of the answer; only the answer is printed on standard output"
    )
    parser.add_argument("--json", action="store_true", help="print each event as one line of JSON")
    parser.add_argument("--plain", action="store_true", help="print plain lines on a terminal too")
    model_selection.add_config(parser)
    model_selection.add_upstream(parser)
    model_selection.add_python(parser)
    model_selection.add_price(parser)
    parser.set_defaults(run=lambda options: _run(options, screen_of), begun=None)


def _add_permissions(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("permissions")
    group.add_argument("--folder", metavar="DIR", default=".", help="folder to work in (default: the current one)")
    group.add_argument("--allow-write", action="store_true", help="change files without asking")
    group.add_argument(
        "--allow-shell", action="store_true", help="run commands without asking: as you, without a sandbox"
    )
    group.add_argument("--allow-secrets", action="store_true", help="also open files such as .env, *.pem and id_rsa")
    group.add_argument("--mcp", metavar="FILE", help="JSON file of MCP servers (`mcpServers`) whose tools it can call")
    group.add_argument("--allow-mcp", action="store_true", help="call tools of MCP servers without asking")
    group.add_argument(
        "--policy", metavar="FILE", help="TOML file with rules that deny, ask for, allow and limit tools"
    )
    group.add_argument(
        "--delegate", action="store_true", help="allow delegating tasks to further agents with fewer permissions"
    )
    group.add_argument("--read-only", action="store_true", help="neither change files nor run commands, and do not ask")


def _add_session(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("sessions")
    which = group.add_mutually_exclusive_group()
    which.add_argument("--resume", metavar="ID", help="resume a session")
    which.add_argument("--continue", dest="latest", action="store_true", help="resume the newest session of the folder")
    which.add_argument("--sessions", action="store_true", help="list the sessions, and exit")
    which.add_argument("--no-session", action="store_true", help="do not keep the session")


def _add_background(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("background")
    what = group.add_mutually_exclusive_group()
    what.add_argument("--background", action="store_true", help="run in the background, and print the ID")
    what.add_argument("--ps", action="store_true", help="list the running sessions, and exit")
    what.add_argument("--logs", metavar="ID", help="print the output of a background run, and exit")
    what.add_argument("--kill", metavar="ID", help="end the run of that session")
    what.add_argument("--detached", action="store_true", help=argparse.SUPPRESS)  # what `--background` starts
    group.add_argument("--follow", action="store_true", help="with --logs: print until the run has ended")


def _add_limits(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "limits", "Limits of tokens, cost, calls and seconds apply to a session as a whole. N is at least 1."
    )
    group.add_argument(
        "--max-rounds", metavar="N", type=_count, default=ROUNDS, help=f"model answers per prompt (default: {ROUNDS})"
    )
    group.add_argument(
        "--max-tokens-total", metavar="N", type=_count, help="tokens of all prompts and answers together"
    )
    group.add_argument(
        "--max-cost",
        metavar="AMOUNT",
        type=_amount,
        help="cost in US dollars; --price sets prices of a model that is not listed",
    )
    group.add_argument("--max-calls", metavar="N", type=_count, help="tool calls")
    group.add_argument(
        "--max-delegated",
        metavar="N",
        type=_count,
        default=DELEGATED,
        help=f"tasks for --delegate (default: {DELEGATED})",
    )
    group.add_argument("--max-seconds", metavar="S", type=_amount, help="seconds of work")
    group.add_argument("--max-tokens", metavar="N", type=_count, help="most tokens of one answer")
    group.add_argument("--temperature", metavar="T", type=_amount, help="0 to 2; higher is more random")
    group.add_argument(
        "--no-compaction", action="store_true", help="do not compact conversations that exceed the context window"
    )


def _count(text: str) -> int:
    if (value := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"found {value}; expected at least 1")
    return value


def _amount(text: str) -> float:
    if not 0 <= (value := float(text)) < float("inf"):
        raise argparse.ArgumentTypeError(f"found {text}; expected 0 or more")
    return value


def _run(options: argparse.Namespace, screen_of: Callable[[], Screen] | None) -> int:
    if any(getattr(options, name) not in {None, False} for name in _OF_BACKGROUND):
        from xenoglot.agent import background  # noqa: PLC0415  only this needs it

        return background.run(options)
    from xenoglot.agent.main import run  # noqa: PLC0415  only this command needs it

    return run(options, screen_of)
