"""The official SDKs, each called in its two ways, sync and async, and what they sent and got on the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import anthropic
import httpx2
import openai

from tests.matrix.matrix_gateway import CLIENT_KEY

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable

    from anthropic.types import RawMessageStreamEvent
    from openai.types.chat import ChatCompletionChunk

    from xenoglot.model.json import JSON, JSONObject

T = TypeVar("T")
Model = openai.BaseModel | anthropic.BaseModel

MODES = ("sync", "async")

RAISED = (openai.LengthFinishReasonError, openai.ContentFilterFinishReasonError)
"""What openai's stream helper makes of an answer that ended in such a way, before it is complete."""


class Tap:
    """What passed the wire of one client: the last request's body, the last response's status and headers."""

    def __init__(self) -> None:
        self.sent = b""
        self.headers = httpx2.Headers()
        self.exchanges = 0

    def request(self, request: httpx2.Request) -> None:
        """Note a request."""
        self.exchanges += 1
        self.sent = request.content

    def response(self, response: httpx2.Response) -> None:
        """Note a response."""
        self.headers = response.headers

    async def async_request(self, request: httpx2.Request) -> None:
        """Note a request."""
        self.request(request)

    async def async_response(self, response: httpx2.Response) -> None:
        """Note a response."""
        self.response(response)

    def sync_client(self) -> httpx2.Client:
        """Return a client that is listened to."""
        return httpx2.Client(event_hooks={"request": [self.request], "response": [self.response]}, timeout=120)

    def async_client(self) -> httpx2.AsyncClient:
        """Return a client that is listened to."""
        hooks: dict[str, list[Any]] = {"request": [self.async_request], "response": [self.async_response]}
        return httpx2.AsyncClient(event_hooks=hooks, timeout=120)


class Sdk(Protocol):
    """One SDK, called in one way. `kwargs` are those of its `create`; answers come as JSON."""

    dialect: str
    tap: Tap

    def create(self, **kwargs: JSON) -> JSON:
        """Return a whole answer."""
        ...

    def stream(self, **kwargs: JSON) -> JSON:
        """Return what the SDK's stream helper has put together at the end of a stream."""
        ...

    def gather(self, pieces: list[JSON], **kwargs: JSON) -> None:
        """Add every piece of a stream to `pieces`, as it comes."""
        ...

    def iterate(self, **kwargs: JSON) -> list[JSON]:
        """Return every piece of a stream."""
        pieces: list[JSON] = []
        self.gather(pieces, **kwargs)
        return pieces

    def close(self) -> None:
        """Close its connections."""
        ...


def _options(options: JSONObject) -> JSONObject:
    """Return what a client is made with: the key, unless another credential is given, and no second try."""
    key = {} if "auth_token" in options else {"api_key": CLIENT_KEY}
    return key | {"max_retries": 0} | options


def to_json(answer: Model) -> JSON:
    """Return an answer as JSON: the fields that came, and none that did not."""
    return answer.to_dict(mode="json", warnings=False)


class SyncChat(Sdk):
    """openai, called synchronously."""

    dialect = "chat"

    def __init__(self, url: str, **options: JSON) -> None:
        self.tap = Tap()
        self.client = openai.OpenAI(
            base_url=f"{url}/v1",
            http_client=self.tap.sync_client(),
            **_options(options),
        )

    def create(self, **kwargs: JSON) -> JSON:
        """See `Sdk`."""
        return to_json(self.client.chat.completions.create(**kwargs))

    def stream(self, **kwargs: JSON) -> JSON:
        """See `Sdk`."""
        try:
            with self.client.chat.completions.stream(**kwargs) as stream:
                return to_json(stream.get_final_completion())
        except RAISED as error:
            return {"raised": type(error).__name__}

    def open(self, **kwargs: JSON) -> openai.Stream[ChatCompletionChunk]:
        """Return a stream to be read as far as one likes."""
        return self.client.chat.completions.create(stream=True, **kwargs)

    def gather(self, pieces: list[JSON], **kwargs: JSON) -> None:
        """See `Sdk`."""
        with self.open(**kwargs) as stream:
            for chunk in stream:
                pieces.append(to_json(chunk))  # noqa: PERF401  whoever waits is told of each as it comes

    def close(self) -> None:
        """See `Sdk`."""
        self.client.close()


class SyncMessages(Sdk):
    """anthropic, called synchronously."""

    dialect = "messages"

    def __init__(self, url: str, **options: JSON) -> None:
        self.tap = Tap()
        self.client = anthropic.Anthropic(base_url=url, http_client=self.tap.sync_client(), **_options(options))

    def create(self, **kwargs: JSON) -> JSON:
        """See `Sdk`."""
        return to_json(self.client.messages.create(**kwargs))

    def stream(self, **kwargs: JSON) -> JSON:
        """See `Sdk`."""
        with self.client.messages.stream(**kwargs) as stream:
            return to_json(stream.get_final_message())

    def open(self, **kwargs: JSON) -> anthropic.Stream[RawMessageStreamEvent]:
        """Return a stream to be read as far as one likes."""
        return self.client.messages.create(stream=True, **kwargs)

    def gather(self, pieces: list[JSON], **kwargs: JSON) -> None:
        """See `Sdk`."""
        with self.open(**kwargs) as stream:
            for event in stream:
                pieces.append(to_json(event))  # noqa: PERF401  whoever waits is told of each as it comes

    def close(self) -> None:
        """See `Sdk`."""
        self.client.close()


class AsyncChat(Sdk):
    """openai, called asynchronously, in the loop of `runner`."""

    dialect = "chat"

    def __init__(self, url: str, runner: asyncio.Runner, **options: JSON) -> None:
        self.tap = Tap()
        self.runner = runner
        self.client = openai.AsyncOpenAI(
            base_url=f"{url}/v1",
            http_client=self.tap.async_client(),
            **_options(options),
        )

    def create(self, **kwargs: JSON) -> JSON:
        """See `Sdk`."""
        return to_json(self._run(self.client.chat.completions.create(**kwargs)))

    def stream(self, **kwargs: JSON) -> JSON:
        """See `Sdk`."""
        return self.runner.run(self._stream(kwargs))

    def gather(self, pieces: list[JSON], **kwargs: JSON) -> None:
        """See `Sdk`."""
        self.runner.run(self._gather(pieces, kwargs))

    def close(self) -> None:
        """See `Sdk`."""
        self.runner.run(self.client.close())

    def _run(self, awaitable: Awaitable[T]) -> T:
        return self.runner.run(_coroutine(awaitable))

    async def _stream(self, kwargs: JSONObject) -> JSON:
        try:
            async with self.client.chat.completions.stream(**kwargs) as stream:
                return to_json(await stream.get_final_completion())
        except RAISED as error:
            return {"raised": type(error).__name__}

    async def _gather(self, pieces: list[JSON], kwargs: JSONObject) -> None:
        async with await self.client.chat.completions.create(stream=True, **kwargs) as stream:
            async for chunk in stream:
                pieces.append(to_json(chunk))  # noqa: PERF401  whoever waits is told of each as it comes


class AsyncMessages(Sdk):
    """anthropic, called asynchronously, in the loop of `runner`."""

    dialect = "messages"

    def __init__(self, url: str, runner: asyncio.Runner, **options: JSON) -> None:
        self.tap = Tap()
        self.runner = runner
        self.client = anthropic.AsyncAnthropic(base_url=url, http_client=self.tap.async_client(), **_options(options))

    def create(self, **kwargs: JSON) -> JSON:
        """See `Sdk`."""
        return to_json(self._run(self.client.messages.create(**kwargs)))

    def stream(self, **kwargs: JSON) -> JSON:
        """See `Sdk`."""
        return self.runner.run(self._stream(kwargs))

    def gather(self, pieces: list[JSON], **kwargs: JSON) -> None:
        """See `Sdk`."""
        self.runner.run(self._gather(pieces, kwargs))

    def close(self) -> None:
        """See `Sdk`."""
        self.runner.run(self.client.close())

    def _run(self, awaitable: Awaitable[T]) -> T:
        return self.runner.run(_coroutine(awaitable))

    async def _stream(self, kwargs: JSONObject) -> JSON:
        async with self.client.messages.stream(**kwargs) as stream:
            return to_json(await stream.get_final_message())

    async def _gather(self, pieces: list[JSON], kwargs: JSONObject) -> None:
        async with await self.client.messages.create(stream=True, **kwargs) as stream:
            async for event in stream:
                pieces.append(to_json(event))  # noqa: PERF401  whoever waits is told of each as it comes


async def _coroutine(awaitable: Awaitable[T]) -> T:
    return await awaitable


def sdk(dialect: str, mode: str, url: str, runner: asyncio.Runner) -> Sdk:
    """Return the SDK of `dialect`, called in `mode`, against `url`."""
    if mode == "sync":
        return SyncChat(url) if dialect == "chat" else SyncMessages(url)
    return AsyncChat(url, runner) if dialect == "chat" else AsyncMessages(url, runner)
