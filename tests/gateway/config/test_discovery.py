"""Where a configuration file is looked for, and which entries of a found one need trust."""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec
import pytest

from xenoglot.errors import ConfigurationError
from xenoglot.gateway.config import discovery
from xenoglot.gateway.config.discovery import FoundConfig, check_found, find_config, sensitive_entries, user_config
from xenoglot.gateway.config.load import Config
from xenoglot.gateway.config.local_models import Embedded
from xenoglot.gateway.config.settings import ServerSettings, UpstreamSettings

LOCAL = '[upstreams.main]\ndialect = "chat"\nbase_url = "http://127.0.0.1:9"\n'


@pytest.mark.parametrize(
    ("environ", "path"),
    [
        pytest.param({"HOME": "/h"}, "/h/.config/xenoglot/config.toml", id="home"),
        pytest.param({"HOME": "/h", "XDG_CONFIG_HOME": "/c"}, "/c/xenoglot/config.toml", id="named"),
        pytest.param({"HOME": "/h", "XDG_CONFIG_HOME": "c"}, "/h/.config/xenoglot/config.toml", id="relative"),
    ],
)
def test_the_file_of_the_user(environ: dict[str, str], path: str) -> None:
    assert user_config(environ) == Path(path)


def test_the_file_of_the_directory_is_first(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    assert find_config(environ, tmp_path) is None
    own = user_config(environ)
    own.parent.mkdir(parents=True)
    own.touch()
    assert find_config(environ, tmp_path) == FoundConfig(own, local=False)
    (tmp_path / "xenoglot.toml").touch()
    assert find_config(environ, tmp_path) == FoundConfig(tmp_path / "xenoglot.toml", local=True)


def test_a_file_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "xenoglot.toml"
    path.write_text(LOCAL)
    environ = {"HOME": str(tmp_path)}
    check_found(FoundConfig(path, local=True), environ)
    discovery.trust(path, environ)
    monkeypatch.setattr(discovery, "_owner", lambda _: 12345)
    with pytest.raises(ConfigurationError, match="belongs to another user and is not used"):
        check_found(FoundConfig(path, local=True), environ)
    check_found(FoundConfig(path, local=False), environ)


def test_what_needs_no_trust_is_known_to_the_file() -> None:
    """A key that is renamed must not stay harmless under its old name, which may come to mean something else."""
    known = {kind: {one.name for one in msgspec.structs.fields(kind)} for kind in (ServerSettings, Embedded, Config)}
    assert known[ServerSettings] >= discovery._SERVER
    assert known[Embedded] >= discovery._EMBEDDED
    assert known[Config] >= discovery._HARMLESS.keys()
    assert {one.name for one in msgspec.structs.fields(UpstreamSettings)} >= discovery._UPSTREAM


@pytest.mark.parametrize(
    ("text", "named"),
    [
        pytest.param(LOCAL, "http://127.0.0.1:9", id="host"),
        pytest.param('[upstreams.a]\nprovider = "groq"\n[upstreams.b]\nprovider = "groq"', "groq", id="provider"),
        pytest.param("[server]\nport = 1", "the embedded model", id="none"),
        pytest.param("upstreams = 1", "the embedded model", id="no-tables"),
        pytest.param("[upstreams.a]\nbase_url = 'http://me:secret@h/?key=secret'", "http://h", id="no-secrets"),
        pytest.param("[", "not readable", id="no-toml"),
    ],
)
def test_where_requests_go_is_said(tmp_path: Path, text: str, named: str) -> None:
    path = tmp_path / "xenoglot.toml"
    path.write_text(text)
    assert discovery.servers(path) == named


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param(LOCAL, [], id="this-machine"),
        pytest.param('[upstreams.a]\nprovider = "groq"\n[[models]]\nname = "x"', [], id="provider"),
        pytest.param('[upstreams.a]\nprovider = "groq"\nkey_env = "GROQ_API_KEY"', [], id="key-of-the-provider"),
        pytest.param(
            '[upstreams.a]\nprovider = "groq"\nkey_env = "OPENAI_API_KEY"',
            ["upstreams.a.key_env: OPENAI_API_KEY"],
            id="key-of-another-provider",
        ),
        pytest.param(
            '[upstreams.a]\nbase_url = "https://me:pass@evil.example/v1?key=secret"',
            ["upstreams.a.base_url: requests go to https://evil.example"],
            id="no-secrets-shown",
        ),
        pytest.param(
            '[upstreams.a]\nbase_url = "http://localhost.evil.example"',
            ["upstreams.a.base_url: requests go to http://localhost.evil.example"],
            id="looks-local",
        ),
        pytest.param(
            '[upstreams.a]\nbase_url = "http://[::1"',
            ["upstreams.a.base_url: requests go to a URL that cannot be read"],
            id="no-url",
        ),
        pytest.param(
            '[upstreams.a]\nheaders = { a = "\\u001b[2J" }', ["upstreams.a.headers: a table"], id="no-terminal-codes"
        ),
        pytest.param("fetch = 1\nserver = 2", ["fetch: not used without trust"], id="no-tables"),
    ],
)
def test_entries_that_need_trust(text: str, lines: list[str]) -> None:
    assert list(sensitive_entries(tomllib.loads(text))) == lines
