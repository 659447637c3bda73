"""Who is asked: providers by their names, servers by their addresses, and what is wrong with either."""

import asyncio
from pathlib import Path

import pytest

from tests.client.server_scripts import HELLO, scripted_client
from xenoglot.client.async_ import AsyncClient
from xenoglot.client.call.open_upstream import UpstreamOptions, address_of
from xenoglot.errors import ConfigurationError
from xenoglot.providers import catalog
from xenoglot.providers.provider import SIGN_INS
from xenoglot.testing import Upstream, answers, polyglot


def test_a_provider_is_known_by_its_name() -> None:
    found = address_of("anthropic", UpstreamOptions(), {"ANTHROPIC_API_KEY": " k \n"})
    assert (found.dialect.name, found.base_url, found.keys) == ("messages", "https://api.anthropic.com", ("k",))
    assert found.provider == "anthropic"


@pytest.mark.parametrize("name", catalog.names())
def test_every_provider_has_an_address(name: str) -> None:
    row = catalog.get(name)
    for face in row.faces:
        settings = {key: "x1" for key, setting in row.settings.items() if setting.default is None}
        key = None if row.auth in SIGN_INS else "k"
        found = address_of(name, UpstreamOptions(dialect=face.dialect, key=key, settings=settings), {})
        assert found.dialect.name == face.dialect
        assert "{" not in found.base_url
        assert found.syntax_of("nobody")
        assert found.authorize is not None
        assert found.authorize("k") is not None


def test_what_is_known_of_models_is_kept() -> None:
    found = address_of("openai", UpstreamOptions(dialect="chat", key="k"), {})
    assert found.context_of("gpt-4o-mini") == 128_000
    assert found.context_of("nobody") is None
    assert AsyncClient("openai", key="k", model="gpt-4o").context_window() == 128_000
    assert AsyncClient("http://127.0.0.1:9", model="gpt-4o").context_window() is None


@pytest.mark.parametrize(
    ("upstream", "naming", "words"),
    [
        pytest.param("anthropc", UpstreamOptions(), "did you mean `anthropic`", id="a-name"),
        pytest.param("anthropic", UpstreamOptions(), "ANTHROPIC_API_KEY", id="no-key"),
        pytest.param("anthropic", UpstreamOptions(key_env="MY_KEY"), "MY_KEY", id="no-key-of-ones-own"),
        pytest.param("http://127.0.0.1:9", UpstreamOptions(key_env="MY_KEY"), "MY_KEY", id="no-key-for-a-url"),
        pytest.param(
            "anthropic", UpstreamOptions(key="k", dialect="gemini"), "does not speak `gemini`", id="a-dialect"
        ),
        pytest.param("anthropic", UpstreamOptions(key="k", settings={"a": "b"}), "has no `a`", id="a-setting"),
        pytest.param("azure", UpstreamOptions(key="k"), "settings", id="a-setting-is-missing"),
        pytest.param("localhost:8080", UpstreamOptions(), "begins with `http://`", id="no-scheme"),
        pytest.param("anthropic", UpstreamOptions(key=3), "expected a string", id="a-number-as-key"),  # type: ignore[arg-type]
        pytest.param(
            "http://127.0.0.1:9", UpstreamOptions(dialect="latin"), "no dialect `latin`", id="no-such-dialect"
        ),
        pytest.param("http://127.0.0.1:9", UpstreamOptions(settings={"a": "b"}), "settings", id="settings-of-a-url"),
        pytest.param("ftp://127.0.0.1:9", UpstreamOptions(), "http", id="another-scheme"),
        pytest.param("http://u:secret@127.0.0.1:9", UpstreamOptions(), "credentials", id="a-password-in-a-url"),
        pytest.param("http://127.0.0.1:99999", UpstreamOptions(), "port", id="a-port"),
        pytest.param("anthropic", UpstreamOptions(key="secret\r\nx: y"), "characters", id="a-key-with-a-line"),
        pytest.param(
            "http://127.0.0.1:9", UpstreamOptions(headers={"x-a": "secret\r\n"}), "x-a", id="a-header-with-a-line"
        ),
        pytest.param(
            "http://127.0.0.1:9", UpstreamOptions(headers={"Host": "secret"}), "host", id="a-header-of-the-connection"
        ),
    ],
)
def test_mistakes_are_named(upstream: str, naming: UpstreamOptions, words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        address_of(upstream, naming, {})
    assert words.lower() in str(caught.value).lower()
    assert "secret" not in str(caught.value)


async def test_a_key_may_stand_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "from-there")
    async with scripted_client(HELLO, key=None, key_env="MY_KEY") as (client, server):
        await client.complete("Hi")
        assert server.requests[0].header("authorization") == "Bearer from-there"


async def test_a_server_needs_no_key() -> None:
    async with scripted_client(HELLO, key=None) as (client, server):
        await client.complete("Hi")
        assert server.requests[0].header("authorization") is None


async def test_a_provider_answers_where_it_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Upstream(*polyglot()) as server:
        row = catalog.get("ollama")
        monkeypatch.setattr(catalog, "get", lambda _: row)
        client = AsyncClient("ollama", model="scripted", proxy=None)
        client._calling.connection.address = address_of(server.url, UpstreamOptions(dialect="ollama"), {})
        async with client:
            assert (await client.complete("Hi")).text == "Hello."


async def test_a_server_may_be_at_a_unix_socket(tmp_path: Path) -> None:
    there = answers("chat")
    asked_for: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked_for.append(await reader.readuntil(b"\r\n\r\n"))
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(there.body)
        writer.write(head + there.body)
        await reader.read()
        writer.close()

    async with (
        await asyncio.start_unix_server(serve, tmp_path / "s"),
        AsyncClient(f"unix://{tmp_path / 's'}", model="m") as client,
    ):
        assert (await client.complete("Hi")).text == "Hello."
    assert asked_for[0].startswith(b"POST /v1/chat/completions HTTP/1.1\r\n")


def test_neither_a_key_nor_a_header_is_in_what_a_traceback_may_show() -> None:
    naming = UpstreamOptions(key="canary-key", headers={"x-secret": "canary-header"})
    address = address_of("http://127.0.0.1:9", naming)
    assert [repr(naming), repr(address)] == ["Naming(dialect=None)", f"Address(name={address.name!r}, dialect='chat')"]
    assert "canary" not in repr(address)
