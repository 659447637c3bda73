"""A gateway for one run: whoever has its key is answered in each program's own way, nobody else is."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest
from anthropic import Anthropic, AuthenticationError
from google import genai
from openai import OpenAI

from tests.matrix.dialect_server import DialectServer
from xenoglot import dialect_registry as dialects
from xenoglot.errors import XenoglotError
from xenoglot.gateway.config.from_flags import from_flags
from xenoglot.gateway.config.load import check
from xenoglot.launching.gateway_thread import private, run_gateway
from xenoglot.model.content import Text
from xenoglot.model.response import Candidate, Finish, Response
from xenoglot.programs import catalog as programs
from xenoglot.programs.environment import GatewayLocation, program_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from xenoglot.launching.gateway_thread import GatewayEndpoint

HELLO = Response(
    id="1", candidates=(Candidate(content=(Text(text="Hello."),), finish=Finish(reason="stop")),), created=1
)


@pytest.fixture(scope="module")
def speaker() -> Iterator[DialectServer]:
    with DialectServer(dialects.get("chat")) as speaker:
        yield speaker


@pytest.fixture(scope="module")
def door(speaker: DialectServer) -> Iterator[GatewayEndpoint]:
    with run_gateway(from_flags({}, upstream=speaker.url)) as door:
        yield door


def chat(url: str, key: str) -> str | None:
    """Ask as programs do that speak chat completions."""
    with OpenAI(base_url=url, api_key=key, max_retries=0) as client:
        asked = client.chat.completions.create(model="large", messages=[{"role": "user", "content": "Hi"}])
        return asked.choices[0].message.content


def responses(url: str, key: str) -> str | None:
    """Ask as Codex does."""
    with OpenAI(base_url=url, api_key=key, max_retries=0) as client:
        return client.responses.create(model="large", input="Hi").output_text


def messages(url: str, key: str) -> str | None:
    """Ask as Claude Code does, which shows its token as `authorization`."""
    with Anthropic(base_url=url, auth_token=key, max_retries=0) as client:
        message = client.messages.create(model="large", max_tokens=9, messages=[{"role": "user", "content": "Hi"}])
        return message.content[0].text if message.content[0].type == "text" else None


def generate(url: str, key: str) -> str | None:
    """Ask as Gemini CLI does."""
    client = genai.Client(api_key=key, http_options={"base_url": url})
    return client.models.generate_content(model="large", contents="Hi").text


Ask = tuple["Callable[[str, str], str | None]", str, str]
ASKED: Mapping[str, Ask] = {
    "aider": (chat, "{AIDER_OPENAI_API_BASE}", "{AIDER_OPENAI_API_KEY}"),
    "claude": (messages, "{ANTHROPIC_BASE_URL}", "{ANTHROPIC_AUTH_TOKEN}"),
    "codex": (responses, "{base_url}", "{XENOGLOT_KEY}"),
    "crush": (chat, "{base_url}", "{XENOGLOT_KEY}"),
    "gemini": (generate, "{GOOGLE_GEMINI_BASE_URL}", "{GEMINI_API_KEY}"),
    "goose": (chat, "{OPENAI_HOST}/v1", "{OPENAI_API_KEY}"),
    "llm": (chat, "{api_base}", "{xenoglot}"),
    "opencode": (chat, "{baseURL}", "{XENOGLOT_KEY}"),
    "qwen": (chat, "{OPENAI_BASE_URL}", "{OPENAI_API_KEY}"),
    "sdk": (chat, "{OPENAI_BASE_URL}", "{OPENAI_API_KEY}"),
}
"""How each program asks, and where it finds the address and the key."""


def values(told: object) -> Iterator[tuple[str, str]]:
    """Yield all names and texts in a tree."""
    for name, value in told.items() if isinstance(told, dict) else ():
        if isinstance(value, str):
            yield name, value
        else:
            yield from values(value)
    for item in told if isinstance(told, list) else ():
        yield from values(item)


def found(name: str, place: GatewayLocation) -> dict[str, str]:
    """Return what a program is told, by the names under which it looks for it."""
    import tomllib  # noqa: PLC0415  only here

    made = program_environment(programs.get(name), place)
    told = dict(made.env)
    for text in (*made.files.values(), *made.env.values()):
        if text.startswith(("{", "[")):
            told |= dict(values(json.loads(text)))
    for text in made.arguments:
        if "=" in text:
            told |= dict(values(tomllib.loads(text)))
    return told


@pytest.mark.parametrize("name", programs.names())
def test_what_a_program_is_told_opens_the_gateway(name: str, door: GatewayEndpoint, speaker: DialectServer) -> None:
    ask, url, key = ASKED[name]
    told = found(name, GatewayLocation(url=door.url, key=door.key, folder="/folder", model="large"))
    speaker.script(HELLO)
    assert ask(url.format_map(told), key.format_map(told)) == "Hello."
    assert door.key not in str(speaker.headers)


def test_nobody_else_is_let_in(door: GatewayEndpoint) -> None:
    with pytest.raises(AuthenticationError):
        messages(door.url, "xg-another")


def test_each_run_has_a_key_of_its_own(speaker: DialectServer, door: GatewayEndpoint) -> None:
    with run_gateway(from_flags({}, upstream=speaker.url)) as other:
        assert other.key != door.key
        assert other.url != door.url
        assert len(other.key) > len("xg-") + 40


def test_it_is_closed_at_the_end(speaker: DialectServer) -> None:
    with run_gateway(from_flags({}, upstream=speaker.url)) as door:
        pass
    with pytest.raises(Exception, match="Connection error"):
        messages(door.url, door.key)


def test_a_run_listens_here_alone_for_its_own_key() -> None:
    """r-w40: keys of clients, workers and other addresses are of the configured gateway, not of the run."""
    environ = {"CLIENTS": "sk-client-key-1", "UP": "sk-upstream-key"}
    plain = {
        "server": {"host": "0.0.0.0", "port": 9000, "workers": 4, "watch": True},  # noqa: S104  what is configured
        "keys": {"env": ["CLIENTS"]},
        "upstreams": {"main": {"dialect": "chat", "base_url": "http://127.0.0.1:9", "key_env": "UP"}},
    }
    config = private(check(plain, environ, "test"), "xg-mine")
    assert (config.server.host, config.server.port, config.server.workers, config.server.watch) == (
        "127.0.0.1",
        0,
        1,
        False,
    )
    assert config.client_keys == ("xg-mine",)
    assert config.upstream_keys(config.upstreams["main"]) == ("sk-upstream-key",)


def test_the_log_goes_where_it_is_told(speaker: DialectServer, capsys: pytest.CaptureFixture[str]) -> None:
    log = io.StringIO()
    with run_gateway(from_flags({}, upstream=speaker.url), log) as door:
        speaker.script(HELLO)
        chat(f"{door.url}/v1", door.key)
    assert '"route":"/v1/chat/completions"' in log.getvalue()
    assert door.key not in log.getvalue()
    assert capsys.readouterr() == ("", "")


def test_what_keeps_it_from_serving_is_raised(tmp_path: Path) -> None:
    with (
        pytest.raises(XenoglotError, match="the model file cannot be read"),
        run_gateway(from_flags({}, gguf=str(tmp_path / "none.gguf"))),
    ):
        pytest.fail("it serves")
