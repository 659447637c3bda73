"""The asynchronous client: one interface to any model, in a server of any dialect or in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar, Unpack

from xenoglot.client.call.answer_stream import AsyncItems, AsyncReplyStream
from xenoglot.client.call.embedding import embedding_request
from xenoglot.client.call.execute import CallExecutor, RawCall, seconds
from xenoglot.client.call.messages import append_turns
from xenoglot.client.call.operation import decoded
from xenoglot.client.call.retry import ONCE, USUAL, ClientEnvironment, RetryLoop
from xenoglot.client.call.upstream_connection import ClientUpstream
from xenoglot.client.client_options import ClientSettings
from xenoglot.client.results.result import EmbeddingReply
from xenoglot.errors import ConfigurationError
from xenoglot.policy.target_health import Retry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from xenoglot.client.call.attempt import StartedAnswer
    from xenoglot.client.call.execute import Timeout
    from xenoglot.client.call.messages import Messages
    from xenoglot.client.call.open_upstream import Upstream
    from xenoglot.client.call.options import ModelOptions, Options
    from xenoglot.client.call.tools import AnyTool
    from xenoglot.client.client_options import ClientOptions
    from xenoglot.client.results.parsed import Parsed
    from xenoglot.client.results.result import OperationReply, Reply
    from xenoglot.client.tool_loop.run import AsyncRunStream
    from xenoglot.model.catalog import ModelInfo
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Message
    from xenoglot.model.rerank import Ranking
    from xenoglot.model.response import Usage
    from xenoglot.providers.costs import Cost
    from xenoglot.tools.result import RunResult

T = TypeVar("T")

UNMOVED = "a client has connections, and is neither copied nor sent to another process: make one there"


class AsyncClient:
    """Async client for any model.

        async with AsyncClient("anthropic", model="claude-sonnet-4-5") as client:
            reply = await client.complete("Hello")
            print(reply.text)

    `upstream` is a provider's name, a server's base URL (of `dialect`; default `chat`), a backend, a function that
    opens one, or `None` for the embedded model. `key` is the upstream's API key; without it, the environment variable
    `key_env` or the provider's own variable is read. `settings` fill the braces in a provider's URL. `headers` are sent
    with every request. `proxy` is a proxy's URL, `"environment"` or `None`.

    `deadlines` limit how long a call waits, `retry` how often it is attempted. Features that the upstream does not
    support are reported in `losses` of each answer. With `on_loss="refuse"` the request is not sent and `LossError` is
    raised; with `"warn"` the loss is logged. `text_syntax` is the syntax of calls and reasoning that a server leaves in
    the text; `emulate` selects what is emulated for a server without support. `prices` override the packaged prices.
    `world` is the clock and random source of retries.

    The client belongs to the event loop of its first call. No connection is opened before that call.
    """

    def __init__(self, upstream: Upstream = None, **options: Unpack[ClientOptions]) -> None:
        """Create a client.

        Raises:
            ConfigurationError: there is no such provider or dialect, or a key or a setting is missing.
        """
        settings = ClientSettings(**options)
        connection = ClientUpstream(upstream, settings)
        retry = settings.retry
        if not isinstance(retry, Retry | None):
            raise ConfigurationError(f"`retry`: found a `{type(retry).__name__}`; expected a `Retry`")
        usual = ONCE if connection.address is None else USUAL
        tries = RetryLoop(retry or usual, settings.world or ClientEnvironment())
        self._calling = CallExecutor(connection, tries, settings.on_loss, settings.prices)

    async def complete(self, messages: Messages, **options: Unpack[Options]) -> Reply:
        """Return the complete answer to `messages`.

        Raises:
            FailureError: no answer; its class is the reason (`xenoglot.errors`).
            LossError: the upstream does not support a feature, and losses are refused.
        """
        return await self._calling.complete(await self._calling.build_request(messages, options, stream=False))

    def stream(self, messages: Messages, **options: Unpack[Options]) -> AsyncReplyStream:
        """Return the answer to `messages` as a stream; the request is sent on entry or at the first event.

        Raises:
            FailureError: while reading: no answer, or an incomplete one. `LossError` as above.
        """

        async def begin() -> StartedAnswer:
            return await self._calling.begin(await self._calling.build_request(messages, options, stream=True))

        return AsyncReplyStream(begin, self._calling.reply, seconds(options.get("timeout")))

    async def parse(
        self, messages: Messages, output: type[T], *, retries: int = 0, **options: Unpack[ModelOptions]
    ) -> Parsed[T, Reply]:
        """Return the answer as a value of the type `output`, in `.value`.

        If the text is not valid, the model gets the list of problems and is called again, up to `retries` times.

        Raises:
            ParseError: no attempt returned a valid value.
            FailureError: no answer. `LossError` as above.
        """
        from xenoglot.client.results.parsed import parse  # noqa: PLC0415  few clients parse
        from xenoglot.client.results.schemas import shape_of  # noqa: PLC0415

        shape = shape_of(output)

        async def ask(turns: tuple[Message, ...]) -> Reply:
            told: Options = {**options, "output": shape.format}
            return await self.complete(append_turns(messages, turns), **told)

        return await parse(ask, shape, retries)

    async def embed(
        self,
        inputs: str | Sequence[str],
        *,
        model: str | None = None,
        dimensions: int | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: Timeout = None,  # noqa: ASYNC109  an option like those of the other calls
    ) -> EmbeddingReply:
        """Return a vector for each of `inputs`, of length `dimensions` if set.

        Raises:
            FailureError: there are none. `LossError` as above.
        """
        return EmbeddingReply.of(
            await self._calling.operate(
                "embed", model, lambda named: embedding_request(inputs, named, dimensions), headers, timeout
            )
        )

    async def rerank(
        self,
        query: str,
        documents: Sequence[str | Mapping[str, JSON]],
        *,
        model: str | None = None,
        top_n: int | None = None,
        timeout: Timeout = None,  # noqa: ASYNC109  as above
    ) -> OperationReply[Ranking]:
        """Return the relevance of `documents` to `query`, of the `top_n` most relevant ones if that is set.

        Raises:
            FailureError: the model ranks no documents, or failed. `LossError` as above.
        """
        fields = decoded("rerank", query=query, documents=documents, top_n=top_n)
        return await self._calling.operate("rerank", model, fields, None, timeout)

    async def count_tokens(self, messages: Messages, **options: Unpack[Options]) -> int | None:
        """Return the prompt's tokens as the model counts them; `None` if the upstream cannot count.

        Raises:
            FailureError: the upstream can count, and the request failed.
        """
        return await self._calling.count(await self._calling.build_request(messages, options, stream=False))

    async def models(self) -> Sequence[ModelInfo]:
        """Return the models that the upstream lists.

        Raises:
            FailureError: the upstream returned no list.
        """
        backend = await self._calling.connection.backend()
        return await self._calling.tries.run(backend.models)

    async def raw(
        self,
        body: Mapping[str, JSON] | bytes,
        dialect: str = "chat",
        *,
        headers: Mapping[str, str] | None = None,
        timeout: Timeout = None,  # noqa: ASYNC109  as above
    ) -> JSONObject:
        """Return the answer to a request in JSON of `dialect`, as JSON of the same dialect.

        An upstream of the same dialect gets `body` unchanged, and its answer is returned unchanged.

        Raises:
            FailureError: there is none. `LossError` as above.
        """
        return await self._calling.raw(RawCall(body, dialect, headers, timeout))

    def raw_stream(
        self,
        body: Mapping[str, JSON] | bytes,
        dialect: str = "chat",
        *,
        headers: Mapping[str, str] | None = None,
        timeout: Timeout = None,
    ) -> AsyncItems[JSONObject]:
        """Return the same as a stream of the dialect's events, each as JSON, without `[DONE]`."""
        asked = RawCall(body, dialect, headers, timeout)
        return AsyncItems(lambda: self._calling.raw_begin(asked), seconds(timeout))

    async def run(self, messages: Messages, tools: Sequence[AnyTool], **options: Any) -> RunResult:  # noqa: ANN401  those of `running`
        """Answer `messages` with `tools`, which are called as often as the model requests them.

        The options are those of `complete` and of `client.tool_loop.run.run`. Every outcome is in the result; only
        invalid arguments raise.
        """
        from xenoglot.client.tool_loop.run import run  # noqa: PLC0415  few clients have tools

        return await run(self, messages, tools, **options)

    def run_stream(self, messages: Messages, tools: Sequence[AnyTool], **options: Any) -> AsyncRunStream:  # noqa: ANN401  as above
        """Return the same as a stream of its events; `.result` is there at its end."""
        from xenoglot.client.tool_loop.run import run_stream  # noqa: PLC0415  as above

        return run_stream(self, messages, tools, **options)

    def cost_of(self, usage: Usage | None, model: str | None, *, service_tier: str | None = None) -> Cost | None:
        """Return the cost of `usage` at this upstream; `None` if no price is known."""
        return self._calling.cost(usage, model, service_tier)

    def context_window(self, model: str | None = None) -> int | None:
        """Return the context window of `model`, or of the client's model, in tokens; `None` if unknown."""
        return self._calling.connection.context(model)

    async def aclose(self) -> None:
        """Close all connections; calls in progress fail."""
        await self._calling.connection.aclose()

    def __reduce__(self) -> NoReturn:
        raise TypeError(UNMOVED)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
