"""Bodies that are no request, are too much of one, or are two at once; for clients of every dialect.

C09, C11, C12, C13 and C25.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.faults.assertions import assert_completed, assert_refused
from tests.faults.client_requests import client_request
from tests.faults.client_view import error_codes
from tests.faults.direct_exchange import handle
from tests.faults.fault_cases import BOTH, mode_of
from tests.faults.harness import GatewayHarness
from tests.faults.raw_client import RawClient
from tests.faults.upstream_steps import valid_response
from tests.faults.wire_responses import ALL_DIALECTS
from tests.gateway.running_gateway import config_for
from tests.gateway.scripted_backends import HELLO
from xenoglot.backends.scripted import Scripted
from xenoglot.gateway.app import Gateway

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

MOST = 100_000
"""Bytes of a body that the harness takes."""

every_client = pytest.mark.parametrize("client", ALL_DIALECTS)
each_mode = pytest.mark.parametrize("streamed", BOTH, ids=mode_of)


@pytest.fixture(scope="module")
def harness() -> Generator[GatewayHarness]:
    """Give a harness that takes small bodies."""
    with ExitStack() as stack:
        yield GatewayHarness(more={"server": {"drain_seconds": 0.0, "body_limit": MOST}}).start(stack)


def request_of(client: str, prompt: str = "hello") -> tuple[str, bytes]:
    """Where a client posts its question, and the bytes of it."""
    path, body = client_request(client, "chat-small", prompt, streamed=False)
    return path, json.dumps(body).encode()


NO_REQUESTS: dict[str, Callable[[bytes], bytes]] = {
    "C12-no-utf8": lambda body: body.replace(b"hello", b"h\xffllo"),
    "C12-overlong-utf8": lambda body: body.replace(b"hello", b"\xc0\xaf"),
    "C12-a-surrogate-in-utf8": lambda body: body.replace(b"hello", b"\xed\xa0\x80"),
    "C12-half-a-pair": lambda body: body.replace(b"hello", rb"\ud800"),
    "C12-the-other-half": lambda body: body.replace(b"hello", rb"\ude00 \ud83d"),
    "C12-bom": lambda body: b"\xef\xbb\xbf" + body,
    "C12-utf16": lambda body: body.decode().encode("utf-16"),
    "C12-utf16-without-a-bom": lambda body: body.decode().encode("utf-16-be"),
    "C12-nothing": lambda _: b"",
    "C12-cut": lambda body: body[:-1],
    "C12-two": lambda body: body + body,
    "C12-a-list": lambda body: b"[" + body + b"]",
    "C11-depth-in-an-unknown-field": lambda body: body[:-1] + b',"x":' + b"[" * 30_000 + b"]" * 30_000 + b"}",
    "C11-depth-of-objects": lambda body: body[:-1] + b',"x":' + b'{"a":' * 15_000 + b"1" + b"}" * 15_001,
    "C11-depth-that-never-ends": lambda _: b"[" * 90_000,
}


@every_client
@pytest.mark.parametrize("how", NO_REQUESTS)
def test_what_is_no_request_is_refused(harness: GatewayHarness, how: str, client: str) -> None:
    async def scenario() -> None:
        path, body = request_of(client)
        answer = await harness.read_response(await harness.post(path, NO_REQUESTS[how](body)))
        assert_refused(client, answer, error_codes(client, "invalid_request"), 400)
        assert answer.headers["x-should-retry"] == "false"
        assert harness.upstream.requests == []
        assert harness.access_log_line()["failure"] == "invalid_request"

    harness.run(scenario())


@every_client
def test_c12_all_other_characters_go_through(harness: GatewayHarness, client: str) -> None:
    said = "\u0000 \u2028 \uffff \U0010ffff \u202e \ufeff e\u0301"

    async def scenario() -> None:
        harness.upstream.script(valid_response("chat", streamed=False))
        path, body = request_of(client, said)
        assert_completed(client, await harness.read_response(await harness.post(path, body)), streamed=False)
        assert harness.upstream.requests[0].json["messages"][-1]["content"] == said

    harness.run(scenario())


@every_client
@pytest.mark.parametrize("how", ["declared", "chunked"])
def test_c09_a_body_over_the_limit_is_not_read(harness: GatewayHarness, how: str, client: str) -> None:
    async def scenario() -> None:
        path, _ = request_of(client)
        raw_client = await connect_and_send_head(
            harness, path, f"content-length: {10**12}" if how == "declared" else CHUNKED
        )
        if how == "chunked":
            raw_client.transport.writelines([b"%x\r\n%b\r\n" % (MOST // 2, b" " * (MOST // 2))] * 3)
        answer = await harness.read_response(raw_client)
        assert_refused(client, answer, error_codes(client, "too_large"), 413)
        assert harness.upstream.requests == []

    harness.run(scenario())


CHUNKED = "transfer-encoding: chunked"


async def connect_and_send_head(harness: GatewayHarness, path: str, *fields: str) -> RawClient:
    """Send the head of a request."""
    loop = asyncio.get_running_loop()
    _, raw_client = await loop.create_connection(RawClient, "127.0.0.1", harness.port)
    head = [f"POST {path} HTTP/1.1", "host: localhost", f"x-api-key: {harness.canaries.client_key}", *fields, "", ""]
    raw_client.transport.write("\r\n".join(head).encode())
    return raw_client


@every_client
def test_c09_a_bomb_is_not_unpacked(harness: GatewayHarness, client: str) -> None:
    async def scenario() -> None:
        path, body = request_of(client)
        bomb = gzip.compress(body[:-1] + b" " * 10_000_000 + b"}")
        tracemalloc.start()
        answer = await harness.read_response(await harness.post(path, bomb, "content-encoding: gzip"))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        words = error_codes(client, "invalid_request")
        assert_refused(client, answer, (415, *words[1:]) if client == "gemini" else words, 415)
        assert peak < 5_000_000
        assert harness.upstream.requests == []

    harness.run(scenario())


@pytest.mark.parametrize("client", ["chat", "messages"])
@pytest.mark.parametrize(
    "many",
    [
        pytest.param(b"{" + b",".join(b'"%d":0' % number for number in range(900_000)) + b"}", id="C11-many-keys"),
        pytest.param(b"[" + b"0," * 899_999 + b"0]", id="C11-many-elements"),
        pytest.param(b'"' + b"x" * 25_000_000 + b'"', id="C11-a-long-text"),
    ],
)
@pytest.mark.parametrize("where", ["prompt", "unknown"])
def test_what_is_huge_is_one_value_and_no_more(client: str, many: bytes, where: str) -> None:
    """As a prompt an object or a list of numbers is none; in a field that nobody knows it is passed over, in time."""
    gateway = Gateway(config_for("one"), {"one": Scripted(HELLO)})
    path, body = request_of(client)
    data = body.replace(b'"hello"', many) if where == "prompt" else body[:-1] + b',"x":' + many + b"}"
    answer = asyncio.run(handle(gateway, "POST", path, data))
    assert answer.status == (200 if where == "unknown" or many.startswith(b'"') else 400)


DUPLICATE_KEYS: dict[str, Callable[[bytes], bytes]] = {
    "C13-the-model": lambda body: body.replace(b'"model"', b'"model": "none-such", "model"', 1),
    "C13-deep-in-a-turn": lambda body: body.replace(b'"content"', b'"content": "first", "content"', 1),
    "C13-in-other-letters": lambda body: body.replace(b'"model"', rb'"mod\u0065l": "none-such", "model"', 1),
}


@pytest.mark.parametrize("how", DUPLICATE_KEYS)
@pytest.mark.parametrize(
    "client", [name for name in ALL_DIALECTS if name not in ("gemini", "llama_stack", "llama_stack_completion")]
)
def test_of_duplicate_keys_the_last_counts_for_everybody(harness: GatewayHarness, how: str, client: str) -> None:
    """Also for a server of the client's own dialect, who gets the bytes: of two members it might read the first."""

    async def scenario() -> None:
        path, body = client_request(client, f"{client}-small", "hello", streamed=False)
        data = DUPLICATE_KEYS[how](json.dumps(body).encode())
        harness.upstream.script(valid_response(client, streamed=False))
        answer = await harness.read_response(await harness.post(path, data))
        assert_completed(client, answer, streamed=False)
        got = harness.upstream.requests[0].body
        once = json.loads(got, object_pairs_hook=lambda members: members)
        assert sorted(name for name, _ in once) == sorted(body)
        assert (json.loads(got), b"none-such" in got, b"first" in got) == (body, False, False)
        assert harness.access_log_line()["model"] == f"{client}-small"

    harness.run(scenario())


@every_client
def test_c13_without_duplicates_the_bytes_are_the_clients(harness: GatewayHarness, client: str) -> None:
    async def scenario() -> None:
        path, body = client_request(client, f"{client}-small", "h\u00e9llo", streamed=False)
        data = json.dumps(body, indent=1).encode()
        harness.upstream.script(valid_response(client, streamed=False))
        assert_completed(client, await harness.read_response(await harness.post(path, data)), streamed=False)
        assert harness.upstream.requests[0].body == data

    harness.run(scenario())


@every_client
@each_mode
@pytest.mark.parametrize("accept", ["application/json", "*/*", "text/html;q=0.5", ""])
@pytest.mark.parametrize("upstream", ["same", "chat"])
def test_c25_what_is_accepted_does_not_say_whether_to_stream(
    harness: GatewayHarness, client: str, upstream: str, accept: str, *, streamed: bool
) -> None:
    async def scenario() -> None:
        there = client if upstream == "same" else upstream
        harness.upstream.script(valid_response(there, streamed=streamed))
        path, body = client_request(client, f"{there}-small", "hello", streamed=streamed)
        raw_client = await harness.post(path, json.dumps(body).encode(), f"accept: {accept}")
        assert_completed(client, await harness.read_response(raw_client), streamed=streamed)

    harness.run(scenario())
