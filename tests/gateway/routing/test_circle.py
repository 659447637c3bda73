"""A gateway that leads to itself: whatever is asked of it comes to its end after a few rounds."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from tests.gateway.running_gateway import config_for
from tests.gateway.scripted_backends import CHAT, MESSAGES
from xenoglot import dialect_registry as dialects
from xenoglot.backends.http.client import Transport
from xenoglot.backends.remote import request_heads
from xenoglot.backends.remote.backend import Remote
from xenoglot.gateway.app import Gateway
from xenoglot.gateway.process.serve import GatewayServer, bind
from xenoglot.testing import AsyncRawClient

if TYPE_CHECKING:
    from xenoglot.model.json import JSONObject

EVERYWHERE: tuple[tuple[str, str, JSONObject | None], ...] = (
    ("POST", "/v1/messages", MESSAGES),
    ("POST", "/v1/messages", {**MESSAGES, "stream": True}),
    ("POST", "/v1/messages/count_tokens", CHAT),
    ("GET", "/v1/models", None),
)


@pytest.mark.parametrize(("method", "path", "body"), EVERYWHERE, ids=["whole", "stream", "count", "list"])
async def test_whatever_is_asked_comes_to_its_end(method: str, path: str, body: JSONObject | None) -> None:
    statuses: list[int | None] = []
    async with aclosing(Transport()) as transport:
        with bind("127.0.0.1", 0) as listener:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            itself = Remote("itself", dialects.get("messages"), url, transport=transport)
            gateway = Gateway(config_for("itself"), {"itself": itself})
            gateway.observer.count = lambda record: statuses.append(record.status)
            server = GatewayServer(gateway)
            serving = asyncio.ensure_future(server.serve([listener]))
            async with AsyncRawClient(url) as client:
                answer = await client.request(method, path, body, {"anthropic-version": "2023-06-01"})
            server.should_exit = True
            await serving
    assert len(statuses) == request_heads.MOST_HOPS + 1
    assert (statuses[0], answer.status) == (400, 400)
