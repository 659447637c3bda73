"""What the tests of batches share: requests, their files, and waiting for a batch to be over."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any

from tests.gateway.running_gateway import TIMEOUT
from tests.gateway.scripted_backends import HELLO, Backend
from xenoglot.backends.scripted import Scripted

if TYPE_CHECKING:
    from anthropic import Anthropic
    from anthropic.types.messages import MessageBatch
    from openai import OpenAI
    from openai.types import Batch

    from xenoglot.backends.backend import Answer, Call
    from xenoglot.model.json import JSON, JSONObject

CHAT = "/v1/chat/completions"
FINISHED = ("completed", "failed", "cancelled", "expired")


def body(text: str = "Hi", **more: JSON) -> JSONObject:
    """Return the body of a request in `chat` and in `messages`."""
    return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}], **more}


def input_line(name: str, said: JSONObject | None = None, url: str = CHAT) -> bytes:
    """Return a line of an input file."""
    return json.dumps({"custom_id": name, "method": "POST", "url": url, "body": said or body(name)}).encode()


def message(name: str, params: JSONObject | None = None) -> Any:  # noqa: ANN401  the SDK's own type is a maze
    """Return a request of a batch of messages."""
    return {"custom_id": name, "params": params or body(name)}


def jsonl(*lines: bytes) -> bytes:
    """Return a file of lines."""
    return b"\n".join(lines) + b"\n"


def create_batch(client: OpenAI, data: bytes, endpoint: Any = CHAT, window: Any = "24h") -> Batch:  # noqa: ANN401  more than the SDK names
    """Upload a file and make a batch of it."""
    file = client.files.create(file=("in.jsonl", data), purpose="batch")
    return client.batches.create(
        input_file_id=file.id,
        endpoint=endpoint,
        completion_window=window,
    )


def wait_for_status(client: OpenAI, name: str, *statuses: str) -> Batch:
    """Ask for a batch until it has one of the statuses."""
    end = time.monotonic() + TIMEOUT
    while True:
        batch = client.batches.retrieve(name)
        if batch.status in statuses:
            return batch
        assert time.monotonic() < end, batch
        time.sleep(0.005)


def wait_until_ended(client: Anthropic, name: str) -> MessageBatch:
    """Ask for a batch of messages until it has ended."""
    end = time.monotonic() + TIMEOUT
    while True:
        batch = client.messages.batches.retrieve(name)
        if batch.processing_status == "ended":
            return batch
        assert time.monotonic() < end, batch
        time.sleep(0.005)


def output_lines(client: OpenAI, file: str | None) -> dict[str, JSONObject]:
    """Return the lines of a file by their ids, of which none comes twice."""
    if file is None:
        return {}
    lines = [json.loads(found) for found in client.files.content(file).text.splitlines()]
    by_name = {found["custom_id"]: found for found in lines}
    assert len(by_name) == len(lines)
    return by_name


class PartlyAnsweringBackend(Backend):
    """Says hello to the first `count` requests, and waits for ever with the others; it keeps what it was asked."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.received: list[str] = []
        self.remaining = count
        self.cancelled = 0
        self._hello = Scripted(HELLO)
        self._waiting: list[asyncio.Future[None]] = []

    def resume(self) -> None:
        """Let those go on who wait; to be called from another thread."""
        for one in self._waiting:
            one.get_loop().call_soon_threadsafe(one.set_result, None)

    async def answer(self, call: Call) -> Answer:
        """Say hello, or wait."""
        part = call.request.messages[0].content[0]
        self.received.append(getattr(part, "text", ""))
        self.remaining -= 1
        if self.remaining < 0:
            self._waiting.append(asyncio.get_running_loop().create_future())
            try:
                await self._waiting[-1]
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        return await self._hello.answer(call)
