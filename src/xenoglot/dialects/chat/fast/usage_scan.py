"""Scans a response that passes through for its finish reason and usage, without decoding the rest.

Only fields that the general code could reject, or that affect the two, are examined; an answer that has anything
unusual in one of them is for the general way to read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import DecodeError, Meta, Raw, Struct
from msgspec.json import Decoder

from xenoglot.dialects.chat.finish import decode_finish
from xenoglot.model.response import Usage
from xenoglot.shortcuts import shortcut

if TYPE_CHECKING:
    from xenoglot.model.response import FinishReason

_Count = Annotated[int, Meta(ge=0, lt=2**53)]
_Empty = Annotated[list[Raw], Meta(max_length=0)]
_Word = Annotated[str, Meta(min_length=1)]


class _Function(Struct, gc=False):
    name: str
    arguments: str


class _Call(Struct, gc=False):
    id: str
    type: Literal["function"]
    function: _Function


class _Message(Struct, gc=False):
    content: str | None
    tool_calls: list[_Call] | None = None
    refusal: None = None
    annotations: _Empty | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: None = None
    thinking_blocks: None = None
    function_call: None = None
    audio: None = None


class _Choice(Struct, gc=False):
    message: _Message
    finish_reason: _Word
    logprobs: None = None
    stop_reason: None = None
    matched_stop: None = None


class _Given(Struct, gc=False):
    cached_tokens: _Count | None = None
    cache_write_tokens: _Count | None = None
    audio_tokens: _Count | None = None


class _Made(Struct, gc=False):
    reasoning_tokens: _Count | None = None
    audio_tokens: _Count | None = None


class _Usage(Struct, gc=False, forbid_unknown_fields=True):
    prompt_tokens: _Count
    completion_tokens: _Count
    total_tokens: _Count
    prompt_tokens_details: _Given | None = None
    completion_tokens_details: _Made | None = None


class _Answer(Struct, gc=False):
    choices: Annotated[list[_Choice], Meta(min_length=1, max_length=1)]
    usage: _Usage | None = None
    error: None = None


_decode = Decoder(_Answer).decode
_NOTHING_GIVEN, _NOTHING_MADE = _Given(), _Made()


@shortcut("usage")
def glimpse(data: bytes) -> tuple[Usage | None, FinishReason] | None:
    """Return the usage and the finish reason of the answer in `data`; `None` if it is unusual."""
    try:
        answer = _decode(data)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
    counts, choice = answer.usage, answer.choices[0]
    finish = decode_finish(choice.finish_reason, None, calls=bool(choice.message.tool_calls), refused=False)
    if counts is None:
        return None, finish.reason
    if counts.total_tokens != counts.prompt_tokens + counts.completion_tokens:
        return None
    given, made = counts.prompt_tokens_details or _NOTHING_GIVEN, counts.completion_tokens_details or _NOTHING_MADE
    usage = Usage(
        input_tokens=counts.prompt_tokens,
        output_tokens=counts.completion_tokens,
        cache_read=given.cached_tokens,
        cache_write=given.cache_write_tokens,
        reasoning=made.reasoning_tokens,
        input_audio=given.audio_tokens,
        output_audio=made.audio_tokens,
    )
    return usage, finish.reason
