"""The texts of requests and answers: what a hook that looks for words looks at.

These are the texts of all turns, system turns and results of tools included, reasoning, arguments of tool calls,
documents given as text, and prompts to be continued. Images, sound, files, encrypted reasoning, fields that only one
dialect has, and the definitions of tools are not looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.model.content import (
    Audio,
    File,
    Nested,
    Plain,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xenoglot.model.content import Part
    from xenoglot.model.request import Request


def request_texts(request: Request) -> list[str]:
    """Return the texts of a request, in order."""
    texts: list[str] = []

    def note(text: str) -> str:
        texts.append(text)
        return text

    map_request(request, note)
    return texts


def part_texts(parts: Sequence[Part]) -> list[str]:
    """Return the texts of parts, in order."""
    texts: list[str] = []

    def note(text: str) -> str:
        texts.append(text)
        return text

    for part in parts:
        map_part(part, note)
    return texts


def map_request(request: Request, change: Callable[[str], str]) -> Request:
    """Return a request with each of its texts changed; the same if none does."""
    messages = list(request.messages)
    same = True
    for index, message in enumerate(messages):
        content = _parts(message.content, change)
        if content is not message.content:
            messages[index] = replace(message, content=content)
            same = False
    prompt = request.prompt
    if prompt is not None:
        texts = tuple(change(text) if isinstance(text, str) else text for text in prompt.texts)
        suffix = None if prompt.suffix is None else change(prompt.suffix)
        if (texts, suffix) != (prompt.texts, prompt.suffix):
            return replace(request, messages=tuple(messages), prompt=replace(prompt, texts=texts, suffix=suffix))
    return request if same else replace(request, messages=tuple(messages))


def map_part(part: Part, change: Callable[[str], str]) -> Part:
    """Return a part with each of its texts changed; the same if none does."""
    match part:
        case ToolResult() | File():
            return _document(part, change)
        case Text(text=text) | Refusal(text=text):
            new = change(text)
            return part if new == text else replace(part, text=new)
        case ToolCall(arguments=arguments):
            new = change(arguments)
            return part if new == arguments else replace(part, arguments=new)
        case Reasoning():
            return _reasoning(part, change)
        case Audio(transcript=str(text)):
            new = change(text)
            return part if new == text else replace(part, transcript=new)
        case _:
            return part


def _document(part: ToolResult | File, change: Callable[[str], str]) -> Part:
    match part:
        case ToolResult(content=content):
            changed = _parts(content, change)
            return part if changed is content else replace(part, content=changed)
        case File(source=Nested(parts=content)):
            changed = _parts(content, change)
            return part if changed is content else replace(part, source=Nested(parts=changed))
        case File(source=Plain(text=text) as source):
            new = change(text)
            return part if new == text else replace(part, source=replace(source, text=new))
        case _:
            return part


def _parts(parts: tuple[Part, ...], change: Callable[[str], str]) -> tuple[Part, ...]:
    changed = tuple(map_part(part, change) for part in parts)
    return parts if all(new is old for new, old in zip(changed, parts, strict=True)) else changed


def _reasoning(part: Reasoning, change: Callable[[str], str]) -> Reasoning:
    text = None if part.text is None else change(part.text)
    summary = None if part.summary is None else tuple(change(one) for one in part.summary)
    same = text == part.text and summary == part.summary
    return part if same else replace(part, text=text, summary=summary)
