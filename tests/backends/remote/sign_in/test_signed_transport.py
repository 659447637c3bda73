"""Requests of a remote backend are signed in: none fails when a credential expires, and a refused one is sent again."""

from __future__ import annotations

import asyncio
import re
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from tests.backends.raw_server import Peer, advance, leakless, response, serving
from tests.backends.remote.sign_in.token_endpoint import TokenIssuer, refused
from tests.backends.remote.test_backend import ANSWER, HELLO, JSON_TYPE, STREAM, STREAMED, call, outcome, sse
from xenoglot.backends.http.client import Transport
from xenoglot.backends.http.http1 import prepare
from xenoglot.backends.http.timeouts import TransportError
from xenoglot.backends.remote.backend import Remote
from xenoglot.backends.remote.sign_in.refreshed_credential import RENEWAL_SECONDS
from xenoglot.backends.remote.sign_in.strategy import SignedRequest, SigningSignIn, TokenSignIn, signed_request
from xenoglot.dialect_registry import get
from xenoglot.errors import FailureError
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.backends.raw_server import RawServer
    from xenoglot.backends.backend import Call
    from xenoglot.codec.dialect import Headers

MODELS = b'{"object":"list","data":[{"id":"m","object":"model","created":1,"owned_by":"x"}]}'
REFUSED_BODY = b'{"error":{"message":"the token is not accepted"}}'
REFUSED = b"HTTP/1.1 401 Unauthorized\r\ncontent-length: %d\r\n\r\n%b" % (len(REFUSED_BODY), REFUSED_BODY)


class TokenServer:
    """A model server that accepts the tokens of `issuer` until they expire or are revoked."""

    def __init__(self, issuer: TokenIssuer) -> None:
        self.issuer = issuer
        self.tokens: list[str] = []
        self.statuses: list[int] = []
        self.revoked: set[str] = set()

    async def script(self, peer: Peer) -> None:
        """Answer every request of a connection."""
        while True:
            try:
                request = await peer.request()
            except EOFError:
                return
            found = re.search(rb"\r\nauthorization: Bearer (\S+)\r\n", request)
            token = found[1].decode() if found else ""
            good = self.issuer.accepts(token) and token not in self.revoked
            self.tokens.append(token)
            self.statuses.append(200 if good else 401)
            peer.send(_answer(request) if good else REFUSED)


def _answer(request: bytes) -> bytes:
    if request.startswith(b"GET"):
        return response(MODELS, JSON_TYPE)
    return sse(STREAM) if b'"stream":true' in request else response(ANSWER, JSON_TYPE)


@asynccontextmanager
async def signed_in(issuer: TokenIssuer) -> AsyncIterator[tuple[Remote, TokenServer, RawServer, TokenSignIn]]:
    """A remote backend that signs in with tokens of `issuer`, and the server that verifies them."""
    server, sign_in = TokenServer(issuer), TokenSignIn(issuer.credential())
    async with serving(server.script) as wire, aclosing(Transport()) as transport, aclosing(sign_in):
        yield Remote("up", get("chat"), wire.url, transport=transport, sign_in=sign_in), server, wire, sign_in


@leakless
async def test_every_kind_of_request_is_signed_in() -> None:
    async with signed_in(TokenIssuer()) as (remote, server, wire, _):
        assert await outcome(remote, call()) == HELLO
        assert await outcome(remote, call(STREAMED)) == HELLO
        assert [info.id for info in await remote.models()] == ["m"]
    assert server.tokens == ["token-number-1"] * 3
    assert all(request.count(b"authorization") == 1 for request in wire.requests[0])


@leakless
async def test_expiry_under_load_without_a_failed_request() -> None:
    """Twenty clients ask all the time while six tokens expire, one after the other."""
    issuer = TokenIssuer(lifetime=600.0)
    async with signed_in(issuer) as (remote, server, _, sign_in):
        asked = 0
        while len(issuer.issued) < 6:
            answers = await asyncio.gather(*(outcome(remote, call()) for _ in range(20)))
            asked += len(answers)
            assert answers == [HELLO] * 20
            await advance(45.0)
        assert sign_in.credential.fetches == 6
    assert server.statuses == [200] * asked


@leakless
async def test_a_revoked_token_is_replaced_once_for_all_requests() -> None:
    issuer = TokenIssuer()
    async with signed_in(issuer) as (remote, server, _, sign_in):
        await outcome(remote, call())
        await advance(RENEWAL_SECONDS)
        server.revoked.add("token-number-1")
        assert await asyncio.gather(*(outcome(remote, call()) for _ in range(10))) == [HELLO] * 10
        assert sign_in.credential.fetches == 2
    assert server.statuses[1:] == [401] * 10 + [200] * 10


@leakless
async def test_a_request_that_was_started_by_callbacks_is_sent_again_too() -> None:
    issuer = TokenIssuer()
    async with signed_in(issuer) as (remote, server, _, sign_in):
        await outcome(remote, call())
        assert remote.is_simple(call())
        await advance(RENEWAL_SECONDS)
        server.revoked.add("token-number-1")
        asked: Call = call(STREAMED)
        composed = remote.encode_call(asked)
        exchange = remote.start(asked, composed)
        assert exchange is not None
        answer = await remote.continue_call(exchange, asked, composed)
        await answer.aclose()
        assert sign_in.credential.fetches == 2
    assert server.tokens[-2:] == ["token-number-1", "token-number-2"]


@leakless
async def test_a_token_that_stays_refused_is_a_refusal() -> None:
    issuer = TokenIssuer()
    async with signed_in(issuer) as (remote, server, _, sign_in):
        await sign_in.wait()
        await advance(RENEWAL_SECONDS)
        server.revoked |= {"token-number-1", "token-number-2"}
        with pytest.raises(FailureError) as caught:
            await remote.answer(call())
        failure = caught.value.failure
    assert (failure.kind, failure.cause, failure.not_sent) == ("upstream", "credentials", False)
    assert failure.message == "the upstream refused the gateway's credentials"
    assert server.statuses == [401, 401]


@leakless
@pytest.mark.parametrize("by_callbacks", [False, True], ids=["task", "callbacks"])
async def test_a_refused_token_is_not_sent_again(*, by_callbacks: bool) -> None:
    """A refusal that no other token changes (no access to the model) does not double the requests."""
    issuer = TokenIssuer()
    async with signed_in(issuer) as (remote, server, _, sign_in):
        await sign_in.wait()
        server.revoked.add("token-number-1")
        for _ in range(3):
            asked: Call = call()
            composed = remote.encode_call(asked)
            exchange = remote.start(asked, composed) if by_callbacks else None
            with pytest.raises(FailureError, match="refused the gateway's credentials"):
                await (remote.continue_call(exchange, asked, composed) if by_callbacks else remote.answer(asked))
        assert sign_in.credential.fetches == 1
    assert server.tokens == ["token-number-1"] * 3


@leakless
async def test_without_a_credential_nothing_is_sent_and_the_operator_learns_why() -> None:
    issuer = TokenIssuer()
    issuer.errors = [refused()]
    async with signed_in(issuer) as (remote, server, wire, _):
        assert not remote.is_simple(call())
        assert remote.start(call(), remote.encode_call(call())) is None
        with pytest.raises(FailureError) as caught:
            await remote.answer(call())
        failure = caught.value.failure
        assert failure == Failure(
            kind="upstream",
            message="the gateway could not sign in to the upstream; retry later",
            cause="credentials",
            not_sent=True,
            operator_message=f"not signed in to {wire.url}: sign-in `test` of upstream `up` failed: invalid_grant; "
            "renew the key",
        )
        await advance(1.0)
        assert await outcome(remote, call()) == HELLO
    assert server.tokens == ["token-number-1"]


@leakless
async def test_each_request_is_signed_with_what_is_sent() -> None:
    seen: list[SignedRequest] = []

    def sign(credential: str, request: SignedRequest) -> Headers:
        seen.append(request)
        return (("x-signature", f"{credential} {len(request.body or b'')}"),)

    issuer = TokenIssuer()
    sign_in = SigningSignIn(issuer.credential(), sign)
    head = prepare("POST", "https://models.example:8443/v1/a%20b?x=1", (("Content-Type", "text/plain"),))
    with pytest.raises(TransportError, match="has just expired"):
        sign_in.fields(head.request(b"body"))
    await sign_in.wait()
    assert sign_in.fields(head.request(b"body")) == b"x-signature: token-number-1 4\r\n"
    assert sign_in.fields(head.streamed(b"body", None), whole=False) == b"x-signature: token-number-1 0\r\n"
    assert seen[0] == SignedRequest(
        "POST",
        "https://models.example:8443/v1/a%20b?x=1",
        (
            ("host", "models.example:8443"),
            ("content-type", "text/plain"),
            ("accept-encoding", "identity"),
            ("content-length", "4"),
        ),
        b"body",
    )
    assert signed_request(head.streamed(b"body", None), whole=False).body is None
    await sign_in.aclose()


@leakless
async def test_a_token_with_line_ends_is_not_written() -> None:
    issuer = TokenIssuer()
    credential = issuer.credential()
    current = await credential.get()
    object.__setattr__(credential, "current", type(current)(value="a\r\nhost: evil"))
    with pytest.raises(TransportError, match="`authorization` has characters that header fields cannot have"):
        TokenSignIn(credential).fields(prepare("GET", "http://a", ()).request())
    await credential.aclose()
