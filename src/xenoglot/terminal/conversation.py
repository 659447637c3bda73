"""Conversation state of `xenoglot chat`: messages, model and options of its requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.errors import ConfigurationError
from xenoglot.model.content import Text, ToolResult
from xenoglot.model.request import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
INTERRUPTED = "[interrupted here]"
"""Appended to the received part of an answer that was stopped, so that the model knows."""

UNSET = ("off", "none", "default")


def _number(word: str) -> float:
    number = float(word)
    if not abs(number) < float("inf"):
        raise ValueError(word)
    return number


def _effort(word: str) -> str:
    if word not in EFFORTS:
        raise ValueError(word)
    return word


def _verbosity(word: str) -> str:
    if word not in ("low", "medium", "high"):
        raise ValueError(word)
    return word


def _stop(word: str) -> list[str]:
    return [word.replace("\\n", "\n")]


SETTINGS: dict[str, tuple[Callable[[str], JSON], str]] = {
    "temperature": (_number, "a number"),
    "top_p": (_number, "a number"),
    "top_k": (int, "a whole number"),
    "min_p": (_number, "a number"),
    "max_tokens": (int, "a whole number"),
    "seed": (int, "a whole number"),
    "frequency_penalty": (_number, "a number"),
    "presence_penalty": (_number, "a number"),
    "stop": (_stop, "a text"),
    "thinking": (_effort, f"one of {', '.join(EFFORTS)}"),
    "verbosity": (_verbosity, "low, medium or high"),
}
"""What `/set` sets: the options of `complete` by these names, how a word is read as one, and what is expected."""


class Conversation:
    """The messages of one conversation.

    `waiting` holds attachments for the next question; `unanswered` is a question that was removed because it got no
    answer.
    """

    def __init__(self, *, model: str | None = None, system: str | None = None) -> None:
        self.model = model
        self.system = system
        self.settings: dict[str, JSON] = {}
        self.turns: tuple[Message, ...] = ()
        self.waiting: tuple[Part, ...] = ()
        self.unanswered: Message | None = None

    @property
    def options(self) -> dict[str, JSON]:
        """The options of requests."""
        told: dict[str, JSON] = {"model": self.model, "system": self.system}
        return {name: value for name, value in {**told, **self.settings}.items() if value is not None}

    def ask(self, text: str) -> None:
        """Add a question, with the waiting attachments."""
        content = (*self.waiting, *((Text(text=text),) if text else ()))
        self.turns = (*self.turns, Message(role="user", content=content))
        self.waiting = ()
        self.unanswered = None

    def answered(self, *turns: Message) -> None:
        """Add an answer."""
        self.turns = (*self.turns, *turns)

    def stopped(self, came: Sequence[Part]) -> None:
        """Add the text of an answer that was stopped; without any text, the question is removed.

        Only text is kept: reasoning without its signature, or a call without its result, cannot be sent again.
        """
        words = "".join(part.text for part in came if isinstance(part, Text))
        if words.strip():
            self.answered(_marked(words))
        else:
            self.unanswered = self.undo()

    def interrupted(self) -> None:
        """Mark the last turn as one that was stopped; without any words of it, it goes, and a bare question with it."""
        if self.turns and self.turns[-1].role == "assistant":
            *before, last = self.turns
            self.turns = tuple(before)
            words = "".join(part.text for part in last.content if isinstance(part, Text))
            if words.strip():
                self.answered(_marked(words))
        if self.turns and self._last_question() == len(self.turns) - 1:
            self.unanswered = self.undo()

    def undo(self) -> Message | None:
        """Remove the last question and everything after it; return the question, or None if there is none."""
        index = self._last_question()
        if index is None:
            return None
        asked = self.turns[index]
        self.turns = self.turns[:index]
        return asked

    def retry(self) -> Message | None:
        """Make the last question the last turn, to be sent again; return it, or None if there is none."""
        asked = self.unanswered or self.undo()
        if asked is not None:
            self.turns = (*self.turns, asked)
            self.unanswered = None
        return asked

    def _last_question(self) -> int | None:
        asked = [
            index
            for index, turn in enumerate(self.turns)
            if turn.role == "user" and not any(isinstance(part, ToolResult) for part in turn.content)
        ]
        return asked[-1] if asked else None

    def clear(self) -> None:
        """Remove all turns; the model, its instructions and its settings stay."""
        self.turns = ()
        self.waiting = ()
        self.unanswered = None

    def put(self, name: str, word: str) -> None:
        """Set one of `SETTINGS`, or reset it with the value `off`.

        Raises:
            ConfigurationError: the setting does not exist, or the value is invalid.
        """
        if name not in SETTINGS:
            raise ConfigurationError(f"there is no setting `{name}`; there are {', '.join(SETTINGS)}")
        read, expected = SETTINGS[name]
        if word in UNSET and not (name == "thinking" and word == "none"):
            self.settings.pop(name, None)
            return
        try:
            self.settings[name] = read(word)
        except ValueError:
            raise ConfigurationError(f"`{name}`: found `{word}`; expected {expected}, or `off`") from None


def _marked(words: str) -> Message:
    return Message(role="assistant", content=(Text(text=f"{words.rstrip()} {INTERRUPTED}"),))
