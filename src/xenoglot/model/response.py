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
    """Why an answer ended: our word (`reason`) beside the word of the wire (`raw`, said in `dialect`).

    `explanation` is what a provider said of a refusal. `assumed` is whether the server sent no reason at all.
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
    """Token counts; `None` where nothing was said, which is not zero.

    `input_tokens` is the whole prompt, cached tokens included; `cache_read` and `cache_write` are parts of it.
    `output_tokens` is everything generated; `reasoning` and `output_audio` are parts of it. `total` is kept only where
    the wire said another sum than input plus output.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    input_audio: int | None = None
    output_audio: int | None = None
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
    """A whole answer. `id` and `created` (Unix seconds) are the upstream's, or its caller's; never made up here."""

    id: str | None = None
    model: str | None = None
    created: int | None = None
    candidates: tuple[Candidate, ...] = ()
    usage: Usage | None = None
    service_tier: str | None = None
    extra: Extra | None = None

    __repr__ = short_repr
