"""Man pages of the program and its commands, from the argument parser; the build of a wheel writes them.

Source of the format: man(7), https://man7.org/linux/man-pages/man7/man.7.html.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from xenoglot.command_help import EXAMPLES, CommandParser, HelpFormatter, commands_of, metavar, sections

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FILES: Final = (
    ("./xenoglot.toml", "configuration, written by xenoglot init"),
    ("$XDG_STATE_HOME/xenoglot", "histories and agent sessions; default: ~/.local/state/xenoglot"),
    ("$XDG_CACHE_HOME/xenoglot", "weights of the embedded model; default: ~/.cache/xenoglot"),
)

EXIT_STATUS: Final = (
    ("0", "success"),
    ("1", "differences (replay), failed lines (batch)"),
    ("2", "usage error"),
    ("3", "losses that were refused (translate)"),
    ("4, 5, 6", "unfinished (batch, agent), a budget is spent, the model refused (agent)"),
    ("7", "the server refused the request"),
    ("8", "the server cannot be reached, failed or is busy"),
    ("130", "interrupted"),
)


def man_pages(parser: CommandParser, version: str) -> dict[str, str]:
    """Return the pages of a program and each of its commands, by their file names."""
    commands = commands_of(parser)
    summaries = {} if commands is None else {one.dest: one.help or "" for one in commands._choices_actions}  # noqa: SLF001  argparse tells them in no other way
    pages = {f"{parser.prog}.1": _page(parser, "use any LLM client with any model", version, [*summaries])}
    for name, one in _parsers(parser).items():
        pages[f"{parser.prog}-{name}.1"] = _page(one, summaries.get(name, ""), version, [])
    return pages


def _parsers(parser: CommandParser) -> Mapping[str, CommandParser]:
    commands = commands_of(parser)
    return {} if commands is None else dict(commands.choices)


def _page(parser: CommandParser, summary: str, version: str, related: list[str]) -> str:
    name = parser.prog.replace(" ", "-")
    lines = [
        f'.TH {_text(name.upper())} 1 "" "xenoglot {_text(version)}" "User Commands"',
        ".SH NAME",
        f"{_text(name)} \\- {_text(summary)}",
        ".SH SYNOPSIS",
        f".B {_text(parser.short_usage())}",
        ".SH DESCRIPTION",
        _text(parser.description or ""),
        *_sections(parser, "SH"),
    ]
    for one in _parsers(parser).values() if not related else ():
        lines += [f'.SH "{_text(one.prog.upper())}"', _text(one.description or ""), *_sections(one, "SS")]
    if parser.epilog:
        lines += [".PP", _text(parser.epilog)]
    if examples := EXAMPLES.get(parser.command):
        lines += [".SH EXAMPLES", ".nf", *map(_text, examples), ".fi"]
    if related:
        lines += [*_table("EXIT STATUS", EXIT_STATUS), *_table("FILES", FILES), ".SH SEE ALSO"]
        lines += [f".BR {_text(f'{name}-{command}')} (1)" for command in related]
    return "\n".join(filter(None, lines)) + "\n"


def _sections(parser: CommandParser, macro: str) -> Iterator[str]:
    formatter = HelpFormatter(parser.prog)
    for title, description, actions in sections(parser):
        yield f'.{macro} "{_text((title or "").upper())}"'
        if description:
            yield _text(description)
        for action in actions:
            if action.help is not argparse.SUPPRESS:
                yield from (".TP", f".B {_text(_invocation(action))}", _text(formatter.expanded_help(action)))


def _invocation(action: argparse.Action) -> str:
    if not action.option_strings:
        return metavar(action)
    value = "" if action.nargs == 0 else f" {metavar(action)}"
    return ", ".join(action.option_strings) + value


def _table(title: str, rows: tuple[tuple[str, str], ...]) -> Iterator[str]:
    yield f'.SH "{title}"'
    for name, text in rows:
        yield from (".TP", f".B {_text(name)}", _text(text))


def _text(text: str) -> str:
    """Escape a text: backslashes, hyphens that can be copied, and what would be a macro at the start of a line."""
    escaped = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
