"""How often a call is tried: what passes is tried again after a wait, what does not is told at once."""

import asyncio
from types import SimpleNamespace

import pytest

from tests.client.server_scripts import (
    HELLO,
    HELLO_STREAMED,
    RecordedSleep,
    chunk,
    error_answer,
    scripted_client,
    streamed,
    whole_answer,
)
from xenoglot.client.call import retry as call_retry
from xenoglot.errors import (
    AuthenticationError,
    DeadlineError,
    FailureError,
    IncompleteError,
    InvalidRequestError,
    OverloadedError,
    RateLimitError,
    UpstreamError,
)
from xenoglot.policy.target_health import Retry
from xenoglot.testing import BROKEN, SILENT, Body, ResponseHead, ScriptRule, Steps, Upstream

HOUR = 3600.0
BUSY = error_answer(503, {"message": "busy"})
SLOW_DOWN = error_answer(429, {"message": "slow down"}, ("retry-after", "7"))
SSE = ("content-type", "text/event-stream")


def times(steps: Steps, count: int) -> ScriptRule:
    """A rule that is used so often."""
    return ScriptRule(steps=steps, times=count)


@pytest.mark.parametrize(
    ("first", "waits"),
    [
        pytest.param(BUSY, [0.25], id="c-w8-overloaded"),
        pytest.param(error_answer(500, {"message": "x"}), [0.25], id="c-w8-internal"),
        pytest.param(SLOW_DOWN, [7.25], id="c-w8-retry-after"),
        pytest.param(BROKEN, [0.25], id="c-w8-reset"),
        pytest.param(whole_answer({"content": "x"}, choices=[]), [0.25], id="c9-no-answer-in-it"),
    ],
)
async def test_what_passes_is_tried_again(first: Steps, waits: list[float]) -> None:
    slept = RecordedSleep()
    async with scripted_client(times(first, 1), HELLO, retry=Retry(attempts=3), world=slept.world) as (client, server):
        assert (await client.complete("Hi")).text == "Hello."
        assert len(server.requests) == 2
    assert slept.waits == waits


@pytest.mark.parametrize(
    ("steps", "kind"),
    [
        pytest.param(error_answer(401, {"message": "no"}), AuthenticationError, id="a-key-gets-no-better"),
        pytest.param(error_answer(400, {"message": "no"}), InvalidRequestError, id="nor-a-request"),
        pytest.param(
            error_answer(429, {"message": "no"}, ("retry-after", "3000")), RateLimitError, id="nor-is-waited-for-long"
        ),
    ],
)
async def test_what_does_not_pass_is_told_at_once(steps: Steps, kind: type[FailureError]) -> None:
    slept = RecordedSleep()
    async with scripted_client(steps, retry=Retry(attempts=3), world=slept.world) as (client, server):
        with pytest.raises(kind):
            await client.complete("Hi")
        assert (len(server.requests), slept.waits) == (1, [])


async def test_tries_end_and_waits_double() -> None:
    slept = RecordedSleep(chance=1.0)
    async with scripted_client(BUSY, retry=Retry(attempts=4), world=slept.world) as (client, server):
        with pytest.raises(OverloadedError) as caught:
            await client.complete("Hi")
        assert len(server.requests) == 4
    assert slept.waits == [0.5, 1.0, 2.0]
    assert caught.value.retryable


async def test_all_calls_share_what_further_tries_cost() -> None:
    slept = RecordedSleep(chance=0.0)
    retry = Retry(attempts=100, budget=0.0, budget_floor=5)
    async with scripted_client(BUSY, retry=retry, world=slept.world) as (client, server):
        for _ in range(3):
            with pytest.raises(OverloadedError):
                await client.complete("Hi")
        assert len(server.requests) == 3 + 5


@pytest.mark.parametrize(
    "first",
    [
        pytest.param((ResponseHead(headers=(SSE,)), *BROKEN), id="before-anything"),
        pytest.param(streamed(done=False), id="empty"),
        pytest.param(streamed({"error": {"message": "busy", "type": "server_error"}}, done=False), id="an-error-first"),
        pytest.param((ResponseHead(headers=(SSE,)), Body(b": hello\n\n"), *BROKEN), id="after-a-sign-of-life"),
        pytest.param(
            streamed(chunk({"role": "assistant"}), {"error": {"message": "busy", "type": "server_error"}}, done=False),
            id="after-a-beginning-that-says-nothing",
        ),
    ],
)
async def test_a_stream_that_breaks_before_it_began_is_begun_again(first: Steps) -> None:
    slept = RecordedSleep()
    async with scripted_client(times(first, 1), HELLO_STREAMED, retry=Retry(attempts=2), world=slept.world) as (
        client,
        server,
    ):
        async with client.stream("Hi") as stream:
            assert "".join([text async for text in stream.texts()]) == "Hello."
        assert len(server.requests) == 2


@pytest.mark.parametrize(
    "first",
    [
        pytest.param((ResponseHead(headers=(SSE,)), Body(b": hello\n\n"), *BROKEN), id="after-a-heartbeat"),
        pytest.param(streamed({"error": {"message": "busy", "type": "server_error"}}, done=False), id="an-error-first"),
    ],
)
async def test_a_stream_of_bytes_that_breaks_before_it_starts_is_sent_again(first: Steps) -> None:
    slept = RecordedSleep()
    async with scripted_client(times(first, 1), HELLO_STREAMED, retry=Retry(attempts=2), world=slept.world) as (
        client,
        server,
    ):
        body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
        async with client.raw_stream(body, dialect="chat") as stream:
            chunks = [event async for event in stream]
    assert (len(chunks), len(server.requests)) == (3, 2)


async def test_a_stream_that_has_begun_is_not_begun_again() -> None:
    script = streamed(chunk({"content": "Hel"}), done=False, then=BROKEN)
    async with scripted_client(script, retry=Retry(attempts=3)) as (client, server):
        with pytest.raises(IncompleteError):
            await client.stream("Hi").reply()
        assert len(server.requests) == 1


def expire_when_requested(monkeypatch: pytest.MonkeyPatch, server: Upstream) -> None:
    """Let a call's deadline pass when the server has its request: by the clock it could pass before."""

    def timeout_at(when: float) -> asyncio.Timeout:
        scope = asyncio.timeout_at(when + HOUR)

        async def expire() -> None:
            await server.until(lambda: len(server.requests) == 1)
            scope.reschedule(0)

        expiring.append(asyncio.ensure_future(expire()))
        return scope

    expiring: list[asyncio.Future[None]] = []
    monkeypatch.setattr(
        call_retry, "asyncio", SimpleNamespace(timeout_at=timeout_at, get_running_loop=asyncio.get_running_loop)
    )


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
async def test_a_call_may_take_so_long_and_no_longer(
    streams: bool,  # noqa: FBT001  a case
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with scripted_client(SILENT, retry=Retry(attempts=3)) as (client, server):
        expire_when_requested(monkeypatch, server)
        with pytest.raises(DeadlineError) as caught:
            await (client.stream("Hi", timeout=0.05).reply() if streams else client.complete("Hi", timeout=0.05))
        assert caught.value.kind == "timeout"
        await server.connections[0].gone()


async def test_a_stream_may_take_so_long_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    script = streamed(chunk({"content": "a"}), done=False, then=SILENT)
    async with scripted_client(script) as (client, server):
        expire_when_requested(monkeypatch, server)
        with pytest.raises(DeadlineError):
            await client.stream("Hi", timeout=0.1).reply()
        await server.connections[0].gone()


async def test_what_is_not_retryable_is_not_an_upstream_error_by_chance() -> None:
    async with scripted_client(
        (ResponseHead(status=302, headers=(("location", "http://elsewhere.test/"),)), Body(b"x"))
    ) as (
        client,
        server,
    ):
        with pytest.raises(UpstreamError) as caught:
            await client.complete("Hi")
        assert (caught.value.retryable, len(server.requests)) == (False, 1)
