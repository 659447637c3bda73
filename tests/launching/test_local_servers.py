"""`xenoglot run` without a server: those of this machine, the providers with a key, and the embedded model."""

from __future__ import annotations

import json
import os
import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from xenoglot.cli import main
from xenoglot.gateway.config.from_flags import from_flags
from xenoglot.launching import detect_gateway, local_servers
from xenoglot.launching.gateway_thread import run_gateway
from xenoglot.providers import catalog
from xenoglot.testing.canned import MODEL, answers
from xenoglot.testing.script import RequestMatcher, Respond, ScriptRule
from xenoglot.testing.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

USUAL_PORTS = {"ollama": 11434, "llama.cpp": 8080, "vllm": 8000, "lmstudio": 1234}
TOO_SMALL = (
    "xenoglot: the embedded model is too small for Claude Code: it takes 8192 tokens, and the first prompt has about "
    "12000; name a server"
)
FOR_NAMES = "GROQ_API_KEY is set; for the names: xenoglot models --upstream groq"
RECORD = "import json, os, sys; json.dump(dict(os.environ), open(os.environ['RECORD'], 'w'))"


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a program that writes its environment into this file; no gateway runs, and no key is set."""
    monkeypatch.setattr(detect_gateway, "detect", lambda *_: detect_gateway.DetectedGateway())
    for row in (catalog.get(name) for name in catalog.names()):
        monkeypatch.delenv(row.key_env or "NONE", raising=False)
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "claude"
    program.write_text(f"#!{sys.executable} -IS\n{RECORD}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    monkeypatch.setenv("RECORD", str(tmp_path / "record.json"))
    return tmp_path / "record.json"


@contextmanager
def listening(monkeypatch: pytest.MonkeyPatch, **servers: Upstream | str) -> Iterator[dict[str, Upstream]]:
    """Run `servers` at ports of their own, which the rows of the catalogue name meanwhile; all others are silent."""
    get, urls = catalog.get, dict.fromkeys(local_servers_names(), "http://127.0.0.1:9")
    with ExitStack() as stack:
        for name, server in servers.items():
            urls[name] = server if isinstance(server, str) else stack.enter_context(server).url
        moved = {
            name: replace(
                get(name), faces=tuple(replace(face, base_url=_at(face.base_url, url)) for face in get(name).faces)
            )
            for name, url in urls.items()
        }
        monkeypatch.setattr(catalog, "get", lambda name: moved.get(name) or get(name))
        yield {name: server for name, server in servers.items() if isinstance(server, Upstream)}


def local_servers_names() -> list[str]:
    """The rows that are looked at."""
    return [row.name for row in local_servers.local_providers()]


def _at(old: str | None, url: str) -> str:
    return url + ("/v1" if str(old).endswith("/v1") else "")


def server_of(name: str) -> Upstream:
    """A server with one model, in the first dialect of a provider."""
    return Upstream(*answers(catalog.get(name).faces[0].dialect).rules())


def listing(*models: str) -> Upstream:
    """A server of Chat Completions with these models."""
    body = json.dumps({"object": "list", "data": [{"id": name} for name in models]}).encode()
    return Upstream(ScriptRule(steps=(Respond(body=body),), when=RequestMatcher(method="GET", path="/v1/models")))


def test_these_are_looked_at_where_they_usually_listen() -> None:
    rows = {row.name: row.faces[0].base_url for row in local_servers.local_providers()}
    assert {name: f"http://127.0.0.1:{port}" for name, port in USUAL_PORTS.items()} == {
        name: str(rows[name]).removesuffix("/v1") for name in USUAL_PORTS
    }


@pytest.mark.parametrize("name", USUAL_PORTS)
def test_the_only_server_of_this_machine_is_used(
    name: str, record: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with listening(monkeypatch, **{name: server_of(name)}) as servers:
        assert main(["run", "claude"]) == 0
        assert json.loads(record.read_text())["ANTHROPIC_MODEL"] == MODEL
        told = f"xenoglot: using {catalog.get(name).title} at {catalog.get(name).faces[0].base_url}, model {MODEL}\n"
        assert capfd.readouterr().err.startswith(told)
        assert servers[name].requests != []


def test_of_several_none_is_chosen(
    record: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "gsk-secret")
    with listening(monkeypatch, vllm=listing("qwen3", "it's"), lmstudio=listing("gemma")):
        assert main(["run", "claude"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        TOO_SMALL,
        "  xenoglot run claude --upstream lmstudio --model gemma",
        "  xenoglot run claude --upstream vllm --model qwen3",
        "  xenoglot run claude --upstream vllm --model 'it'\"'\"'s'",
        f"  xenoglot run claude --upstream groq --model NAME   # {FOR_NAMES}",
        "  xenoglot run claude --upstream URL --model NAME",
    ]
    assert not record.exists()


def test_a_model_that_is_named_chooses_its_server(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with listening(monkeypatch, vllm=listing("qwen3", "small"), lmstudio=listing("gemma")):
        assert main(["run", "claude", "--model", "small"]) == 0
    assert json.loads(record.read_text())["ANTHROPIC_MODEL"] == "small"


def test_a_server_of_another_user_is_only_offered(
    record: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(local_servers, "owned_by_user", lambda *_, **__: False)
    with listening(monkeypatch, vllm=listing("qwen3")):
        assert main(["run", "claude"]) == 2
    assert "  xenoglot run claude --upstream vllm --model qwen3" in capsys.readouterr().err.splitlines()
    assert not record.exists()


@pytest.mark.usefixtures("record")
def test_without_any_the_command_to_type_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with listening(monkeypatch):
        assert main(["run", "claude"]) == 2
    assert capsys.readouterr().err.endswith("name a server\n  xenoglot run claude --upstream URL --model NAME\n")


@pytest.mark.usefixtures("record")
def test_what_listens_and_is_no_such_server_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    page = ScriptRule(steps=(Respond(body=b"<html>hello</html>"),))
    empty = listing()
    with (
        listening(monkeypatch, vllm=listing("qwen3")) as servers,
        run_gateway(from_flags({}, upstream=servers["vllm"].url)) as ours,
        listening(monkeypatch, vllm=Upstream(page), lmstudio=empty, sglang=ours.url),
    ):
        assert list(local_servers.find_local_servers()) == []


def test_a_model_whose_window_is_too_small_is_refused(
    record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with listening(monkeypatch, vllm=listing("tiny")) as servers:
        config = tmp_path / "gateway.toml"
        facts = 'model_overrides = [{ names = ["tiny"], context = 4096 }]'
        config.write_text(f'[upstreams.a]\ndialect = "chat"\nbase_url = "{servers["vllm"].url}"\n{facts}\n')
        told = "the model `tiny` takes 4096; name another server with `--upstream URL --model NAME`\n"
        assert main(["run", "claude", "--config", str(config), "--model", "tiny"]) == 2
        assert capsys.readouterr().err.endswith(told)
        assert main(["run", "claude", "--config", str(config)]) == 2
        assert "the models of the gateway take at most 4096" in capsys.readouterr().err
        assert not record.exists()
        assert main(["run", "claude", "--config", str(config), "--model", "tiny", "--context", "16000"]) == 0
    assert json.loads(record.read_text())["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] == "16000"


def test_an_unknown_window_is_said(
    record: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with listening(monkeypatch, vllm=listing("qwen3")) as servers:
        assert main(["run", "claude", "--upstream", servers["vllm"].url]) == 0
    told = "the context window of `qwen3` is not known: Claude Code assumes one; set it with `--context N`"
    assert capfd.readouterr().err == f"xenoglot: {told}\n"
    assert json.loads(record.read_text())["ANTHROPIC_MODEL"] == "qwen3"
