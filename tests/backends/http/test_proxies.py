"""Proxies: how they are named and for whom, tunnels and forwarded requests over real sockets, and how they fail."""

from __future__ import annotations

import asyncio
import socket
import ssl
from base64 import b64encode
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest
import trustme

from tests.backends.http.responses import CHUNKED
from tests.backends.raw_server import (
    Peer,
    advance,
    becomes,
    leakless,
    on_each_loop,
    open_sockets,
    respond_with,
    response,
    serving,
)
from xenoglot.backends.http.client import Transport, TransportError
from xenoglot.backends.http.http1 import locate
from xenoglot.backends.http.proxies import Proxy, is_bypassed, proxy_for, read_proxy
from xenoglot.backends.remote.upstream_errors import unreachable
from xenoglot.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.backends.raw_server import RawServer, Script

BASIC = "Basic " + b64encode(b"me:s3cret").decode()
KEYED = [("authorization", "Bearer s3cret-key")]


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def server_context(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


def client_context(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def at(wire: RawServer, credentials: str = "") -> Proxy:
    """The proxy that listens there."""
    return read_proxy(wire.url.replace("://", f"://{credentials}"))


def tunnelling(upstream: RawServer) -> Script:
    """A proxy whose every tunnel leads to one server, whatever name is asked for."""

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        except (ConnectionError, ssl.SSLError):
            pass
        finally:
            writer.transport.abort()

    async def script(peer: Peer) -> None:
        peer.requests.append(await peer.head())
        reader, writer = await asyncio.open_connection("127.0.0.1", upstream.server.sockets[0].getsockname()[1])
        peer.send(b"HTTP/1.1 200 Connection established\r\nvia: 1.1 proxy\r\n\r\n")
        await asyncio.gather(pump(peer._reader, writer), pump(reader, peer._writer))

    return script


@pytest.mark.parametrize("kind", ["http", "https"])
@on_each_loop
async def test_an_https_upstream_is_asked_through_a_tunnel(authority: trustme.CA, kind: str) -> None:
    inner = server_context(authority.issue_cert("model.test"))
    outer = server_context(authority.issue_cert("127.0.0.1")) if kind == "https" else None
    large = b"x" * 300_000
    async with (
        serving(respond_with(response(large), CHUNKED + b"3\r\ntwo\r\n0\r\n\r\n"), tls=inner) as upstream,
        serving(tunnelling(upstream), tls=outer) as wire,
        aclosing(Transport(ssl_context=client_context(authority), proxy=at(wire, "me:s3cret@"))) as transport,
    ):
        for body in (large, b"two"):
            async with await transport.send("POST", "https://model.test/v1", KEYED, b"y" * 200_000) as reply:
                assert await reply.read() == body
        asked = f"CONNECT model.test:443 HTTP/1.1\r\nhost: model.test:443\r\nproxy-authorization: {BASIC}\r\n\r\n"
        assert wire.requests == [[asked.encode()]]
        assert upstream.requested() == [2]
        assert b"proxy-authorization" not in upstream.requests[0][0]
        assert upstream.requests[0][0].startswith(b"POST /v1 HTTP/1.1\r\nhost: model.test\r\n")


@on_each_loop
async def test_an_http_upstream_is_asked_of_the_proxy() -> None:
    async with (
        serving(respond_with(response(b"one"), response(b"two"))) as wire,
        aclosing(Transport(proxy=at(wire, "me:s3cret@"))) as transport,
    ):
        for body in (b"one", b"two"):
            async with await transport.send("POST", "http://model.test:8000/v1/chat?a=b", KEYED, b"{}") as reply:
                assert await reply.read() == body
        assert wire.requested() == [2]
        for asked in wire.requests[0]:
            assert asked == (
                b"POST http://model.test:8000/v1/chat?a=b HTTP/1.1\r\n"
                b"proxy-authorization: " + BASIC.encode() + b"\r\nhost: model.test:8000\r\n"
                b"authorization: Bearer s3cret-key\r\naccept-encoding: identity\r\ncontent-length: 2\r\n\r\n{}"
            )


@leakless
async def test_connections_are_kept_for_each_upstream_apart() -> None:
    async with (
        serving(respond_with(*[response(b"one")] * 3)) as wire,
        aclosing(Transport(proxy=at(wire))) as transport,
    ):
        for url in ("http://a.test/", "http://b.test/", "http://a.test/", "http://[2001:db8::1]/"):
            async with await transport.send("GET", url, []) as reply:
                await reply.read()
        hosts = [[asked.split()[1] for asked in connection] for connection in wire.requests]
        assert hosts == [[b"http://a.test/"] * 2, [b"http://b.test/"], [b"http://[2001:db8::1]/"]]
        assert b"proxy-authorization" not in wire.requests[0][0]


@leakless
async def test_a_unix_socket_needs_no_proxy(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    nobody = Proxy(scheme="http", host="127.0.0.1", port=1)
    async with (
        serving(respond_with(response(b"one")), path=path),
        aclosing(Transport(proxy=nobody)) as transport,
        await transport.send("GET", "http://local/", [], socket_path=path) as reply,
    ):
        assert await reply.read() == b"one"


@leakless
async def test_the_name_of_the_upstream_is_the_proxys_to_look_up() -> None:
    looked_up: list[str] = []

    async def resolve(host: str) -> tuple[str]:
        looked_up.append(host)
        return ("127.0.0.1",)

    async with serving(respond_with(response(b"one"))) as wire:
        proxy = Proxy(scheme="http", host="proxy.test", port=at(wire).port)
        async with (
            aclosing(Transport(proxy=proxy, resolve=resolve)) as transport,
            await transport.send("GET", "http://model.test/", []) as reply,
        ):
            await reply.read()
    assert looked_up == ["proxy.test"]


def proxy_answer(data: bytes, *, closing: bool = False) -> Script:
    """A proxy that answers so."""

    async def script(peer: Peer) -> None:
        await peer.request()
        peer.send(data)
        if closing:
            peer.close()

    return script


async def hangs_up(peer: Peer) -> None:
    peer.close()


async def resets(peer: Peer) -> None:
    await peer.head()
    peer.reset()


TUNNELS: list[tuple[str, Script, str, str]] = [
    (
        "wants-credentials",
        proxy_answer(b"HTTP/1.1 407 Who at proxy.secret\r\ncontent-length: 0\r\n\r\n"),
        "connect",
        "the proxy wants credentials (status 407)",
    ),
    (
        "bad-gateway",
        proxy_answer(b"HTTP/1.1 502 secret.host down\r\n\r\n"),
        "connect",
        "the proxy gives no tunnel (status 502)",
    ),
    (
        "redirect",
        proxy_answer(b"HTTP/1.1 302 \r\nlocation: http://x/\r\n\r\n"),
        "connect",
        "the proxy gives no tunnel (status 302)",
    ),
    (
        "garbage",
        proxy_answer(b"\x00\xffSSH-2.0-secret\r\n\r\n"),
        "protocol",
        "the proxy's answer to the request for a tunnel is not lawful HTTP",
    ),
    (
        "endless",
        proxy_answer(b"HTTP/1.1 200 OK\r\nx: " + b"a" * 20_000),
        "too_large",
        "the proxy's answer to the request for a tunnel is too large",
    ),
    (
        "talks-on",
        proxy_answer(b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"),
        "protocol",
        "the proxy says something within the tunnel",
    ),
    ("hangs-up", hangs_up, "closed", "the proxy closed the connection before there was a tunnel"),
    ("resets", resets, "closed", "the proxy closed the connection before there was a tunnel"),
    (
        "breaks-off",
        proxy_answer(b"HTTP/1.1 200 O", closing=True),
        "closed",
        "the proxy closed the connection before there was a tunnel",
    ),
    (
        "closes-within",
        proxy_answer(b"HTTP/1.1 200 OK\r\n\r\n", closing=True),
        "tls",
        "the upstream broke off the TLS handshake",
    ),
]


@pytest.mark.parametrize(("script", "kind", "problem"), [pytest.param(*rest, id=name) for name, *rest in TUNNELS])
@on_each_loop
async def test_a_tunnel_that_is_not_given_is_told_without_names(script: Script, kind: str, problem: str) -> None:
    async with serving(script) as wire:
        before = open_sockets()
        async with aclosing(Transport(proxy=at(wire))) as transport:
            with pytest.raises(TransportError) as caught:
                await transport.send("POST", "https://model.test/v1", KEYED, b"secret")
            error = caught.value
            assert (error.kind, error.stage, error.sent, str(error)) == (kind, "connect", False, problem)
            assert error.__context__ is None
            assert "test" not in unreachable(error).message
            await becomes(before, open_sockets)
        assert all(b"s3cret-key" not in asked for connection in wire.requests for asked in connection)


@on_each_loop
async def test_refused_credentials_are_told_as_such() -> None:
    script = proxy_answer(b"HTTP/1.1 407 No\r\n\r\n")
    async with serving(script) as wire, aclosing(Transport(proxy=at(wire, "me:s3cret@"))) as transport:
        with pytest.raises(TransportError, match=r"the proxy refused our credentials \(status 407\)") as caught:
            await transport.send("GET", "https://model.test/", [])
        assert "s3cret" not in repr(caught.value)


@on_each_loop
async def test_a_proxy_that_wants_credentials_answers_for_no_upstream() -> None:
    html = b"<html>proxy.secret wants a password</html>"
    refusal = b"HTTP/1.1 407 Who\r\nproxy-authenticate: Basic\r\ncontent-length: %d\r\n\r\n%b" % (len(html), html)
    async with serving(proxy_answer(refusal)) as wire, aclosing(Transport(proxy=at(wire))) as transport:
        with pytest.raises(TransportError) as caught:
            await transport.send("GET", "http://model.test/", [])
        error = caught.value
        assert (error.kind, error.sent, str(error)) == ("connect", False, "the proxy wants credentials (status 407)")


@on_each_loop
async def test_a_proxy_that_is_not_there(authority: trustme.CA) -> None:
    async with serving(hangs_up) as wire:
        gone = at(wire)
    for url in ("http://model.test/", "https://model.test/"):
        async with aclosing(Transport(proxy=gone, ssl_context=client_context(authority))) as transport:
            with pytest.raises(TransportError, match="no connection to the proxy: ") as caught:
                await transport.send("GET", url, [])
            assert (caught.value.kind, caught.value.sent) == ("connect", False)
            assert "127.0.0.1" not in str(caught.value)


@leakless
async def test_a_proxy_whose_name_leads_nowhere() -> None:
    async def resolve(_: str) -> tuple[str]:
        raise socket.gaierror(socket.EAI_NONAME, "no proxy.test")

    proxy = Proxy(scheme="http", host="proxy.test", port=1)
    async with aclosing(Transport(proxy=proxy, resolve=resolve)) as transport:
        with pytest.raises(TransportError, match=r"^the proxy's host name cannot be resolved$"):
            await transport.send("GET", "http://model.test/", [])


@leakless
async def test_a_silent_proxy_is_waited_for_as_long_as_for_a_connection() -> None:
    async def silent(peer: Peer) -> None:
        await peer.head()

    async with serving(silent) as wire, aclosing(Transport(proxy=at(wire))) as transport:
        asking = asyncio.create_task(transport.send("GET", "https://model.test/", []))
        await becomes(1, lambda: len(wire.peers))
        await advance(4.9)
        assert not asking.done()
        await advance(0.2)
        with pytest.raises(TransportError) as caught:
            await asking
        assert (caught.value.kind, caught.value.stage, caught.value.sent) == ("timeout", "connect", False)


@on_each_loop
async def test_giving_up_closes_a_tunnel_in_the_making() -> None:
    async def silent(peer: Peer) -> None:
        await peer.head()

    async with serving(silent) as wire, aclosing(Transport(proxy=at(wire))) as transport:
        before = open_sockets()
        asking = asyncio.create_task(transport.send("GET", "https://model.test/", []))
        await becomes(1, lambda: len(wire.peers))
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await becomes(before, open_sockets)


@on_each_loop
async def test_what_a_tunnel_leads_to_must_be_the_upstream(authority: trustme.CA) -> None:
    wrong = server_context(authority.issue_cert("other.test"))
    async with (
        serving(respond_with(response(b"leak")), tls=wrong) as upstream,
        serving(tunnelling(upstream)) as wire,
        aclosing(Transport(ssl_context=client_context(authority), proxy=at(wire))) as transport,
    ):
        with pytest.raises(
            TransportError, match=r"^the upstream's certificate is not accepted: it is for another host$"
        ):
            await transport.send("POST", "https://model.test/", KEYED, b"secret")
        assert upstream.requested() in ([], [0])


@on_each_loop
async def test_a_proxy_in_tls_must_be_the_one_that_was_named(authority: trustme.CA) -> None:
    tls = server_context(authority.issue_cert("other.test"))
    async with (
        serving(respond_with(response(b"leak")), tls=tls) as wire,
        aclosing(Transport(ssl_context=client_context(authority), proxy=at(wire, "me:s3cret@"))) as transport,
    ):
        with pytest.raises(TransportError, match=r"^the proxy's certificate is not accepted: it is for another host$"):
            await transport.send("POST", "http://model.test/", KEYED, b"secret")
        assert all(asked == 0 for asked in wire.requested())


PROXIES = [
    pytest.param("http://proxy.test:3128", Proxy(scheme="http", host="proxy.test", port=3128), id="http"),
    pytest.param("HTTPS://Proxy.Test", Proxy(scheme="https", host="proxy.test", port=443), id="https"),
    pytest.param("http://proxy.test/", Proxy(scheme="http", host="proxy.test", port=80), id="slash"),
    pytest.param("proxy:3128", Proxy(scheme="http", host="proxy", port=3128), id="no-scheme"),
    pytest.param("http://[::1]:8080", Proxy(scheme="http", host="::1", port=8080), id="ipv6"),
    pytest.param(
        "http://me:s3cret@proxy",
        Proxy(scheme="http", host="proxy", port=80, authorization=BASIC),
        id="credentials",
    ),
    pytest.param(
        "http://d%40m:p%3A%2f%0a@proxy",
        Proxy(scheme="http", host="proxy", port=80, authorization="Basic " + b64encode(b"d@m:p:/\n").decode()),
        id="encoded-credentials",
    ),
    pytest.param(
        "http://me@proxy",
        Proxy(scheme="http", host="proxy", port=80, authorization="Basic " + b64encode(b"me:").decode()),
        id="name-alone",
    ),
]


@pytest.mark.parametrize(("url", "expected"), PROXIES)
def test_a_proxy_is_read(url: str, expected: Proxy) -> None:
    assert read_proxy(url) == expected


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://me:s3cret@proxy",
        "http://",
        "http://me:s3cret@proxy:99999",
        "http://me:s3@cret@proxy",
        "http://proxy/s3cret",
        "http://proxy:80?s3cret",
        "http://prox y",
        "http://me:s3cret\r\n@proxy",
    ],
)
def test_what_is_no_proxy_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ConfigurationError, match="`HTTPS_PROXY` is no address of a proxy") as caught:
        read_proxy(url, "HTTPS_PROXY")
    assert "s3" not in str(caught.value)


@pytest.mark.parametrize("url", ["socks5://me:s3cret@proxy:1080", "SOCKS4a://proxy", "socks5h://user:p/w@proxy"])
def test_socks_is_refused_in_words_of_its_own(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^`ALL_PROXY`: a SOCKS proxy, and only HTTP proxies are spoken to$"):
        proxy_for("https://model.test", "environment", {"ALL_PROXY": url})


def test_a_proxy_shows_no_password() -> None:
    assert (
        repr(read_proxy("http://me:s3cret@proxy")) == "Proxy(scheme='http', host='proxy', port=80, authorization=...)"
    )


HTTPS, HTTP = "https://model.test/v1", "http://model.test/v1"
ENVIRONMENTS: list[tuple[str, str, Mapping[str, str], str | None]] = [
    ("nothing", HTTPS, {}, None),
    ("https", HTTPS, {"HTTPS_PROXY": "http://a", "HTTP_PROXY": "http://b"}, "a"),
    ("http", HTTP, {"HTTPS_PROXY": "http://a", "HTTP_PROXY": "http://b"}, "b"),
    ("small-letters", HTTPS, {"https_proxy": "http://a"}, "a"),
    ("small-letters-first", HTTPS, {"https_proxy": "http://a", "HTTPS_PROXY": "http://b"}, "a"),
    ("all", HTTP, {"ALL_PROXY": "http://a"}, "a"),
    ("all-comes-last", HTTPS, {"all_proxy": "http://a", "HTTPS_PROXY": "http://b"}, "b"),
    ("empty-is-none", HTTPS, {"https_proxy": "", "HTTPS_PROXY": "http://b", "ALL_PROXY": "http://a"}, None),
    ("other-scheme", HTTPS, {"HTTP_PROXY": "http://a"}, None),
    ("httpoxy", HTTP, {"HTTP_PROXY": "http://evil", "REQUEST_METHOD": "GET"}, None),
    ("httpoxy-small-letters", HTTP, {"http_proxy": "http://a", "REQUEST_METHOD": "GET"}, "a"),
    ("socks-for-others", HTTPS, {"HTTPS_PROXY": "http://a", "ALL_PROXY": "socks5://b"}, "a"),
    ("no-proxy", HTTPS, {"HTTPS_PROXY": "http://a", "NO_PROXY": "x, .test"}, None),
    ("no-proxy-small-letters-first", HTTPS, {"HTTPS_PROXY": "http://a", "no_proxy": "x", "NO_PROXY": "*"}, "a"),
    ("localhost", "https://LocalHost:8080/v1", {"ALL_PROXY": "http://a"}, None),
    ("loopback", "http://127.3.2.1:8080/v1", {"ALL_PROXY": "http://a"}, None),
    ("loopback-six", "http://[::1]/v1", {"ALL_PROXY": "http://a"}, None),
    ("below-localhost", "http://models.localhost./v1", {"ALL_PROXY": "http://a"}, None),
    ("no-url", "nothing of the kind", {"ALL_PROXY": "http://a"}, None),
]


@pytest.mark.parametrize(("url", "environ", "host"), [pytest.param(*rest, id=name) for name, *rest in ENVIRONMENTS])
def test_the_environment_names_a_proxy(url: str, environ: Mapping[str, str], host: str | None) -> None:
    found = proxy_for(url, "environment", environ)
    assert (found.host if found else None) == host
    assert proxy_for(url, None, environ) is None


def test_a_proxy_that_is_named_counts_for_this_machine_too() -> None:
    assert proxy_for("http://127.0.0.1:1", "http://a", {"NO_PROXY": "*"}) == read_proxy("http://a")


PASSED_BY = [
    ("https://model.test", "*", True),
    ("https://model.test", "", False),
    ("https://model.test", " , ,", False),
    ("https://model.test", "model.test", True),
    ("https://model.test", "MODEL.TEST", True),
    ("https://model.test.", "model.test", True),
    ("https://a.model.test", "model.test", True),
    ("https://a.model.test", ".model.test", True),
    ("https://model.test", ".model.test", True),
    ("https://a.model.test", "*.model.test", True),
    ("https://amodel.test", "model.test", False),
    ("https://model.test", "a.model.test", False),
    ("https://model.test", "x y\tmodel.test", True),
    ("https://model.test", "model.test:443", True),
    ("https://model.test:8443", "model.test:443", False),
    ("https://10.1.2.3", "10.0.0.0/8", True),
    ("https://11.1.2.3", "10.0.0.0/8", False),
    ("https://10.1.2.3", "10.1.2.3", True),
    ("https://10.1.2.3:8080", "10.1.2.3:8080", True),
    ("https://10.1.2.3:8080", "10.1.2.3:80", False),
    ("https://10.1.2.3", "2.3", False),
    ("https://[2001:db8::1]", "2001:db8::/32", True),
    ("https://[2001:db8::1]", "[2001:db8::1]", True),
    ("https://[2001:db8::1]:8080", "[2001:db8::1]:8080", True),
    ("https://[2001:db8::1]:8080", "[2001:db8::1]:80", False),
    ("https://model.test", "10.0.0.0/8", False),
    ("https://model.test", "10.0.0.0/99, ::::, :80, .", False),
]


@pytest.mark.parametrize(
    ("url", "listed", "expected"),
    PASSED_BY,
    ids=[f"{url.partition('//')[2]} {listed!r}" for url, listed, _ in PASSED_BY],
)
def test_hosts_that_need_no_proxy(url: str, listed: str, expected: bool) -> None:  # noqa: FBT001  a case
    assert is_bypassed(locate(url).origin, listed) is expected
