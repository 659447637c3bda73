"""Other names of dialects (`openai`, `anthropic`, `claude`, `google`) wherever a dialect is named."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.test_cli import XENOGLOT, environment
from xenoglot.client.call.open_upstream import UpstreamOptions, address_of
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.config.load import check
from xenoglot.translate import translate

REQUEST = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}]}
PAIRS = [("openai", "anthropic", "chat", "messages"), ("claude", "google", "messages", "gemini")]


@pytest.mark.parametrize(("source", "target", "known_source", "known_target"), PAIRS)
def test_translate(source: str, target: str, known_source: str, known_target: str) -> None:
    assert translate(REQUEST, source, target) == translate(REQUEST, known_source, known_target)
    command = [XENOGLOT, "translate", "--from", source, "--to", target]
    done = subprocess.run(
        command, input=json.dumps(REQUEST).encode(), capture_output=True, env=environment(), timeout=60, check=False
    )
    assert json.loads(done.stdout) == translate(REQUEST, known_source, known_target)


def test_a_translation_between_two_names_of_one_dialect_loses_nothing() -> None:
    assert translate(REQUEST, "anthropic", "claude") == translate(REQUEST, "messages", "messages")


@pytest.mark.parametrize(("other", "name"), [("openai", "chat"), ("anthropic", "messages"), ("google", "gemini")])
def test_the_client(other: str, name: str) -> None:
    assert address_of("http://127.0.0.1:9", UpstreamOptions(dialect=other), {}).dialect.name == name


def test_the_client_of_a_provider() -> None:
    found = address_of("openrouter", UpstreamOptions(dialect="claude", key="sk-key-of-mine"), {})
    assert found.dialect.name == "messages"


def test_a_configuration_file() -> None:
    main = {"base_url": "http://127.0.0.1:9", "dialect": "openai", "also": ["claude", {"dialect": "google"}]}
    config = check({"upstreams": {"a": main}, "clients": {"anthropic": {}}}, {}, "file")
    upstream = config.upstreams["a"]
    assert (upstream.dialect, [one.dialect for one in upstream.also]) == ("chat", ["messages", "gemini"])
    assert list(config.clients) == ["messages"]


def test_a_misspelt_dialect_in_a_file() -> None:
    with pytest.raises(ConfigurationError, match=r'upstreams.a.dialect: found "anthropc"; did you mean `anthropic`\?'):
        check({"upstreams": {"a": {"base_url": "http://127.0.0.1:9", "dialect": "anthropc"}}}, {}, "file")
