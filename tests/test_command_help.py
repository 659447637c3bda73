"""`--help` of the program and of each command: grouped, narrow, in plain English, with examples that parse."""

from __future__ import annotations

import argparse
import re
import shlex
from typing import TYPE_CHECKING

import pytest

from xenoglot.cli import command_parser, main
from xenoglot.command_help import COMMANDS, EXAMPLES, OTHERS, CommandParser, commands_of

if TYPE_CHECKING:
    from collections.abc import Iterator

PARSER = command_parser()
ACTION = commands_of(PARSER)
assert ACTION is not None
PARSERS: dict[str, CommandParser] = {"": PARSER, **ACTION.choices}

NOT_PLAIN = re.compile(
    r"\b(whoever|anew|nobody|somebody|is there|there is|said|tells?|told|speaks?|asked|begun|behind|parted|of yours|"
    r"be had|goes? on|by which|daring|keeps? nothing|what a person)\b"
)
"""Words of the old voice, see the rules for prose in CONTRIBUTING.md."""

EVERY = pytest.mark.parametrize("name", PARSERS, ids=[name or "program" for name in PARSERS])


def texts(parser: argparse.ArgumentParser) -> Iterator[str]:
    """All that a help says in words."""
    yield from (text for text in (parser.description, parser.epilog) if text)
    for group in parser._action_groups:
        yield from (text for text in (group.title, group.description) if text)
        yield from (one.help for one in group._group_actions if one.help and one.help != argparse.SUPPRESS)
    if parser is PARSER and ACTION is not None:
        yield from (one.help for one in ACTION._choices_actions if one.help)


@EVERY
def test_a_help_fits_a_terminal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """first-minutes-H18: 112 unbreakable characters of dialects, in each of eleven pages, twice."""
    monkeypatch.setenv("COLUMNS", "80")
    help_text, _, examples = PARSERS[name].format_help().partition("examples:")
    assert [line for line in help_text.splitlines() if len(line) > 80] == []
    assert [line for line in examples.splitlines() if len(line) > 110] == []
    assert help_text.splitlines()[0].startswith(f"usage: xenoglot {name}".rstrip())


@EVERY
def test_a_help_has_a_description_and_examples(name: str) -> None:
    parser = PARSERS[name]
    assert parser.description
    assert EXAMPLES[name], "one or two examples"
    assert all(line in parser.format_help() for line in EXAMPLES[name])


@EVERY
def test_a_help_is_plain_english(name: str) -> None:
    assert [text for text in texts(PARSERS[name]) if NOT_PLAIN.search(text)] == []


@EVERY
def test_examples_parse(name: str) -> None:
    for line in EXAMPLES[name]:
        words = shlex.split(line)
        words = words[: next((index for index, word in enumerate(words) if word in ("<", ">")), len(words))]
        assert words[0] == "xenoglot"
        assert callable(PARSER.parse_args(words[1:]).run)


def test_every_command_is_in_a_group() -> None:
    grouped = {name for names in COMMANDS.values() for name in names}
    assert set(PARSERS) - {""} <= grouped
    assert OTHERS not in PARSER.format_help()


def test_the_program_alone_prints_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    """first-minutes-H17."""
    assert main([]) == 0
    told = capsys.readouterr()
    assert (told.out, told.err) == (PARSER.format_help(), "")


def test_flags_that_select_the_model_are_a_group() -> None:
    ask = PARSERS["ask"].format_help()
    own, _, selecting = ask.partition("\nmodel:\n")
    assert "--temperature" in own
    assert "--upstream" not in own
    assert "--upstream URL" in selecting
    assert "DIALECT is one of chat, completions, converse," in selecting


@pytest.mark.parametrize(
    ("name", "usage"),
    [
        pytest.param("", "usage: xenoglot COMMAND [options]", id="program"),
        pytest.param("ask", "usage: xenoglot ask [PROMPT ...] [options]", id="words"),
        pytest.param(
            "translate", "usage: xenoglot translate --from DIALECT --to DIALECT [options]", id="required-flags"
        ),
        pytest.param("batch", "usage: xenoglot batch INPUT OUTPUT [options]", id="arguments"),
    ],
)
def test_a_usage_is_short(name: str, usage: str) -> None:
    assert PARSERS[name].format_help().splitlines()[0] == usage
