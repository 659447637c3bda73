"""Scans a response that passes through for its finish reason and usage, without decoding the rest.

Only fields that the general code could reject, or that affect the two, are examined; an answer that has anything
unusual in one of them is for the general way to read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import DecodeError, Meta, Raw, Struct
from msgspec.json import Decoder

from xenoglot.dialects.messages.response import REASONS
from xenoglot.model.response import Usage
from xenoglot.shortcuts import shortcut

if TYPE_CHECKING:
    from xenoglot.model.response import FinishReason

_Count = Annotated[int, Meta(ge=0, lt=2**53)]


_Alone = Annotated[list[Raw], Meta(max_length=1)]
"""Iterations that repeat the counts of the answer, and no others."""


class _Text(Struct, gc=False, tag="text", forbid_unknown_fields=True):
    text: str
    citations: None = None


class _Thinking(Struct, gc=False, tag="thinking", forbid_unknown_fields=True):
    thinking: str
    signature: str


class _Call(Struct, gc=False, tag="tool_use", forbid_unknown_fields=True):
    id: str
    name: str
    input: dict[str, Raw]


class _Details(Struct, gc=False):
    thinking_tokens: _Count | None = None


class _Tools(Struct, gc=False):
    web_search_requests: _Count | None = None
    web_fetch_requests: _Count | None = None


class _ByTtl(Struct, gc=False, forbid_unknown_fields=True):
    ephemeral_1h_input_tokens: _Count
    ephemeral_5m_input_tokens: _Count


class _Usage(Struct, gc=False):
    input_tokens: _Count
    output_tokens: _Count
    cache_creation_input_tokens: _Count | None = None
    cache_read_input_tokens: _Count | None = None
    output_tokens_details: _Details | None = None
    server_tool_use: _Tools | None = None
    cache_creation: _ByTtl | None = None
    iterations: _Alone | None = None


class _Answer(Struct, gc=False):
    type: Literal["message"]
    content: list[_Text | _Thinking | _Call]
    stop_reason: str
    usage: _Usage
    id: str | None = None
    model: str | None = None
    stop_sequence: str | None = None
    stop_details: None = None
    error: None = None


_decode = Decoder(_Answer).decode
_NO_TOOLS = _Tools()


@shortcut("usage")
def glimpse(data: bytes) -> tuple[Usage | None, FinishReason] | None:
    """Return the usage and the finish reason of the answer in `data`; `None` if it is unusual."""
    try:
        answer = _decode(data)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not answer.stop_reason:
        return None
    counts = answer.usage
    read, written = counts.cache_read_input_tokens, counts.cache_creation_input_tokens
    reason: FinishReason = REASONS.get(answer.stop_reason, "unknown")
    if reason == "stop" and any(type(block) is _Call for block in answer.content):
        reason = "tool_calls"
    tools, by_ttl = counts.server_tool_use or _NO_TOOLS, counts.cache_creation
    hour = None
    if by_ttl is not None and by_ttl.ephemeral_1h_input_tokens + by_ttl.ephemeral_5m_input_tokens == written:
        hour = by_ttl.ephemeral_1h_input_tokens
    usage = Usage(
        input_tokens=counts.input_tokens + (read or 0) + (written or 0),
        output_tokens=counts.output_tokens,
        cache_read=read,
        cache_write=written,
        reasoning=None if counts.output_tokens_details is None else counts.output_tokens_details.thinking_tokens,
        cache_write_1h=hour,
        web_searches=tools.web_search_requests,
        page_fetches=tools.web_fetch_requests,
    )
    return usage, reason
