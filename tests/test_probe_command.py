"""The command `probe`: what it prints, writes and refuses, before a scripted server in a thread."""

from __future__ import annotations

import asyncio
import json
import threading
import tomllib
from typing import TYPE_CHECKING

import pytest

from tests.backends.raw_server import serving
from tests.backends.test_probe_runner import quirky_script
from tests.providers.quirky_server import Quirky
from xenoglot.cli import main
from xenoglot.codec.target import Target
from xenoglot.providers.catalog import read

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE = 120.0
"""Seconds after which something that has to happen has not."""

PECULIAR = Target(developer_role=True, forced_tools=False, max_tokens_field="max_completion_tokens", stop_limit=1)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Where a server with quirks of its own answers."""
    found: list[str] = []
    ready, loop = threading.Event(), asyncio.new_event_loop()
    over = asyncio.Event()

    async def serve() -> None:
        async with serving(quirky_script(Quirky({"chat": PECULIAR}, writes=True))) as wire:
            found.append(wire.url)
            ready.set()
            await over.wait()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(serve())

    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(PATIENCE)
    yield found[0]
    loop.call_soon_threadsafe(over.set)
    thread.join(PATIENCE)


def test_the_report_is_for_a_person(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", url, "--dialect", "chat"]) == 0
    said = capsys.readouterr()
    lines = [" ".join(line.split()) for line in said.out.splitlines()]
    wanted = [
        "chat",
        "max_tokens no sure",
        "max_completion_tokens yes sure",
        "stop_limit yes likely 1 are taken, 4 are not",
        "forced_tools no sure",
        "developer_role yes likely",
        "text_syntax yes likely the text is to be read as `hermes`",
    ]
    assert [line for line in lines if line in wanted] == wanted
    assert "chat: a stream" in said.err


def test_evidence_stands_below(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", url, "--dialect", "chat", "--evidence"]) == 0
    lines = capsys.readouterr().out.splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith("  forced_tools"))
    assert lines[place + 1 : place + 3] == [
        "    asked a tool, and the choice `required`",
        "      -> 400: tool_choice: expected `auto` or `none`",
    ]


def test_the_row_can_be_read_by_the_catalogue(url: str, tmp_path: Path) -> None:
    file = tmp_path / "row.toml"
    assert main(["probe", url, "--dialect", "chat", "--write", str(file), "--name", "mine"]) == 0
    row = read(file.read_text(encoding="utf-8"), "the row")
    assert (row.name, row.text_syntax, row.local, [face.dialect for face in row.faces]) == (
        "mine",
        "hermes",
        True,
        ["chat"],
    )
    facts = {"developer_role": True, "forced_tools": False, "stop_limit": 1}
    assert {name: row.faces[0].quirks[name] for name in facts} == facts
    assert row.models[0].quirks["max_tokens_field"] == "max_completion_tokens"
    assert row.sources["faces.chat.quirks.forced_tools"].startswith("probe: asked a tool, and the choice `required`")


def test_configuration_can_be_written_instead(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-a-key-that-nobody-may-see")
    file = tmp_path / "part.toml"
    flags = ["--dialect", "chat", "--key-env", "MY_KEY", "--write", str(file), "--as", "config", "--name", "mine"]
    assert main(["probe", url, *flags]) == 0
    upstream = tomllib.loads(file.read_text(encoding="utf-8"))["upstreams"]["mine"]
    target = upstream.pop("target")
    assert upstream == {"dialect": "chat", "base_url": url, "key_env": "MY_KEY", "text_syntax": "hermes"}
    assert (target["forced_tools"], target["max_tokens_field"]) == (False, "max_completion_tokens")


def test_json_tells_all(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", url, "--dialect", "chat", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    found = {finding["what"]: finding for finding in report["findings"]}
    assert (report["faces"], report["text_syntax"], found["forced_tools"]["sets"]) == (
        ["chat"],
        "hermes",
        {"forced_tools": False},
    )


def test_a_server_that_speaks_nothing_is_a_mistake(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", url, "--dialect", "messages"]) == 8
    assert capsys.readouterr().err.splitlines()[-1] == f"xenoglot: {url}: it speaks none of messages: 404: no such path"


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (
            ["ftp://server"],
            'URL: found "ftp://server"; expected one that begins with http:// or https://, or the name of a provider',
        ),
        (
            ["vertex"],
            (
                "the command line: --setting project=...: required by `vertex`, the id of the project: write it here, "
                "or set the environment variable GOOGLE_CLOUD_PROJECT"
            ),
        ),
        (["http://server", "--key-env", "UNSET_KEY"], "--key-env: the variable `UNSET_KEY` is not set"),
        (["http://server", "--timeout", "0"], "--timeout: found 0.0; expected seconds, more than none"),
    ],
    ids=["url", "setting", "key", "timeout"],
)
def test_mistakes_are_one_line(flags: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", *flags]) == 2
    assert capsys.readouterr().err == f"xenoglot: {complaint}\n"
