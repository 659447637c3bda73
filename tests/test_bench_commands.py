"""The commands of the test bench, as a shell sees them."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from xenoglot.cli import main
from xenoglot.testing import RawClient, Respond, Upstream, answers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ASK = {"model": "m", "messages": [{"role": "user", "content": "x"}]}


@contextmanager
def running(*arguments: str) -> Iterator[tuple[str, list[str]]]:
    """Run a command that serves; give its URL, and, once it has ended, the lines it printed."""
    command = [sys.executable, "-m", "xenoglot.cli", *arguments]
    said: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout
        first = process.stdout.readline()
        found = re.search(r"http://[\d.:]+", first)
        assert found, first
        try:
            yield found[0], said
        finally:
            process.send_signal(signal.SIGTERM)
            said += process.stdout.read().splitlines()
    assert process.returncode == 0


def test_mock_serves_a_script_and_tells_what_it_sees(tmp_path: Path) -> None:
    script = tmp_path / "faults.toml"
    script.write_text(
        '[[rule]]\ntimes = 1\nsteps = [{ do = "respond", status = 503 }]\n[[rule]]\nanswer = { dialect = "chat" }\n',
        encoding="utf-8",
    )
    with running("mock", "--script", str(script)) as (url, said), RawClient(url) as client:
        replies = [client.request("POST", "/v1/chat/completions", ASK) for _ in range(2)]
    assert [(reply.status, reply.body) for reply in replies] == [(503, b""), (200, answers("chat").body)]
    assert said[:5] == [
        "connection 1: opened",
        "connection 1: POST /v1/chat/completions (56 bytes)",
        "connection 1: answered by rule 0",
        "connection 1: POST /v1/chat/completions (56 bytes)",
        "connection 1: answered by rule 2",
    ]


def test_record_and_replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("BENCH_SECRET", "a-secret-of-ours")
    out = tmp_path / "kept"
    made = answers("chat", text="a-secret-of-ours")
    with Upstream(*made.rules()) as upstream:
        flags = ("--upstream", f"{upstream.url}/v1", "--out", str(out), "--secret-env", "BENCH_SECRET")
        with running("record", *flags) as (url, said), RawClient(url) as client:
            assert client.request("POST", "/v1/chat/completions", ASK).body == made.body
            client.close()
    assert said == [
        f"POST /v1/chat/completions -> 200 ({len(made.body)} bytes): 0001-v1-chat-completions",
    ]
    with running("replay", str(out), "--timing") as (url, _), RawClient(url) as client:
        hidden = json.loads(made.body.replace(b"a-secret-of-ours", b"*" * 16))
        assert client.request("POST", "/v1/chat/completions", ASK).json == hidden
    assert main(["replay", str(out), "--check"]) == 0
    assert capsys.readouterr().out == "1 exchange, 0 differences\n"
    (out / "0001-v1-chat-completions" / "response.json").write_bytes(made.body.replace(b"1700000000", b"1700000000.0"))
    assert main(["replay", str(out), "--check"]) == 1
    assert "0001-v1-chat-completions: response: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param(["mock", "--script", "/nowhere.toml"], "`/nowhere.toml` cannot be read", id="no-script"),
        pytest.param(["mock", "--script", "x", "--text", "y"], "`--script` defines the answers", id="both"),
        pytest.param(
            ["record", "--upstream", "http://x", "--out", "y", "--secret-env", "NO_SUCH"], "NO_SUCH", id="env"
        ),
        pytest.param(["record", "--upstream", "x", "--out", "y"], "begins with http://", id="no-url"),
        pytest.param(["mock", "--port", "65536"], 'found "65536"; expected a number from 0 to 65535', id="port"),
        pytest.param(["mock", "--host", "192.0.2.1"], "cannot listen at 192.0.2.1:0: ", id="address-of-another"),
        pytest.param(["replay", "/nowhere"], "holds no recorded exchange", id="no-recording"),
    ],
)
def test_misuse(arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize("command", [["mock"], ["record", "--upstream", "http://127.0.0.1:9", "--out", "unused"]])
def test_a_port_that_is_taken_is_one_line(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with Upstream((Respond(),)) as upstream:
        assert main([*command, "--port", str(upstream.port)]) == 2
    assert capsys.readouterr().err == (
        f"xenoglot: cannot listen at 127.0.0.1:{upstream.port}: Address already in use; "
        "choose another with `--host` and `--port`\n"
    )
