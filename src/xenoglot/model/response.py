"""The canonical response: candidates, finish reasons and usage."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from xenoglot.model.content import Extra, Part
from xenoglot.model.short_repr import short_repr

FinishReason: TypeAlias = Literal[
    "stop",  # the model was done
    "stop_sequence",  # it wrote one of the request's stop strings
    "length",  # max_tokens was reached
    "context",  # the context window was full
    "tool_calls",  # it waits for results
    "refusal",  # it declined, or a filter stopped it
    "pause",  # the provider paused a long turn; send it back to go on
    "compaction",  # the provider folded the history; send it back to go on
    "unknown",  # a word of the provider that we do not know; see `raw`
]


class Finish(Struct, frozen=True, kw_only=True):
    """Why an answer ended: the canonical `reason`, and the word of the wire (`raw`, of `dialect`).

    `explanation` is the provider's text about a refusal. `assumed` is whether the server sent no reason at all.
    """

    reason: FinishReason
    raw: str | None = None
    dialect: str | None = None
    stop_sequence: str | None = None
    explanation: str | None = None
    assumed: bool = False
    extra: Extra | None = None

    __repr__ = short_repr


class Usage(Struct, frozen=True, kw_only=True):
    """Token counts; `None` is not reported, which is not zero.

    Args:
        input_tokens: Tokens of the whole prompt, cached ones included.
        output_tokens: Tokens of everything generated, reasoning included.
        cache_read: Tokens of the prompt that were read from a cache.
        cache_write: Tokens of the prompt that were written to a cache.
        reasoning: Tokens of the output that are reasoning.
        input_audio: Tokens of the prompt that are audio.
        output_audio: Tokens of the output that are audio.
        cache_write_1h: Tokens of `cache_write` that are kept for an hour, which costs more.
        web_searches: Searches of the web that the provider ran, where it counts them.
        page_fetches: Pages that the provider fetched, where it counts them.
        total: The reported sum, if it is not input plus output.
        estimated: Whether the counts are estimates. Default: `False`.
        extra: Fields that only their own dialect has.

    Example:
        >>> import xenoglot
        >>> usage = xenoglot.Usage(input_tokens=12, output_tokens=3)
        >>> usage.input_tokens, usage.cache_read
        (12, None)
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    input_audio: int | None = None
    output_audio: int | None = None
    cache_write_1h: int | None = None
    web_searches: int | None = None
    page_fetches: int | None = None
    total: int | None = None
    estimated: bool = False
    extra: Extra | None = None

    __repr__ = short_repr


class Candidate(Struct, frozen=True, kw_only=True):
    """One of the `n` answers: its parts in order, and why it ended (`None` while it has not)."""

    content: tuple[Part, ...] = ()
    finish: Finish | None = None
    extra: Extra | None = None

    __repr__ = short_repr


class Response(Struct, frozen=True, kw_only=True):
    """A complete answer, in no dialect.

    Args:
        id: The upstream's id of the answer.
        model: The model that answered, as the upstream names it.
        created: When it was created, in Unix seconds.
        candidates: The answers, one for each of the `n` that were requested.
        usage: Token counts.
        service_tier: The tier that the provider used.
        extra: Fields that only their own dialect has.

    Example:
        >>> import xenoglot
        >>> from xenoglot.backends.callable import Callable
        >>> reply = xenoglot.Client(Callable(lambda request: "Hello!")).complete("Hi")
        >>> reply.response.candidates[0].content
        (Text(text='Hello!'),)
    """

    id: str | None = None
    model: str | None = None
    created: int | None = None
    candidates: tuple[Candidate, ...] = ()
    usage: Usage | None = None
    service_tier: str | None = None
    extra: Extra | None = None

    __repr__ = short_repr
