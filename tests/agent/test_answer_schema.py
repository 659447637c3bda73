"""`xenoglot agent --schema FILE`: the answer matches a JSON Schema, or the command fails."""

from __future__ import annotations

import io
import json
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from tests.agent.scripted_agent import text_answer, tool_call_answer
from xenoglot import cli
from xenoglot.agent.answer_schema import LARGEST
from xenoglot.backends.scripted import Scripted
from xenoglot.errors import MISUSE, UNREACHABLE
from xenoglot.gateway.process import gateway_backend
from xenoglot.model.content import Text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from xenoglot.gateway.config.load import Config
    from xenoglot.model.response import Response

SCHEMA = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
WRONG = (
    "Your answer does not match the JSON Schema:\n- $.count: expected integer, found a string of length 5\n\n"
    "Answer with the whole corrected JSON and nothing else."
)


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Scripted]:
    """Have a script answer, in a folder with a schema beside it."""

    def play(*turns: Response) -> Scripted:
        model = Scripted(*turns)

        @asynccontextmanager
        async def opening(_: Config, **_others: object) -> AsyncGenerator[Scripted]:
            yield model

        monkeypatch.setattr(gateway_backend, "open_gateway_backend", opening)
        return model

    (tmp_path / "project").mkdir()
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    return play


def test_c_s10_the_answer_alone_goes_to_standard_output(
    play: Callable[..., Scripted], capsys: pytest.CaptureFixture[str]
) -> None:
    model = play(tool_call_answer(("list_dir", {})), text_answer('```json\n{"count": 3}\n```'))
    assert cli.main(["agent", "How many?", "--schema", "../schema.json", "--no-session"]) == 0
    out, err = capsys.readouterr()
    assert (out, "> list_dir" in err) == ('{"count": 3}\n', True)
    assert [request.output and request.output.schema for request in model.requests] == [SCHEMA, SCHEMA]


def test_an_answer_that_does_not_match_is_corrected(
    play: Callable[..., Scripted], capsys: pytest.CaptureFixture[str]
) -> None:
    model = play(text_answer('{"count": "three"}'), text_answer('{"count": 3}'))
    assert cli.main(["agent", "How many?", "--schema", "../schema.json", "--no-session"]) == 0
    assert capsys.readouterr().out == '{"count": 3}\n'
    assert model.requests[1].messages[-1].content == (Text(text=WRONG),)


def test_the_third_mistake_is_the_last(play: Callable[..., Scripted], capsys: pytest.CaptureFixture[str]) -> None:
    model = play(*[text_answer('{"count": "three"}')] * 4)
    assert cli.main(["agent", "How many?", "--schema", "../schema.json", "--no-session"]) == UNREACHABLE
    out, err = capsys.readouterr()
    assert (out, len(model.requests)) == ("", 3)
    assert err.splitlines()[-1] == (
        "xenoglot: the answer does not match the schema: $.count: expected integer, found a string of length 5"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(None, "it cannot be read: No such file or directory", id="missing"),
        pytest.param("{", "it is no JSON Schema: ", id="no-json"),
        pytest.param("[]", "it is no JSON Schema: $: expected an object", id="a-list"),
        pytest.param('{"type": "strin"}', "it is no JSON Schema: ", id="no-schema"),
        pytest.param("[" * 100_000, "it is no JSON Schema: ", id="deep"),
        pytest.param(" " * (LARGEST + 1), f"larger than {LARGEST} bytes", id="large"),
    ],
)
def test_mistakes(
    play: Callable[..., Scripted],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    text: str | None,
    expected: str,
) -> None:
    model = play(text_answer("{}"))
    if text is not None:
        (tmp_path / "wrong.json").write_text(text)
    assert cli.main(["agent", "How many?", "--schema", "../wrong.json"]) == MISUSE
    assert capsys.readouterr().err.startswith(f"xenoglot: `--schema ../wrong.json`: {expected}")
    assert model.requests == []
