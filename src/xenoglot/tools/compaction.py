"""Compaction of a long transcript: old tool results become notes, then old messages become a summary. Pure.

Theory of operation. A transcript is a list of units: an answer with tool calls and the results of these calls is one,
any other message is one. System messages, the first user message and the last units stay; between them, tool results
are shortened first, then everything is replaced by one message. Units are kept or dropped as a whole: no call is
separated from its result, and no signed reasoning from its answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.errors import ConfigurationError
from xenoglot.model.content import Audio, File, Image, Refusal, Text, ToolCall, ToolResult, Video
from xenoglot.model.request import Message, Request, Sampling
from xenoglot.model.short_repr import short_repr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from xenoglot.model.content import Part

SHORT_RESULT: Final = 400
"""Characters of a result that is too short to be replaced by a note."""
PREVIEW: Final = 120
"""Characters of a result that its note quotes."""
DIGEST_LINES: Final = 24
DIGEST_WIDTH: Final = 160
SUMMARY_TOKENS: Final = 1024
"""Most tokens of a summary by the model."""
SUMMARY_SHARE: Final = 2_000
"""Characters of one message that are sent to the model for a summary."""

LEFT_OUT: Final = "[Earlier turns of this conversation were left out to make room. What happened in them:]"

_SUMMARISE: Final = (
    "Below is the beginning of a conversation between a user and an assistant that uses tools. Write down, briefly and "
    "in plain words, what the assistant must know to go on: what was asked, what was found and done, what is still to "
    "do. Names, paths and numbers that matter must be in it. Write nothing else.\n\n"
)


class Compaction(Struct, frozen=True, kw_only=True):
    """When to compact the transcript of a run, and how far.

    Args:
        window: The model's context window in tokens. `None` is what is known of the model.
        above: Compact when the prompt exceeds this share of the window, 0 to 1. Default: `0.8`.
        target: Reduce the prompt to this share of the window. Default: `0.5`.
        keep_turns: The last turns, which stay unchanged if possible. Default: `4`.
        summarise: Whether the model writes a summary of the turns that are left out. Otherwise they become a list of
            short lines. Default: `False`.

    Raises:
        ConfigurationError: A value is out of range, or `target` is above `above`.

    Example:
        >>> import xenoglot
        >>> xenoglot.Compaction(window=32_000, keep_turns=6)
        Compaction(window=32000, keep_turns=6)
    """

    window: int | None = None
    above: float = 0.8
    target: float = 0.5
    keep_turns: int = 4
    summarise: bool = False

    __repr__ = short_repr

    def __post_init__(self) -> None:
        if self.window is not None and self.window < 1:
            raise ConfigurationError(f"`compaction.window`: found {self.window}; expected at least 1, or `None`")
        if not 0 < self.target <= self.above <= 1:
            raise ConfigurationError("`compaction`: expected 0 < `target` <= `above` <= 1")
        if self.keep_turns < 1:
            raise ConfigurationError(f"`compaction.keep_turns`: found {self.keep_turns}; expected at least 1")


class CompactionSplit(Struct, frozen=True, kw_only=True):
    """A transcript without its middle: the part before, the dropped part, and the part after."""

    head: tuple[Message, ...]
    dropped: tuple[Message, ...]
    tail: tuple[Message, ...]

    def join(self, note: str | None = None) -> tuple[Message, ...]:
        """Return the shorter transcript; `note`, or a digest, replaces the dropped part."""
        if not self.dropped:
            return (*self.head, *self.tail)
        said = f"{LEFT_OUT}\n{note or digest(self.dropped)}"
        return (*self.head, Message(role="user", content=(Text(text=said),)), *self.tail)


def shorten(
    messages: Sequence[Message], keep_turns: int, target: int, size: Callable[[tuple[Message, ...]], int]
) -> CompactionSplit:
    """Return the smallest reduction that brings `messages` to `target` by `size`; the largest if none does."""
    cut = CompactionSplit(head=tuple(messages), dropped=(), tail=())
    if size(cut.head) <= target:
        return cut
    for cut in _cuts(messages, keep_turns):
        if size(cut.join()) <= target:
            break
    return cut


def units(messages: Sequence[Message]) -> list[tuple[Message, ...]]:
    """Return the messages in units; calls and their results are one."""
    found: list[list[Message]] = []
    calling = False
    for message in messages:
        answers = message.role == "tool" or any(isinstance(part, ToolResult) for part in message.content)
        if answers and calling:
            found[-1].append(message)
            continue
        found.append([message])
        calling = any(isinstance(part, ToolCall) for part in message.content)
    return [tuple(unit) for unit in found]


def replace_results(messages: Sequence[Message], note: str) -> tuple[Message, ...]:
    """Return the messages with the result `note` for each call without one, as after a killed run."""
    made: list[Message] = []
    for unit in units(messages):
        made += unit
        results = {part.call_id for message in unit for part in message.content if isinstance(part, ToolResult)}
        for call in [part for message in unit for part in message.content if isinstance(part, ToolCall)]:
            if call.id not in results:
                said = ToolResult(
                    call_id=call.id, content=(Text(text=note),), is_error=True, name=call.name, kind=call.kind
                )
                made.append(Message(role="tool", content=(said,)))
    return tuple(made)


def digest(messages: Sequence[Message]) -> str:
    """Return a digest of `messages` in a few lines; an earlier digest is continued."""
    lines = [line for message in messages for line in _lines(message, DIGEST_WIDTH)]
    return "\n".join(lines[-DIGEST_LINES:])


def summary_request(request: Request, dropped: Sequence[Message], most: int) -> Request:
    """Return the request for a summary of `dropped`, of which about `most` characters are sent."""
    told = "\n".join(line for message in dropped for line in _lines(message, SUMMARY_SHARE))
    asked = Message(role="user", content=(Text(text=_SUMMARISE + told[-most:]),))
    return Request(
        model=request.model, messages=(asked,), sampling=Sampling(max_tokens=SUMMARY_TOKENS), user=request.user
    )


def _cuts(messages: Sequence[Message], keep_turns: int) -> Iterator[CompactionSplit]:
    """Yield the possible reductions, smallest first."""
    row = units(messages)
    first = next((at for at, unit in enumerate(row) if unit[0].role == "user"), 0)
    keep = min(keep_turns, max(1, len(row) - first - 1))
    old = max(first + 1, len(row) - keep)
    noted = [*row[: first + 1], *(_with_notes(unit) for unit in row[first + 1 : old]), *row[old:]]
    yield _split(noted, len(noted), len(noted))
    while keep >= 1:
        yield _split(row, first + 1, max(first + 1, len(row) - keep))
        keep //= 2
    last = max(first + 1, len(row) - 1)
    yield _split([*row[:last], *(_with_notes(unit) for unit in row[last:])], first + 1, last)


def _split(row: Sequence[tuple[Message, ...]], begin: int, end: int) -> CompactionSplit:
    middle = [message for unit in row[begin:end] for message in unit]
    kept = [message for message in middle if message.role in ("system", "developer")]
    return CompactionSplit(
        head=(*(message for unit in row[:begin] for message in unit), *kept),
        dropped=tuple(message for message in middle if message.role not in ("system", "developer")),
        tail=tuple(message for unit in row[end:] for message in unit),
    )


def _with_notes(unit: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the unit with notes in place of long results."""
    return tuple(replace(message, content=tuple(_note(part) for part in message.content)) for message in unit)


def _note(part: Part) -> Part:
    if not isinstance(part, ToolResult):
        return part
    text = _text(part.content)
    media = [type(inner).__name__.lower() for inner in part.content if isinstance(inner, Image | Audio | Video | File)]
    if len(text) <= SHORT_RESULT and not media:
        return part
    held = ", ".join([f"{len(text)} characters", *media])
    preview = " ".join(text[:PREVIEW].split())
    note = f"[this result was left out to make room: {held}" + (f"; it began: {preview} ...]" if preview else "]")
    return replace(part, content=(Text(text=note),))


def _lines(message: Message, width: int) -> Iterator[str]:
    """Yield the content of a message, one line for each part."""
    for part in message.content:
        match part:
            case Text(text=text) if text.startswith(LEFT_OUT):
                yield from text.splitlines()[1:]
            case Text(text=text) | Refusal(text=text) if text.strip():
                yield _line(message.role, text, width)
            case ToolCall():
                yield _line("assistant", f"called {part.name}({part.arguments})", width)
            case ToolResult():
                yield _line(f"result of {part.name or 'the tool'}", _text(part.content), width)
            case _:
                pass  # thoughts are not repeated, and pictures cannot be


def _line(who: str, text: str, width: int) -> str:
    said = " ".join(text[: width * 2].split())
    return f"- {who}: {said if len(said) <= width else said[:width] + ' ...'}"


def _text(parts: Sequence[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Text))
