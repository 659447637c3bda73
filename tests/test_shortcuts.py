"""The switch of the shortcuts: what it turns off, by which words, and that no shortcut is left out of it."""

import os
import subprocess
import sys
from importlib import import_module

import pytest

from tests.shortcuts import switched
from xenoglot.dialect_registry import get, names
from xenoglot.dialects.chat.fast.frequent_shapes import plain_message
from xenoglot.shortcuts import GROUPS, SHORTCUTS, Shortcuts, turned_off

HELLO = {"role": "user", "content": "Hi"}
KNOWN = {
    "xenoglot.backends.remote.request_heads.RequestHeads._cache": "heads",
    "xenoglot.codec.framing.stream_reader._foreseeable": "templates",
    "xenoglot.codec.framing.stream_writer._ready_frames": "frames",
    "xenoglot.codec.framing.stream_writer._ready_runs": "frames",
    "xenoglot.dialects.chat.stream.decoder.StreamDecoder._common": "chunks",
    "xenoglot.dialects.chat.stream.decoder.StreamDecoder._usage_alone": "usage",
    "xenoglot.dialects.chat.fast.usage_scan.glimpse": "usage",
    "xenoglot.dialects.chat.fast.frequent_shapes.plain_message": "messages",
    "xenoglot.dialects.chat.fast.frequent_shapes.plain_tool": "messages",
    "xenoglot.dialects.chat.fast.frequent_shapes.write_plain": "messages",
    "xenoglot.dialects.chat.fast.frequent_answers.plain_message": "messages",
    "xenoglot.dialects.chat.fast.frequent_answers.plain_response": "messages",
    "xenoglot.dialects.chat.response._plain_choice": "messages",
    "xenoglot.dialects.llama_stack.stream.decoder._plain_text": "chunks",
    "xenoglot.dialects.messages.fast.usage_scan.glimpse": "usage",
    "xenoglot.dialects.messages.fast.frequent_shapes.PlainWriter.block": "messages",
    "xenoglot.dialects.messages.fast.frequent_shapes.PlainWriter.lone": "messages",
    "xenoglot.dialects.messages.fast.frequent_shapes.PlainWriter.tool": "messages",
    "xenoglot.dialects.messages.fast.frequent_shapes.plain_message": "messages",
    "xenoglot.dialects.messages.fast.frequent_shapes.plain_text": "messages",
    "xenoglot.dialects.messages.fast.frequent_shapes.plain_tool": "messages",
    "xenoglot.dialects.openai.embeddings.glimpse": "usage",
    "xenoglot.dialects.openai.stream_usage._without_usual": "usage",
    "xenoglot.dialects.openai.usage._plain_usage": "messages",
    "xenoglot.dialects.responses.fast.frequent_shapes.plain_message": "messages",
    "xenoglot.dialects.responses.fast.frequent_shapes.plain_said": "messages",
    "xenoglot.dialects.responses.fast.frequent_shapes.plain_tool": "messages",
    "xenoglot.dialects.responses.fast.frequent_shapes.write_plain": "messages",
    "xenoglot.gateway.http.head_cache.is_cacheable": "heads",
    "xenoglot.gateway.api.fast_path.FastPath.awaits_body": "callbacks",
    "xenoglot.gateway.api.fast_path.FastPath.passage": "callbacks",
}
NONE = frozenset[str]()
OFF = f"from xenoglot.dialects.chat.fast.frequent_shapes import plain_message; print(plain_message({HELLO}) is None)"
"""A program that says whether they are off."""


def test_every_shortcut_is_known() -> None:
    for module in (
        "xenoglot.gateway.http.connection",
        "xenoglot.gateway.api.fast_path",
        "xenoglot.backends.remote.backend",
    ):
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
        ("-messages", True),
        ("-templates", False),
    ],
)
def test_the_environment_turns_them_off(said: str | None, *, off: bool) -> None:
    environ = {name: value for name, value in os.environ.items() if name != "XENOGLOT_SHORTCUTS"}
    if said is not None:
        environ["XENOGLOT_SHORTCUTS"] = said
    done = subprocess.run([sys.executable, "-c", OFF], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout == f"{off}\n"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", NONE),
        ("yes", NONE),
        ("false", frozenset(GROUPS)),
        ("-templates", {"templates"}),
        (" -Templates , -callbacks ", {"templates", "callbacks"}),
    ],
)
def test_a_value_turns_groups_off(value: str, expected: frozenset[str]) -> None:
    assert turned_off(value) == expected


@pytest.mark.parametrize(
    ("value", "found"),
    [("templates,-frames", "templates"), ("-frames,-glimpse", "-glimpse"), ("-frames,", ""), ("of", "of"), ("-", "-")],
)
def test_a_value_that_is_not_understood_is_refused(value: str, found: str) -> None:
    known = "-callbacks, -chunks, -frames, -heads, -messages, -templates, -usage"
    with pytest.raises(ValueError, match=r"^XENOGLOT_SHORTCUTS: ") as caught:
        turned_off(value)
    assert str(caught.value) == f"XENOGLOT_SHORTCUTS: found {found!r}; expected on, off or a list of: {known}"


def test_one_group_is_turned_off_alone() -> None:
    shortcuts = Shortcuts({"heads"})

    @shortcuts.add("heads")
    def one() -> int | None:
        return 1

    @shortcuts.add("frames")
    def two() -> int | None:
        return 2

    assert (one(), two()) == (None, 2)
    shortcuts.turn_off({"frames"})
    assert (one(), two()) == (1, None)


def test_off_and_on_again() -> None:
    with switched(on=True):
        read = plain_message(HELLO)
        assert read is not None
        with switched(on=False):
            assert plain_message(HELLO) is None
        assert plain_message(HELLO) == read


def test_one_that_is_added_while_they_are_off_is_off() -> None:
    shortcuts = Shortcuts(GROUPS)

    @shortcuts.add("usage")
    def doubled(number: int, *, more: int = 1) -> int | None:
        return 2 * number * more

    assert doubled(1, more=2) is None
    assert doubled(1) is None
    shortcuts.turn_off(())
    assert doubled(1, more=2) == 4


def test_nothing_is_added_to_a_call() -> None:
    """A shortcut is the function that was written, not one around it."""

    def written(number: int) -> int | None:
        return number

    body = written.__code__
    assert Shortcuts().add("usage")(written) is written
    assert written.__code__ is body
