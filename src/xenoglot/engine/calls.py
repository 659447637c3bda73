"""The text that a grammar let pass, made into tool calls and words as it comes.

The text is one JSON object that begins in one of a few known ways. What follows its beginning is passed on, until the
brace that ends the object. No JSON is parsed twice and nothing waits for its end, but an escape in words.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

from msgspec.structs import replace

from xenoglot.model.content import Text, ToolCall
from xenoglot.model.events import ArgumentsDelta, BlockEnded, BlockStarted, TextDelta

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xenoglot.engine.constrain import Branch
    from xenoglot.model.content import Logprob
    from xenoglot.model.events import Event
    from xenoglot.model.response import Finish

_STRUCTURE: Final = re.compile(r'["{}\[\]\\]')
_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t"}


class CallSpeech:
    """A stage from constrained text to one tool call, or to words. `identify` makes the id of a call."""

    def __init__(self, candidate: int, branches: Sequence[Branch], identify: Callable[[], str]) -> None:
        self._candidate = candidate
        self._branches = branches
        self._identify = identify
        self._beginning = ""
        self._branch: Branch | None = None
        self._value: _Value | _Words = _Value()

    def feed(self, text: str, _logprobs: tuple[Logprob, ...]) -> Sequence[Event]:
        """Take more text; return the start of a block when it is known which, and what belongs into it."""
        if self._branch is not None:
            return self._delta(text)
        self._beginning += text
        for branch in self._branches:
            if self._beginning.startswith(branch.prefix):
                self._branch = branch
                if branch.form in ("input", "reply"):
                    self._value = _Words()
                return (self._start(branch), *self._delta(self._beginning[len(branch.prefix) :]))
        return ()

    def close(self, finish: Finish) -> tuple[Sequence[Event], Finish]:
        """End the block; where that is a whole call, it is why the answer ended."""
        if self._branch is None:
            return (), finish
        called = self._branch.name and self._value.ended and finish.reason == "stop"
        return (BlockEnded(candidate=self._candidate),), replace(finish, reason="tool_calls") if called else finish

    def _start(self, branch: Branch) -> Event:
        part: Text | ToolCall = Text(text="")
        if branch.name:
            kind: Literal["function", "custom"] = "custom" if branch.form == "input" else "function"
            part = ToolCall(id=self._identify(), name=branch.name, kind=kind)
        return BlockStarted(part=part, candidate=self._candidate)

    def _delta(self, text: str) -> Sequence[Event]:
        found = self._value.feed(text)
        if not found:
            return ()
        if self._branch is not None and self._branch.name:
            return (ArgumentsDelta(text=found, candidate=self._candidate),)
        return (TextDelta(text=found, candidate=self._candidate),)


class _Value:
    """A stage that lets the text of a JSON value pass, up to the bracket that closes what is around it."""

    def __init__(self) -> None:
        self.ended = False
        self._depth = 1
        self._in_string = False
        self._escaped = False

    def feed(self, text: str) -> str:
        if self.ended:
            return ""
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
                    return text[: at - 1]
        return text


class _Words:
    r"""A stage from the text of a JSON string, in which the grammar allows no `\u`, to the words it stands for."""

    def __init__(self) -> None:
        self.ended = False
        self._begun = False
        self._escaped = False

    def feed(self, text: str) -> str:
        words: list[str] = []
        for character in text if not self.ended else "":
            if self._escaped:
                words.append(_ESCAPES.get(character, character))
                self._escaped = False
            elif character == '"' and self._begun:
                self.ended = True
                break
            elif character == '"':
                self._begun = True
            elif character == "\\":
                self._escaped = True
            else:
                words.append(character)
        return "".join(words)
