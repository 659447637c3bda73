"""The page Connect: the lines that `xenoglot run --print` shows, with the URL of the browser."""

from __future__ import annotations

import pytest

from xenoglot.gateway.console.pages.connection import HOST, KEY, connection_lines
from xenoglot.programs import catalog as programs

URL = "https://llm.example:8443"


@pytest.mark.parametrize("name", programs.names())
def test_each_program_has_lines_with_the_url_and_the_key(name: str) -> None:
    made = connection_lines(programs.get(name), URL, "")
    assert f"xenoglot run {name} --gateway {URL} --client-key-env XENOGLOT_KEY" in made.command
    assert URL in made.lines
    assert KEY in made.lines


def test_a_name_of_a_model_is_one_word_of_the_shell() -> None:
    made = connection_lines(programs.get("claude"), URL, "$(reboot) 'x'")
    assert made.command.endswith("""--model '$(reboot) '"'"'x'"'"''""")
    assert """export ANTHROPIC_MODEL='$(reboot) '"'"'x'"'"''""" in made.lines


@pytest.mark.parametrize(
    ("host", "known"),
    [
        ("127.0.0.1:8080", True),
        ("[::1]:8080", True),
        ("llm.example", True),
        ("a b", False),
        ("a';reboot", False),
        ("a:b@c", False),
        ("", False),
    ],
)
def test_a_host_is_a_host(host: str, known: bool) -> None:  # noqa: FBT001  a row of the table
    assert (HOST.fullmatch(host) is not None) == known
