"""Blocking client: the calls of `AsyncClient` for programs without an event loop, and inside of one."""

from __future__ import annotations

import weakref
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar, Unpack

from xenoglot.client.async_ import UNMOVED, AsyncClient
from xenoglot.client.loop_thread import LoopThread
from xenoglot.client.sync_streams import Items, ReplyStream

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence
    from types import TracebackType

    from xenoglot.client.call.execute import Timeout
    from xenoglot.client.call.messages import Messages
    from xenoglot.client.call.open_upstream import Upstream
    from xenoglot.client.call.options import ModelOptions, Options
    from xenoglot.client.call.tools import AnyTool
    from xenoglot.client.client_options import ClientOptions
    from xenoglot.client.results.parsed import Parsed
    from xenoglot.client.results.result import EmbeddingReply, OperationReply, Reply
    from xenoglot.client.tool_loop.run import RunStream
    from xenoglot.model.catalog import ModelInfo
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.rerank import Ranking
    from xenoglot.model.response import Usage
    from xenoglot.providers.costs import Cost
    from xenoglot.tools.result import RunResult

T = TypeVar("T")

_inherited: list[object] = []
"""Clients of the parent process after a fork: collecting them would close its connections."""


class Client:
    """Blocking client for any model.

        with Client("anthropic", model="claude-sonnet-4-5") as client:
            print(client.complete("Hello").text)

    Arguments, calls and options are those of `AsyncClient`. Its connections belong to an event loop in a thread of its
    own that starts with the first call. Several threads may use a client, also in programs that run an event loop.
    After a fork it opens new connections.
    """

    def __init__(self, upstream: Upstream = None, **options: Unpack[ClientOptions]) -> None:
        """Create a client.

        Raises:
            ConfigurationError: there is no such provider or dialect, or a key or a setting is missing.
        """
        self._make = partial(AsyncClient, upstream, **options)
        self._client = self._make()
        self._portal = self._open()

    def complete(self, messages: Messages, **options: Unpack[Options]) -> Reply:
        """Return the complete answer to `messages`; see `AsyncClient.complete`."""
        return self._call(lambda client: client.complete(messages, **options))

    def stream(self, messages: Messages, **options: Unpack[Options]) -> ReplyStream:
        """Return the answer to `messages` as a stream; see `AsyncClient.stream`."""
        portal, client = self._current()
        return ReplyStream(portal, client.stream(messages, **options), self)

    def parse(
        self, messages: Messages, output: type[T], *, retries: int = 0, **options: Unpack[ModelOptions]
    ) -> Parsed[T, Reply]:
        """Return the answer as a value of the type `output`, in `.value`; see `AsyncClient.parse`."""
        return self._call(lambda client: client.parse(messages, output, retries=retries, **options))

    def embed(
        self,
        inputs: str | Sequence[str],
        *,
        model: str | None = None,
        dimensions: int | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: Timeout = None,
    ) -> EmbeddingReply:
        """Return a vector for each of `inputs`; see `AsyncClient.embed`."""
        return self._call(
            lambda client: client.embed(inputs, model=model, dimensions=dimensions, headers=headers, timeout=timeout)
        )

    def rerank(
        self,
        query: str,
        documents: Sequence[str | Mapping[str, JSON]],
        *,
        model: str | None = None,
        top_n: int | None = None,
        timeout: Timeout = None,
    ) -> OperationReply[Ranking]:
        """Return the relevance of `documents` to `query`; see `AsyncClient.rerank`."""
        return self._call(lambda client: client.rerank(query, documents, model=model, top_n=top_n, timeout=timeout))

    def count_tokens(self, messages: Messages, **options: Unpack[Options]) -> int | None:
        """Return the tokens of the prompt; see `AsyncClient.count_tokens`."""
        return self._call(lambda client: client.count_tokens(messages, **options))

    def models(self) -> Sequence[ModelInfo]:
        """Return the models that the upstream lists; see `AsyncClient.models`."""
        return self._call(lambda client: client.models())

    def raw(
        self,
        body: Mapping[str, JSON] | bytes,
        dialect: str = "chat",
        *,
        headers: Mapping[str, str] | None = None,
        timeout: Timeout = None,
    ) -> JSONObject:
        """Return the answer to a request of `dialect` as that dialect writes it; see `AsyncClient.raw`."""
        return self._call(lambda client: client.raw(body, dialect, headers=headers, timeout=timeout))

    def raw_stream(
        self,
        body: Mapping[str, JSON] | bytes,
        dialect: str = "chat",
        *,
        headers: Mapping[str, str] | None = None,
        timeout: Timeout = None,
    ) -> Items[JSONObject]:
        """Return the same as a stream of the dialect's events; see `AsyncClient.raw_stream`."""
        portal, client = self._current()
        return Items(portal, client.raw_stream(body, dialect, headers=headers, timeout=timeout), self)

    def run(self, messages: Messages, tools: Sequence[AnyTool], **options: Any) -> RunResult:  # noqa: ANN401  those of `running`
        """Answer `messages` with the help of `tools`; see `AsyncClient.run`. Tools that block run in this thread."""
        from xenoglot.client.tool_loop.run import run_sync  # noqa: PLC0415  few clients have tools

        return run_sync(self, messages, tools, **options)

    def run_stream(self, messages: Messages, tools: Sequence[AnyTool], **options: Any) -> RunStream:  # noqa: ANN401  as above
        """Return the same as a stream of its events; `.result` is there at its end."""
        from xenoglot.client.tool_loop.run import run_stream_sync  # noqa: PLC0415  as above

        return run_stream_sync(self, messages, tools, **options)

    def cost_of(self, usage: Usage | None, model: str | None, *, service_tier: str | None = None) -> Cost | None:
        """Return the cost of `usage` at this upstream; `None` if no price is known."""
        return self._client.cost_of(usage, model, service_tier=service_tier)

    def context_window(self, model: str | None = None) -> int | None:
        """Return the context window of `model` in tokens; see `AsyncClient.context_window`."""
        return self._client.context_window(model)

    def close(self) -> None:
        """Close all connections; calls in progress fail. Does nothing the second time."""
        self._portal.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError(UNMOVED)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _call(self, ask: Callable[[AsyncClient], Coroutine[Any, Any, T]]) -> T:
        portal, client = self._current()
        return portal.call(lambda: ask(client))

    def _current(self) -> tuple[LoopThread, AsyncClient]:
        """Return the loop and client of this process."""
        if self._portal.in_other_process:
            _inherited.append((self._portal, self._client))
            self._client = self._make()
            self._portal = self._open()
        return self._portal, self._client

    def _open(self) -> LoopThread:
        portal = LoopThread(self._client.aclose)
        weakref.finalize(self, portal.close_soon).atexit = False  # then every portal is waited for
        return portal
