"""The asynchronous client: one interface to any model, in a server of any dialect or in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, Self, TypeVar, Unpack

from xenoglot.client.call.answer_stream import AsyncItems, AsyncReplyStream
from xenoglot.client.call.embedding import embedding_request
from xenoglot.client.call.execute import CallExecutor, RawCall, seconds
from xenoglot.client.call.messages import append_turns
from xenoglot.client.call.operation import decoded
from xenoglot.client.call.options import TOOL_RUN_DEFAULTS, ModelOptions, Options, ToolRunOptions
from xenoglot.client.call.retry import ONCE, USUAL, ClientEnvironment, RetryLoop
from xenoglot.client.call.upstream_connection import ClientUpstream
from xenoglot.client.client_options import ClientOptions, ClientSettings
from xenoglot.client.results.result import EmbeddingReply
from xenoglot.errors import ConfigurationError
from xenoglot.model.short_repr import described
from xenoglot.policy.target_health import Retry
from xenoglot.signatures import defaults_of, show_options

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from xenoglot.client.call.attempt import StartedAnswer
    from xenoglot.client.call.execute import Timeout
    from xenoglot.client.call.messages import Messages
    from xenoglot.client.call.open_upstream import Upstream
    from xenoglot.client.call.tools import AnyTool
    from xenoglot.client.results.parsed import Parsed
    from xenoglot.client.results.result import OperationReply, Reply
    from xenoglot.client.tool_loop.run import AsyncRunStream
    from xenoglot.model.catalog import ModelInfo
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Message
    from xenoglot.model.rerank import Ranking
    from xenoglot.model.response import Usage
    from xenoglot.providers.costs import Cost
    from xenoglot.tools.events import RunEvent
    from xenoglot.tools.result import RunResult

T = TypeVar("T")

UNMOVED = "a client has connections, so it cannot be copied or sent to another process: make one there"


class AsyncClient:
    """Async client for any model, at a provider, on a server, or in this process.

    It belongs to the event loop of its first call. No connection is opened before that call.

    Example:
        >>> import asyncio, xenoglot
        >>> from xenoglot.backends.callable import Callable
        >>> async def main():
        ...     async with xenoglot.AsyncClient(Callable(lambda request: "Hello!")) as client:
        ...         print((await client.complete("Hi")).text)
        >>> asyncio.run(main())
        Hello!

    Args:
        upstream: Where calls go: the name of a provider (`"anthropic"`), the base URL of a server
            (`"http://localhost:8000/v1"`, `"unix:///run/llama.sock"`), a backend, or a function that returns an async
            context manager with a backend (`xenoglot.configured(...)`), or `"embedded"`, the embedded model. Default:
            `None`, what the commands use: `XENOGLOT_UPSTREAM`, `XENOGLOT_CONFIG`, `./xenoglot.toml`, the user's
            configuration file, and without any the embedded model.

    Keyword Args:
        model: The model of calls that do not set one. Servers and providers need it here or in each call. Without an
            upstream `None` is `XENOGLOT_MODEL`, or the first in the configuration file.
        dialect: The API of the upstream, like `"chat"`, `"responses"`, `"messages"` or `"gemini"`. `None` is `"chat"`
            for a URL and the provider's own otherwise.
        key: The API key of the server or provider.
        key_env: The environment variable to read the key from if `key` is not set. `None` is that of the provider.
        auth: How requests are signed in, in place of a key: `"google"`, `"azure"`, `"aws"` or `"anthropic_identity"`.
            `None` is a key, or the provider's own way, like `"google"` for `"vertex"`.
        sign_in: Options of that, by the names that a configuration file has under `sign_in`. `None` is what the
            library of the cloud finds.
        headers: Header fields of every request.
        settings: Values for the braces in the provider's URL, like a region or an account.
        deadlines: Time limits of each attempt, in seconds. `None` is `Deadlines()`.
        retry: Number and delays of attempts. `None` is `Retry(attempts=3)` for servers, and one attempt for backends in
            this process.
        on_loss: What to do when the upstream does not support a feature of a request: `"ignore"`, `"warn"` (write it to
            the log) or `"refuse"` (raise `LossError` before anything is sent). Each reply has its `losses` anyway.
            Default: `"warn"`.
        proxy: The URL of a proxy, or `"environment"` for the usual variables (`HTTPS_PROXY`, `NO_PROXY`). `None` is no
            proxy. Default: `"environment"`.
        text_syntax: How the model writes tool calls and reasoning that its server leaves in the text: `"auto"`, the
            name of a syntax, or `"off"`. `None` is what is known about the provider's model.
        emulate: Emulation of tools and structured output for servers without them. `None` emulates nothing.
        prices: Prices for `Reply.cost`. `None` is the packaged table for providers, and no price for other upstreams.
        world: Clock, random numbers and sleep of the retries, for tests.

    Raises:
        ConfigurationError: The provider or dialect does not exist, the key is missing, an option is not valid, or
            `./xenoglot.toml` is not trusted.
        TypeError: An option has an unknown name.
    """

    @show_options(ClientOptions, defaults_of(ClientSettings))
    def __init__(self, upstream: Upstream = None, **options: Unpack[ClientOptions]) -> None:
        """Create a client; the class describes the options."""
        settings = ClientSettings(**options)
        connection = ClientUpstream(upstream, settings)
        retry = settings.retry
        if not isinstance(retry, Retry | None):
            raise ConfigurationError(f"`retry`: found a `{type(retry).__name__}`; expected a `Retry`")
        usual = ONCE if connection.address is None else USUAL
        tries = RetryLoop(retry or usual, settings.world or ClientEnvironment())
        self._calling = CallExecutor(connection, tries, settings.on_loss, settings.prices)

    @show_options(Options)
    async def complete(self, messages: Messages, **options: Unpack[Options]) -> Reply:
        """Return the complete answer to `messages`.

        Args:
            messages: The user's text, or a list of messages: strings, `Message`s, earlier replies, parts like `Image`,
                and dicts as in any dialect. Or a whole `Request`, to which the options are added.

        Options that are not set (`None`) are not sent; the model's own defaults apply.

        Keyword Args:
            model: The model. `None` is the client's.
            system: Instructions before the messages: a text, or a list of Anthropic's text blocks.
            tool_choice: `"auto"`, `"required"`, `"none"`, the name of the tool to call, or a `ToolChoice`.
            parallel_tool_calls: Whether one answer may call several tools.
            max_tokens: Most tokens of the answer, reasoning included.
            temperature: Randomness, from 0; most models accept up to 1 or 2.
            top_p: Sample from the most likely tokens whose probabilities sum to this, 0 to 1.
            top_k: Sample from this many of the most likely tokens.
            min_p: Ignore tokens that are less likely than this share of the most likely one, 0 to 1.
            seed: Seed of the sampling, for answers that can be repeated.
            stop: A text or texts that end the answer; they are not part of it.
            n: Number of answers to the same prompt; `Reply.text` is the first.
            frequency_penalty: Penalty of tokens by how often they occurred, -2 to 2.
            presence_penalty: Penalty of tokens that occurred at all, -2 to 2.
            repetition_penalty: Factor by which repeated tokens are made less likely; 1 changes nothing.
            logit_bias: Values added to the logits of tokens, by token number or text.
            logprobs: Whether to return the log probability of each token.
            top_logprobs: How many alternatives to return for each token.
            thinking: How much to reason: an effort (`"none"`, `"minimal"`, `"low"`, `"medium"`, `"high"`, `"xhigh"`,
                `"max"`), a `Thinking`, or a dict as in Anthropic's or OpenAI's API.
            media: Which media the answer may be made of, in which form: a `MediaOutput`, or a dict of its fields,
                like `{"modalities": ["text", "image"]}`.
            verbosity: How long the answer should be: `"low"`, `"medium"` or `"high"`.
            user: An opaque id of the end user.
            metadata: Names and values that the provider stores with the request.
            service_tier: `"auto"`, `"default"`, `"flex"`, `"priority"`, or another tier of the provider.
            cache_key: A name that groups requests with the same prefix in the provider's prompt cache.
            store: Whether the provider stores the answer.
            previous: The id of a stored answer to continue.
            extra: Fields of the upstream's own dialect, added to the body of the request unchanged.
            headers: Header fields of this request only.
            timeout: Seconds for the whole call with all its attempts, or `Deadlines` for each attempt.
            tools: Tools that the model may call: functions with `@tool`, `Tool`s, or dicts as in any dialect.
            output: The form of the answer: `"json"`, a JSON schema, a type, an `OutputFormat`, or a `response_format`.

        Returns:
            A `Reply`; `print(reply)` prints its text.

        Raises:
            InvalidRequestError: An argument is not valid; `failure.param` is its path.
            FailureError: No answer; the class is the reason, like `RateLimitError` or `ConnectionFailedError`.
            LossError: The upstream does not support a feature, and the client has `on_loss="refuse"`.
            TypeError: An option has an unknown name.
        """
        return await self._calling.complete(await self._calling.build_request(messages, options, stream=False))

    @show_options(Options)
    def stream(self, messages: Messages, **options: Unpack[Options]) -> AsyncReplyStream:
        """Return the answer to `messages` as a stream. The request is sent on entry, or at the first event.

        Leaving the `async with` block stops the upstream. A truncated answer always raises; it never looks complete.

        Args:
            messages: As in `complete`.

        The options are those of `complete`.

        Returns:
            A stream of events; `texts()` are the pieces of text, `reply()` is the complete `Reply`.

        Raises:
            FailureError: While reading: no answer, or an incomplete one (`IncompleteError`).
            LossError: As in `complete`.
        """

        async def begin() -> StartedAnswer:
            return await self._calling.begin(await self._calling.build_request(messages, options, stream=True))

        return AsyncReplyStream(begin, self._calling.reply, seconds(options.get("timeout")))

    @show_options(ModelOptions)
    async def parse(
        self, messages: Messages, output: type[T], *, retries: int = 0, **options: Unpack[ModelOptions]
    ) -> Parsed[T, Reply]:
        """Return the answer as a value of the type `output`.

        Args:
            messages: As in `complete`.
            output: A dataclass, a `TypedDict`, a msgspec `Struct`, a pydantic model, or another type with a JSON
                schema.
            retries: How often the model is called again with the list of problems if its answer is not valid.

        The options are those of `complete`, without `output`.

        Returns:
            The value in `.value`, and the reply that it was read from in `.reply`.

        Raises:
            ParseError: No attempt returned a valid value; `AnswerTruncatedError` if the answer was truncated,
                `AnswerRefusedError` if the model declined.
            FailureError: No answer; as in `complete`, as is `LossError`.
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
        """Return one vector for each text.

        Args:
            inputs: A text, or several.
            model: The embedding model. `None` is the client's.
            dimensions: The length of the vectors. `None` is the model's.
            headers: Header fields of this request only.
            timeout: Seconds for the whole call, or `Deadlines` for each attempt.

        Returns:
            The vectors in `.vectors`, in the order of `inputs`.

        Raises:
            FailureError: No vectors; `LossError` as in `complete`.
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
        """Return the relevance of `documents` to `query`, the most relevant first.

        Args:
            query: The text to compare with.
            documents: Texts, or objects with a `text`.
            model: The reranker. `None` is the client's model.
            top_n: How many of the most relevant documents to return. `None` is all.
            timeout: Seconds for the whole call, or `Deadlines` for each attempt.

        Returns:
            The ranking in `.result.results`, each with the `index` of the document and its `score`.

        Raises:
            FailureError: The upstream cannot rerank, or failed; `LossError` as in `complete`.
        """
        fields = decoded("rerank", query=query, documents=documents, top_n=top_n)
        return await self._calling.operate("rerank", model, fields, None, timeout)

    @show_options(Options)
    async def count_tokens(self, messages: Messages, **options: Unpack[Options]) -> int | None:
        """Return the number of tokens of the prompt, counted by the model's own tokenizer.

        Args:
            messages: As in `complete`, as are the options; `system`, `tools` and `output` count too.

        Returns:
            The number of tokens; `None` if the upstream cannot count.

        Raises:
            FailureError: The upstream can count, and the request failed.
        """
        return await self._calling.count(await self._calling.build_request(messages, options, stream=False))

    async def models(self) -> Sequence[ModelInfo]:
        """Return the models that the upstream lists, each with its `id` and what is known of it.

        Raises:
            FailureError: The upstream returned no list.
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

        Args:
            body: The request, as a dict or as bytes.
            dialect: Its dialect, like `"chat"`, `"responses"`, `"messages"` or `"gemini"`.
            headers: Header fields of this request only.
            timeout: Seconds for the whole call, or `Deadlines` for each attempt.

        Raises:
            FailureError: No answer; `LossError` as in `complete`.
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
        """Return the answer to a request in JSON of `dialect` as a stream of its events, without `[DONE]`.

        Arguments and errors are those of `raw`; errors are raised while reading. The request for the upstream also
        asks for token counts, in dialects where they are optional.
        """
        asked = RawCall(body, dialect, headers, timeout)
        return AsyncItems(lambda: self._calling.raw_begin(asked), seconds(timeout))

    @show_options(ToolRunOptions, TOOL_RUN_DEFAULTS)
    async def run(
        self,
        messages: Messages,
        tools: Sequence[AnyTool],
        *,
        on_event: Callable[[RunEvent], object] | None = None,
        **options: Unpack[ToolRunOptions],
    ) -> RunResult:
        """Answer `messages` with tools: call the model and run the tools that it calls, until it is done.

        Args:
            messages: As in `complete`.
            tools: Functions (with or without `@tool`), other tools that run here, like those of `mcp_tools`, and
                built-in tools of the upstream.
            on_event: Called with each event of the run, for displays and logs.

        The options are those of `complete` without `tools`, and:

        Keyword Args:
            max_rounds: Most answers of the model. Default: `16`.
            on_limit: What to do after `max_rounds`: `"end"`, or `"answer"` (call the model again, without tools).
                Default: `"end"`.
            budget: Limits for tokens, cost, calls and seconds. `None` is no limit.
            spent: What earlier runs used of the budget (`RunResult.spent`). `None` is nothing.
            parallel: Whether the tool calls of one answer run in parallel. Default: `True`.
            order: Whether the ends of parallel calls are reported in the order of the `"call"` or of the `"result"`.
                Default: `"call"`.
            time_limit: Seconds for each tool call. `None` is no limit.
            result_limit: Most characters of one tool result; the middle of a longer one is left out.
                Default: `100000`.
            continue_length: Whether an answer that was truncated at `max_tokens` is continued. Default: `True`.
            compaction: When to shorten a long transcript. `None` is never.
            approve: Called with each call of a tool that needs approval; returns `True`, `False`, the reason for a
                denial, or an `Approval`. `None` denies such calls.

        Returns:
            A `RunResult`: `outcome`, `reason`, the text and all messages. Failures of the model or of a tool do not
            raise.

        Raises:
            ConfigurationError: An option or a tool is not valid.
            InvalidRequestError: Another argument is not valid.
            TypeError: An option has an unknown name.
        """
        from xenoglot.client.tool_loop.run import run  # noqa: PLC0415  few clients have tools

        return await run(self, messages, tools, on_event=on_event, **options)

    @show_options(ToolRunOptions, TOOL_RUN_DEFAULTS)
    def run_stream(
        self, messages: Messages, tools: Sequence[AnyTool], **options: Unpack[ToolRunOptions]
    ) -> AsyncRunStream:
        """Return a run as a stream of its events; after the last one, `.result` is the `RunResult`.

        Arguments and options are those of `run`, without `on_event`. Leaving the `async with` block cancels the run.

        Raises:
            ConfigurationError: At the first event: an option or a tool is not valid.
        """
        from xenoglot.client.tool_loop.run import run_stream  # noqa: PLC0415  as above

        return run_stream(self, messages, tools, **options)

    def cost_of(self, usage: Usage | None, model: str | None, *, service_tier: str | None = None) -> Cost | None:
        """Return the cost of `usage` at this upstream.

        Args:
            usage: Token counts, like those of a reply.
            model: The model that answered.
            service_tier: The tier that the provider reported, because prices depend on it.

        Returns:
            The cost; `None` if no price is known.
        """
        return self._calling.cost(usage, model, service_tier)

    def context_window(self, model: str | None = None) -> int | None:
        """Return the context window of `model`, or of the client's model, in tokens; `None` if unknown."""
        return self._calling.connection.context(model)

    async def aclose(self) -> None:
        """Close all connections; calls in progress fail. Later calls of this method do nothing."""
        await self._calling.connection.aclose()

    def __repr__(self) -> str:
        if not hasattr(self, "_calling"):  # its options were not valid
            return described(self)
        connection = self._calling.connection
        server = None if connection.address is None else connection.provider or "server"
        return described(self, upstream=server, dialect=connection.dialect, model=connection.default_model)

    def __reduce__(self) -> NoReturn:
        raise TypeError(UNMOVED)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
