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

from tests.faults.cases import BOTH, mode_of
from tests.faults.direct import ask
from tests.faults.heard import words_of
from tests.faults.house import Caller, House, asking, fine, refused, well
from tests.faults.wires import DIALECTS
from tests.gateway.said import HELLO
from tests.gateway.serving import config_for
from xenoglot.backends.scripted import Scripted
from xenoglot.gateway.app import Gateway

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

MOST = 100_000
"""Bytes of a body that the house takes."""

every_client = pytest.mark.parametrize("client", DIALECTS)
each_mode = pytest.mark.parametrize("streamed", BOTH, ids=mode_of)


@pytest.fixture(scope="module")
def house() -> Generator[House]:
    """Give a house that takes small bodies."""
    with ExitStack() as stack:
        yield House(more={"server": {"drain_seconds": 0.0, "body_limit": MOST}}).start(stack)


def request_of(client: str, prompt: str = "hello") -> tuple[str, bytes]:
    """Where a client posts its question, and the bytes of it."""
    path, body = asking(client, "chat-small", prompt, streamed=False)
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
def test_what_is_no_request_is_refused(house: House, how: str, client: str) -> None:
    async def scene() -> None:
        path, body = request_of(client)
        answer = await house.finish(await house.send(path, NO_REQUESTS[how](body)))
        refused(client, answer, words_of(client, "invalid_request"), 400)
        assert answer.headers["x-should-retry"] == "false"
        assert house.upstream.requests == []
        assert house.line()["failure"] == "invalid_request"

    house.play(scene())


@every_client
def test_c12_all_other_characters_go_through(house: House, client: str) -> None:
    said = "\u0000 \u2028 \uffff \U0010ffff \u202e \ufeff e\u0301"

    async def scene() -> None:
        house.upstream.script(well("chat", streamed=False))
        path, body = request_of(client, said)
        fine(client, await house.finish(await house.send(path, body)), streamed=False)
        assert house.upstream.requests[0].json["messages"][-1]["content"] == said

    house.play(scene())


@every_client
@pytest.mark.parametrize("how", ["declared", "chunked"])
def test_c09_a_body_over_the_limit_is_not_read(house: House, how: str, client: str) -> None:
    async def scene() -> None:
        path, _ = request_of(client)
        caller = await connected(house, path, f"content-length: {10**12}" if how == "declared" else CHUNKED)
        if how == "chunked":
            caller.transport.writelines([b"%x\r\n%b\r\n" % (MOST // 2, b" " * (MOST // 2))] * 3)
        answer = await house.finish(caller)
        refused(client, answer, words_of(client, "too_large"), 413)
        assert house.upstream.requests == []

    house.play(scene())


CHUNKED = "transfer-encoding: chunked"


async def connected(house: House, path: str, *fields: str) -> Caller:
    """Send the head of a request."""
    loop = asyncio.get_running_loop()
    _, caller = await loop.create_connection(Caller, "127.0.0.1", house.port)
    head = [f"POST {path} HTTP/1.1", "host: localhost", f"x-api-key: {house.canaries.client_key}", *fields, "", ""]
    caller.transport.write("\r\n".join(head).encode())
    return caller


@every_client
def test_c09_a_bomb_is_not_unpacked(house: House, client: str) -> None:
    async def scene() -> None:
        path, body = request_of(client)
        bomb = gzip.compress(body[:-1] + b" " * 10_000_000 + b"}")
        tracemalloc.start()
        answer = await house.finish(await house.send(path, bomb, "content-encoding: gzip"))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        words = words_of(client, "invalid_request")
        refused(client, answer, (415, *words[1:]) if client == "gemini" else words, 415)
        assert peak < 5_000_000
        assert house.upstream.requests == []

    house.play(scene())


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
    answer = asyncio.run(ask(gateway, "POST", path, data))
    assert answer.status == (200 if where == "unknown" or many.startswith(b'"') else 400)


TWICE: dict[str, Callable[[bytes], bytes]] = {
    "C13-the-model": lambda body: body.replace(b'"model"', b'"model": "none-such", "model"', 1),
    "C13-deep-in-a-turn": lambda body: body.replace(b'"content"', b'"content": "first", "content"', 1),
    "C13-in-other-letters": lambda body: body.replace(b'"model"', rb'"mod\u0065l": "none-such", "model"', 1),
}


@pytest.mark.parametrize("how", TWICE)
@pytest.mark.parametrize(
    "client", [name for name in DIALECTS if name not in ("gemini", "llama_stack", "llama_stack_completion")]
)
def test_of_duplicate_keys_the_last_counts_for_everybody(house: House, how: str, client: str) -> None:
    """Also for a server of the client's own dialect, who gets the bytes: of two members it might read the first."""

    async def scene() -> None:
        path, body = asking(client, f"{client}-small", "hello", streamed=False)
        data = TWICE[how](json.dumps(body).encode())
        house.upstream.script(well(client, streamed=False))
        answer = await house.finish(await house.send(path, data))
        fine(client, answer, streamed=False)
        got = house.upstream.requests[0].body
        once = json.loads(got, object_pairs_hook=lambda members: members)
        assert sorted(name for name, _ in once) == sorted(body)
        assert (json.loads(got), b"none-such" in got, b"first" in got) == (body, False, False)
        assert house.line()["model"] == f"{client}-small"

    house.play(scene())


@every_client
def test_c13_without_duplicates_the_bytes_are_the_clients(house: House, client: str) -> None:
    async def scene() -> None:
        path, body = asking(client, f"{client}-small", "h\u00e9llo", streamed=False)
        data = json.dumps(body, indent=1).encode()
        house.upstream.script(well(client, streamed=False))
        fine(client, await house.finish(await house.send(path, data)), streamed=False)
        assert house.upstream.requests[0].body == data

    house.play(scene())


@every_client
@each_mode
@pytest.mark.parametrize("accept", ["application/json", "*/*", "text/html;q=0.5", ""])
@pytest.mark.parametrize("upstream", ["same", "chat"])
def test_c25_what_is_accepted_does_not_say_whether_to_stream(
    house: House, client: str, upstream: str, accept: str, *, streamed: bool
) -> None:
    async def scene() -> None:
        there = client if upstream == "same" else upstream
        house.upstream.script(well(there, streamed=streamed))
        path, body = asking(client, f"{there}-small", "hello", streamed=streamed)
        caller = await house.send(path, json.dumps(body).encode(), f"accept: {accept}")
        fine(client, await house.finish(caller), streamed=streamed)

    house.play(scene())
