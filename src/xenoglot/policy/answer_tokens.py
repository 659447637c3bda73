"""Estimates the tokens of an answer while it grows, for clients whose upstream does not report them. Pure.

Pieces of text are kept until there are enough of them for an estimate (`policy.token_estimate` looks at words, not at
pieces of words), so memory is bounded and each character is counted once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.model.content import Audio, Reasoning, Refusal, Text, ToolCall
from xenoglot.model.events import (
    ArgumentsDelta,
    AudioDelta,
    BlockEnded,
    BlockStarted,
    ReasoningDelta,
    TextDelta,
)
from xenoglot.policy.prompt_estimate import TOOL_TOKENS, estimate_part
from xenoglot.policy.token_estimate import text_tokens

if TYPE_CHECKING:
    from xenoglot.model.content import Part
    from xenoglot.model.events import Event

MOST_KEPT: Final = 8192
"""Characters after which the pieces that are kept are counted."""

_GROWING = (Text, Refusal, Reasoning, ToolCall, Audio)


class AnswerTokens:
    """The tokens of the events fed so far; the same for an answer that is fed whole (`unfold`) and in pieces."""

    __slots__ = ("_grew", "_header", "_pending", "_size", "_tokens")

    def __init__(self) -> None:
        self._tokens = 0
        self._pending: list[str] = []
        self._size = 0
        self._header: Part = Text(text="")
        self._grew = False

    def count(self) -> int:
        """Return the tokens, at least 1."""
        self._flush()
        return max(1, self._tokens)

    def grow(self, text: str) -> None:
        """Add a piece of the open block."""
        self._pending.append(text)
        self._size += len(text)
        if self._size >= MOST_KEPT:
            self._flush()

    def feed(self, event: Event) -> None:
        """Add an event."""
        match event:
            case TextDelta(text=text) | ReasoningDelta(text=text) | ArgumentsDelta(text=text):
                self.grow(text)
            case AudioDelta(transcript=text):
                self.grow(text)
            case BlockStarted(part=part):
                self._begin(part)
            case BlockEnded(part=part):
                self._end(part)
            case _:
                pass

    def _begin(self, part: Part) -> None:
        self._flush()
        self._header, self._grew = part, False
        if isinstance(part, ToolCall):
            self._tokens += TOOL_TOKENS + text_tokens(part.name)
        self.grow(_text(part))

    def _end(self, whole: Part | None) -> None:
        part = self._header if whole is None else whole
        if not isinstance(part, _GROWING):
            self._tokens += estimate_part(part)
        elif whole is not None and not self._grew and not self._size:  # no delta had its words
            self.grow(_text(whole))
        self._flush()
        self._grew = False

    def _flush(self) -> None:
        if self._size:
            self._tokens += text_tokens("".join(self._pending))
            self._grew = True
        self._pending.clear()
        self._size = 0


def _text(part: Part) -> str:
    match part:
        case Text(text=text) | Refusal(text=text) | ToolCall(arguments=text):
            return text
        case Reasoning(text=text, summary=summary):
            return (text or "") + "".join(summary or ())
        case Audio(transcript=text):
            return text or ""
        case _:
            return ""
