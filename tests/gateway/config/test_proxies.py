"""The proxies of upstreams, as a configuration says them."""

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from tests.backends.raw_server import respond_with, response, serving
from tests.gateway.running_gateway import RunningGateway, config_for
from xenoglot.backends.http.client import Transport
from xenoglot.backends.http.proxies import read_proxy
from xenoglot.backends.remote.backend import Remote
from xenoglot.codec.json.json_io import encode_json
from xenoglot.dialect_registry import get
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.config.file_permissions import shown
from xenoglot.gateway.config.load import check
from xenoglot.gateway.config.proxies import proxy_of
from xenoglot.gateway.process.build import build_gateway
from xenoglot.model.json import JSONObject

ENVIRON = {"CORPORATE": "http://me:s3cret@proxy.test:3128", "WRONG": "me:s3cret@@x", "SOCKS": "socks5://x", "EMPTY": ""}


def plain(**said: str) -> JSONObject:
    main = {"dialect": "chat", "base_url": "https://model.test/v1", **said}
    return {"upstreams": {"main": main}, "store": {"url": "off"}}


MISTAKES = [
    pytest.param(
        {"proxy": "http://me:s3cret@proxy.test"},
        "upstreams.main.proxy: holds a user or password; name the environment variable with the URL in `proxy_env`",
        id="password-in-the-file",
    ),
    pytest.param(
        {"proxy": "proxy test"},
        "upstreams.main.proxy: `proxy` is no address of a proxy; expected http(s)://[user:password@]host[:port], "
        "percent-encoded",
        id="no-proxy",
    ),
    pytest.param(
        {"proxy": "socks5://proxy.test"},
        "upstreams.main.proxy: `proxy`: a SOCKS proxy, and only HTTP proxies are spoken to",
        id="socks",
    ),
    pytest.param(
        {"proxy": "http://proxy.test", "proxy_env": "CORPORATE"},
        "upstreams.main.proxy: stands in `proxy_env` where that is there",
        id="twice",
    ),
    pytest.param(
        {"proxy_env": "NOBODY"},
        'upstreams.main.proxy_env: the environment variable "NOBODY" is not set',
        id="no-variable",
    ),
    pytest.param(
        {"proxy_env": "EMPTY"}, 'upstreams.main.proxy_env: the environment variable "EMPTY" is empty', id="empty"
    ),
    pytest.param(
        {"proxy_env": "WRONG"},
        "upstreams.main.proxy_env: `WRONG` is no address of a proxy; expected http(s)://[user:password@]host[:port], "
        "percent-encoded",
        id="wrong-variable",
    ),
    pytest.param(
        {"proxy_env": "SOCKS"},
        "upstreams.main.proxy_env: `SOCKS`: a SOCKS proxy, and only HTTP proxies are spoken to",
        id="socks-variable",
    ),
]


@pytest.mark.parametrize(("said", "line"), MISTAKES)
def test_a_mistake_is_told_without_a_secret(said: dict[str, str], line: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        check(plain(**said), ENVIRON, "here")
    assert str(caught.value) == f"here: {line}"


def test_the_environment_is_checked_where_it_counts() -> None:
    environ = {"HTTPS_PROXY": "socks5://me:s3cret@x"}
    check(plain(), environ, "here")
    with pytest.raises(ConfigurationError, match=r"here: upstreams.main.proxy: `HTTPS_PROXY`: a SOCKS proxy"):
        check(plain(proxy="environment"), environ, "here")


SAID: list[tuple[str, dict[str, str], dict[str, str], str | None]] = [
    ("nothing", {}, {"HTTPS_PROXY": "http://never.test"}, None),
    ("named", {"proxy": "http://proxy.test:3128"}, {}, "proxy.test"),
    ("variable", {"proxy_env": "CORPORATE"}, {}, "proxy.test"),
    ("environment", {"proxy": "environment"}, {"HTTPS_PROXY": "http://env.test"}, "env.test"),
    ("environment-has-none", {"proxy": "environment"}, {}, None),
]


@pytest.mark.parametrize(("said", "environ", "host"), [pytest.param(*rest, id=name) for name, *rest in SAID])
def test_an_upstream_has_the_proxy_that_is_said(
    said: dict[str, str], environ: dict[str, str], host: str | None
) -> None:
    config = check(plain(**said), ENVIRON | environ, "here")
    proxy = proxy_of(config.upstreams["main"], config.secrets, environ)
    assert (proxy.host if proxy else None) == host


def test_a_configuration_shows_no_password() -> None:
    config = check(plain(proxy_env="CORPORATE"), ENVIRON, "here")
    told = shown(config, config.secrets)
    assert "s3cret" not in told + repr(config)
    assert msgspec.json.decode(told)["upstreams"]["main"]["proxy_env"] == "CORPORATE"


async def test_an_upstream_is_asked_through_its_proxy() -> None:
    listed = response(b'{"object":"list","data":[{"id":"far","object":"model"}]}', "content-type: application/json")
    async with serving(respond_with(listed)) as wire:
        environ = {"CORPORATE": wire.url.replace("//", "//me:s3cret@")}
        said = plain(base_url="http://model.test/v1", proxy_env="CORPORATE")
        async with build_gateway(check(said, environ, "here")) as gateway:
            assert [model.id for model in await gateway.backends["main"].models()] == ["far"]
        [[asked]] = wire.requests
    assert asked.startswith(b"GET http://model.test/v1/models HTTP/1.1\r\nproxy-authorization: Basic ")


CHAT = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
ANSWER = encode_json(
    {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}],
    }
)
STREAM = (
    b'data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":'
    b'[{"index":0,"delta":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)
WHO = b"HTTP/1.1 407 Who at proxy.secret\r\ncontent-length: 0\r\n\r\n"


async def test_clients_are_answered_through_a_proxy(gateway_server: Callable[..., RunningGateway]) -> None:
    json, stream = "content-type: application/json", "content-type: text/event-stream"
    said = [response(ANSWER, json), response(STREAM, stream), response(ANSWER, json), WHO]
    async with serving(respond_with(*said)) as wire:
        transport = Transport(proxy=read_proxy(wire.url.replace("//", "//me:s3cret@")))
        remote = Remote("main", get("chat"), "http://model.test/v1", transport=transport, keys=["k3y"])
        running = gateway_server({"main": remote}, config_for("main"))
        bodies = [CHAT, CHAT | {"stream": True}, CHAT | {"temperature": 0.5}, CHAT]
        answers = [
            await asyncio.to_thread(running.request, "POST", "/v1/chat/completions", body, {}) for body in bodies
        ]
    assert [answer.status for answer in answers] == [200, 200, 200, 502]
    assert [b"Hello" in answer.body for answer in answers] == [True, True, True, False]
    assert b"connection error: the upstream cannot be reached" in answers[3].body
    assert not any(word in answers[3].body for word in (b"secret", b"s3cret", b"model.test", b"127.0.0.1"))
    [asked] = wire.requests
    assert {one.partition(b"\r\n")[0] for one in asked} == {b"POST http://model.test/v1/chat/completions HTTP/1.1"}
    assert all(b"authorization: Bearer k3y" in one for one in asked)
