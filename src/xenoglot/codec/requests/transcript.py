"""Renders turns as one text, for a model that continues what it reads.

A lone turn of the user is the text itself. Any other conversation is a transcript: each turn after the name of its
speaker, a blank line between two, and at its end the name of the one whose turn it is:

    System: Answer in French.

    User: Hello!

    Assistant:

A model that continues both sides of it is stopped where the user would speak next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from xenoglot.codec.hosted_text import hosted_words
from xenoglot.codec.opaque import name_of
from xenoglot.codec.requests.assistant_turns import join_assistant_turns
from xenoglot.codec.requests.compacted_history import open_turns, summary_of
from xenoglot.errors import WireError
from xenoglot.model.content import (
    Audio,
    File,
    HostedCall,
    HostedResult,
    Nested,
    Opaque,
    Plain,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Part
    from xenoglot.model.request import Message, Role

_SPEAKERS: Final[dict[Role, str]] = {
    "system": "System",
    "developer": "System",
    "user": "User",
    "assistant": "Assistant",
    "tool": "Tool",
}
_NEXT: Final = "\n\nUser:"
_WHERE: Final = "$.messages"
_BESIDE: Final = ("cache", "citations", "logprobs", "context", "citable", "detail")


class Transcript(Struct, frozen=True):
    """A conversation as text: its messages (`words`), and the complete input of the model (`text`).

    `stop` is the string that ends the model's turn, where there is one.
    """

    words: str
    text: str
    stop: str | None = None


def transcribe(messages: Sequence[Message], dialect: str, losses: Losses) -> Transcript:
    """Return `messages` as the text that a model after `dialect` continues.

    Raises:
        WireError: the user gives something that is no text.
    """
    if summary_of(messages) is not None:
        messages, losses = open_turns(messages, losses)
    messages, told = join_assistant_turns(messages, losses, dialect)
    turns = [
        turn for index, message in enumerate(messages) for turn in _turns(message, f"{_WHERE}[{index}]", dialect, told)
    ]
    if len(turns) == 1 and turns[0][0] == _SPEAKERS["user"]:
        losses.emulated(_WHERE, "turns", "the one turn of the user is the prompt")
        return Transcript(turns[0][1], turns[0][1])
    losses.emulated(_WHERE, "turns", "written as a transcript")
    words = "\n\n".join(f"{speaker}: {said}" for speaker, said in turns)
    if turns and turns[-1][0] == _SPEAKERS["assistant"]:
        return Transcript(words, words, _NEXT)
    return Transcript(words, f"{words}\n\nAssistant:" if words else "Assistant:", _NEXT)


def _turns(message: Message, where: str, dialect: str, losses: Losses) -> Iterator[tuple[str, str]]:
    """Yield speaker and words of a message; results of tools are turns of their own, before its words."""
    losses.carry(message.extra, where, dialect)
    if message.name is not None:
        losses.emulated(where, "name", "written after the speaker's role")
    said: list[str] = []
    for number, part in enumerate(message.content):
        place = f"{where}.content[{number}]"
        if isinstance(part, ToolResult):
            yield _SPEAKERS["tool"], _result(part, place, dialect, losses)
        else:
            said.append(_words(part, place, dialect, losses, given=message.role == "user"))
    words = "\n".join(text for text in said if text)
    if words or not message.content:
        speaker = _SPEAKERS[message.role]
        yield speaker if message.name is None else f"{speaker} ({message.name})", words


def _result(result: ToolResult, where: str, dialect: str, losses: Losses) -> str:
    losses.approximated(where, "tool result", "rendered as text")
    if result.is_error:
        losses.emulated(where, "is_error", "the text begins with `[tool error]`")
    _beside(result, where, dialect, losses)
    head = "[tool error] " if result.is_error else ""
    return head + _joined(result.content, f"{where}.content", dialect, losses, given=False)


def _joined(parts: Iterable[Part], where: str, dialect: str, losses: Losses, *, given: bool) -> str:
    said = (_words(part, f"{where}[{number}]", dialect, losses, given=given) for number, part in enumerate(parts))
    return "\n".join(text for text in said if text)


def _words(part: Part, where: str, dialect: str, losses: Losses, *, given: bool) -> str:
    """Return the text of a part; `given`: it is from the user, so that the question changes without it."""
    _beside(part, where, dialect, losses)
    match part:
        case Text(text=text) | Refusal(text=text):
            return text
        case ToolCall(name=name, arguments=arguments):
            losses.approximated(where, "tool call", "rendered as text")
            return f"[called {name}({arguments})]"
        case File(source=Plain(text=text)):
            losses.approximated(where, "file", "its text is part of the message text")
            return text
        case File(source=Nested(parts=parts)):
            return _joined(parts, f"{where}.source.parts", dialect, losses, given=given)
        case Audio(transcript=str(words)) | Opaque(text=str(words)):
            losses.approximated(where, _kind(part), "its text replaces it")
            return words
        case _:
            return _lost(part, where, losses, given=given)


def _beside(part: Part, where: str, dialect: str, losses: Losses) -> None:
    """Record the fields of a part that are not text."""
    for name in _BESIDE:
        if getattr(part, name, None) not in (None, ()):
            losses.dropped(where, name, "the dialect holds text only")
    if isinstance(part, File) and part.name is not None:
        losses.dropped(where, "name", "the dialect holds text only")
    losses.carry(getattr(part, "extra", None), where, dialect)


def _lost(part: Part, where: str, losses: Losses, *, given: bool) -> str:
    if isinstance(part, HostedCall | HostedResult):
        said = hosted_words(part, where, losses)
        return "" if said is None else said.text
    kind = _kind(part)
    if given and not isinstance(part, Opaque | Reasoning):
        raise WireError(where, f"the dialect of the server holds text only, and no {kind}")
    losses.dropped(where, kind, "the dialect holds text only")
    return ""


def _kind(part: Part) -> str:
    return name_of(part)
