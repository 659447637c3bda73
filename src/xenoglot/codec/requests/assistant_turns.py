"""Joins adjacent assistant turns: some clients send one turn for each chunk of an answer."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.model.content import Extra, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.content import Part
    from xenoglot.model.request import Message

PARAGRAPH = "\n\n"

_SENTENCE_ENDS = (".", "!", "?", ":", "…", "\u3002", "\uff01", "\uff1f", "\uff1a")
"""A chunk rarely ends so without a space at the beginning of the next; a whole turn mostly does."""


def turns_for(
    messages: Sequence[Message], crossing: EncodeContext, dialect: str
) -> tuple[Sequence[Message], EncodeContext]:
    """Return what `join_assistant_turns` gives, with the context for it; requests of `dialect` stay unchanged."""
    if crossing.home:
        return messages, crossing
    turns, losses = join_assistant_turns(messages, crossing.losses, dialect)
    return turns, crossing if losses is crossing.losses else replace(crossing, losses=losses)


def join_assistant_turns(messages: Sequence[Message], losses: Losses, dialect: str) -> tuple[Sequence[Message], Losses]:
    """Return `messages` with neighbouring assistant turns joined, and the losses for them.

    The returned losses record the paths of `messages` as they were. Two turns with different names stay apart, unless
    the first has tool calls: the results of both turns follow the second.
    """
    if not _has_neighbours(messages):
        return messages, losses
    joined: list[Message] = []
    places: dict[str, str | None] = {}
    for run in _runs(messages):
        first = run[0]
        if len(joined) < first:
            places[f"$.messages[{len(joined)}]"] = f"$.messages[{first}]"
        joined.append(messages[first] if len(run) == 1 else _join(messages, run, losses, dialect))
        count = len(messages[first].content)
        for index in run[1:]:
            for number in range(len(messages[index].content)):
                places[f"$.messages[{len(joined) - 1}].content[{count}]"] = f"$.messages[{index}].content[{number}]"
                count += 1
    return joined, losses.moved(places)


_role = attrgetter("role")


def _has_neighbours(messages: Sequence[Message]) -> bool:
    return "assistant assistant" in " ".join(map(_role, messages))


def _runs(messages: Sequence[Message]) -> list[list[int]]:
    """Return the indexes of the messages, those of turns that are joined together."""
    runs: list[list[int]] = []
    joinable = calls = False  # of the last run
    name: str | None = None
    for index, message in enumerate(messages):
        spoken = message.role == "assistant" and not any(isinstance(part, ToolResult) for part in message.content)
        called = spoken and any(isinstance(part, ToolCall) for part in message.content)
        if joinable and spoken and (calls or message.name in (None, name)):
            runs[-1].append(index)
            calls = calls or called
        else:
            runs.append([index])
            joinable, calls, name = spoken, called, message.name
    return runs


def _join(messages: Sequence[Message], run: Sequence[int], losses: Losses, dialect: str) -> Message:
    first = messages[run[0]]
    where = f"$.messages[{run[0]}]"
    losses.approximated(where, "turn", "joined with the assistant turns after it")
    fields = dict(losses.carry(first.extra, where, dialect))
    for index in run[1:]:
        message, where = messages[index], f"$.messages[{index}]"
        for field in ("name", "id"):
            if getattr(message, field) not in (None, getattr(first, field)):
                losses.dropped(where, field, "the joined turn has one at most")
        fields = {**losses.carry(message.extra, where, dialect), **fields} if message.extra is not None else fields
    own = first.extra if first.extra is not None and first.extra.dialect == dialect else Extra(dialect=dialect)
    content: list[Part] = []
    for index in run:
        parts = messages[index].content
        content += parts if not content or not parts else (_spaced(content[-1], parts[0]), *parts[1:])
    return replace(
        first, content=tuple(content), extra=replace(own, fields=fields) if fields else _form(first.extra, dialect)
    )


def _spaced(before: Part, part: Part) -> Part:
    """Return `part` as it follows `before`: a new paragraph after a whole sentence, else the next chunk of the text."""
    if not (isinstance(before, Text) and isinstance(part, Text) and before.text.endswith(_SENTENCE_ENDS)):
        return part
    return part if not part.text or part.text[0].isspace() else replace(part, text=f"{PARAGRAPH}{part.text}")


def _form(extra: Extra | None, dialect: str) -> Extra | None:
    """Return what is left of `extra` when its fields are reported: the form of the target's own dialect."""
    return extra if extra is not None and extra.dialect == dialect else None
