"""Scripts of servers for the tests of the client: answers of `chat` written out, whole and in pieces."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from xenoglot.client.async_ import AsyncClient
from xenoglot.client.call.retry import ClientEnvironment
from xenoglot.policy.target_health import Retry
from xenoglot.testing import END, Body, Respond, ResponseHead, ScriptRule, Step, Steps, Upstream

JSON = ("content-type", "application/json")
SSE = ("content-type", "text/event-stream")
ONCE = Retry(attempts=1)


def whole_answer(message: dict[str, object], **fields: object) -> Steps:
    """A whole answer with this message."""
    choice = {"index": 0, "message": {"role": "assistant", "content": None} | message, "finish_reason": "stop"}
    body = {"id": "chatcmpl-1", "object": "chat.completion", "model": "m", "choices": [choice]} | fields
    return (Respond(headers=(JSON, ("x-request-id", "req-7")), body=json.dumps(body).encode()),)


def chunk(delta: dict[str, object] | None = None, finish: str | None = None, **fields: object) -> dict[str, object]:
    """One chunk of a stream."""
    choices = [] if delta is None else [{"index": fields.pop("index", 0), "delta": delta, "finish_reason": finish}]
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m", "choices": choices} | fields


def streamed(*chunks: dict[str, object] | bytes, done: bool = True, then: Sequence[Step] = END) -> Steps:
    """A stream of chunks, each in a piece of its own."""
    frames = [one if isinstance(one, bytes) else f"data: {json.dumps(one)}\n\n".encode() for one in chunks]
    last = (b"data: [DONE]\n\n",) if done else ()
    head = ResponseHead(headers=(SSE, ("x-request-id", "req-7")))
    return (head, *(Body(frame) for frame in (*frames, *last)), *then)


def error_answer(status: int, error: Mapping[str, object] | str, *headers: tuple[str, str]) -> Steps:
    """An error in place of an answer."""
    body = error.encode() if isinstance(error, str) else json.dumps({"error": error}).encode()
    return (Respond(status=status, headers=(JSON, ("x-request-id", "req-7"), *headers), body=body),)


HELLO = whole_answer({"content": "Hello."})
HELLO_STREAMED = streamed(chunk({"role": "assistant", "content": "Hel"}), chunk({"content": "lo."}), chunk({}, "stop"))


class RecordedSleep:
    """A world in which waiting takes no time, and chance is always the same."""

    def __init__(self, chance: float = 0.5) -> None:
        self.waits: list[float] = []
        self.world = ClientEnvironment(clock=lambda: sum(self.waits), chance=lambda: chance, sleep=self.sleep)

    async def sleep(self, seconds: float) -> None:
        """Note how long."""
        self.waits.append(seconds)


@asynccontextmanager
async def scripted_client(
    *rules: ScriptRule | Steps,
    path: str = "/v1",
    **settings: Any,  # noqa: ANN401  those of a client
) -> AsyncGenerator[tuple[AsyncClient, Upstream]]:
    """A client and the scripted server that it asks."""
    async with Upstream(*rules) as server:
        told: dict[str, Any] = {"model": "m", "key": "sk-secret-1234", "proxy": None, "retry": ONCE} | settings
        async with AsyncClient(server.url + path, **told) as client:
            yield client, server
