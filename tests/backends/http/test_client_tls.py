"""TLS: checked by default, never given up for plain text, and as quick to close."""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
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

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
LONG_AGO = dt.datetime(2001, 1, 1, tzinfo=dt.UTC)


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


@on_each_loop
async def test_https_keeps_its_connection(authority: trustme.CA) -> None:
    tls = server_context(authority.issue_cert("127.0.0.1"))
    trusting = Transport(ssl_context=client_context(authority))
    async with (
        serving(respond_with(response(b"one"), CHUNKED + b"3\r\ntwo\r\n0\r\n\r\n"), tls=tls) as wire,
        aclosing(trusting) as transport,
    ):
        for body in (b"one", b"two"):
            async with await transport.send("POST", wire.url, [], b"x" * 200_000) as reply:
                assert await reply.read() == body
        assert wire.requested() == [2]


@leakless
async def test_https_over_a_unix_socket(authority: trustme.CA, tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    tls = server_context(authority.issue_cert("model.test"))
    async with (
        serving(respond_with(response(b"one")), tls=tls, path=path),
        aclosing(Transport(ssl_context=client_context(authority))) as transport,
        await transport.send("GET", "https://model.test/v1", [], socket_path=path) as reply,
    ):
        assert await reply.read() == b"one"


UNACCEPTED = "the upstream's certificate is not accepted: "
CERTIFICATES = [
    pytest.param({}, False, "unable to get local issuer certificate", id="U05-authority-unknown"),
    pytest.param({"not_before": LONG_AGO, "not_after": LONG_AGO}, True, "certificate has expired", id="U05-expired"),
    pytest.param({"name": "secret.test"}, True, "it is for another host", id="U05-wrong-name"),
    pytest.param({"name": "10.0.0.1"}, True, "it is for another host", id="U05-wrong-address"),
]


@pytest.mark.parametrize(("made", "trusted", "reason"), CERTIFICATES)
@on_each_loop
async def test_a_certificate_that_does_not_hold_is_refused(
    authority: trustme.CA,
    made: dict[str, object],
    trusted: bool,  # noqa: FBT001 - one of the parameters
    reason: str,
) -> None:
    values = dict(made)
    certificate = authority.issue_cert(str(values.pop("name", "127.0.0.1")), **values)  # type: ignore[arg-type]
    async with serving(respond_with(response(b"leak")), tls=server_context(certificate)) as wire:
        before = open_sockets()
        async with aclosing(Transport(ssl_context=client_context(authority) if trusted else None)) as transport:
            with pytest.raises(TransportError) as caught:
                await transport.send("POST", wire.url + "/secret", [("x-key", "secret")], b"{}")
            error = caught.value
            assert (error.kind, error.stage, error.sent) == ("tls", "connect", False)
            assert str(error) == UNACCEPTED + reason
            assert error.__context__ is None
            await becomes(before, open_sockets)
        assert all(asked == 0 for asked in wire.requested())


async def hangs_up(peer: Peer) -> None:
    peer.close()


async def resets(peer: Peer) -> None:
    peer.reset()


async def plain_http(peer: Peer) -> None:
    peer.send(response(b"plain"))


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(hangs_up, id="U05-closed-in-handshake"),
        pytest.param(resets, id="U05-reset-in-handshake"),
        pytest.param(plain_http, id="U05-plain-text-server"),
    ],
)
@on_each_loop
async def test_a_handshake_that_fails_is_a_tls_error_and_nothing_is_sent(
    script: Callable[[Peer], asyncio.Future[None]],
) -> None:
    async with serving(script) as wire, aclosing(Transport()) as transport:
        with pytest.raises(TransportError) as caught:
            await transport.send("POST", wire.url.replace("http:", "https:"), [], b"secret")
        assert (caught.value.kind, caught.value.stage, caught.value.sent) == ("tls", "connect", False)
        assert len(wire.peers) == 1


@leakless
async def test_plain_http_to_a_tls_server_is_no_answer(authority: trustme.CA) -> None:
    tls = server_context(authority.issue_cert("127.0.0.1"))
    async with serving(respond_with(response(b"no")), tls=tls) as wire, aclosing(Transport()) as transport:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)  # the server complains, as it should
        with pytest.raises(TransportError) as caught:
            await transport.send("POST", wire.url.replace("https:", "http:"), [])
        assert (caught.value.kind, caught.value.stage) in (("closed", "head"), ("protocol", "head"))


@on_each_loop
async def test_a_cancelled_reader_closes_https_at_once_c02(authority: trustme.CA) -> None:
    tls = server_context(authority.issue_cert("127.0.0.1"))
    async with serving(respond_with(CHUNKED + b"1\r\na\r\n"), tls=tls) as wire:
        before = open_sockets()
        async with aclosing(Transport(ssl_context=client_context(authority))) as transport:
            reply = await transport.send("GET", wire.url, [])
            assert await anext(reply) == b"a"
            reading = asyncio.create_task(reply.read())
            await asyncio.sleep(0)
            reading.cancel()
            await becomes(before, open_sockets)
            with pytest.raises(asyncio.CancelledError):
                await reading


@leakless
async def test_a_handshake_that_is_cancelled_closes_at_once_c01() -> None:
    async with serving(respond_with()) as wire, aclosing(Transport()) as transport:
        before = open_sockets()
        asking = asyncio.create_task(transport.send("GET", wire.url.replace("http:", "https:"), []))
        await becomes([0], wire.requested)
        asking.cancel()
        await becomes(before, open_sockets)
        await advance(0)
        assert asking.cancelled()
