"""Ten thousand requests are cancelled at all moments, some of them twice; then the pool is as if none had been."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import TYPE_CHECKING

from tests.backends.raw_server import becomes, leakless, turns
from xenoglot.backends.http.client import Transport
from xenoglot.testing import END, Body, RequestMatcher, Respond, ResponseHead, ScriptRule, Upstream, WaitEvent

if TYPE_CHECKING:
    from xenoglot.testing.connection import ScriptedConnection

REQUESTS = 10_000
AT_ONCE = 50
"""Fewer than the pool keeps."""

LONGEST = 14
"""Turns of the loop that no request here takes."""

RULES = (
    ScriptRule(steps=(Respond(body=b"whole"),), when=RequestMatcher(path="/whole")),
    ScriptRule(
        steps=(ResponseHead(), Body(b"x" * 2_000, split=1_000), Body(b"y"), *END), when=RequestMatcher(path="/streamed")
    ),
    ScriptRule(steps=(ResponseHead(), Body(b"begun"), WaitEvent("never")), when=RequestMatcher(path="/endless")),
    ScriptRule(steps=(WaitEvent("never"),), when=RequestMatcher(path="/silent")),
)
PATHS = ("/whole", "/whole", "/streamed", "/streamed", "/endless", "/silent")


async def request_one(transport: Transport, url: str, reached: Counter[str]) -> None:
    """Ask, and read to the end."""
    reached["begun"] += 1
    async with await transport.send("POST", url, [], b"{}") as reply:
        reached["head"] += 1
        async for _ in reply:
            reached["piece"] += 1
    reached["end"] += 1


async def cancel_later(task: asyncio.Task[None], chance: Random) -> None:
    """Cancel a request after some turns, and perhaps again."""
    await turns(chance.randrange(LONGEST))
    task.cancel()
    if chance.random() < 0.3:
        await turns(chance.randrange(2))
        task.cancel()


def is_open(connection: ScriptedConnection) -> bool:
    return not connection.lost.is_set()


@leakless
async def test_k10_r61_the_pool_survives_ten_thousand_cancels() -> None:
    chance, reached = Random(20_261_122), Counter[str]()  # noqa: S311 - the same on every run
    transport = Transport()
    async with Upstream(*RULES) as upstream:
        for _ in range(REQUESTS // AT_ONCE):
            urls = [upstream.url + chance.choice(PATHS) for _ in range(AT_ONCE)]
            tasks = [asyncio.create_task(request_one(transport, url, reached)) for url in urls]
            await asyncio.gather(*(cancel_later(task, chance) for task in tasks))
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            assert {type(error) for error in ended if error is not None} <= {asyncio.CancelledError}
            upstream.forget()
        pool = transport._pool
        assert pool is not None
        assert all(reached[moment] > REQUESTS // 20 for moment in ("begun", "head", "piece", "end")), reached
        idle = sum(len(kept) for kept in pool._idle.values())
        assert len(pool.connections) == idle
        await becomes(idle, lambda: sum(map(is_open, upstream.connections)))
        async with await transport.send("POST", upstream.url + "/whole", [], b"{}") as reply:
            assert await reply.read() == b"whole"
        await transport.aclose()
