"""Large histories and large prompts: what the event loop encodes and counts itself (R51)."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from tests.faults.direct_exchange import handle
from tests.gateway.test_offloaded import answer, watched
from xenoglot.backends.offload import LARGE
from xenoglot.gateway.api import operations
from xenoglot.gateway.config.load import check
from xenoglot.gateway.process.build import build_gateway
from xenoglot.gateway.upstream import call
from xenoglot.testing.script import Respond
from xenoglot.testing.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from xenoglot.gateway.app import Gateway
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Request

TURNS = [{"role": "user", "content": f"The tide, twice a day: so it goes ({place})."} for place in range(5000)]
LIMITS = {"tokens": ["1000000000/m"]}


@asynccontextmanager
async def serving(**model: object) -> AsyncGenerator[Gateway]:
    step = Respond(200, (("content-type", "application/json"),), answer())
    async with Upstream((step, step)) as upstream:
        plain = {
            "server": {"port": 0},
            "upstreams": {"u": {"dialect": "chat", "base_url": upstream.url}},
            "models": [{"name": "m", "upstream": "u", **model}],
            "store": {"url": "memory"},
        }
        async with build_gateway(check(plain, {}, "a test")) as gateway:
            yield gateway


async def post(gateway: Gateway, path: str, body: JSONObject) -> JSONObject:
    answered = await handle(gateway, "POST", path, json.dumps({"model": "m", **body}).encode())
    assert answered.status == 200, answered.body[:300]
    found: JSONObject = json.loads(answered.body)
    return found


def estimated_in(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Note of each estimate whether the loop's thread made it."""
    seen: list[bool] = []
    loop_thread = threading.get_ident()

    def noting(estimate: Callable[[Request], int]) -> Callable[[Request], int]:
        def noted(request: Request) -> int:
            seen.append(threading.get_ident() == loop_thread)
            return estimate(request)

        return noted

    for module in (call, operations):
        monkeypatch.setattr(module, "estimate", noting(module.estimate))
    return seen


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/responses/input_tokens"])
def test_r51_a_large_history_is_not_encoded_in_the_loop(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The request that goes on from it is small."""
    estimates = estimated_in(monkeypatch)

    async def scene() -> None:
        async with serving() as gateway:
            first = await post(gateway, "/v1/responses", {"input": TURNS, "store": True})
            seen = watched(monkeypatch)
            await post(gateway, path, {"input": "Go on.", "previous_response_id": first["id"]})
            assert [given for given in seen if given.in_loop and given.size > LARGE] == []
            assert [given for given in seen if given.size > LARGE] != []

    asyncio.run(scene())
    assert estimates == ([False] if path.endswith("tokens") else [])


def test_r51_a_large_prompt_is_not_counted_in_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    estimates = estimated_in(monkeypatch)

    async def scene() -> None:
        async with serving() as gateway:
            counted = await post(gateway, "/v1/messages/count_tokens", {"messages": TURNS})
            assert counted["input_tokens"] > len(TURNS)

    asyncio.run(scene())
    assert estimates == [False]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_r51_a_large_prompt_is_not_measured_in_the_loop_for_its_limits(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    estimates = estimated_in(monkeypatch)

    async def scene() -> None:
        async with serving(limits=LIMITS) as gateway:
            await post(gateway, path, {"messages": TURNS, "max_tokens": 9})

    asyncio.run(scene())
    assert estimates == [False]
