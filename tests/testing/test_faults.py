"""Every ready fault is one, in every dialect, streamed and not: no answer comes of it, or the right one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.backends.raw_server import advance, leakless
from tests.faults.client_requests import client_request
from xenoglot.backends.backend import ByteAnswer, Call
from xenoglot.backends.http.client import Transport
from xenoglot.backends.remote.backend import Remote
from xenoglot.codec.loss import Losses
from xenoglot.codec.requests.url_params import informed
from xenoglot.dialect_registry import get, names
from xenoglot.errors import ConfigurationError, FailureError
from xenoglot.model.content import Text
from xenoglot.model.failure import Failure
from xenoglot.model.fold import Folder
from xenoglot.testing import Upstream
from xenoglot.testing.faults import FAULTS, by_request, fault, faulty

if TYPE_CHECKING:
    from xenoglot.model.response import Response

A_DAY = 86_400.0


async def outcome(upstream: Upstream, remote: Remote, name: str, *, streamed: bool) -> Response | Failure:
    """Return what comes of a question; once nothing is sent any more, all the time that it may take passes at once."""
    dialect = get(name)
    _, body = client_request(name, "m", "Hi.", streamed=streamed)
    path = dialect.stream_path if streamed and dialect.stream_path else dialect.path
    request = dialect.decode_request(informed(body, path, {"model": "m"}, dialect))
    assert bool(request.stream) is streamed
    task = asyncio.ensure_future(_outcome(remote, Call(request=request, losses=Losses())))
    sent = -1
    while not task.done():
        for _ in range(30):
            await asyncio.sleep(0)
        before, sent = sent, sum(connection.sent_bytes for connection in upstream.connections)
        if sent == before:
            await advance(A_DAY)
    return task.result()


async def _outcome(remote: Remote, call: Call) -> Response | Failure:
    folder = Folder()
    try:
        answer = await remote.answer(call)
        assert not isinstance(answer, ByteAnswer)
        async for batch in answer.batches:
            for event in batch:
                folder.feed(event)
    except FailureError as error:
        return error.failure
    return folder.failure or folder.response()


@pytest.mark.parametrize("name", FAULTS)
@leakless
async def test_what_comes_of_it(name: str) -> None:
    for dialect in names():
        async with Upstream(*faulty(name, dialect)) as upstream:
            transport = Transport()
            remote = Remote("scripted", get(dialect), upstream.url, transport=transport)
            for streamed in (False, True):
                made = await outcome(upstream, remote, dialect, streamed=streamed)
                if FAULTS[name].fails:
                    assert isinstance(made, Failure), (dialect, streamed)
                else:
                    assert not isinstance(made, Failure), (dialect, streamed)
                    (candidate,) = made.candidates
                    texts = [part.text for part in candidate.content if isinstance(part, Text)]
                    assert ("".join(texts), candidate.finish is None) == ("Hello.", False), (dialect, streamed)
            await transport.aclose()


@leakless
async def test_a_request_can_ask_for_its_fault() -> None:
    async with Upstream(*by_request("chat")) as upstream:
        transport = Transport()
        remote = Remote("scripted", get("chat"), upstream.url, transport=transport)
        outcomes = []
        for said in ("fault:internal! please", "fault:fine!", "nothing", "fault:unheard-of!"):
            dialect = get("chat")
            request = dialect.decode_request({"model": "m", "messages": [{"role": "user", "content": said}]})
            outcomes.append(isinstance(await _outcome(remote, Call(request=request, losses=Losses())), Failure))
        await transport.aclose()
    assert outcomes == [True, False, False, False]


def test_a_fault_that_is_not_there() -> None:
    with pytest.raises(ConfigurationError, match="there is no fault `bad-luck`; there are: fine, "):
        fault("bad-luck", "chat", streamed=True)


def test_says_is_description_and_warns() -> None:
    fault = next(iter(FAULTS.values()))
    with pytest.warns(DeprecationWarning, match="description"):
        assert fault.says == fault.description
