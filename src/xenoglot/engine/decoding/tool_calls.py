"""Converts text that follows our grammar to tool calls and text, incrementally.

Each line is one JSON object with one of a few known prefixes. The text after the prefix is passed on until the closing
bracket. No JSON is parsed twice, and nothing is held back except an escape sequence in text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.model.content import Text, ToolCall
from xenoglot.model.events import ArgumentsDelta, BlockEnded, BlockStarted, TextDelta

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xenoglot.model.content import Logprob
    from xenoglot.model.events import Event
    from xenoglot.model.response import Finish

_STRUCTURE: Final = re.compile(r'["{}\[\]\\]')
_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t"}


class Branch(Struct, frozen=True):
    """One alternative of the answer: it starts with `prefix`, then its value, then `foot`.

    `form` is the kind of the value: arguments of the function `name`, input of the custom tool `name`, text as a JSON
    string, or plain text.
    """

    prefix: str
    form: Literal["arguments", "input", "reply", "value"]
    name: str = ""
    namespace: str | None = None
    foot: str = "}"


class ToolCallStage:
    """A stage from constrained text to tool calls, one per line, or to text. `identify` creates the id of a call."""

    def __init__(self, candidate: int, branches: Sequence[Branch], identify: Callable[[], str]) -> None:
        self._candidate = candidate
        self._branches = branches
        self._identify = identify
        self._first, self._next = _patterns(branches)
        self._held = ""
        self._branch: Branch | None = None
        self._value: _Inside | None = None
        self._whole = False

    def feed(self, text: str, _logprobs: tuple[Logprob, ...]) -> Sequence[Event]:
        """Take more text; return the beginnings of blocks, what belongs into them, and their ends."""
        events: list[Event] = []
        while text:
            text = self._pass(text, events)
        return events

    def close(self, finish: Finish) -> tuple[Sequence[Event], Finish]:
        """End the open block; where a whole call was the last thing, it is why the answer ended."""
        if self._value is not None:
            return (BlockEnded(candidate=self._candidate),), finish
        called = self._whole and finish.reason == "stop"
        return (), replace(finish, reason="tool_calls") if called else finish

    def _pass(self, text: str, events: list[Event]) -> str:
        """Pass on what belongs to a call; return what comes after its end."""
        if self._value is None:
            return self._begin(text, events)
        found, rest = self._value.feed(text)
        if found:
            events.append(self._delta(found))
        if self._value.ended:
            self._end(events)
        return rest

    def _begin(self, text: str, events: list[Event]) -> str:
        """Find out which call begins; what cannot be known yet is held."""
        self._held += text
        match = (self._next if self._whole else self._first).match(self._held)
        if match is None or match.lastindex is None:
            return ""
        rest, self._held = self._held[match.end() :], ""
        branch = self._branch = self._branches[match.lastindex - 1]
        self._value = _inside(branch)
        events.append(self._start(branch))
        return rest

    def _end(self, events: list[Event]) -> None:
        events.append(BlockEnded(candidate=self._candidate))
        self._whole = self._branch is not None and bool(self._branch.name)
        self._value = None

    def _start(self, branch: Branch) -> Event:
        part: Text | ToolCall = Text(text="")
        if branch.name:
            kind: Literal["function", "custom"] = "custom" if branch.form == "input" else "function"
            part = ToolCall(id=self._identify(), name=branch.name, kind=kind, namespace=branch.namespace)
        return BlockStarted(part=part, candidate=self._candidate)

    def _delta(self, text: str) -> Event:
        if self._branch is not None and self._branch.name:
            return ArgumentsDelta(text=text, candidate=self._candidate)
        return TextDelta(text=text, candidate=self._candidate)


def _patterns(branches: Sequence[Branch]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return how an answer begins, and what stands between a call and the next; each branch is a group."""
    ways = "|".join(f"({re.escape(branch.prefix)})" for branch in branches)
    feet = "|".join(dict.fromkeys(re.escape(branch.foot) for branch in branches))
    return re.compile(rf"(?:{ways})"), re.compile(rf"(?:{feet})\s*(?:{ways})")


class _Inside(Protocol):
    """A stage from the text of a value to the part that is passed on, and the text after its end."""

    ended: bool

    def feed(self, text: str) -> tuple[str, str]: ...


def _inside(branch: Branch) -> _Inside:
    match branch.form:
        case "arguments":
            return _Value(0)
        case "value":
            return _Value(1)
        case _:
            return _Words()


class _Value:
    """A stage that passes the text of a JSON value on.

    With `depth` 0 the value is an object, and ends with its own bracket. With 1 it may be any value, and ends before
    the bracket that closes its container.
    """

    def __init__(self, depth: int) -> None:
        self.ended = False
        self._around = depth
        self._depth = depth
        self._in_string = False
        self._escaped = False

    def feed(self, text: str) -> tuple[str, str]:
        at = 0
        if self._escaped and text:
            self._escaped, at = False, 1
        while found := _STRUCTURE.search(text, at):
            at = found.end()
            if found[0] == "\\":
                self._escaped = at == len(text)
                at += 1
            elif found[0] == '"':
                self._in_string = not self._in_string
            elif not self._in_string:
                self._depth += 1 if found[0] in "{[" else -1
                if not self._depth:
                    self.ended = True
                    return text[: at - self._around], text[at - self._around :]
        return text, ""


class _Words:
    r"""A stage from the text of a JSON string, in which the grammar allows no `\u`, to the words it stands for."""

    def __init__(self) -> None:
        self.ended = False
        self._begun = False
        self._escaped = False

    def feed(self, text: str) -> tuple[str, str]:
        words: list[str] = []
        for index, character in enumerate(text):
            if self._escaped:
                words.append(_ESCAPES.get(character, character))
                self._escaped = False
            elif character == '"' and self._begun:
                self.ended = True
                return "".join(words), text[index + 1 :]
            elif character == '"':
                self._begun = True
            elif character == "\\":
                self._escaped = True
            else:
                words.append(character)
        return "".join(words), ""
