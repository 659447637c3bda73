"""The canonical request: messages, tools, sampling, reasoning effort and output format.

The bands follow the public mapping of Gemini's OpenAI face (https://ai.google.dev/gemini-api/docs/openai#thinking),
spread out so that word -> budget -> word is the identity.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, TypeAlias

from msgspec import Struct

from xenoglot.model.content import CacheMark, Extra, Opaque, Part
from xenoglot.model.context import ContextManagement
from xenoglot.model.hosted import HostedTool
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.short_repr import short_repr

Role: TypeAlias = Literal["system", "developer", "user", "assistant", "tool"]

Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class Message(Struct, frozen=True, kw_only=True):
    """One message. System messages stand at their position in the conversation.

    Args:
        role: `"system"`, `"developer"`, `"user"`, `"assistant"` or `"tool"`.
        content: The parts, like `Text`, `Image`, `ToolCall` and `ToolResult`.
        name: The name of the participant.
        id: The id of the message, in dialects that have one.
        extra: Fields that only their own dialect has.

    Example:
        >>> import xenoglot
        >>> xenoglot.Message(role="user", content=(xenoglot.Text(text="Hi"),)).role
        'user'
    """

    role: Role
    content: tuple[Part, ...] = ()
    name: str | None = None
    id: str | None = None
    extra: Extra | None = None

    __repr__ = short_repr


class ProviderDefinition(Struct, frozen=True, kw_only=True):
    """The definition of a tool by a provider, whose models know it by `kind` (`bash_20250124`); the client runs it.

    `fields` is the tool as `dialect` writes it. The name, description and schema of the tool around it are those that
    the provider publishes: with them it is a function for every other model.
    """

    dialect: str
    kind: str
    fields: JSONObject

    __repr__ = short_repr


class Tool(Struct, frozen=True, kw_only=True):
    """Definition of a tool that the client runs. For typed functions, use `xenoglot.tool`.

    Args:
        name: Its name.
        description: What it does, for the model.
        parameters: The JSON schema of the arguments of a `function`.
        strict: Whether the arguments must match the schema. `None` is the default of the dialect.
        kind: `"function"` (one JSON object) or `"custom"` (free text). Default: `"function"`.
        format: The grammar of the text of a `custom` tool, as the dialect writes it.
        namespace: Its namespace, in dialects with namespaces.
        definition: The provider's own definition of it, for a tool that a provider defines.
        output_schema: The JSON schema of its result.
        defer_loading: Whether the model finds it by a search of the provider, instead of reading it in the prompt.
        allowed_callers: Its callers, as the dialect writes them: `"direct"` is the model. `None` is the model alone.
        cache: Marks the prompt up to here for the provider's cache.
        extra: Fields that only their own dialect has.

    Example:
        >>> import xenoglot
        >>> city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
        >>> xenoglot.Tool(name="weather", description="Return the weather of a city.", parameters=city).name
        'weather'
    """

    name: str
    description: str | None = None
    parameters: JSON = None
    strict: bool | None = None
    kind: Literal["function", "custom"] = "function"
    format: JSON = None
    namespace: str | None = None
    definition: ProviderDefinition | None = None
    output_schema: JSON = None
    defer_loading: bool | None = None
    allowed_callers: tuple[str, ...] | None = None
    cache: CacheMark | None = None
    extra: Extra | None = None

    __repr__ = short_repr


RequestTool: TypeAlias = Tool | HostedTool | Opaque
"""A tool of a request: run by the client, by the provider, or known to its own dialect alone."""


class ToolChoice(Struct, frozen=True, kw_only=True):
    """Whether a tool may, must or must not be called.

    Args:
        mode: `"auto"`, `"required"` or `"none"`.
        names: The tools to choose from. Empty is all; one name with `"required"` forces that tool.
        kind: The kind of the named tools. Default: `"function"`.
        extra: Fields that only their own dialect has.

    Example:
        >>> import xenoglot
        >>> xenoglot.ToolChoice(mode="required", names=("weather",))
        ToolChoice(mode='required', names=('weather',))
    """

    mode: Literal["auto", "required", "none"]
    names: tuple[str, ...] = ()
    kind: Literal["function", "custom"] = "function"
    extra: Extra | None = None

    __repr__ = short_repr


class Sampling(Struct, frozen=True, kw_only=True):
    """How the next token is drawn and when to stop; `None` leaves it to the model's default.

    `max_tokens` counts everything generated, reasoning included. `n` is the number of candidates. A key of `logit_bias`
    is the number of a token, or a text whose every token is meant.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    seed: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    repetition_penalty: float | None = None
    logit_bias: dict[str, float] | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    stop: tuple[str, ...] | None = None
    n: int | None = None

    __repr__ = short_repr


class OutputFormat(Struct, frozen=True, kw_only=True):
    """The form of an answer's text.

    Args:
        kind: `"text"`, `"json"` or `"json_schema"`.
        schema: The JSON schema.
        name: The name of the schema.
        description: What the value is, for the model.
        strict: Whether the answer must match the schema. `None` is the default of the dialect.
        extra: Fields that only their own dialect has.

    Example:
        >>> import xenoglot
        >>> xenoglot.OutputFormat(kind="json_schema", name="answer", schema={"type": "object"}).kind
        'json_schema'
    """

    kind: Literal["text", "json", "json_schema"]
    schema: JSON = None
    name: str | None = None
    description: str | None = None
    strict: bool | None = None
    extra: Extra | None = None

    __repr__ = short_repr


class Thinking(Struct, frozen=True, kw_only=True):
    """How much the model should reason, and how much of it to show.

    Set `effort`, or `mode` and `budget_tokens`; each dialect gets the form that it has.

    Args:
        mode: `"enabled"`, `"adaptive"` or `"disabled"`.
        budget_tokens: Most tokens of reasoning.
        effort: `"none"`, `"minimal"`, `"low"`, `"medium"`, `"high"`, `"xhigh"` or `"max"`.
        display: `"omitted"` or `"summarized"`.
        summary: `"auto"`, `"concise"` or `"detailed"`.
        extra: Fields that only their own dialect has.

    Example:
        >>> import xenoglot
        >>> thinking = xenoglot.Thinking(mode="enabled", budget_tokens=2_000)  # client.complete(..., thinking=thinking)
    """

    mode: Literal["enabled", "adaptive", "disabled"] | None = None
    budget_tokens: int | None = None
    effort: Effort | None = None
    display: str | None = None
    summary: str | None = None
    extra: Extra | None = None

    __repr__ = short_repr


class MediaOutput(Struct, frozen=True, kw_only=True):
    """Which media the answer may be made of, and in which form.

    Args:
        modalities: `"text"`, `"image"` and `"audio"`, of which the answer may be. Empty: the model's default.
        voice: The name of the voice, in the provider's words (`"alloy"`, `"Kore"`).
        audio_format: The format of the sound: `"wav"`, `"mp3"`, `"flac"`, `"opus"`, `"aac"` or `"pcm16"`.
        aspect_ratio: Width to height of images, like `"16:9"`.
        image_size: The size of images: `"1K"`, `"2K"` or `"4K"`.
        extra: Fields that only their own dialect has.

    Example:
        >>> import xenoglot
        >>> message = xenoglot.Message(role="user", content=(xenoglot.Text(text="Draw a cat."),))
        >>> media = xenoglot.MediaOutput(modalities=("text", "image"))
        >>> drawing = xenoglot.Request(model="m", messages=(message,), media=media)
    """

    modalities: tuple[str, ...] = ()
    voice: str | None = None
    audio_format: str | None = None
    aspect_ratio: str | None = None
    image_size: str | None = None
    extra: Extra | None = None

    __repr__ = short_repr


class Prompt(Struct, frozen=True, kw_only=True):
    """Texts to be continued as they stand, without turns and templates; each is answered on its own, `n` times.

    A text may be given as the ids of its tokens. The answer goes between text and `suffix`; `echo` has the answer begin
    with the text itself; of `best_of` answers the `n` likeliest are given.
    """

    texts: tuple[str | tuple[int, ...], ...]
    suffix: str | None = None
    echo: bool | None = None
    best_of: int | None = None

    __repr__ = short_repr


class Request(Struct, frozen=True, kw_only=True):
    """One call of a model, in no dialect. `Client.complete` and `Client.stream` accept it in place of messages.

    `user`, `service_tier`, `store`, `previous`, `cache_key`, `verbosity`, `metadata` and `parallel_tool_calls` are the
    options of `Client.complete`; `None` is not set. `cache_retention` is the longest time that the provider may cache
    the prompt (`in_memory`, `24h`). `moderation` names the model that is to judge prompt and answer, with its policy.

    Args:
        model: The model.
        messages: The conversation; with a `prompt`, system messages only.
        prompt: Texts to continue, in place of messages. The candidates of text `i` are those from `i * n` on.
        tools: Tools that the model may call; a `HostedTool` is run by the provider.
        tool_choice: Whether a tool may, must or must not be called.
        sampling: Limits and randomness, like `max_tokens` and `temperature`.
        output: The form of the answer.
        thinking: How much to reason.
        media: Which media the answer may be made of.
        stream: Whether the answer is streamed. Default: `False`.
        stream_usage: Whether to request token counts at the end of a stream, in dialects where that is optional.
        cache: Marks the whole prompt for the provider's cache.
        context_management: What to compact or clear of the conversation before the model reads it.
        extra: Fields that only their own dialect has.

    Example:
        >>> import xenoglot
        >>> message = xenoglot.Message(role="user", content=(xenoglot.Text(text="Hi"),))
        >>> xenoglot.Request(model="m", messages=(message,))
        Request(model='m', messages=(Message(role='user', content=(Text(text='Hi'),)),))
    """

    model: str
    messages: tuple[Message, ...] = ()
    prompt: Prompt | None = None
    tools: tuple[RequestTool, ...] = ()
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    sampling: Sampling = Sampling()
    output: OutputFormat | None = None
    thinking: Thinking | None = None
    media: MediaOutput | None = None
    verbosity: str | None = None
    stream: bool = False
    stream_usage: bool | None = None
    user: str | None = None
    metadata: JSONObject | None = None
    service_tier: str | None = None
    store: bool | None = None
    previous: str | None = None
    cache: CacheMark | None = None
    cache_key: str | None = None
    cache_retention: str | None = None
    moderation: JSONObject | None = None
    context_management: ContextManagement | None = None
    extra: Extra | None = None

    __repr__ = short_repr


BUDGETS: dict[Effort, int] = {
    "minimal": 1024,
    "low": 2048,
    "medium": 8192,
    "high": 24576,
    "xhigh": 32768,
    "max": 65536,
}
"""Tokens of thinking that an effort stands for; `none` stands for no thinking at all."""

LEAST_BUDGET = 1024
"""The smallest budget that Messages takes (https://docs.claude.com/en/docs/build-with-claude/extended-thinking)."""


def effort_of(budget_tokens: int) -> Effort:
    """Return the greatest effort whose budget fits into `budget_tokens`; less than any is `minimal`."""
    fitting: Effort = "minimal"
    for effort, budget in BUDGETS.items():
        if budget <= budget_tokens:
            fitting = effort
    return fitting


def budget_of(effort: Effort, max_tokens: int | None = None) -> int:
    """Return the tokens `effort` stands for, kept below `max_tokens` and never under `LEAST_BUDGET`.

    A `max_tokens` below the least budget gives the least budget: the caller raises `max_tokens`.
    """
    budget = BUDGETS.get(effort, LEAST_BUDGET)
    return budget if max_tokens is None else max(LEAST_BUDGET, min(budget, max_tokens - 1))


def nearest(effort: Effort, known: Collection[Effort]) -> Effort:
    """Return the word of `known` for `effort`: itself, else the next below, else the least.

    No thinking at all is near to nothing else: `none` stands for itself only, or where it is the only word.
    """
    order: tuple[Effort, ...] = ("none", *BUDGETS)
    words = [word for word in order if word in known and (word != "none" or effort == "none")] or list(known)
    below = [word for word in words if order.index(word) <= order.index(effort)]
    return below[-1] if below else words[0]
