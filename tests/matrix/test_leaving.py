"""Clients that leave: the upstream is let go at once, whatever was under way (pitfall-118)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest

from tests.matrix.broken import BEGUN
from tests.matrix.case import HI
from tests.matrix.matrix_gateway import CLIENT_KEY, DIALECTS, PATHS, MatrixGateway, model
from tests.matrix.sdk import Sdk, SyncChat, SyncMessages
from tests.matrix.upstream import Reply, stream_reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.running_gateway import AccessLines


def asynchronous(dialect: str, url: str) -> Any:  # noqa: ANN401  two classes without a common face
    """Return the asynchronous SDK of a dialect."""
    if dialect == "chat":
        return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=CLIENT_KEY, max_retries=0)
    return anthropic.AsyncAnthropic(base_url=url, api_key=CLIENT_KEY, max_retries=0)


@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("speaks", DIALECTS)
def test_amid_a_stream(
    speaks: str, upstream: str, matrix_gateway: MatrixGateway, client: Callable[..., Sdk], lines: AccessLines
) -> None:
    """C02: the stream is closed after its first piece."""
    matrix_gateway.upstreams[upstream].script(stream_reply(BEGUN[upstream], "open"))
    asking = client(speaks, "sync")
    assert isinstance(asking, SyncChat | SyncMessages)
    with asking.open(model=model(upstream), **HI[speaks]) as stream:
        next(iter(stream))
    assert matrix_gateway.upstreams[upstream].wait_for_disconnect() == PATHS[upstream]
    line = lines.next()
    assert (line["status"], line["failure"], line["finish"]) == (200, "cancelled", None)


@pytest.mark.parametrize(
    ("reply", "stream"),
    [
        pytest.param(Reply(ending="silent"), True, id="C01-streamed"),
        pytest.param(Reply(ending="silent"), False, id="C01-whole"),
        pytest.param(Reply(body=b'{"id":', ending="open"), False, id="C03-amid-the-body"),
    ],
)
@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("speaks", DIALECTS)
def test_before_the_answer(  # noqa: PLR0913  the axes, and what they need
    speaks: str, upstream: str, reply: Reply, *, stream: bool, matrix_gateway: MatrixGateway, lines: AccessLines
) -> None:
    """The call is cancelled while there is no answer yet."""
    matrix_gateway.upstreams[upstream].script(reply)

    async def scenario() -> None:
        async with asynchronous(speaks, matrix_gateway.url) as asking:
            create: Any = asking.chat.completions.create if speaks == "chat" else asking.messages.create
            calling = asyncio.ensure_future(create(model=model(upstream), stream=stream, **HI[speaks]))
            await asyncio.to_thread(matrix_gateway.upstreams[upstream].wait_for_request)
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling

    asyncio.run(scenario())
    assert matrix_gateway.upstreams[upstream].wait_for_disconnect() == PATHS[upstream]
    line = lines.next()
    assert (line["status"], line["failure"]) == (499, "cancelled")
