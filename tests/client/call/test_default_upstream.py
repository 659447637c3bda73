"""A client that names no upstream: it uses what the commands use, and trusts no file that they would not."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from xenoglot.client.sync import Client
from xenoglot.errors import ConfigurationError, InvalidRequestError
from xenoglot.testing.canned import answers
from xenoglot.testing.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path


@pytest.fixture(scope="module")
def server() -> Generator[Upstream]:
    """A server that answers every request."""
    with Upstream(*answers("chat", text="Hello.").rules()) as served:
        yield served


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, and a user without configuration."""
    for name in ("XENOGLOT_UPSTREAM", "XENOGLOT_MODEL", "XENOGLOT_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def file_for(url: str, models: str = '[[models]]\nname = "fast"\nupstream = "main"\nmodel = "small"\n') -> str:
    return f'[upstreams.main]\ndialect = "chat"\nbase_url = "{url}"\n{models}'


def asked(server: Upstream, **options: str) -> object:
    """Return the model that a client without an upstream requests."""
    with Client(model=options.get("model")) as client:
        assert client.complete("Hi").text == "Hello."
    return server.requests[-1].json["model"]


def test_the_variables_name_server_and_model(server: Upstream, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (work / "xenoglot.toml").write_text(file_for("http://127.0.0.1:9"))
    monkeypatch.setenv("XENOGLOT_UPSTREAM", server.url)
    monkeypatch.setenv("XENOGLOT_MODEL", "large")
    assert asked(server) == "large"
    assert asked(server, model="mine") == "mine"


def test_a_server_without_a_model_is_told_in_the_users_words(
    server: Upstream, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XENOGLOT_UPSTREAM", server.url)
    assert not list(work.iterdir())
    with Client() as client, pytest.raises(InvalidRequestError, match=r"pass `model=` to the call or to the client"):
        client.complete("Hi")


def test_a_named_file_gives_its_first_model(server: Upstream, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (work / "other.toml").write_text(file_for(server.url))
    (work / "other.toml").chmod(0o600)
    monkeypatch.setenv("XENOGLOT_CONFIG", "other.toml")
    assert asked(server) == "small"


def test_the_file_of_the_directory_is_used_and_logged(
    server: Upstream, work: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (work / "xenoglot.toml").write_text(file_for(server.url))
    with caplog.at_level(logging.INFO, "xenoglot.client"):
        assert asked(server) == "small"
    assert f"using xenoglot.toml of this directory: {server.url}" in caplog.messages


def test_a_file_that_sends_prompts_elsewhere_has_to_be_trusted(work: Path) -> None:
    (work / "xenoglot.toml").write_text(file_for("https://elsewhere.example"))
    with pytest.raises(ConfigurationError, match=r"requests go to https://elsewhere\.example"):
        Client()


def test_a_model_may_name_its_provider(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    assert not list(work.iterdir())
    with pytest.raises(ConfigurationError, match="no API key: set the environment variable GROQ_API_KEY"):
        Client(model="groq/llama-3.3-70b-versatile")


def test_a_client_that_names_its_upstream_reads_no_file(server: Upstream, work: Path) -> None:
    (work / "xenoglot.toml").write_text("not TOML")
    with Client(server.url, model="m") as client:
        assert client.complete("Hi").text == "Hello."
    with Client("embedded") as client:
        assert "upstream" not in repr(client)  # no server
