"""The switch of the shortcuts: what it turns off, by which words, and that no shortcut is left out of it."""

import os
import subprocess
import sys
from importlib import import_module

import pytest

from tests.shortcuts import switched
from xenoglot.codec.dialect import get, names
from xenoglot.dialects.chat.plain import plain_message
from xenoglot.shortcuts import SHORTCUTS, Shortcuts

HELLO = {"role": "user", "content": "Hi"}
KNOWN = [
    "xenoglot.backends.heads.Heads._keep",
    "xenoglot.codec.reading._foreseeable",
    "xenoglot.codec.writing._ready_frames",
    "xenoglot.dialects.chat.decoder.StreamDecoder._common",
    "xenoglot.dialects.chat.glance.glance",
    "xenoglot.dialects.chat.glimpse.glimpse",
    "xenoglot.dialects.chat.plain.plain_message",
    "xenoglot.dialects.chat.plain.plain_tool",
    "xenoglot.dialects.chat.plain.write_plain",
    "xenoglot.dialects.chat.plain_answer.plain_message",
    "xenoglot.dialects.chat.plain_answer.plain_response",
    "xenoglot.dialects.chat.response._plain_choice",
    "xenoglot.dialects.llama_stack.decoder._plain_text",
    "xenoglot.dialects.messages.glance.glance",
    "xenoglot.dialects.messages.glimpse.glimpse",
    "xenoglot.dialects.messages.plain.PlainWriter.block",
    "xenoglot.dialects.messages.plain.PlainWriter.lone",
    "xenoglot.dialects.messages.plain.PlainWriter.tool",
    "xenoglot.dialects.messages.plain.plain_message",
    "xenoglot.dialects.messages.plain.plain_text",
    "xenoglot.dialects.messages.plain.plain_tool",
    "xenoglot.dialects.openai.embeddings.glimpse",
    "xenoglot.dialects.openai.usage._plain_usage",
    "xenoglot.dialects.responses.glance.glance",
    "xenoglot.dialects.responses.plain.plain_message",
    "xenoglot.dialects.responses.plain.plain_said",
    "xenoglot.dialects.responses.plain.plain_tool",
    "xenoglot.dialects.responses.plain.write_plain",
    "xenoglot.gateway.native_repeat.is_kept",
    "xenoglot.gateway.passing.is_worth_waiting",
    "xenoglot.gateway.passing.passage",
]
OFF = f"from xenoglot.dialects.chat.plain import plain_message; print(plain_message({HELLO}) is None)"
"""A program that says whether they are off."""


def test_every_shortcut_is_known() -> None:
    for module in ("xenoglot.gateway.native", "xenoglot.gateway.passage", "xenoglot.backends.remote"):
        import_module(module)
    for name in names():
        get(name)
    assert SHORTCUTS.names() == KNOWN


@pytest.mark.parametrize(
    ("said", "off"),
    [
        (None, False),
        ("", False),
        ("on", False),
        ("1", False),
        ("off", True),
        (" OFF ", True),
        ("0", True),
        ("no", True),
    ],
)
def test_the_environment_turns_them_off(said: str | None, *, off: bool) -> None:
    environ = {name: value for name, value in os.environ.items() if name != "XENOGLOT_SHORTCUTS"}
    if said is not None:
        environ["XENOGLOT_SHORTCUTS"] = said
    done = subprocess.run([sys.executable, "-c", OFF], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout == f"{off}\n"


def test_off_and_on_again() -> None:
    with switched(on=True):
        read = plain_message(HELLO)
        assert read is not None
        with switched(on=False):
            assert plain_message(HELLO) is None
        assert plain_message(HELLO) == read


def test_one_that_is_added_while_they_are_off_is_off() -> None:
    shortcuts = Shortcuts(taken=False)

    @shortcuts.add
    def doubled(number: int, *, more: int = 1) -> int | None:
        return 2 * number * more

    assert doubled(1, more=2) is None
    assert doubled(1) is None
    shortcuts.take(taken=True)
    assert doubled(1, more=2) == 4


def test_nothing_is_added_to_a_call() -> None:
    """A shortcut is the function that was written, not one around it."""

    def written(number: int) -> int | None:
        return number

    body = written.__code__
    assert Shortcuts(taken=True).add(written) is written
    assert written.__code__ is body
