"""No descriptor left for a connection: nothing is said against the upstream, and idle connections make room (K17)."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import socket
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.backends.raw_server import leakless, on_each_loop, respond_with, response, serving
from xenoglot.backends.http.client import Transport, TransportError
from xenoglot.backends.remote.upstream_errors import unreachable
from xenoglot.model.failure import Failure
from xenoglot.policy.failure_policy import judge

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

WORDS = "server error: too many files are open here to connect to the upstream; retry later"


@contextmanager
def no_descriptors() -> Generator[None]:
    """Let this process open no more files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def looked_up(_host: str) -> Sequence[str]:
    """Fail as the system's lookup does, which had no descriptor to ask the name server with."""
    raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")


async def problem(transport: Transport, url: str) -> TransportError:
    """Return why there is no connection."""
    with pytest.raises(TransportError) as raised:
        await transport.send("POST", url, [], b"{}")
    return raised.value


@on_each_loop
async def test_findings_2_the_upstream_is_not_blamed() -> None:
    async with serving(respond_with(response(b"ok"))) as wire, aclosing(Transport()) as transport:
        with no_descriptors():
            error = await problem(transport, wire.url)
        assert (error.kind, error.stage, error.sent) == ("exhausted", "connect", False)
        failure = unreachable(error)
        assert failure == Failure(
            kind="internal", message=WORDS, cause="exhausted", not_sent=True, operator_message=str(error)
        )
        assert judge(failure).blame == "none"
        async with await transport.send("POST", wire.url, [], b"{}") as reply:
            assert await reply.read() == b"ok"


@leakless
async def test_findings_2_a_lookup_that_fails_for_want_of_descriptors_is_no_wrong_name() -> None:
    async with aclosing(Transport(resolve=looked_up)) as transport:
        assert (await problem(transport, "http://upstream.test")).kind == "connect"
        with no_descriptors():
            assert (await problem(transport, "http://upstream.test")).kind == "exhausted"


@leakless
async def test_findings_2_idle_connections_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    connect = loop.create_connection
    left = [2]

    async def connecting(*arguments: object, **settings: object) -> object:
        if left[0]:
            left[0] -= 1
            raise OSError(errno.EMFILE, "")
        return await connect(*arguments, **settings)  # type: ignore[call-overload]  # as it was called

    async with serving(respond_with(response(b"ok"))) as idle, serving(respond_with(response(b"ok"))) as other:
        transport = Transport()
        async with await transport.send("POST", idle.url, [], b"{}") as reply:
            await reply.read()
        monkeypatch.setattr(loop, "create_connection", connecting)
        assert (await problem(transport, other.url)).kind == "exhausted"  # the second time, too
        assert (left, transport._pool and transport._pool.connections) == ([0], set())
        left[0] = 1
        assert (await problem(transport, other.url)).kind == "exhausted"  # there is none to close
        for url in (other.url, idle.url):
            async with await transport.send("POST", url, [], b"{}") as reply:
                assert await reply.read() == b"ok"
            left[0] = 1
        await transport.aclose()
