"""Estimates the tokens of a prompt if no tokenizer is available. Pure.

Texts are counted by classes of characters (`policy.token_estimate`). Everything that a model reads is counted: words,
thoughts, tool calls and their results, the tools themselves, and a few tokens for each turn's frame. An image costs
what a large one does after the provider has scaled it down; other media are counted by their size. It rather says too
much than too little: a client that compacts early loses less than one that is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.json.json_io import encode_json
from xenoglot.model.content import (
    Audio,
    File,
    Image,
    Inline,
    Nested,
    Opaque,
    Plain,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
)
from xenoglot.policy.token_estimate import bytes_tokens, text_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xenoglot.model.content import Part, Source
    from xenoglot.model.json import JSON
    from xenoglot.model.request import Prompt, Request, Tool

MESSAGE_TOKENS = 4
TOOL_TOKENS = 8
IMAGE_TOKENS = 1600
MEDIA_TOKENS = 1600
"""A file or a sound of unknown size."""
MEDIA_CHARACTERS_PER_TOKEN = 32
"""Characters of base64."""


def estimate(request: Request) -> int:
    """Return about how many tokens the prompt of `request` is, at least 1."""
    tokens = MESSAGE_TOKENS * len(request.messages)
    for message in request.messages:
        tokens += _parts(message.content)
    for tool in request.tools:
        tokens += _tool(tool)
    if request.prompt is not None:
        tokens += _prompt(request.prompt)
    return max(1, tokens)


def _prompt(prompt: Prompt) -> int:
    tokens = _text(prompt.suffix)
    for text in prompt.texts:
        tokens += _text(text) if isinstance(text, str) else len(text)
    return tokens


def _parts(parts: Iterable[Part]) -> int:
    tokens = 0
    for part in parts:
        tokens += _text(part.text) if type(part) is Text else estimate_part(part)
    return tokens


def estimate_part(part: Part) -> int:  # noqa: PLR0911  one for each kind
    """Return about how many tokens one part of a turn is."""
    match part:
        case ToolCall():
            return TOOL_TOKENS + _text(part.name) + _text(part.arguments)
        case ToolResult():
            return TOOL_TOKENS + _parts(part.content)
        case Text(text=text) | Refusal(text=text):
            return _text(text)
        case Reasoning():
            return _text(part.text) + _text("".join(part.summary or ())) + _text(part.encrypted)
        case Image():
            return IMAGE_TOKENS
        case Audio(source=None):
            return _text(part.transcript)
        case Audio(source=source) | File(source=source):
            return _media(source)
        case Opaque():
            return _json(part.data)


def _tool(tool: Tool | Opaque) -> int:
    if isinstance(tool, Opaque):
        return TOOL_TOKENS + _json(tool.data)
    return TOOL_TOKENS + _text(tool.name) + _text(tool.description) + _json(tool.parameters) + _json(tool.format)


def _media(source: Source | None) -> int:
    match source:
        case Inline(data=data):
            return max(1, len(data) // MEDIA_CHARACTERS_PER_TOKEN)
        case Plain(text=text):
            return _text(text)
        case Nested(parts=parts):
            return _parts(parts)
        case _:
            return MEDIA_TOKENS


def _json(value: JSON) -> int:
    return 0 if value is None else bytes_tokens(encode_json(value))


def _text(text: str | None) -> int:
    return text_tokens(text) if text else 0
