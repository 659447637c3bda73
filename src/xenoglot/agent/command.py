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
    "It ends with 0 when the model is done, 2 where no answer comes or something is wrong, 4 after --max-rounds, 5 "
    "where a budget is spent, 6 where the model refuses, 130 where it was interrupted."
)


def add_command(
    commands: argparse._SubParsersAction[Any],
    screen_of: Callable[[], Screen] | None = None,
) -> None:
    """Add the command; `screen_of` creates the interactive screen, without it the screen is plain lines."""
    parser = commands.add_parser(
        "agent",
        help="let a model work in a folder",
        description="Let a model work in a folder. It may look at files; to change them, or to run commands, it asks, "
        "or is allowed to by flags. Without anybody to ask it can only look.",
        epilog=_EPILOG,
    )
    parser.add_argument(
        "prompt", nargs="?", help="what to do; `-` reads it from standard input; without it, ask for one"
    )
    _add_permissions(parser)
    _add_session(parser)
    _add_background(parser)
    _add_limits(parser)
    parser.add_argument("--system", metavar="TEXT", help="instructions beside the usual ones")
    parser.add_argument("--no-notes", action="store_true", help="do not read AGENTS.md or CLAUDE.md of the folder")
    parser.add_argument(
        "--schema", metavar="FILE", help="a JSON Schema for the answer, which alone goes to standard output"
    )
    parser.add_argument("--json", action="store_true", help="print each event as one line of JSON")
    parser.add_argument("--plain", action="store_true", help="print plain lines, also on a terminal")
    model_selection.add_config(parser)
    model_selection.add_upstream(parser)
    model_selection.add_python(parser)
    model_selection.add_price(parser)
    parser.set_defaults(run=lambda options: _run(options, screen_of), begun=None)


def _add_permissions(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what it may do")
    group.add_argument("--folder", metavar="DIR", default=".", help="the folder to work in (where you are)")
    group.add_argument("--allow-write", action="store_true", help="change files without asking")
    group.add_argument(
        "--allow-shell", action="store_true", help="run commands without asking: as you, with no sandbox"
    )
    group.add_argument("--allow-secrets", action="store_true", help="open files such as .env, *.pem and id_rsa, too")
    group.add_argument(
        "--mcp", metavar="FILE", help="a JSON file of MCP servers (`mcpServers`), whose tools it is given"
    )
    group.add_argument("--allow-mcp", action="store_true", help="call the tools of these without asking")
    group.add_argument(
        "--policy", metavar="FILE", help="a TOML file of yours that denies tools, asks, allows, and limits"
    )
    group.add_argument("--delegate", action="store_true", help="have parts of the work done by others, with less leave")
    group.add_argument("--read-only", action="store_true", help="neither change files nor run commands; ask nothing")


def _add_session(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("sessions")
    which = group.add_mutually_exclusive_group()
    which.add_argument("--resume", metavar="ID", help="go on with a session")
    which.add_argument("--continue", dest="latest", action="store_true", help="go on with the newest one of the folder")
    which.add_argument("--sessions", action="store_true", help="list the sessions, and end")
    which.add_argument("--no-session", action="store_true", help="keep nothing")


def _add_background(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("background")
    what = group.add_mutually_exclusive_group()
    what.add_argument("--background", action="store_true", help="work on while you do something else; print the ID")
    what.add_argument("--ps", action="store_true", help="list the sessions that are worked in, and end")
    what.add_argument("--logs", metavar="ID", help="print what a background run has printed, and end")
    what.add_argument("--kill", metavar="ID", help="end whoever works in that session")
    what.add_argument("--detached", action="store_true", help=argparse.SUPPRESS)  # what `--background` starts
    group.add_argument("--follow", action="store_true", help="with --logs: until the run has ended")


def _add_limits(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("limits (those of tokens, cost, calls and seconds hold for a session as a whole)")
    group.add_argument("--max-rounds", metavar="N", type=_count, default=ROUNDS, help=f"answers to a prompt ({ROUNDS})")
    group.add_argument("--max-tokens-total", metavar="N", type=_count, help="tokens of all prompts and answers")
    group.add_argument(
        "--max-cost",
        metavar="AMOUNT",
        type=_amount,
        help="what it may cost: see --price for a model that is not listed",
    )
    group.add_argument("--max-calls", metavar="N", type=_count, help="calls of tools")
    group.add_argument(
        "--max-delegated", metavar="N", type=_count, default=DELEGATED, help=f"tasks for --delegate ({DELEGATED})"
    )
    group.add_argument("--max-seconds", metavar="S", type=_amount, help="seconds of work")
    group.add_argument("--max-tokens", metavar="N", type=_count, help="tokens of one answer")
    group.add_argument("--temperature", metavar="T", type=_amount, help="how daring the choice of words is")
    group.add_argument("--no-compaction", action="store_true", help="do not shorten a conversation that grows too long")


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
