"""The shell of a probe, before scripted servers on real sockets."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.backends.raw_server import leakless, respond_with, response, serving
from tests.backends.remote.sign_in.token_endpoint import TokenIssuer, refused
from tests.providers.quirky_server import Quirky, probe_report
from xenoglot.backends.probe_runner import run_probe
from xenoglot.backends.remote.sign_in.strategy import TokenSignIn
from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.codec.target import Target
from xenoglot.errors import FailureError
from xenoglot.providers.probe.exchange import ProbeRequest
from xenoglot.providers.probe.runner import ProbeOptions, probe

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.backends.raw_server import Peer, Script
    from xenoglot.providers.probe.exchange import ProbeResponse

KEY = "sk-a-key-that-nobody-may-see"
HEAD = re.compile(rb"(GET|POST) (\S+) HTTP/1.1\r\n")


def probe_request(request: bytes) -> ProbeRequest:
    """A request of the wire as the question that it was."""
    head, _, body = request.partition(b"\r\n\r\n")
    found = HEAD.match(head)
    assert found is not None
    path = found[2].decode().partition("?")[0]
    data = decode_json(body) if body else None
    return ProbeRequest(
        method="POST" if found[1] == b"POST" else "GET", dialect="", path=path, body=data, description=""
    )


def on_the_wire(reply: ProbeResponse, *fields: str) -> bytes:
    """A reply as bytes."""
    media_type = dict(reply.headers)["content-type"]
    head = [
        f"HTTP/1.1 {reply.status} Said",
        f"content-type: {media_type}",
        *fields,
        f"content-length: {len(reply.body)}",
    ]
    return "\r\n".join([*head, "", ""]).encode() + reply.body


def quirky_script(server: Quirky, heard: Callable[[bytes], bytes | None] = lambda _: None) -> Script:
    """A script that has `server` answer, where `heard` has no answer of its own."""

    async def script(peer: Peer) -> None:
        while True:
            request = await peer.request()
            peer.send(heard(request) or on_the_wire(server.reply(probe_request(request))))

    return script


@leakless
async def test_the_wire_makes_no_difference() -> None:
    target = Target(max_tokens_field="max_completion_tokens", stop_limit=1, forced_tools=False, stream_usage=False)
    async with serving(quirky_script(Quirky({"chat": target}))) as wire:
        options = ProbeOptions(base_url=wire.url, dialects=("chat", "messages"))
        assert await run_probe(options, patience=9.0) == probe_report(Quirky({"chat": target}), probe(options))


@leakless
async def test_a_refused_connection_is_one_line() -> None:
    async with serving(respond_with()) as wire:
        url = wire.url
    with pytest.raises(FailureError) as caught:
        await run_probe(ProbeOptions(base_url=url), patience=9.0)
    assert str(caught.value) == f"cannot connect to {url}: connection refused; is the server running?"
    assert isinstance(caught.value.__cause__, ConnectionRefusedError)


@leakless
async def test_a_server_that_is_asked_too_often_is_waited_for() -> None:
    busy = iter([True, True, False])
    told: list[str] = []

    def heard(_request: bytes) -> bytes | None:
        return b"HTTP/1.1 429 No\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n" if next(busy, False) else None

    async with serving(quirky_script(Quirky({"chat": Target()}), heard)) as wire:
        report = await run_probe(ProbeOptions(base_url=wire.url, dialects=("chat",)), patience=9.0, say=told.append)
    assert (report.faces, report.listed, told[:3]) == (
        ("chat",),
        ("talker",),
        ["chat: the models at `/v1/models`", "status 429: waiting 0 s", "status 429: waiting 0 s"],
    )


@leakless
@pytest.mark.parametrize(("status", "again"), [(425, True), (503, True), (529, True), (500, False), (401, False)])
async def test_a_server_is_asked_again_as_the_failure_policy_says(status: int, *, again: bool) -> None:
    first, told = iter([True, False]), list[str]()

    def heard(_request: bytes) -> bytes | None:
        refused = b"HTTP/1.1 %d No\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n" % status
        return refused if next(first, False) else None

    async with serving(quirky_script(Quirky({"chat": Target()}), heard)) as wire:
        options = ProbeOptions(base_url=wire.url, dialects=("chat",))
        await run_probe(options, patience=9.0, say=told.append)
    assert (f"status {status}: waiting 0 s" in told) == again


@leakless
async def test_a_server_that_stays_busy_is_not_judged() -> None:
    busy = b"HTTP/1.1 429 No\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n"
    async with serving(quirky_script(Quirky({}), lambda _: busy)) as wire:
        report = await run_probe(ProbeOptions(base_url=wire.url, dialects=("chat",)), patience=9.0)
    assert [(one.what, one.verdict) for one in report.findings] == [("models", "not seen"), ("speaks", "not asked")]


@leakless
async def test_no_key_is_told() -> None:
    def heard(_request: bytes) -> bytes:
        body = encode_json({"error": {"message": f"{KEY} is a bad key", "type": KEY}})
        return response(body, "content-type: application/json").replace(b"200 OK", b"401 No")

    told: list[str] = []
    async with serving(quirky_script(Quirky({}), heard)) as wire:
        options = ProbeOptions(base_url=wire.url, keyed=True)
        report = await run_probe(options, key=KEY, patience=9.0, say=told.append)
    assert (KEY.encode() in msgspec.json.encode(report), KEY in "".join(told)) == (False, False)
    assert {one.verdict for one in report.findings if one.what == "speaks"} == {"not asked"}


@leakless
async def test_a_key_is_shown_as_the_server_wants_it() -> None:
    def heard(request: bytes) -> bytes | None:
        refusal = response(b'{"type":"error","error":{"type":"authentication_error","message":"who?"}}')
        return None if b"authorization: Bearer " in request else refusal.replace(b"200 OK", b"401 No")

    async with serving(quirky_script(Quirky({"messages": Target()}), heard)) as wire:
        options = ProbeOptions(base_url=wire.url, dialects=("messages",), keyed=True)
        report = await run_probe(options, key=KEY, patience=9.0)
    assert (report.faces, report.auth) == (("messages",), {"messages": "bearer"})


@leakless
async def test_answers_that_break_off_are_told_so() -> None:
    def heard(request: bytes) -> bytes | None:
        cut = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\nconnection: close\r\n\r\n{"
        return cut if b"xenoglot_probe" in request else None

    async def script(peer: Peer) -> None:
        server = Quirky({"chat": Target()})
        while True:
            request = await peer.request()
            broken = heard(request)
            peer.send(broken or on_the_wire(server.reply(probe_request(request))))
            if broken:
                peer.close()
                return

    async with serving(script) as wire:
        report = await run_probe(ProbeOptions(base_url=wire.url, dialects=("chat",)), patience=9.0)
    told = {one.what: one for one in report.findings}
    assert (report.faces, told["refuses_unknown_fields"].verdict) == (("chat",), "unclear")


@leakless
async def test_requests_are_signed_in() -> None:
    issuer = TokenIssuer()
    sign_in = TokenSignIn(issuer.credential())
    async with serving(quirky_script(Quirky({"chat": Target()}))) as wire:
        options = ProbeOptions(base_url=wire.url, dialects=("chat",))
        report = await run_probe(options, patience=9.0, sign_in=sign_in)
        sent = [request for requests in wire.requests for request in requests]
    assert report.faces == ("chat",)
    assert all(b"\r\nauthorization: Bearer token-number-1\r\n" in request for request in sent)
    assert b"token-number-1" not in msgspec.json.encode(report)


@leakless
async def test_a_sign_in_that_fails_ends_the_probe() -> None:
    issuer = TokenIssuer()
    issuer.errors = [refused()]
    async with serving(respond_with()) as wire:
        options = ProbeOptions(base_url=wire.url)
        with pytest.raises(FailureError) as caught:
            await run_probe(options, patience=9.0, sign_in=TokenSignIn(issuer.credential()))
    assert str(caught.value) == (
        f"not signed in to {wire.url}: sign-in `test` of upstream `up` failed: invalid_grant; renew the key"
    )
