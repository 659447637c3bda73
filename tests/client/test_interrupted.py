"""Calls cancelled at each of their waits: nothing is left open, and the client answers the next call."""

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.client.server_scripts import ONCE, chunk, streamed, whole_answer
from xenoglot.client.async_ import AsyncClient
from xenoglot.testing import Steps, Upstream
from xenoglot.testing.cancellation import interrupt
from xenoglot.testing.leaks import Baseline

ASKED = {"messages": [{"role": "user", "content": "Hi"}]}
STREAMED = streamed(chunk({"content": "Hel"}), chunk({"content": "lo."}), chunk({}, "stop"))


async def _streamed(client: AsyncClient) -> None:
    async with client.stream("Hi") as stream:
        async for _ in stream.texts():
            pass
        await stream.reply()


async def _raw_streamed(client: AsyncClient) -> None:
    async with client.raw_stream(ASKED) as stream:
        async for _ in stream:
            pass


async def _disconnect(client: AsyncClient) -> None:
    async with client.stream("Hi") as stream:
        await anext(stream)


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize(
    ("call", "answer"),
    [
        pytest.param(lambda client: client.complete("Hi"), whole_answer({"content": "Hello."}), id="complete"),
        pytest.param(
            lambda client: client.complete("Hi", timeout=3600), whole_answer({"content": "Hello."}), id="in-time"
        ),
        pytest.param(lambda client: client.parse("Hi", int), whole_answer({"content": '{"value": 3}'}), id="parse"),
        pytest.param(lambda client: client.raw(ASKED), whole_answer({"content": "Hello."}), id="raw"),
        pytest.param(_streamed, STREAMED, id="stream"),
        pytest.param(_disconnect, STREAMED, id="left-stream"),
        pytest.param(_raw_streamed, STREAMED, id="raw-stream"),
    ],
)
async def test_a_call_may_be_cancelled_anywhere(
    call: Callable[[AsyncClient], Coroutine[Any, Any, object]],
    answer: Steps,
    times: int,
) -> None:
    async with Upstream(answer) as server:
        at, came = 0, True
        while came:
            at += 1
            async with (
                Baseline(collect=False),
                AsyncClient(server.url, model="m", proxy=None, retry=ONCE) as client,
            ):
                came = await interrupt(call(client), at, times=times)
                await call(client)
    assert at > 2
