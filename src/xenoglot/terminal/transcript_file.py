"""Saves and loads conversations: as JSON, or as Markdown (save only)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

from xenoglot.codec.hosted_text import words_of_hosted
from xenoglot.errors import ConfigurationError
from xenoglot.model.content import (
    CompactedHistory,
    File,
    HostedCall,
    HostedResult,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
)
from xenoglot.model.json import JSON
from xenoglot.model.request import Message
from xenoglot.terminal.conversation import Conversation
from xenoglot.terminal.display.sanitize import in_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.model.content import Part

LARGEST = 100_000_000
"""Bytes of a file that is loaded."""

NAMES = {"user": "You", "assistant": "Model", "tool": "Tool", "system": "System", "developer": "Developer"}


class SavedConversation(Struct, frozen=True, kw_only=True):
    """A conversation as JSON: its messages in the canonical model."""

    kind: Literal["xenoglot.conversation"] = "xenoglot.conversation"
    version: Literal[1] = 1
    model: str | None = None
    system: str | None = None
    settings: dict[str, JSON] = msgspec.field(default_factory=dict)
    messages: tuple[Message, ...] = ()


def save(conversation: Conversation, path: str, *, replace: bool = False) -> None:
    """Write a conversation to `path` atomically: as Markdown if the name ends in `.md`, else as JSON.

    Raises:
        ConfigurationError: the file cannot be written, or exists and must not be replaced.
    """
    place = Path(path).expanduser()
    markdown = place.suffix.lower() in (".md", ".markdown")
    data = "".join(_markdown(conversation)).encode(errors="replace") if markdown else encode(conversation)
    work = place.parent / f".{place.name}.{os.getpid()}.new"
    try:
        if not replace and place.exists():
            raise ConfigurationError(f"`{in_line(path)}` already exists; choose another name")
        work.write_bytes(data)
        work.replace(place)
    except (OSError, ValueError) as error:
        work.unlink(missing_ok=True)
        raise ConfigurationError(f"`{in_line(path)}` cannot be written: {_reason(error)}") from None


def load(path: str) -> Conversation:
    """Read a conversation that was saved as JSON.

    Raises:
        ConfigurationError: the file cannot be read, or is not a conversation.
    """
    place = Path(path).expanduser()
    try:
        if place.exists() and not place.is_file():  # a pipe may never end
            raise ConfigurationError(f"`{in_line(path)}` is no regular file")
        with place.open("rb") as file:
            data = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"`{in_line(path)}` cannot be read: {_reason(error)}") from None
    try:
        if len(data) > LARGEST:
            raise ConfigurationError(f"`{in_line(path)}` is too large")
        saved = msgspec.json.decode(data, type=SavedConversation)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ConfigurationError(f"`{in_line(path)}` is no conversation that was saved as JSON") from None
    conversation = Conversation(model=saved.model, system=saved.system)
    for name, value in saved.settings.items():
        conversation.put(name, _word(value))
    conversation.turns = saved.messages
    return conversation


def encode(conversation: Conversation) -> bytes:
    """Return a conversation as indented JSON."""
    saved = SavedConversation(
        model=conversation.model,
        system=conversation.system,
        settings=conversation.settings,
        messages=conversation.turns,
    )
    return msgspec.json.format(msgspec.json.encode(saved), indent=1) + b"\n"


def _word(value: JSON) -> str:
    return str(value[0]) if isinstance(value, list) and value else str(value)


def _reason(error: Exception) -> str:
    return os.strerror(error.errno) if isinstance(error, OSError) and error.errno else "its name cannot be one"


def _markdown(conversation: Conversation) -> Iterator[str]:
    yield f"# A conversation{'' if conversation.model is None else f' with {in_line(conversation.model)}'}\n"
    if conversation.system is not None:
        yield f"\n## System\n\n{conversation.system.strip()}\n"
    for turn in conversation.turns:
        yield f"\n## {NAMES[turn.role]}\n"
        for part in turn.content:
            yield f"\n{_part_text(part)}\n"


def _part_text(part: Part) -> str:  # noqa: PLR0911  one for each kind
    match part:
        case Text(text=text) | Refusal(text=text):
            return text.strip()
        case Reasoning(text=text, summary=summary):
            thought = (text or "\n".join(summary or ())).strip() or "(kept by the model)"
            return "\n".join(f"> {line}".rstrip() for line in f"Thought: {thought}".split("\n"))
        case ToolCall(name=name, arguments=arguments):
            return f"Calls `{in_line(name)}`:\n\n````\n{arguments}\n````"
        case ToolResult(content=content, is_error=is_error):
            told = "\n".join(_part_text(one) for one in content)
            return f"{'Error' if is_error else 'Result'}:\n\n````\n{told}\n````"
        case CompactedHistory(text=text):
            return f"[summary of the turns before]\n\n{text or ''}".strip()
        case File(name=str(name)):
            return f"[file: {in_line(name)}]"
        case _:
            words = words_of_hosted(part) if isinstance(part, HostedCall | HostedResult) else None
            return words or f"[{type(part).__name__.lower()}]"
