"""Transcript of a run: join the pieces of one message, and make call ids unique."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.codec.json.json_io import decode_json
from xenoglot.errors import WireError
from xenoglot.model.content import Text, ToolCall
from xenoglot.model.request import Message, ToolChoice
from xenoglot.text.resume_overlap import LONGEST_OVERLAP, overlap

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xenoglot.model.content import Part

CONTINUE: Final = (
    "[Your answer was cut off because it reached the longest length of one answer. Go on exactly where it stopped: "
    "repeat nothing, explain nothing.]"
)


def reminder() -> Message:
    """Return the message that requests the rest of an answer; it is sent, but not stored."""
    return Message(role="user", content=(Text(text=CONTINUE),))


def join_parts(before: tuple[Part, ...], after: tuple[Part, ...], *, trim: bool) -> tuple[Part, ...]:
    """Return one message of two pieces; with `trim`, without the second's repetition of the first's end."""
    said = "".join(part.text for part in before if isinstance(part, Text))
    parts = list(after)
    if trim:
        for at, part in enumerate(parts):
            if isinstance(part, Text):
                parts[at] = _trimmed(part, said)
                break
    if before and parts and isinstance(before[-1], Text) and isinstance(parts[0], Text):
        last, first = before[-1], parts[0]
        both = replace(
            last,
            text=last.text + first.text,
            citations=(*last.citations, *first.citations),
            logprobs=(*last.logprobs, *first.logprobs),
        )
        return (*before[:-1], both, *parts[1:])
    return (*before, *parts)


def _trimmed(part: Text, said: str) -> Text:
    repeated = overlap(said[-LONGEST_OVERLAP:], part.text)
    return replace(part, text=part.text[repeated:], logprobs=(), citations=()) if repeated else part


def text_of(parts: Iterable[Part]) -> str:
    """Return the text of a message."""
    return "".join(part.text for part in parts if isinstance(part, Text))


def ids_in(messages: Iterable[Message]) -> set[str]:
    """Return the ids of all calls in a transcript."""
    return {part.id for message in messages for part in message.content if isinstance(part, ToolCall)}


def distinct(content: Sequence[Part], taken: set[str]) -> tuple[Part, ...]:
    """Return the parts with unique call ids, and add the ids to `taken`.

    Local models use no ids, or the same in every answer; a result must belong to one call. Empty texts are left out.
    """
    made: list[Part] = []
    numbers: dict[str, int] = {}
    for part in content:
        if isinstance(part, Text) and not part.text and part.extra is None:
            continue  # some servers refuse a turn with nothing in it
        if not isinstance(part, ToolCall):
            made.append(part)
            continue
        name, stem = part.id, part.id or "call"
        while not name or name in taken:
            numbers[stem] = numbers.get(stem, 0) + 1
            name = f"{stem}_{numbers[stem]}"
        taken.add(name)
        made.append(part if name == part.id else replace(part, id=name))
    return tuple(made)


def is_truncated(call: ToolCall, *, last: bool) -> bool:
    """Return whether the arguments of a call in a truncated answer are incomplete."""
    if call.kind == "custom" or not call.arguments.strip():
        return last
    try:
        decode_json(call.arguments)
    except WireError:
        return True
    return False


def relaxed(choice: ToolChoice | None) -> ToolChoice | None:
    """Return the tool choice after the first answer: a tool that must be called would be called for ever."""
    if choice is None or choice.mode != "required":
        return choice
    return replace(choice, mode="auto", names=choice.names if len(choice.names) > 1 else ())
